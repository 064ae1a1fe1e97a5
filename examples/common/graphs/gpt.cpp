// Graphs of: gpt moe.
#include "graphs.hpp"

mmr::graph training_graph(const mmr::gpt::config& c, bool bf16, const mmr::adamw& o) {
  return bf16 ? mmr::gpt::training_graph<mmr::bf16>(c, o) : mmr::gpt::training_graph<float>(c, o);
}

mmr::graph training_graph(const mmr::moe::config& c, bool bf16, const mmr::adamw& o) {
  return bf16 ? mmr::moe::training_graph<mmr::bf16>(c, o) : mmr::moe::training_graph<float>(c, o);
}
