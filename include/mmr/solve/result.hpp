// What is asked of a solver and what it answers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string_view>
#include <vector>

#include "mmr/solve/evaluate.hpp"
#include "mmr/solve/problem.hpp"

namespace mmr::solve {

enum class goal { cost, peak };

inline constexpr std::int64_t no_peak_limit = std::numeric_limits<std::int64_t>::max();

/// Relative tolerance on costs, which are sums of doubles taken in different orders: a cost limit counts as kept, and a
/// cost as proved least, within it. Bytes are integers and always compared exactly.
inline constexpr double cost_tolerance = 1e-9;

enum class status { optimal, feasible, infeasible, nothing_found };

constexpr std::string_view name_of(status s) {
  switch (s) {
    case status::optimal:
      return "optimal";
    case status::feasible:
      return "feasible";
    case status::infeasible:
      return "infeasible";
    case status::nothing_found:
      return "nothing found";
  }
  return "unknown";
}

/// How large a problem is, as a program: `variables` are one for each strategy and one for each pair of classes of an
/// edge. `rows` are those of the last part that was given to CBC (0 where none was).
struct sizes {
  int nodes = 0, strategies = 0, edges = 0, variables = 0, rows = 0;
};

/// `optimal`: choice is proved best (cost within cost_tolerance, peak exactly). `feasible`: it keeps the limits, no
/// better value than `bound` exists. Where CBC closes a proof (a part of the space with few strategies left), its own
/// tolerance of about 1e-7 applies to costs. `infeasible`: proved that none keeps the limits. `nothing_found`: the time
/// ran out before.
struct result {
  status outcome = status::nothing_found;
  std::vector<int> choice;
  double cost = infinity;
  std::int64_t peak = 0;
  /// Proved lower bound on the goal, in its unit (cost or bytes); infinity when infeasible.
  double bound = 0;
  double seconds = 0, work = 0;  ///< that it took
  sizes before, reduced;         ///< as given; without what could be seen to lose before any search
  /// What the whole goal would pay for less: prices of cost and of the bytes of steps, with which a bound was found. A
  /// sum at these prices bounds the goal of problems like this one too.
  double cost_price = 0;
  std::vector<double> step_price;
};

/// Minimise the total cost, or the greatest bytes of any step, over choices with cost <= cost_limit (within
/// cost_tolerance) and peak <= peak_limit. `seconds` is wall time. `work` is what may be spent beside it, in entries of
/// tables that are looked at: where it ends the search before the time does, the answer depends on the problem, the
/// start, the seed and the work alone. `seed` draws the parts of large choices that are chosen anew. `on_better`, where
/// set, is called with every choice that is better than the last, and the bound proved by then.
struct request {
  goal minimise = goal::cost;
  double cost_limit = infinity;
  std::int64_t peak_limit = no_peak_limit;
  double seconds = 60;
  double work = infinity;
  std::uint64_t seed = 0;
  std::function<void(const result&)> on_better = {};
};

/// True where `cost` keeps `limit` within cost_tolerance.
inline bool within(double cost, double limit) {
  return cost < infinity && cost <= limit + cost_tolerance * std::abs(limit);
}

inline bool keeps(const evaluation& e, const request& r) {
  return within(e.cost, r.cost_limit) && e.peak <= r.peak_limit;
}

/// True where what is not the goal has a limit too.
inline bool limits_both(const request& r) {
  return r.minimise == goal::cost ? r.peak_limit < no_peak_limit : r.cost_limit < infinity;
}

inline sizes size_of(const problem& p) {
  sizes out;
  out.nodes = static_cast<int>(p.nodes.size());
  out.edges = static_cast<int>(p.edges.size());
  for (const auto& n : p.nodes) out.strategies += static_cast<int>(n.cost.size());
  out.variables = out.strategies;
  for (const auto& e : p.edges) out.variables += static_cast<int>(e.cost.size());
  return out;
}

}  // namespace mmr::solve
