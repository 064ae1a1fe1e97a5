// Static allocation: offsets of all buffers in one arena, fixed before the run from their live intervals.
#pragma once

#include <mmr/plan/buffers.hpp>

#include <algorithm>
#include <optional>
#include <tuple>

namespace mmr {

struct arena {
  std::vector<std::int64_t> offset;  ///< of each buffer of the program; -1 for an empty one
  std::int64_t bytes = 0;
};

/// Every buffer starts at a multiple of this, for vector loads.
inline constexpr std::int64_t arena_alignment = 64;

namespace detail {

constexpr std::int64_t aligned(std::int64_t bytes) { return (bytes + arena_alignment - 1) / arena_alignment * arena_alignment; }

/// Places buffers in the given order, each in the tightest gap among those placed that are live with it (best fit).
inline arena place_in_order(const std::vector<buffer>& buffers, const std::vector<int>& order) {
  arena a;
  a.offset.assign(buffers.size(), -1);
  std::vector<int> placed;
  std::vector<std::pair<std::int64_t, std::int64_t>> taken;
  for (int i : order) {
    const auto& b = buffers[static_cast<std::size_t>(i)];
    const auto size = aligned(b.bytes);
    taken.clear();
    for (int j : placed) {
      const auto& other = buffers[static_cast<std::size_t>(j)];
      if (other.life.begin < b.life.end && b.life.begin < other.life.end)
        taken.emplace_back(a.offset[static_cast<std::size_t>(j)],
                           a.offset[static_cast<std::size_t>(j)] + aligned(other.bytes));
    }
    std::sort(taken.begin(), taken.end());
    std::int64_t end = 0, best = -1, best_gap = 0;
    for (const auto& [from, to] : taken) {
      const auto gap = from - end;
      if (gap >= size && (best < 0 || gap < best_gap)) best = end, best_gap = gap;
      end = std::max(end, to);
    }
    if (best < 0) best = end;
    a.offset[static_cast<std::size_t>(i)] = best;
    a.bytes = std::max(a.bytes, best + size);
    placed.push_back(i);
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
  if (used.empty()) return detail::place_in_order(buffers, {});
  const auto life = [&](int i) { return buffers[static_cast<std::size_t>(i)].life; };
  const auto length = [&](int i) { return static_cast<double>(life(i).end - life(i).begin); };
  const auto size = [&](int i) { return static_cast<double>(buffers[static_cast<std::size_t>(i)].bytes); };
  // Buffers that live through the whole step go first in every order: they lie at the bottom without a gap.
  const auto whole = [&](int i) { return length(i) >= run.steps ? 1.0 : 0.0; };
  const auto at_peak = [&](int i) { return life(i).begin <= peak_step && peak_step < life(i).end ? 1.0 : 0.0; };
  std::optional<arena> best;
  std::vector<std::vector<int>> orders;
  const auto consider = [&](auto first, auto key) {
    if (best && best->bytes <= *peak) return;
    auto& order = orders.emplace_back(used);
    std::stable_sort(order.begin(), order.end(), [&](int i, int j) {
      return std::tuple{-whole(i), -first(i), -key(i)} < std::tuple{-whole(j), -first(j), -key(j)};
    });
    auto other = detail::place_in_order(buffers, order);
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
  constexpr int most_tries = 16;
  for (auto& order : orders)
    for (int tries = 0; tries < most_tries && static_cast<double>(best->bytes) > 1.02 * static_cast<double>(*peak); ++tries) {
      auto a = detail::place_in_order(buffers, order);
      if (a.bytes < best->bytes) best = a;
      std::stable_partition(order.begin(), order.end(), [&](int i) {
        return whole(i) > 0 || a.offset[static_cast<std::size_t>(i)] + detail::aligned(buffers[static_cast<std::size_t>(i)].bytes) == a.bytes;
      });
    }
  return *best;
}

}  // namespace mmr
