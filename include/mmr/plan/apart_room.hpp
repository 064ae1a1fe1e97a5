// The least peak of plans whose repeated layers need not be alike, bounded by what a limit on the peak leaves of them.
#pragma once

#include <mmr/plan/formulate.hpp>
#include <mmr/solve/tighten.hpp>

#include <cmath>

namespace mmr::detail {

/// `high`, no more than the least peak for layers alike, where it is proved to bound the peak over all choices in which every
/// operator takes a strategy of its own: a limit just below it leaves nothing of that problem. Otherwise `low`. Large
/// problems are left as they are: their many layers bring the bound by prices within a share of about one layer.
inline double raised_by_room(setting& s, const restriction& allowed, const formulation& alike, double low, double high) {
  constexpr int most_nodes = 3000, most_variables = 4'000'000;
  if (!(low < high) || alike.unfolded.nodes > most_nodes || alike.unfolded.variables > most_variables) return low;
  const auto apart = formulate(s, allowed, repeated::apart);
  return solve::tighten(apart.problem, static_cast<std::int64_t>(std::ceil(high)) - 1).infeasible ? high : low;
}

}  // namespace mmr::detail
