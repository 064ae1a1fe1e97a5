// Graphs of: gpt moe.
#include "graphs.hpp"

mmr::graph training_graph(const mmr::gpt::config& c, const graph_request& r) {
  return build(r, [&](mmr::declaration& m) { return mmr::gpt::declare<mmr::bf16>(m, c); },
               [&](mmr::declaration& m) { return mmr::gpt::declare<float>(m, c); });
}

mmr::graph training_graph(const mmr::moe::config& c, const graph_request& r) {
  return build(r, [&](mmr::declaration& m) { return mmr::moe::declare<mmr::bf16>(m, c); },
               [&](mmr::declaration& m) { return mmr::moe::declare<float>(m, c); });
}
