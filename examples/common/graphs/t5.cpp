// Graphs of: t5 vit.
#include "graphs.hpp"

mmr::graph training_graph(const mmr::t5::config& c, bool bf16, const mmr::adamw& o) {
  return bf16 ? mmr::t5::training_graph<mmr::bf16>(c, o) : mmr::t5::training_graph<float>(c, o);
}

mmr::graph training_graph(const mmr::vit::config& c, bool bf16, const mmr::adamw& o) {
  return bf16 ? mmr::vit::training_graph<mmr::bf16>(c, o) : mmr::vit::training_graph<float>(c, o);
}
