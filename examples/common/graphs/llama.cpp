// Graphs of: llama bert.
#include "graphs.hpp"

mmr::graph training_graph(const mmr::llama::config& c, bool bf16, const mmr::adamw& o) {
  return bf16 ? mmr::llama::training_graph<mmr::bf16>(c, o) : mmr::llama::training_graph<float>(c, o);
}

mmr::graph training_graph(const mmr::bert::config& c, bool bf16, const mmr::adamw& o) {
  return bf16 ? mmr::bert::training_graph<mmr::bf16>(c, o) : mmr::bert::training_graph<float>(c, o);
}
