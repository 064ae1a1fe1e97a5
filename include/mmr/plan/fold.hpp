// Which steps of a schedule must be looked at for the peak: of the repetitions of a block, the first and the last few.
#pragma once

#include <mmr/plan/buffers.hpp>

#include <map>
#include <set>

namespace mmr::detail {

/// A table of bytes of a node or an edge (the other is -1), and when a member of its group holds them.
struct held {
  int node, edge;
  std::vector<std::int64_t> bytes;
  std::vector<lifetime> when;
};

/// The steps of the schedule among which the peak of every choice is. At step t, `count(t)` members hold a table; from
/// repetition to repetition these counts mostly grow or fall by the same number for every table (activations are kept for
/// the layers before, gradients for the layers after). What is held at such a step is at most a weighted mean of what is
/// held at the corresponding steps of two other repetitions, and so at most the greater of them: the step can be left out.
inline std::vector<int> steps_that_count(const setting& s, const std::vector<held>& all) {
  const int steps = s.live.steps();
  // Steps of one position in its block, by repetition.
  std::map<std::string, std::vector<std::pair<int, int>>> rows;
  for (int t = 0; t < steps; ++t) {
    const auto& where = s.g.op(s.live.schedule[static_cast<std::size_t>(t)]).where;
    if (!where.block.empty()) rows[where.block + '|' + where.position].push_back({where.repetition, t});
  }
  struct candidate {
    int step, low, high;          // left out if at most the mean of steps low and high
    std::int64_t to_low, to_high; // distances in repetitions
  };
  std::vector<candidate> open;
  for (auto& [key, row] : rows) {
    std::sort(row.begin(), row.end());
    const auto n = row.size();
    if (n < 5) continue;
    const auto &low = row[1], &high = row[n - 2];
    for (std::size_t i = 2; i + 2 < n; ++i)
      open.push_back({row[i].second, low.second, high.second, row[i].first - low.first, high.first - row[i].first});
  }
  std::set<int> kept;
  for (int t = 0; t < steps; ++t) kept.insert(t);
  if (open.empty()) return {kept.begin(), kept.end()};
  std::vector<int> count(static_cast<std::size_t>(steps) + 1);
  for (const auto& h : all) {
    if (h.when.empty()) continue;
    std::fill(count.begin(), count.end(), 0);
    for (const auto& l : h.when)
      if (l.begin < l.end) ++count[static_cast<std::size_t>(l.begin)], --count[static_cast<std::size_t>(l.end)];
    std::partial_sum(count.begin(), count.end(), count.begin());
    std::erase_if(open, [&](const candidate& c) {
      const auto at = [&](int t) { return std::int64_t{count[static_cast<std::size_t>(t)]}; };
      return at(c.step) * (c.to_low + c.to_high) > at(c.low) * c.to_high + at(c.high) * c.to_low;
    });
  }
  for (const auto& c : open) kept.erase(c.step);
  return {kept.begin(), kept.end()};
}

}  // namespace mmr::detail
