// Most steps of a schedule can never be the peak; only those that can need a row in the program.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "mmr/solve/problem.hpp"

namespace mmr::solve {

/// Leaves only the flagged steps. Intervals are renumbered; empty uses disappear. `numbers`, one a step, follow.
inline void keep_steps(problem& p, const std::vector<char>& kept, std::vector<int>& numbers) {
  std::vector<int> renumbered(kept.size() + 1, 0);
  std::vector<std::int64_t> base;
  for (std::size_t t = 0; t < kept.size(); ++t) {
    renumbered[t] = static_cast<int>(base.size());
    if (kept[t]) base.push_back(p.base.empty() ? 0 : p.base[t]);
  }
  renumbered[kept.size()] = static_cast<int>(base.size());
  const auto shift = [&](auto& uses) {
    std::erase_if(uses, [](const auto& use) { return use.begin >= use.end; });
    for (auto& use : uses) {
      use.begin = renumbered[static_cast<std::size_t>(use.begin)];
      use.end = renumbered[static_cast<std::size_t>(use.end)];
    }
    std::erase_if(uses, [](const auto& use) { return use.begin >= use.end; });
  };
  for (auto& n : p.nodes) shift(n.uses);
  for (auto& e : p.edges) shift(e.uses);
  p.steps = static_cast<int>(base.size());
  p.base = std::move(base);
  std::size_t left = 0;
  for (std::size_t t = 0; t < kept.size(); ++t)
    if (kept[t]) numbers[left++] = numbers[t];
  numbers.resize(left);
}

/// Drops every step at which, whatever is chosen, no more is held than at a step that stays: what is live there is also
/// live at a neighbour. The peak of any choice stays the same. Intervals are renumbered; empty uses disappear.
/// `numbers`, one a step, follow.
inline void drop_dominated_steps(problem& p, std::vector<int>& numbers) {
  const auto steps = static_cast<std::size_t>(p.steps);
  std::vector<char> begins(steps + 1, 0), ends(steps + 1, 0);
  const auto tidy = [&](auto& uses) {
    std::erase_if(uses, [](const auto& use) {
      return use.begin >= use.end || std::all_of(use.bytes.begin(), use.bytes.end(), [](auto b) { return b == 0; });
    });
    for (const auto& use : uses)
      begins[static_cast<std::size_t>(use.begin)] = ends[static_cast<std::size_t>(use.end)] = 1;
  };
  for (auto& n : p.nodes) tidy(n.uses);
  for (auto& e : p.edges) tidy(e.uses);
  const auto base = [&](std::size_t t) { return p.base.empty() ? std::int64_t{0} : p.base[t]; };
  // covered_by_left: going left nothing dies and the constant part does not shrink; likewise to the right.
  std::vector<char> kept(steps, 1);
  for (std::size_t t = 0; t < steps; ++t) {
    const bool covered_by_left = t > 0 && !begins[t] && base(t - 1) >= base(t);
    const bool same_as_right = t + 1 < steps && !begins[t + 1] && !ends[t + 1] && base(t + 1) == base(t);
    const bool covered_by_right = t + 1 < steps && !ends[t + 1] && base(t + 1) >= base(t);
    // Equal neighbours cover each other: the left one stays, so that a plateau is not lost.
    if (covered_by_left || (covered_by_right && !same_as_right)) kept[t] = 0;
  }
  keep_steps(p, kept, numbers);
}

}  // namespace mmr::solve
