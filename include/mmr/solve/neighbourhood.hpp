// Large neighbourhoods: a part of a choice is taken back and chosen anew, as well as can be proved, while the rest
// stays.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "mmr/solve/evaluate.hpp"
#include "mmr/solve/meter.hpp"
#include "mmr/solve/problem.hpp"
#include "mmr/solve/result.hpp"

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

/// A choice of which parts were chosen anew, and the work that this took.
struct parts_anew {
  std::vector<int> choice;
  double work;
};

/// Frees `count` parts of a choice of `p`, of about `most` nodes each, one after another, and takes what is better for
/// the goal of `question` within its limits. `solve` answers a part's problem and request from a start; `left` may be
/// spent.
template <class Solve>
parts_anew with_parts_anew(const problem& p, std::vector<int> choice, const request& question, std::size_t most,
                           std::uint64_t seed, int count, meter left, Solve solve) {
  std::mt19937_64 draw(seed);
  const auto edges_of = edges_by_node(p);
  for (int n = 0; n < count && !left.over(); ++n) {
    // What hangs together, and what competes for the bytes of a full step, by turns.
    auto nodes = n % 2 == 0 ? std::vector<int>{static_cast<int>(draw() % p.nodes.size())}
                            : live_at_full_step(p, choice, draw, most / 3);
    grow(p, edges_of, nodes, most);
    std::vector<int> members, start;
    const auto part = freed(p, choice, edges_of, nodes, members);
    for (int v : members) start.push_back(choice[static_cast<std::size_t>(v)]);
    auto sub = question;
    // What the others cost is spent already.
    if (sub.cost_limit < infinity) sub.cost_limit -= evaluate(p, choice).cost - evaluate(part, start).cost;
    sub.seconds = left.seconds_left();
    sub.work = left.work_left();
    const auto answer = solve(part, sub, start);
    left.charge(answer.work);
    if (answer.choice.empty()) continue;
    for (std::size_t i = 0; i < members.size(); ++i) choice[static_cast<std::size_t>(members[i])] = answer.choice[i];
  }
  return {std::move(choice), left.used()};
}

}  // namespace mmr::solve
