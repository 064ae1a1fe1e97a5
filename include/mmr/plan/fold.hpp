// Which steps of a schedule must be looked at for the peak: of the repetitions of a block, the first and the last few.
#pragma once

#include <mmr/plan/buffers.hpp>

#include <bit>
#include <map>
#include <set>
#include <string>

namespace mmr::detail {

/// Repetitions of a block by classes of one, two, four, ... from the last one on, so that any number of them is a sum of
/// classes; or all in one class. The last ones are kept apart from each other as running again gains the least there.
class repetition_classes {
 public:
  repetition_classes(const graph& g, bool several) : several_(several) {
    for (op_id o = 0; o < g.ops(); ++o) {
      auto& last = last_[g.op(o).where.block];
      last = std::max(last, g.op(o).where.repetition);
    }
  }
  std::string name_of(const block_position& where) const {
    if (!several_) return "";
    const auto from_last = static_cast<unsigned>(last_.at(where.block) - where.repetition);
    return std::to_string(std::bit_width(from_last + 1));
  }

 private:
  bool several_;
  std::map<std::string, int> last_;
};

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
/// Repetitions are compared within their class, where what runs again is chosen by classes.
inline std::vector<int> steps_that_count(const setting& s, const std::vector<held>& all, const repetition_classes& classes) {
  const int steps = s.live.steps();
  // Steps of one position in its block, by repetition.
  std::map<std::string, std::vector<std::pair<int, int>>> rows;
  for (int t = 0; t < steps; ++t) {
    const auto& where = s.g.op(s.live.schedule[static_cast<std::size_t>(t)]).where;
    if (!where.block.empty())
      rows[where.block + '|' + classes.name_of(where) + '|' + where.position].push_back({where.repetition, t});
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
  std::vector<char> grows_between(open.size(), 0);
  for (const auto& h : all) {
    // What is held all along is held alike at every step.
    if (std::all_of(h.when.begin(), h.when.end(), [&](const lifetime& l) { return l.begin == 0 && l.end == steps; })) continue;
    std::fill(count.begin(), count.end(), 0);
    for (const auto& l : h.when)
      if (l.begin < l.end) ++count[static_cast<std::size_t>(l.begin)], --count[static_cast<std::size_t>(l.end)];
    std::partial_sum(count.begin(), count.end(), count.begin());
    const auto at = [&](int t) { return std::int64_t{count[static_cast<std::size_t>(t)]}; };
    for (std::size_t i = 0; i < open.size(); ++i) {
      const auto& c = open[i];
      grows_between[i] |= at(c.step) * (c.to_low + c.to_high) > at(c.low) * c.to_high + at(c.high) * c.to_low;
    }
  }
  for (std::size_t i = 0; i < open.size(); ++i)
    if (!grows_between[i]) kept.erase(open[i].step);
  return {kept.begin(), kept.end()};
}

}  // namespace mmr::detail
