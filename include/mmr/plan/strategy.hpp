// Strategies of an operator: each mesh axis is given to one of its loops, to none, or (linear operators) to Partial
// operands. The placement of every operand and result follows.
#pragma once

#include <mmr/graph/graph.hpp>
#include <mmr/mesh/placement.hpp>

#include <vector>

namespace mmr {

/// What a mesh axis does to an operator: the index of the loop that it splits, or one of the two below.
using axis_choice = std::int8_t;
inline constexpr axis_choice unsplit = -1;
inline constexpr axis_choice pass_partial = -2;

struct strategy {
  std::array<axis_choice, mesh::max_axes> along{unsplit, unsplit, unsplit};
  axis_choice& operator[](int a) { return along[static_cast<std::size_t>(a)]; }
  axis_choice operator[](int a) const { return along[static_cast<std::size_t>(a)]; }
  friend auto operator<=>(const strategy&, const strategy&) = default;
};

/// All strategies of an operator on a mesh, in a fixed order. Loops of extent 1 and loops that may not be split are not
/// offered; neither is a mesh axis of size 1.
inline std::vector<strategy> strategies_of(const op_info& op, const mesh& m) {
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

namespace detail {
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

/// "batch,none" with one entry a mesh axis.
inline std::string text(const op_info& op, const mesh& m, const strategy& s) {
  std::string out;
  for (int a = 0; a < m.count(); ++a) {
    if (a) out += ',';
    out += s[a] == unsplit ? "none" : s[a] == pass_partial ? "partial" : op.loops.loops[static_cast<std::size_t>(s[a])].axis;
  }
  return out;
}

}  // namespace mmr
