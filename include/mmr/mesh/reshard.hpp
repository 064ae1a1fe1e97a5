// Resharding: the cheapest sequence of collectives, one mesh axis at a time, from one placement to another. The planner
// charges these steps and the executor runs the same ones.
#pragma once

#include <mmr/mesh/placement.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <string_view>
#include <tuple>
#include <utility>

namespace mmr {

enum class collective : std::uint8_t { all_gather, all_reduce, reduce_scatter, all_to_all, slice, mask };

constexpr std::string_view name_of(collective c) {
  constexpr std::string_view names[] = {"all-gather", "all-reduce", "reduce-scatter", "all-to-all", "slice", "mask"};
  return names[static_cast<std::size_t>(c)];
}

/// One step of a resharding along one mesh axis.
struct reshard_step {
  collective kind = collective::slice;
  int axis = 0;             ///< mesh axis
  int from_dim = -1;        ///< dimension that was split along it (all-gather, all-to-all)
  int to_dim = -1;          ///< dimension that becomes split (reduce-scatter, all-to-all, slice)
  placement before, after;
  std::int64_t bytes = 0;   ///< of the buffer it fills, on rank 0
  std::int64_t sent = 0;    ///< bytes that a rank sends
  double seconds = 0;
};

/// Steps from a placement to another. No steps where they are equal.
struct resharding {
  std::vector<reshard_step> steps;
  double seconds = 0;
  /// Bytes of all buffers it fills, on rank 0. Where the source buffer dies with this use (`dying`), a first step that
  /// keeps the shape works in place.
  std::int64_t bytes(bool dying) const {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < steps.size(); ++i)
      if (!(i == 0 && dying && in_place(steps[i]))) sum += steps[i].bytes;
    return sum;
  }
  static bool in_place(const reshard_step& s) { return s.kind == collective::all_reduce || s.kind == collective::mask; }
};

/// Seconds of a collective over n ranks on a link, B bytes of the tensor that is whole along this mesh axis:
/// all-gather and reduce-scatter a + b B (n-1)/n, all-reduce a + 2 b B (n-1)/n, all-to-all a + b B (n-1)/n^2
/// (ring algorithms; Thakur et al., 2005). Slice and mask are local copies at memory speed.
inline double collective_seconds(const mesh& m, collective kind, int axis, double whole_bytes) {
  const auto& link = m.axis(axis);
  const double n = link.size, moved = whole_bytes * (n - 1) / n;
  switch (kind) {
    case collective::all_gather:
    case collective::reduce_scatter: return link.latency + link.seconds_per_byte * moved;
    case collective::all_reduce: return link.latency + 2 * link.seconds_per_byte * moved;
    case collective::all_to_all: return link.latency + link.seconds_per_byte * moved / n;
    case collective::slice: return m.device.launch + 2 * whole_bytes / n / m.device.memory_bytes;
    case collective::mask: return m.device.launch + 2 * whole_bytes / m.device.memory_bytes;
  }
  return 0;
}

/// What a route costs, without its steps.
struct resharding_cost {
  double seconds = 0;
  std::int64_t bytes = 0;     ///< of all buffers that it fills, on rank 0
  std::int64_t in_place = 0;  ///< less of them where the source buffer dies with this use
  std::int64_t last = 0;      ///< of them, bytes of the last one

  std::int64_t bytes_of(bool dying) const { return dying ? bytes - in_place : bytes; }
};

/// Finds routes for tensors of one shape on one mesh, by Dijkstra's algorithm over placements.
class router {
 public:
  router(const mesh& m, std::vector<std::int64_t> extents, std::int64_t element_bytes)
      : mesh_(m), extents_(std::move(extents)), element_(element_bytes), base_(extents_.size() + 2) {
    std::size_t count = 1;
    for (int a = 0; a < mesh_.count(); ++a) count *= base_;
    next_.resize(count);
    from_.resize(count);
  }

  /// The quickest route (least bytes among equally quick ones). Every placement leads to every other.
  const resharding& find(const placement& from, const placement& to) {
    auto [at, fresh] = routes_.try_emplace({from, to});
    if (!fresh) return at->second;
    auto& found = at->second;
    const auto& known = explored(from);
    for (auto k = index(to); k != index(from); k = index(known[k].by.before)) found.steps.push_back(known[k].by);
    std::reverse(found.steps.begin(), found.steps.end());
    found.seconds = known[index(to)].cost.seconds;
    return found;
  }
  /// What find() would cost.
  const resharding_cost& cost(const placement& from, const placement& to) { return explored(from)[index(to)].cost; }

  /// Whether the innermost split of dimension d is along mesh axis a: only that one can be undone by one collective.
  static bool innermost(const placement& p, int a, int axes) {
    for (int k = a + 1; k < axes; ++k)
      if (p[k] == p[a]) return false;
    return true;
  }

 private:
  /// How a placement is reached from one source.
  struct reached {
    resharding_cost cost;
    reshard_step by;
    bool done = false, seen = false;
  };

  std::int64_t local_bytes(const placement& p) const { return element_ * local_count(mesh_, extents_, p, 0); }
  std::size_t index(const placement& p) const {
    std::size_t i = 0;
    for (int a = 0; a < mesh_.count(); ++a) i = i * base_ + static_cast<std::size_t>(p[a] + 2);
    return i;
  }

  const std::vector<reshard_step>& next(const placement& p) {
    auto& steps = next_[index(p)];
    if (!steps.empty()) return steps;
    const int dims = static_cast<int>(extents_.size());
    auto add = [&](collective kind, int a, int from_dim, int to_dim, axis_placement becomes) {
      reshard_step s{.kind = kind, .axis = a, .from_dim = from_dim, .to_dim = to_dim, .before = p, .after = p};
      s.after[a] = becomes;
      if (becomes >= 0 && !innermost(s.after, a, mesh_.count())) return;
      auto whole = p;
      whole[a] = replicate;
      const auto bytes = local_bytes(whole);
      s.bytes = local_bytes(s.after);
      s.seconds = collective_seconds(mesh_, kind, a, static_cast<double>(bytes));
      const auto n = mesh_.axis(a).size;
      const auto moved = bytes / n * (n - 1);
      if (kind == collective::all_gather || kind == collective::reduce_scatter) s.sent = moved;
      if (kind == collective::all_reduce) s.sent = 2 * moved;
      if (kind == collective::all_to_all) s.sent = moved / n;
      steps.push_back(s);
    };
    for (int a = 0; a < mesh_.count(); ++a) {
      if (p[a] == partial) {
        add(collective::all_reduce, a, -1, -1, replicate);
        for (int d = 0; d < dims; ++d) add(collective::reduce_scatter, a, -1, d, static_cast<axis_placement>(d));
      } else if (p[a] == replicate) {
        for (int d = 0; d < dims; ++d) add(collective::slice, a, -1, d, static_cast<axis_placement>(d));
        add(collective::mask, a, -1, -1, partial);
      } else if (innermost(p, a, mesh_.count())) {
        add(collective::all_gather, a, p[a], -1, replicate);
        for (int d = 0; d < dims; ++d)
          if (d != p[a]) add(collective::all_to_all, a, p[a], d, static_cast<axis_placement>(d));
      }
    }
    return steps;
  }

  const std::vector<reached>& explored(const placement& from) {
    auto& all = from_[index(from)];
    if (all.empty()) explore(from, all);
    return all;
  }

  void explore(const placement& from, std::vector<reached>& all) {
    using label = std::tuple<double, std::int64_t, std::size_t>;  // seconds, bytes, placement
    std::priority_queue<std::pair<label, placement>, std::vector<std::pair<label, placement>>, std::greater<>> open;
    all.resize(from_.size());
    all[index(from)].seen = true;
    open.push({{0, 0, index(from)}, from});
    while (!open.empty()) {
      const auto place = open.top().second;
      open.pop();
      const auto here = index(place);
      if (std::exchange(all[here].done, true)) continue;
      for (const auto& step : next(place)) {
        auto& there = all[index(step.after)];
        if (there.done) continue;
        auto c = all[here].cost;
        if (here == index(from) && resharding::in_place(step)) c.in_place = step.bytes;
        c.seconds += step.seconds;
        c.bytes += step.bytes;
        c.last = step.bytes;
        if (there.seen && std::tie(there.cost.seconds, there.cost.bytes) <= std::tie(c.seconds, c.bytes)) continue;
        there = {c, step, false, true};
        open.push({{c.seconds, c.bytes, index(step.after)}, step.after});
      }
    }
  }

  const mesh& mesh_;
  std::vector<std::int64_t> extents_;
  std::int64_t element_;
  std::size_t base_;                              // placements along one mesh axis
  std::vector<std::vector<reshard_step>> next_;   // of each placement
  std::vector<std::vector<reached>> from_;        // of each placement, once it is asked for
  std::map<std::pair<placement, placement>, resharding> routes_;
};

/// One router for each tensor shape.
class router_table {
 public:
  explicit router_table(const mesh& m) : mesh_(m) {}
  router& get(const std::vector<std::int64_t>& extents, std::int64_t element_bytes) {
    return routers_.try_emplace({extents, element_bytes}, mesh_, extents, element_bytes).first->second;
  }

 private:
  const mesh& mesh_;
  std::map<std::pair<std::vector<std::int64_t>, std::int64_t>, router> routers_;
};

}  // namespace mmr
