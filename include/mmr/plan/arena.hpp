// Static allocation: offsets of all buffers in one arena, fixed before the run from their live intervals.
#pragma once

#include <mmr/plan/buffers.hpp>

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

namespace mmr {

struct arena {
  std::vector<std::int64_t> offset;  ///< of each buffer of the program; -1 for an empty one
  std::int64_t bytes = 0;
};

/// Large buffers start at a multiple of 64 bytes, for vector loads; small ones only at 16, or they would be mostly padding.
inline constexpr std::int64_t arena_alignment = 64, small_alignment = 16, small_buffer = 2048;

namespace detail {

constexpr std::int64_t alignment_of(std::int64_t bytes) { return bytes < small_buffer ? small_alignment : arena_alignment; }
constexpr std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }
constexpr std::int64_t aligned(std::int64_t bytes) { return round_up(bytes, alignment_of(bytes)); }

/// Buffers that have been placed, found by when they live: by blocks of steps.
class placed_buffers {
 public:
  explicit placed_buffers(int steps, std::size_t buffers)
      : blocks_(static_cast<std::size_t>(steps / block_steps + 1)), seen_(buffers, -1) {}
  void add(int i, lifetime life) {
    for (int b = life.begin / block_steps; b <= (life.end - 1) / block_steps; ++b) blocks_[static_cast<std::size_t>(b)].push_back(i);
  }
  /// Calls f once for each that may live within `life`.
  template <class F>
  void for_each_near(int asker, lifetime life, F f) {
    for (int b = life.begin / block_steps; b <= (life.end - 1) / block_steps; ++b)
      for (int i : blocks_[static_cast<std::size_t>(b)])
        if (std::exchange(seen_[static_cast<std::size_t>(i)], asker) != asker) f(i);
  }

 private:
  static constexpr int block_steps = 16;
  std::vector<std::vector<int>> blocks_;
  std::vector<int> seen_;  // who asked last
};

/// Places buffers in the given order, each in the tightest gap among those placed that are live with it (best fit). Buffers
/// that live through the whole step come first in the order and lie at the bottom, side by side.
inline arena place_in_order(const std::vector<buffer>& buffers, const std::vector<int>& order, int steps) {
  arena a;
  a.offset.assign(buffers.size(), -1);
  placed_buffers placed(steps, buffers.size());
  std::vector<std::pair<std::int64_t, std::int64_t>> taken;
  std::int64_t bottom = 0;
  for (int i : order) {
    const auto& b = buffers[static_cast<std::size_t>(i)];
    const auto size = aligned(b.bytes), alignment = alignment_of(b.bytes);
    const bool whole = b.life.begin <= 0 && b.life.end >= steps;
    taken.clear();
    if (!whole)
      placed.for_each_near(i, b.life, [&](int j) {
        const auto& other = buffers[static_cast<std::size_t>(j)];
        const auto at = a.offset[static_cast<std::size_t>(j)];
        if (other.life.begin < b.life.end && b.life.begin < other.life.end) taken.emplace_back(at, at + aligned(other.bytes));
      });
    std::sort(taken.begin(), taken.end());
    std::int64_t end = round_up(bottom, alignment), best = -1, best_gap = 0;
    for (const auto& [from, to] : taken) {
      const auto gap = from - end;
      if (gap >= size && (best < 0 || gap < best_gap)) best = end, best_gap = gap;
      end = std::max(end, round_up(to, alignment));
    }
    if (best < 0) best = end;
    a.offset[static_cast<std::size_t>(i)] = best;
    a.bytes = std::max(a.bytes, best + size);
    if (whole)
      bottom = best + size;
    else
      placed.add(i, b.life);
  }
  return a;
}

}  // namespace detail

/// Lays out the buffers of a program. Greedy orders known to come close to the peak (by size, by length of life, by area:
/// Sekiyama et al., arXiv 1804.10001) are tried until one reaches it, and the smallest arena wins.
inline arena lay_out(const program& run) {
  const auto& buffers = run.buffers;
  const auto live = run.live_bytes();
  const auto peak = std::max_element(live.begin(), live.end());
  const auto peak_step = static_cast<int>(peak - live.begin());
  std::vector<int> used;
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].bytes > 0 && buffers[i].life.begin < buffers[i].life.end) used.push_back(static_cast<int>(i));
  if (used.empty()) return detail::place_in_order(buffers, {}, run.steps);
  // No layout is smaller than the padded buffers of the fullest step.
  std::vector<std::int64_t> padded(live.size() + 1, 0);
  for (int i : used) {
    const auto& b = buffers[static_cast<std::size_t>(i)];
    padded[static_cast<std::size_t>(b.life.begin)] += detail::aligned(b.bytes);
    padded[static_cast<std::size_t>(b.life.end)] -= detail::aligned(b.bytes);
  }
  std::partial_sum(padded.begin(), padded.end(), padded.begin());
  const auto floor = *std::max_element(padded.begin(), padded.end());
  const auto life = [&](int i) { return buffers[static_cast<std::size_t>(i)].life; };
  const auto length = [&](int i) { return static_cast<double>(life(i).end - life(i).begin); };
  const auto size = [&](int i) { return static_cast<double>(buffers[static_cast<std::size_t>(i)].bytes); };
  // Buffers that live through the whole step go first in every order: they lie at the bottom without a gap.
  const auto whole = [&](int i) { return length(i) >= run.steps ? 1.0 : 0.0; };
  const auto at_peak = [&](int i) { return life(i).begin <= peak_step && peak_step < life(i).end ? 1.0 : 0.0; };
  // A large program takes seconds an order, so it is content with a layout close to the floor.
  const bool large = used.size() >= 2000;
  const double enough = (large ? 1.02 : 1.0) * static_cast<double>(floor), close = 1.02 * static_cast<double>(floor);
  std::optional<arena> best;
  std::vector<std::vector<int>> orders;
  const auto consider = [&](auto first, auto key) {
    if (best && static_cast<double>(best->bytes) <= enough) return;
    auto& order = orders.emplace_back(used);
    std::stable_sort(order.begin(), order.end(), [&](int i, int j) {
      return std::tuple{-whole(i), -first(i), -key(i)} < std::tuple{-whole(j), -first(j), -key(j)};
    });
    auto other = detail::place_in_order(buffers, order, run.steps);
    if (!best || other.bytes < best->bytes) best = std::move(other);
  };
  const auto none = [](int) { return 0.0; };
  const auto area = [&](int i) { return size(i) * length(i); };
  consider(none, size);
  consider(none, length);
  consider(none, area);
  consider(none, [&](int i) { return -static_cast<double>(life(i).begin); });
  consider(none, [&](int i) { return static_cast<double>(life(i).end); });
  // What is live at the peak must lie without a gap; the others then fill what it leaves.
  consider(at_peak, length);
  consider(at_peak, size);
  consider(at_peak, area);
  // Where all of them leave gaps, whatever ended highest is placed first, a few times over.
  const int most_tries = large ? 1 : 16;
  for (auto& order : orders)
    for (int tries = 0; tries < most_tries && static_cast<double>(best->bytes) > close; ++tries) {
      auto a = detail::place_in_order(buffers, order, run.steps);
      if (a.bytes < best->bytes) best = a;
      std::stable_partition(order.begin(), order.end(), [&](int i) {
        return whole(i) > 0 || a.offset[static_cast<std::size_t>(i)] + detail::aligned(buffers[static_cast<std::size_t>(i)].bytes) == a.bytes;
      });
    }
  return *best;
}

}  // namespace mmr
