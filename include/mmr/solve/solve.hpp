// minimise(): a proved best choice. Reduces the problem, bounds it, and leaves the rest to CBC.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "mmr/solve/cbc.hpp"
#include "mmr/solve/evaluate.hpp"
#include "mmr/solve/problem.hpp"
#include "mmr/solve/reduce.hpp"
#include "mmr/solve/result.hpp"

namespace mmr::solve {

namespace detail {

class stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// The greatest number that divides every byte count: peaks come in multiples of it.
inline std::int64_t bytes_unit(const problem& p) {
  std::int64_t unit = 0;
  for (const auto& n : p.nodes)
    for (const auto& use : n.uses)
      for (auto b : use.bytes) unit = std::gcd(unit, b);
  for (const auto& e : p.edges)
    for (const auto& use : e.uses)
      for (auto b : use.bytes) unit = std::gcd(unit, b);
  for (auto b : p.base) unit = std::gcd(unit, b);
  return std::max<std::int64_t>(unit, 1);
}

}  // namespace detail

/// Finds the choice that is best for `r.minimise` within the limits, with proof as far as `r.seconds` allow. `start`, if it
/// keeps the limits, is where the search begins: the result is never worse. The answer is checked by `evaluate` on `p`
/// itself. Deterministic unless the time runs out. Throws mmr::error when the problem is not valid.
inline result minimise(const problem& p, const request& r, const std::vector<int>& start = {}) {
  const detail::stopwatch watch;
  validate(p);
  result out;
  out.before = size_of(p);
  const auto offer = [&](const std::vector<int>& choice) {
    const auto e = evaluate(p, choice);
    if (!keeps(e, r)) return e;
    if (out.choice.empty() || (r.minimise == goal::cost ? e.cost < out.cost : e.peak < out.peak)) {
      out.choice = choice;
      out.cost = e.cost;
      out.peak = e.peak;
    }
    return e;
  };
  if (!start.empty()) offer(start);

  const bool looks_at_cost = r.minimise == goal::cost || r.cost_limit < infinity;
  const bool looks_at_bytes = r.minimise == goal::peak || r.peak_limit < no_peak_limit;
  const auto reduced = reduce(p, {looks_at_cost, looks_at_bytes});
  const auto& small = reduced.small;
  out.after = size_of(small);
  const auto finish = [&](status outcome) {
    out.outcome = outcome;
    out.seconds = watch.seconds();
    return out;
  };
  if (reduced.infeasible) {
    out.bound = infinity;
    return finish(status::infeasible);
  }
  const auto floor = least_peak(small);
  if (floor > r.peak_limit) {
    out.bound = infinity;
    return finish(status::infeasible);
  }
  if (r.minimise == goal::peak) out.bound = static_cast<double>(floor);
  if (small.nodes.empty()) {
    offer(reduced.expand({}));
    out.bound = out.choice.empty() ? infinity : r.minimise == goal::cost ? out.cost : static_cast<double>(out.peak);
    return finish(out.choice.empty() ? status::infeasible : status::optimal);
  }
  request inner = r;
  inner.cost_limit -= reduced.constant;
  const auto unit = detail::bytes_unit(small);

  std::vector<int> rows;
  for (;;) {
    const auto left = r.seconds - watch.seconds();
    if (left <= 0 && !out.choice.empty()) return finish(status::feasible);
    const auto answer = solve_program(small, inner, rows, unit, {}, left);
    out.after.variables = answer.variables;
    out.after.rows = answer.rows;
    if (answer.infeasible) {
      out.bound = infinity;
      return finish(status::infeasible);
    }
    const double bound = r.minimise == goal::cost
                             ? answer.bound + reduced.constant
                             : std::ceil(answer.bound / static_cast<double>(unit) - 1e-6) * static_cast<double>(unit);
    out.bound = std::max(out.bound, bound);
    if (answer.choice.empty()) return finish(out.choice.empty() ? status::nothing_found : status::feasible);
    offer(reduced.expand(answer.choice));
    if (!out.choice.empty()) {
      if (r.minimise == goal::cost ? out.cost <= out.bound + cost_tolerance * out.cost
                                   : static_cast<double>(out.peak) <= out.bound) {
        out.bound = std::min(out.bound, r.minimise == goal::cost ? out.cost : static_cast<double>(out.peak));
        return finish(status::optimal);
      }
    }
    if (!answer.proved) return finish(out.choice.empty() ? status::nothing_found : status::feasible);
    const auto e = evaluate(small, answer.choice);
    if (e.peak_step < 0 || std::find(rows.begin(), rows.end(), e.peak_step) != rows.end())
      return finish(out.choice.empty() ? status::nothing_found : status::feasible);
    rows.push_back(e.peak_step);
  }
}

}  // namespace mmr::solve
