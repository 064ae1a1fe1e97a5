// Graphs of: llama bert.
#include "graphs.hpp"

mmr::graph training_graph(const mmr::llama::config& c, precision p, const mmr::adamw& o) {
  return p == precision::bf16 ? mmr::llama::training_graph<mmr::bf16>(c, o) : mmr::llama::training_graph<float>(c, o);
}

mmr::graph training_graph(const mmr::bert::config& c, precision p, const mmr::adamw& o) {
  return p == precision::bf16 ? mmr::bert::training_graph<mmr::bf16>(c, o) : mmr::bert::training_graph<float>(c, o);
}
