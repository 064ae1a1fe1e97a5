// What each step of a schedule holds at least and at most, and how much room a limit leaves: sums over pieces of live
// intervals, however many steps there are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace mmr::solve::detail {

/// Calls f(begin, end, bytes) for the pieces between the ends of `uses`, where bytes[k] is what entry k of the tables
/// holds; pieces in which no use lives are left out.
template <class Uses, class F>
void for_each_piece(const Uses& uses, std::size_t entries, F f) {
  if (uses.size() == 1) {
    if (uses[0].begin < uses[0].end) f(uses[0].begin, uses[0].end, uses[0].bytes);
    return;
  }
  struct change {
    int step;
    std::size_t use;
    std::int64_t sign;
  };
  std::vector<change> changes;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (uses[i].begin >= uses[i].end) continue;
    changes.push_back({uses[i].begin, i, 1});
    changes.push_back({uses[i].end, i, -1});
  }
  std::sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  std::vector<std::int64_t> sum(entries, 0);
  std::int64_t live = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const auto& c = changes[i];
    for (std::size_t k = 0; k < entries; ++k) sum[k] += c.sign * uses[c.use].bytes[k];
    live += c.sign;
    if (live > 0 && i + 1 < changes.size() && changes[i + 1].step > c.step) f(c.step, changes[i + 1].step, sum);
  }
}

/// The least and the greatest entry that is not flagged; {max, 0} where all are.
inline std::pair<std::int64_t, std::int64_t> range_alive(const std::vector<std::int64_t>& bytes,
                                                         const std::vector<char>& dead) {
  std::int64_t low = std::numeric_limits<std::int64_t>::max(), high = 0;
  for (std::size_t k = 0; k < bytes.size(); ++k)
    if (!dead[k]) {
      low = std::min(low, bytes[k]);
      high = std::max(high, bytes[k]);
    }
  return {low, high};
}

/// The least of a fixed list of numbers over any range of it.
class range_least {
 public:
  explicit range_least(std::vector<std::int64_t> numbers) : size_(numbers.size()), tree_(2 * numbers.size()) {
    std::copy(numbers.begin(), numbers.end(), tree_.begin() + static_cast<std::ptrdiff_t>(size_));
    for (std::size_t n = size_; n-- > 1;) tree_[n] = std::min(tree_[2 * n], tree_[2 * n + 1]);
  }

  std::int64_t over(int begin, int end) const {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    auto low = size_ + static_cast<std::size_t>(begin), high = size_ + static_cast<std::size_t>(end);
    for (; low < high; low /= 2, high /= 2) {
      if (low % 2 == 1) least = std::min(least, tree_[low++]);
      if (high % 2 == 1) least = std::min(least, tree_[--high]);
    }
    return least;
  }

 private:
  std::size_t size_;
  std::vector<std::int64_t> tree_;
};

}  // namespace mmr::solve::detail
