// Graphs of: llama bert.
#include "graphs.hpp"

mmr::graph training_graph(const mmr::llama::config& c, const graph_request& r) {
  return build(r, [&](mmr::declaration& m) { return mmr::llama::declare<mmr::bf16>(m, c); },
               [&](mmr::declaration& m) { return mmr::llama::declare<float>(m, c); });
}

mmr::graph training_graph(const mmr::bert::config& c, const graph_request& r) {
  return build(r, [&](mmr::declaration& m) { return mmr::bert::declare<mmr::bf16>(m, c); },
               [&](mmr::declaration& m) { return mmr::bert::declare<float>(m, c); });
}
