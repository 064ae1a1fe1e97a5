// Large neighbourhoods: a part of a choice is taken back and chosen anew, as well as can be proved, while the rest
// stays.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "mmr/solve/evaluate.hpp"
#include "mmr/solve/problem.hpp"

namespace mmr::solve {

/// Up to `most` nodes that hold bytes at some step at which `choice` holds nearly its peak; one node where there is no
/// such step.
template <class Draw>
std::vector<int> live_at_full_step(const problem& p, const std::vector<int>& choice, Draw& draw, std::size_t most) {
  const auto held = evaluate(p, choice);
  std::vector<int> full, live;
  for (std::size_t t = 0; t < held.bytes.size(); ++t)
    if (static_cast<double>(held.bytes[t]) > 0.95 * static_cast<double>(held.peak)) full.push_back(static_cast<int>(t));
  if (!full.empty()) {
    const int t = full[draw() % full.size()];
    for (std::size_t v = 0; v < p.nodes.size(); ++v)
      if (std::any_of(p.nodes[v].uses.begin(), p.nodes[v].uses.end(),
                      [t](const use& u) { return u.begin <= t && t < u.end; }))
        live.push_back(static_cast<int>(v));
  }
  if (live.empty()) return {static_cast<int>(draw() % p.nodes.size())};
  std::shuffle(live.begin(), live.end(), draw);
  live.resize(std::min(live.size(), most));
  return live;
}

/// Adds neighbours of `nodes`, nearest first, until these are about `most`.
inline void grow(const problem& p, const std::vector<std::vector<std::size_t>>& edges_of, std::vector<int>& nodes,
                 std::size_t most) {
  std::vector<char> met(p.nodes.size(), 0);
  for (int v : nodes) met[static_cast<std::size_t>(v)] = 1;
  for (std::size_t i = 0; i < nodes.size() && nodes.size() < most; ++i)
    for (std::size_t e : edges_of[static_cast<std::size_t>(nodes[i])]) {
      const int other = p.edges[e].u == nodes[i] ? p.edges[e].v : p.edges[e].u;
      if (std::exchange(met[static_cast<std::size_t>(other)], 1) == 0) nodes.push_back(other);
    }
}

/// The problem of `nodes` where all others keep `choice`: what these hold is its base, what their edges cost is with
/// the nodes that are left. `node_of[i]` is the number that its node i has in `p`. No edge of `p` joins a node to
/// itself.
inline problem freed(const problem& p, const std::vector<int>& choice,
                     const std::vector<std::vector<std::size_t>>& edges_of, const std::vector<int>& nodes,
                     std::vector<int>& node_of) {
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  problem out;
  out.steps = p.steps;
  const auto held = evaluate(p, choice);
  out.base = held.bytes;
  std::vector<int> number(p.nodes.size(), -1);
  node_of = nodes;
  for (std::size_t i = 0; i < nodes.size(); ++i) number[at(nodes[i])] = static_cast<int>(i);
  const auto take_back = [&](const auto& uses, std::size_t entry) {
    for (const auto& use : uses)
      for (int t = use.begin; t < use.end; ++t) out.base[at(t)] -= use.bytes[entry];
  };
  for (int v : nodes) {
    out.nodes.push_back(p.nodes[at(v)]);
    take_back(p.nodes[at(v)].uses, at(choice[at(v)]));
  }
  for (int v : nodes)
    for (std::size_t i : edges_of[at(v)]) {
      const auto& e = p.edges[i];
      const int u = number[at(e.u)], w = number[at(e.v)];
      if (u >= 0 && w >= 0) {
        if (v != e.u) continue;  // met from both ends
        take_back(e.uses, chosen_pair(e, choice));
        auto inner = e;
        inner.u = u;
        inner.v = w;
        out.edges.push_back(std::move(inner));
        continue;
      }
      take_back(e.uses, chosen_pair(e, choice));
      const bool first = u >= 0;
      auto& mine = out.nodes[at(first ? u : w)];
      const auto theirs = at(first ? e.v_class[at(choice[at(e.v)])] : e.u_class[at(choice[at(e.u)])]);
      const auto pair = [&](std::size_t s) {
        return first ? at(e.u_class[s]) * at(e.v_classes) + theirs : theirs * at(e.v_classes) + at(e.v_class[s]);
      };
      for (std::size_t s = 0; s < mine.cost.size(); ++s) mine.cost[s] += e.cost[pair(s)];
      for (const auto& held_use : e.uses) {
        use extra{held_use.begin, held_use.end, {}};
        for (std::size_t s = 0; s < mine.cost.size(); ++s) extra.bytes.push_back(held_use.bytes[pair(s)]);
        mine.uses.push_back(std::move(extra));
      }
    }
  return out;
}

}  // namespace mmr::solve
