// Nodes that must take the same strategy (identical layers) become one node: the quotient of a problem.
#pragma once

#include <cstddef>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "mmr/solve/problem.hpp"

namespace mmr::solve {

namespace detail {

/// Adds `extra` to `uses`, into the entry of the same interval where there is one.
template <class Use>
void add_use(std::vector<Use>& uses, const Use& extra) {
  if (extra.begin >= extra.end) return;
  for (auto& use : uses)
    if (use.begin == extra.begin && use.end == extra.end) {
      for (std::size_t i = 0; i < use.bytes.size(); ++i) use.bytes[i] += extra.bytes[i];
      return;
    }
  uses.push_back(extra);
}

/// The same edge seen from its other end.
inline edge transposed(const edge& e) {
  edge out{e.v, e.u, e.v_class, e.u_class, e.v_classes, e.u_classes, {}, {}};
  const auto flip = [&](const auto& table) {
    auto flipped = table;
    for (std::size_t i = 0; i < static_cast<std::size_t>(e.u_classes); ++i)
      for (std::size_t j = 0; j < static_cast<std::size_t>(e.v_classes); ++j)
        flipped[j * static_cast<std::size_t>(e.u_classes) + i] = table[i * static_cast<std::size_t>(e.v_classes) + j];
    return flipped;
  };
  out.cost = flip(e.cost);
  for (const auto& use : e.uses) out.uses.push_back({use.begin, use.end, flip(use.bytes)});
  return out;
}

}  // namespace detail

/// The problem with one node for each group: node v becomes node `group_of_node[v]` (groups are 0, 1, ... without
/// gaps). Costs and uses add up; parallel edges with the same class maps become one. Any choice of the quotient has
/// exactly the cost and bytes that its expansion has in `p`. Throws mmr::error when nodes of one group differ in their
/// strategies.
inline problem tie(const problem& p, const std::vector<int>& group_of_node) {
  if (group_of_node.size() != p.nodes.size())
    fail("tie: ", group_of_node.size(), " groups given for ", p.nodes.size(), " nodes; give one a node");
  problem out;
  out.steps = p.steps;
  out.base = p.base;
  for (std::size_t v = 0; v < p.nodes.size(); ++v) {
    const int g = group_of_node[v];
    if (g < 0 || g >= static_cast<int>(p.nodes.size())) fail("tie: group ", g, " of node '", p.nodes[v].name, "'");
    if (static_cast<std::size_t>(g) >= out.nodes.size()) out.nodes.resize(static_cast<std::size_t>(g) + 1);
    auto& merged = out.nodes[static_cast<std::size_t>(g)];
    const auto& n = p.nodes[v];
    if (merged.cost.empty()) {
      merged.name = n.name;
      merged.cost.assign(n.cost.size(), 0);
    }
    if (merged.cost.size() != n.cost.size())
      fail("tie: node '", n.name, "' has ", n.cost.size(), " strategies but node '", merged.name, "' of its group has ",
           merged.cost.size());
    for (std::size_t s = 0; s < n.cost.size(); ++s) merged.cost[s] += n.cost[s];
    for (const auto& use : n.uses) detail::add_use(merged.uses, use);
  }
  for (std::size_t g = 0; g < out.nodes.size(); ++g)
    if (out.nodes[g].cost.empty()) fail("tie: group ", g, " has no node; number the groups without gaps");
  std::map<std::tuple<int, int, std::vector<int>, std::vector<int>>, std::size_t> seen;
  for (const auto& original : p.edges) {
    edge e = original;
    e.u = group_of_node[static_cast<std::size_t>(e.u)];
    e.v = group_of_node[static_cast<std::size_t>(e.v)];
    if (e.u > e.v) e = detail::transposed(e);
    const auto [at, fresh] = seen.try_emplace({e.u, e.v, e.u_class, e.v_class}, out.edges.size());
    if (!fresh && (out.edges[at->second].u_classes != e.u_classes || out.edges[at->second].v_classes != e.v_classes)) {
      out.edges.push_back(std::move(e));
    } else if (fresh) {
      auto uses = std::move(e.uses);
      e.uses.clear();
      for (const auto& use : uses) detail::add_use(e.uses, use);
      out.edges.push_back(std::move(e));
    } else {
      auto& merged = out.edges[at->second];
      for (std::size_t i = 0; i < e.cost.size(); ++i) merged.cost[i] += e.cost[i];
      for (const auto& use : e.uses) detail::add_use(merged.uses, use);
    }
  }
  return out;
}

/// The choice of every node, from the choice of the groups.
inline std::vector<int> expand(const std::vector<int>& group_choice, const std::vector<int>& group_of_node) {
  std::vector<int> choice;
  choice.reserve(group_of_node.size());
  for (int g : group_of_node) choice.push_back(group_choice.at(static_cast<std::size_t>(g)));
  return choice;
}

}  // namespace mmr::solve
