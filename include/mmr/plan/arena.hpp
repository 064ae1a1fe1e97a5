// Static allocation: offsets of all buffers in one arena, fixed before the run from their live intervals.
#pragma once

#include <mmr/plan/buffers.hpp>

#include <algorithm>
#include <limits>
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

/// Bytes of the arena, from one offset to another.
struct byte_range {
  std::int64_t from, to;
  auto operator<=>(const byte_range&) const = default;
};

/// What is taken of the arena at each step: a segment tree over the steps. A node keeps the ranges that are taken through
/// all of its steps, and those that are taken at any of them, each as a union. The more tightly buffers lie, the fewer
/// ranges these unions have, so that a large arena is asked as quickly as a small one.
class taken_bytes {
 public:
  explicit taken_bytes(int steps) : steps_(steps), nodes_(4 * static_cast<std::size_t>(std::max(steps, 1))) {}

  void take(lifetime life, byte_range range) { take(1, 0, steps_, life, range); }
  /// The ranges that are taken at any step of `life`, in order; they may overlap.
  void list(lifetime life, std::vector<byte_range>& out) const {
    out.clear();
    list(1, 0, steps_, life, out);
    std::sort(out.begin(), out.end());
  }

 private:
  using ranges = std::vector<byte_range>;  // in order, with gaps between
  struct node {
    ranges throughout, ever;
  };

  static void unite(ranges& set, byte_range x) {
    auto first = std::lower_bound(set.begin(), set.end(), x.from, [](const byte_range& r, std::int64_t at) { return r.to < at; });
    auto last = first;
    for (; last != set.end() && last->from <= x.to; ++last) x = {std::min(x.from, last->from), std::max(x.to, last->to)};
    if (first == last) {
      set.insert(first, x);
    } else {
      *first = x;
      set.erase(first + 1, last);
    }
  }
  void take(std::size_t n, int begin, int end, lifetime life, byte_range x) {
    unite(nodes_[n].ever, x);
    if (life.begin <= begin && end <= life.end) return unite(nodes_[n].throughout, x);
    const int middle = (begin + end) / 2;
    if (life.begin < middle) take(2 * n, begin, middle, life, x);
    if (life.end > middle) take(2 * n + 1, middle, end, life, x);
  }
  void list(std::size_t n, int begin, int end, lifetime life, ranges& out) const {
    const bool inside = life.begin <= begin && end <= life.end;
    const auto& found = inside ? nodes_[n].ever : nodes_[n].throughout;
    out.insert(out.end(), found.begin(), found.end());
    if (inside) return;
    const int middle = (begin + end) / 2;
    if (life.begin < middle) list(2 * n, begin, middle, life, out);
    if (life.end > middle) list(2 * n + 1, middle, end, life, out);
  }

  int steps_;
  std::vector<node> nodes_;
};

/// Places buffers in the given order, each in the tightest gap among those placed that are live with it (best fit). Gives
/// up, with nothing, once the arena is larger than `limit`. What it looked at on the way, about, is added to `work`: the
/// time it takes, in a measure that is the same on every machine.
inline std::optional<arena> place_in_order(const std::vector<buffer>& buffers, const std::vector<int>& order, int steps,
                                           std::int64_t limit, std::int64_t& work) {
  arena a;
  a.offset.assign(buffers.size(), -1);
  taken_bytes placed(steps);
  std::vector<byte_range> taken;
  for (int i : order) {
    const auto& b = buffers[static_cast<std::size_t>(i)];
    const auto size = aligned(b.bytes), alignment = alignment_of(b.bytes);
    placed.list(b.life, taken);
    work += 16 + static_cast<std::int64_t>(taken.size());
    std::int64_t end = 0, best = -1, best_gap = 0;
    for (const auto& [from, to] : taken) {
      const auto gap = from - end;
      if (gap >= size && (best < 0 || gap < best_gap)) best = end, best_gap = gap;
      end = std::max(end, round_up(to, alignment));
    }
    if (best < 0) best = end;
    a.offset[static_cast<std::size_t>(i)] = best;
    a.bytes = std::max(a.bytes, best + size);
    if (a.bytes > limit) return std::nullopt;
    placed.take(b.life, {best, best + size});
  }
  return a;
}

}  // namespace detail

/// Lays out the buffers of a program. Greedy orders known to come close to the peak (by size, by length of life, by area:
/// Sekiyama et al., arXiv 1804.10001) are tried until one reaches the least that any layout takes; the slow ones only
/// where more than a thousandth is left to win, and repairs where it is more than a fiftieth. The smallest arena wins.
/// Everything is reckoned and bounded in integers, never in time: ranks must lay a program out alike, however they were
/// built, and find what was predicted.
inline arena lay_out(const program& run) {
  const auto& buffers = run.buffers;
  const auto at = [&](int i) -> const buffer& { return buffers[static_cast<std::size_t>(i)]; };
  std::vector<int> used;
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].bytes > 0 && buffers[i].life.begin < buffers[i].life.end) used.push_back(static_cast<int>(i));
  if (used.empty()) return {std::vector<std::int64_t>(buffers.size(), -1), 0};
  // No layout is smaller than the padded buffers of the fullest step.
  live_sum padded(run.steps);
  for (int i : used) padded.add(at(i).life, detail::aligned(at(i).bytes));
  const auto at_steps = padded.at_steps();
  const auto fullest = std::max_element(at_steps.begin(), at_steps.end());
  const auto floor = *fullest;
  const auto peak_step = static_cast<int>(fullest - at_steps.begin());
  const auto size = [&](int i) { return at(i).bytes; };
  const auto length = [&](int i) { return std::int64_t{at(i).life.end} - at(i).life.begin; };
  // Buffers that live through the whole step go first in every order, as none can take the place of another.
  const auto whole = [&](int i) { return length(i) >= run.steps; };
  const auto at_peak = [&](int i) { return at(i).life.begin <= peak_step && peak_step < at(i).life.end; };

  constexpr auto unlimited = std::numeric_limits<std::int64_t>::max();
  std::int64_t work = 0;
  arena best{{}, unlimited};
  std::vector<int> best_order;
  const auto attempt = [&](const std::vector<int>& order, std::int64_t limit) {
    auto a = detail::place_in_order(buffers, order, run.steps, limit, work);
    if (a && a->bytes < best.bytes) best = *a, best_order = order;
    return a;
  };
  const auto ends_highest = [&](int i, const arena& a) {
    return a.offset[static_cast<std::size_t>(i)] + detail::aligned(at(i).bytes) == a.bytes;
  };

  std::vector<std::vector<int>> orders;
  const auto consider = [&](std::int64_t enough, auto first, auto key) {
    if (best.bytes <= enough) return;
    auto& order = orders.emplace_back(used);
    std::stable_sort(order.begin(), order.end(), [&](int i, int j) {
      return std::tuple{whole(i), first(i), key(i)} > std::tuple{whole(j), first(j), key(j)};
    });
    attempt(order, unlimited);
  };
  const auto none = [](int) { return false; };
  const auto end = [&](int i) { return at(i).life.end; };
  const auto area = [&](int i) { return size(i) * length(i); };
  consider(floor, none, size);
  consider(floor, none, end);
  // What is live at the peak must lie without a gap; the others then fill what it leaves.
  consider(floor, at_peak, length);
  consider(floor, at_peak, size);
  // These leave many small gaps on their way, and take the longer to place.
  consider(floor + floor / 1000, none, area);
  consider(floor + floor / 1000, at_peak, area);

  // Where all of them leave gaps, whatever ended highest is placed first, a few times over.
  const auto enough = floor + floor / 50;
  for (auto& order : orders)
    for (int tries = 0; tries < 16 && best.bytes > enough; ++tries) {
      const auto a = attempt(order, unlimited);
      std::stable_partition(order.begin(), order.end(), [&](int i) { return whole(i) || ends_highest(i, *a); });
    }

  // Where gaps are left even so, buffers change their places in the best order, one at a time: as often one that ends
  // highest as any. A change stays if the arena grows no larger, and at times when it does, as many arenas can only shrink
  // by way of larger ones. The more is left to win, the longer this goes on.
  auto order = best_order;
  auto now = best;
  const auto fixed = std::find_if_not(order.begin(), order.end(), whole) - order.begin();
  const auto movable = static_cast<std::uint64_t>(std::ssize(order) - fixed);
  std::uint64_t state = 1;
  const auto below = [&](std::uint64_t n) {  // a generator of its own, as every platform must draw the same
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::ptrdiff_t>((state >> 33) % n);
  };
  const auto start = work;
  const auto effort = [&] { return best.bytes > floor + floor / 32 ? std::int64_t{40'000'000} : std::int64_t{4'000'000}; };
  while (movable > 1 && best.bytes > enough && work - start < effort()) {
    std::vector<std::ptrdiff_t> highest;
    for (auto i = fixed; i < std::ssize(order); ++i)
      if (ends_highest(order[static_cast<std::size_t>(i)], now)) highest.push_back(i);
    const bool any = highest.empty() || below(2) == 0;
    const auto from = any ? fixed + below(movable) : highest[static_cast<std::size_t>(below(highest.size()))];
    const auto to = fixed + below(movable);
    const auto slack = below(8) == 0 ? floor / 50 : 0;
    auto other = order;
    const auto first = other.begin() + std::min(from, to), last = other.begin() + std::max(from, to) + 1;
    std::rotate(first, to < from ? last - 1 : first + 1, last);
    if (auto a = attempt(other, now.bytes + slack)) now = std::move(*a), order = std::move(other);
  }
  return best;
}

}  // namespace mmr
