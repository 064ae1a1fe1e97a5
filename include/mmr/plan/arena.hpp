// Static allocation: offsets of all buffers in one arena, fixed before the run from their live intervals.
#pragma once

#include <mmr/plan/buffers.hpp>

#include <algorithm>
#include <numeric>

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
/// Sekiyama et al., arXiv 1804.10001) are all tried and the smallest arena wins.
inline arena lay_out(const program& run) {
  const auto& buffers = run.buffers;
  std::vector<int> used;
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].bytes > 0 && buffers[i].life.begin < buffers[i].life.end) used.push_back(static_cast<int>(i));
  const auto length = [&](int i) {
    const auto& b = buffers[static_cast<std::size_t>(i)];
    return static_cast<double>(b.life.end - b.life.begin);
  };
  const auto size = [&](int i) { return static_cast<double>(buffers[static_cast<std::size_t>(i)].bytes); };
  // Buffers that live through the whole step go first in every order: they lie at the bottom without a gap.
  const auto whole = [&](int i) { return length(i) >= run.steps ? 1.0 : 0.0; };
  const auto order = [&](auto key) {
    auto o = used;
    std::stable_sort(o.begin(), o.end(), [&](int i, int j) {
      return std::tuple{-whole(i), -key(i)} < std::tuple{-whole(j), -key(j)};
    });
    return detail::place_in_order(buffers, o);
  };
  const std::int64_t floor = [&] {
    const auto live = run.live_bytes();
    return live.empty() ? 0 : *std::max_element(live.begin(), live.end());
  }();
  arena best = order(size);
  const auto consider = [&](auto key) {
    if (best.bytes <= floor) return;
    auto other = order(key);
    if (other.bytes < best.bytes) best = std::move(other);
  };
  consider(length);
  consider([&](int i) { return size(i) * length(i); });
  consider([&](int i) { return -static_cast<double>(buffers[static_cast<std::size_t>(i)].life.begin); });
  consider([&](int i) { return static_cast<double>(buffers[static_cast<std::size_t>(i)].life.end); });
  return best;
}

}  // namespace mmr
