// Strategies of an operator: each mesh axis is given to one of its loops, to none, or (linear operators) to Partial
// operands. The placement of every operand and result follows. An operator of recomputation need not run at all.
#pragma once

#include <mmr/graph/graph.hpp>
#include <mmr/mesh/placement.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace mmr {

/// What a mesh axis does to an operator: the index of the loop that it splits, or one of the two below.
using axis_choice = std::int8_t;
inline constexpr axis_choice unsplit = -1;
inline constexpr axis_choice pass_partial = -2;

/// What an again-operator does; every other operator runs. `keep`: it does not run, and its results are those of the
/// first run, which stay in their buffers. `absent`: it does not run, and nothing may read its results.
enum class presence : std::uint8_t { run, keep, absent };

struct strategy {
  std::array<axis_choice, mesh::max_axes> along{unsplit, unsplit, unsplit};
  presence kind = presence::run;
  bool runs() const { return kind == presence::run; }
  axis_choice& operator[](int a) { return along[static_cast<std::size_t>(a)]; }
  axis_choice operator[](int a) const { return along[static_cast<std::size_t>(a)]; }
  friend auto operator<=>(const strategy&, const strategy&) = default;
};

namespace detail {

/// All ways to run an operator.
inline std::vector<strategy> splits_of(const op_info& op, const mesh& m) {
  std::vector<strategy> all{{}};
  for (int a = 0; a < m.count(); ++a) {
    if (m.axis(a).size == 1) continue;
    std::vector<strategy> more;
    for (const auto& base : all) {
      auto with = [&](axis_choice c) {
        auto s = base;
        s[a] = c;
        more.push_back(s);
      };
      with(unsplit);
      for (std::size_t l = 0; l < op.loops.loops.size(); ++l)
        if (op.loops.loops[l].splittable && op.loops.loops[l].extent > 1) with(static_cast<axis_choice>(l));
      if (op.loops.linear && !op.loops.in.empty()) with(pass_partial);
    }
    all = std::move(more);
  }
  return all;
}

inline placement place(const access& a, const strategy& s, axis_placement lacking) {
  placement p;
  for (int k = 0; k < mesh::max_axes; ++k) {
    if (s[k] == unsplit) continue;
    if (s[k] == pass_partial) {
      p[k] = is_floating(a.element) ? partial : replicate;
      continue;
    }
    p[k] = lacking;
    for (std::size_t d = 0; d < a.loops.size(); ++d)
      if (a.loops[d] == s[k]) p[k] = static_cast<axis_placement>(d);
  }
  return p;
}
}  // namespace detail

/// Placement that the operator needs its operand in.
inline placement operand_placement(const op_info& op, std::size_t operand, const strategy& s) {
  return detail::place(op.loops.in[operand], s, replicate);
}
/// Placement in which the operator leaves a result: Partial where a split loop was reduced.
inline placement result_placement(const op_info& op, std::size_t result, const strategy& s) {
  return detail::place(op.loops.out[result], s, partial);
}
inline placement state_placement(const op_info& op, std::size_t state, const strategy& s) {
  return detail::place(op.loops.state[state], s, replicate);
}

/// Whether a result is there under a strategy, for others to read.
inline bool is_there(const op_info& op, std::size_t result, const strategy& s) {
  return s.runs() || (s.kind == presence::keep && op.keepable[result]);
}
/// Placements of the results that an again-operator may keep, as a first run under `s` leaves them.
inline std::vector<placement> kept_placements(const op_info& op, const strategy& s) {
  std::vector<placement> all;
  for (std::size_t r = 0; r < op.keepable.size(); ++r)
    if (op.keepable[r]) all.push_back(result_placement(op, r, s));
  return all;
}
/// The strategy of an again-operator that keeps what `first`, the strategy of the operator that it repeats, has left. First
/// runs that leave equal placements are kept by one strategy.
inline strategy keeping(const op_info& op, const mesh& m, const strategy& first) {
  const auto wanted = kept_placements(op, first);
  for (auto s : detail::splits_of(op, m))
    if (kept_placements(op, s) == wanted) {
      s.kind = presence::keep;
      return s;
    }
  fail("operator '", op.name, "' keeps nothing of this strategy");
}

/// All strategies of an operator on a mesh, in a fixed order. Loops of extent 1 and loops that may not be split are not
/// offered; neither is a mesh axis of size 1. What backward reads of an again-operator must be there, one way or the other.
inline std::vector<strategy> strategies_of(const op_info& op, const mesh& m) {
  auto splits = detail::splits_of(op, m);
  if (op.again < 0) return splits;
  std::vector<strategy> all;
  const bool keeps = std::find(op.keepable.begin(), op.keepable.end(), true) != op.keepable.end(), hold = !op.rules;
  if (!keeps || hold) all.push_back({.kind = presence::absent});
  if (keeps)
    for (std::set<std::vector<placement>> seen; auto s : splits)
      if (seen.insert(kept_placements(op, s)).second) {
        s.kind = presence::keep;
        all.push_back(s);
      }
  if (!hold) all.insert(all.end(), splits.begin(), splits.end());
  return all;
}

/// The part of each loop that a rank runs.
inline std::vector<loop_range> local_ranges(const op_info& op, const mesh& m, const strategy& s, int rank) {
  std::vector<loop_range> ranges;
  for (std::size_t l = 0; l < op.loops.loops.size(); ++l) {
    const auto extent = op.loops.loops[l].extent;
    const auto part = local_interval(m, extent, rank, [&](int a) { return s[a] == static_cast<axis_choice>(l); });
    ranges.push_back({part.begin, part.size, extent});
  }
  return ranges;
}

/// "batch,none" with one entry a mesh axis; "kept" or "absent" for an operator that does not run.
inline std::string text(const op_info& op, const mesh& m, const strategy& s) {
  if (!s.runs()) return s.kind == presence::keep ? "kept" : "absent";
  std::string out;
  for (int a = 0; a < m.count(); ++a) {
    if (a) out += ',';
    out += s[a] == unsplit ? "none" : s[a] == pass_partial ? "partial" : op.loops.loops[static_cast<std::size_t>(s[a])].axis;
  }
  return out;
}

}  // namespace mmr
