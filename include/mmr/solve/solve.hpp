// minimise(): a proved best choice. Reduces the problem, prices its limits, bounds it by message passing, searches and
// splits what is left, and leaves to CBC what remains open.
#pragma once

#include <vector>

#include "mmr/solve/minimiser.hpp"
#include "mmr/solve/problem.hpp"
#include "mmr/solve/result.hpp"

namespace mmr::solve {

/// Finds the choice that is best for `r.minimise` within the limits, with proof as far as `r.seconds` and `r.work` allow. `start`,
/// if it keeps the limits, is where the search begins: the result is never worse. The answer is checked by `evaluate`
/// on `p` itself. Deterministic unless the time runs out. Throws mmr::error when the problem is
/// not valid or has no nodes.
inline result minimise(const problem& p, const request& r, const std::vector<int>& start = {}) {
  validate(p);
  if (p.nodes.empty()) fail("problem: no nodes; give at least one");
  return detail::minimiser(p, r).run(start);
}

}  // namespace mmr::solve
