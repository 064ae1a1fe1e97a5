// What a choice costs, computed straight from the definition: the judge of every solver's answer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "mmr/solve/problem.hpp"

namespace mmr::solve {

/// `bytes[t]` is what is held in step t; `peak` its maximum (0 without steps), first reached in `peak_step` (-1
/// without).
struct evaluation {
  double cost = 0;
  std::vector<std::int64_t> bytes;
  std::int64_t peak = 0;
  int peak_step = -1;
};

/// Index of the class pair that the choice takes in an edge's tables.
inline std::size_t chosen_pair(const edge& e, const std::vector<int>& choice) {
  const auto i = e.u_class[static_cast<std::size_t>(choice[static_cast<std::size_t>(e.u)])];
  const auto j = e.v_class[static_cast<std::size_t>(choice[static_cast<std::size_t>(e.v)])];
  return static_cast<std::size_t>(i) * static_cast<std::size_t>(e.v_classes) + static_cast<std::size_t>(j);
}

/// Cost (infinity if anything forbidden is chosen) and bytes of `choice`, one strategy a node. Throws mmr::error when
/// the choice does not fit the problem.
inline evaluation evaluate(const problem& p, const std::vector<int>& choice) {
  if (choice.size() != p.nodes.size())
    fail("a choice of ", choice.size(), " strategies does not fit a problem of ", p.nodes.size(), " nodes");
  const auto steps = static_cast<std::size_t>(p.steps);
  evaluation out;
  std::vector<std::int64_t> change(steps + 1, 0);
  const auto hold = [&](int begin, int end, std::int64_t bytes) {
    if (begin >= end) return;
    change[static_cast<std::size_t>(begin)] += bytes;
    change[static_cast<std::size_t>(end)] -= bytes;
  };
  for (std::size_t v = 0; v < p.nodes.size(); ++v) {
    const auto& n = p.nodes[v];
    if (choice[v] < 0 || choice[v] >= static_cast<int>(n.cost.size()))
      fail("strategy ", choice[v], " of node '", n.name, "' does not exist; it has ", n.cost.size());
    const auto s = static_cast<std::size_t>(choice[v]);
    out.cost += n.cost[s];
    for (const auto& use : n.uses) hold(use.begin, use.end, use.bytes[s]);
  }
  for (const auto& e : p.edges) {
    const auto pair = chosen_pair(e, choice);
    out.cost += e.cost[pair];
    for (const auto& use : e.uses) hold(use.begin, use.end, use.bytes[pair]);
  }
  out.bytes.resize(steps);
  std::int64_t held = 0;
  for (std::size_t t = 0; t < steps; ++t) {
    held += change[t];
    out.bytes[t] = held + (p.base.empty() ? 0 : p.base[t]);
    if (out.peak_step < 0 || out.bytes[t] > out.peak) {
      out.peak = out.bytes[t];
      out.peak_step = static_cast<int>(t);
    }
  }
  return out;
}

/// At each step, the least that nodes and edges can hold there, each alone.
inline std::vector<std::int64_t> least_bytes(const problem& p) {
  std::vector<std::int64_t> change(static_cast<std::size_t>(p.steps) + 1, 0);
  const auto hold_least = [&](const auto& uses) {
    for (const auto& use : uses) {
      if (use.begin >= use.end) continue;
      const auto least = *std::min_element(use.bytes.begin(), use.bytes.end());
      change[static_cast<std::size_t>(use.begin)] += least;
      change[static_cast<std::size_t>(use.end)] -= least;
    }
  };
  for (const auto& n : p.nodes) hold_least(n.uses);
  for (const auto& e : p.edges) hold_least(e.uses);
  std::vector<std::int64_t> out(static_cast<std::size_t>(p.steps));
  std::int64_t held = 0;
  for (std::size_t t = 0; t < out.size(); ++t) {
    held += change[t];
    out[t] = held + (p.base.empty() ? 0 : p.base[t]);
  }
  return out;
}

/// A lower bound on the peak of every choice; 0 without steps.
inline std::int64_t least_peak(const problem& p) {
  const auto bytes = least_bytes(p);
  return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
}

}  // namespace mmr::solve
