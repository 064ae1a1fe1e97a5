// The Pareto front of memory against time: the plans between the leanest and the fastest, of which none is beaten in both.
#pragma once

#include <mmr/plan/planner.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

namespace mmr {

/// Of the given plans those that no other beats, from the leanest to the fastest: each takes more bytes at its peak than
/// the one before, and less time. Of equal ones the first stays.
inline std::vector<plan> undominated(std::vector<plan> plans) {
  std::stable_sort(plans.begin(), plans.end(), [](const plan& a, const plan& b) {
    return std::pair{peak_bytes(a), a.step_seconds} < std::pair{peak_bytes(b), b.step_seconds};
  });
  std::vector<plan> front;
  for (auto& p : plans)
    if (front.empty() || p.step_seconds < front.back().step_seconds) front.push_back(std::move(p));
  return front;
}

/// The budgets, in bytes, at which a front is looked for: `points` between two peaks, each larger than the last by the same
/// factor.
inline std::vector<std::int64_t> front_budgets(std::int64_t leanest, std::int64_t fastest, int points) {
  std::vector<std::int64_t> budgets;
  if (leanest < 1 || fastest <= leanest) return budgets;
  const double ratio = static_cast<double>(fastest) / static_cast<double>(leanest);
  for (int k = 1; k <= points; ++k)
    budgets.push_back(static_cast<std::int64_t>(static_cast<double>(leanest) * std::pow(ratio, k / (points + 1.0))));
  return budgets;
}

/// The front between two plans that were made already, the leanest and the fastest: these, and the least time under `points`
/// budgets between their peaks. `r` says everything but goal, budget and slowdown, which it must leave open; its work
/// and seconds are those of each plan. `done` hears after each plan how many are made. Plans whose proof was cut short are
/// only as good as what was found.
inline std::vector<plan> front_between(planner& planner, plan_request r, const plan& leanest, const plan& fastest, int points,
                                       const std::function<void(int)>& done = {}) {
  if (points < 0 || points > 1000) fail("a front of ", points, " points between its ends; give 0 to 1000");
  if (r.slowdown || r.budget || !r.scheme.empty())
    fail("a front is looked for in the whole space; leave slowdown, budget and scheme out of its request");
  std::vector<plan> made{leanest, fastest};
  r.minimise = goal::time;
  for (const auto budget : front_budgets(peak_bytes(leanest), peak_bytes(fastest), points)) {
    r.budget = budget;
    made.push_back(planner.make(r));
    if (done) done(static_cast<int>(made.size()) - 2);
  }
  return undominated(std::move(made));
}

/// The same with both ends made first.
inline std::vector<plan> pareto_front(planner& planner, plan_request r, int points = 6,
                                      const std::function<void(int)>& done = {}) {
  r.minimise = goal::memory;
  const auto leanest = planner.make(r);
  r.minimise = goal::time;
  const auto fastest = planner.make(r);
  return front_between(planner, r, leanest, fastest, points, done);
}

}  // namespace mmr
