// Graphs of: t5 vit.
#include "graphs.hpp"

mmr::graph training_graph(const mmr::t5::config& c, const graph_request& r) {
  return build(r, [&](mmr::declaration& m) { return mmr::t5::declare<mmr::bf16>(m, c); },
               [&](mmr::declaration& m) { return mmr::t5::declare<float>(m, c); });
}

mmr::graph training_graph(const mmr::vit::config& c, const graph_request& r) {
  return build(r, [&](mmr::declaration& m) { return mmr::vit::declare<mmr::bf16>(m, c); },
               [&](mmr::declaration& m) { return mmr::vit::declare<float>(m, c); });
}
