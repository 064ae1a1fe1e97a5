// Makes a problem smaller without losing its optimum: what can never win, or is decided by something else, is taken out
// before any bound or program is computed.
#pragma once

#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "mmr/solve/problem.hpp"
#include "mmr/solve/reducer.hpp"
#include "mmr/solve/steps.hpp"
#include "mmr/solve/tighten.hpp"
#include "mmr/solve/way_back.hpp"

namespace mmr::solve {

/// A smaller problem with the same optimum under any limits, and the way back.
struct reduction {
  problem small;
  double constant = 0;  ///< cost of what is decided already; its bytes are in small.base
  bool infeasible = false;
  std::size_t nodes = 0;     ///< of the original
  std::vector<int> node_of;  ///< node of small -> node of the original
  std::vector<int> step_of;  ///< step of small -> step of the original
  way_back undo;

  /// The original's choice for a choice of `small`.
  std::vector<int> expand(const std::vector<int>& choice) const {
    std::vector<int> out(nodes, 0);
    for (std::size_t i = 0; i < choice.size(); ++i) out[static_cast<std::size_t>(node_of[i])] = choice[i];
    undo.undo(out);
    return out;
  }
};

namespace detail {

inline std::vector<int> all_steps(const problem& p) {
  std::vector<int> steps(static_cast<std::size_t>(p.steps));
  std::iota(steps.begin(), steps.end(), 0);
  return steps;
}

/// Runs a reducer to its end; steps that never are the peak go unless they are to keep their numbers. `steps`: what the
/// steps were in the original.
inline reduction reduced(reducer& r, std::vector<int> steps, bool keep_steps) {
  reduction out;
  out.step_of = std::move(steps);
  out.nodes = r.current().nodes.size();
  r.run();
  out.infeasible = r.infeasible();
  if (out.infeasible) return out;
  out.small = r.finish(out.node_of, out.constant);
  out.undo = r.take_way_back();
  if (!keep_steps) drop_dominated_steps(out.small, out.step_of);
  return out;
}

inline void keep_alive(reducer& r, const std::vector<std::vector<char>>& dead) {
  for (std::size_t v = 0; v < dead.size() && !r.infeasible(); ++v) {
    auto alive = dead[v];
    for (char& flag : alive) flag = flag == 0;
    r.keep(v, alive);
  }
}

}  // namespace detail

/// Reduces `p`; a request that neither minimises nor limits the peak need not look at bytes. Every choice of `small`
/// has, expanded, the cost of `small` plus `constant` and the peak of `small` (where looked at), and no choice of `p`
/// beats all of these.
inline reduction reduce(problem p, bool looks_at_bytes = true) {
  if (!looks_at_bytes) {
    for (auto& n : p.nodes) n.uses.clear();
    for (auto& e : p.edges) e.uses.clear();
    p.base.clear();
    p.steps = 0;
  }
  auto steps = detail::all_steps(p);
  drop_dominated_steps(p, steps);
  detail::reducer r(std::move(p));
  return detail::reduced(r, std::move(steps), false);
}

/// Reduces `p` to what a limit on the peak leaves of it. Where `drop_idle` is set, the steps at which the limit cannot
/// be exceeded go too: then the peak of a choice of `small` tells only whether the limit is kept.
inline reduction reduce_to(problem p, const tightened& left, bool drop_idle) {
  for (std::size_t e = 0; e < p.edges.size(); ++e)
    for (std::size_t k = 0; k < p.edges[e].cost.size(); ++k)
      if (left.dead_pairs[e][k]) p.edges[e].cost[k] = infinity;
  auto steps = detail::all_steps(p);
  if (drop_idle) {
    auto kept = left.idle;
    for (char& flag : kept) flag = flag == 0;
    keep_steps(p, kept, steps);
    drop_dominated_steps(p, steps);
  }
  detail::reducer r(std::move(p));
  detail::keep_alive(r, left.dead);
  return detail::reduced(r, std::move(steps), !drop_idle);
}

/// Reduces `p` without the strategies flagged in `dead[node][strategy]`; its steps keep their numbers.
inline reduction reduce_without(problem p, const std::vector<std::vector<char>>& dead) {
  auto steps = detail::all_steps(p);
  detail::reducer r(std::move(p));
  detail::keep_alive(r, dead);
  return detail::reduced(r, std::move(steps), true);
}

}  // namespace mmr::solve
