// Exhaustive search: the oracle that every cleverer solver is held against.
#pragma once

#include <cstddef>
#include <vector>

#include "mmr/solve/evaluate.hpp"
#include "mmr/solve/problem.hpp"
#include "mmr/solve/result.hpp"

namespace mmr::solve {

/// Tries every choice; only for problems with few of them (throws mmr::error beyond ten million). Ignores `seconds`.
inline result brute_force(const problem& p, const request& r) {
  validate(p);
  double count = 1;
  for (const auto& n : p.nodes) count *= static_cast<double>(n.cost.size());
  if (count > 1e7) fail("brute force over ", count, " choices would not end; use minimise");
  result out;
  out.before = out.reduced = size_of(p);
  out.outcome = status::infeasible;
  out.bound = infinity;
  std::vector<int> choice(p.nodes.size(), 0);
  for (;;) {
    const auto e = evaluate(p, choice);
    if (keeps(e, r)) {
      const bool better = out.choice.empty() && out.outcome == status::infeasible
                              ? true
                              : (r.minimise == goal::cost ? e.cost < out.cost : e.peak < out.peak);
      if (better) {
        out.outcome = status::optimal;
        out.choice = choice;
        out.cost = e.cost;
        out.peak = e.peak;
        out.bound = r.minimise == goal::cost ? e.cost : static_cast<double>(e.peak);
      }
    }
    std::size_t v = 0;
    while (v < choice.size() && ++choice[v] == strategies(p, static_cast<int>(v))) choice[v++] = 0;
    if (v == choice.size()) return out;
  }
}

}  // namespace mmr::solve
