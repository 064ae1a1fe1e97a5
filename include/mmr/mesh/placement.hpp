// Where a tensor lies: for each mesh axis Shard(dimension), Replicate or Partial (terms as in GSPMD and DTensor).
#pragma once

#include <mmr/mesh/mesh.hpp>

#include <array>
#include <compare>
#include <span>

namespace mmr {

/// How a tensor lies along one mesh axis: a dimension it is split on, or one of the two below.
using axis_placement = std::int8_t;
inline constexpr axis_placement replicate = -1;
inline constexpr axis_placement partial = -2;

struct placement {
  std::array<axis_placement, mesh::max_axes> along{replicate, replicate, replicate};

  axis_placement& operator[](int a) { return along[static_cast<std::size_t>(a)]; }
  axis_placement operator[](int a) const { return along[static_cast<std::size_t>(a)]; }
  friend auto operator<=>(const placement&, const placement&) = default;
};

/// Positions [begin, begin + size) of a dimension.
struct interval {
  std::int64_t begin = 0, size = 0;
};

/// Part `k` of `n` equal parts; where n does not divide the size, the first parts are one longer.
constexpr interval part_of(interval whole, int n, int k) {
  const std::int64_t each = whole.size / n, longer = whole.size % n;
  return {whole.begin + k * each + std::min<std::int64_t>(k, longer), each + (k < longer ? 1 : 0)};
}

/// The part of a dimension of size `extent` that `rank` holds, where the mesh axes in `splits(a)` split it, first axis
/// outermost. Rank 0 always holds a largest part.
template <class Splits>
interval local_interval(const mesh& m, std::int64_t extent, int rank, Splits splits) {
  interval part{0, extent};
  for (int a = 0; a < m.count(); ++a)
    if (splits(a)) part = part_of(part, m.axis(a).size, m.coordinate(rank, a));
  return part;
}

/// The box of a tensor that a rank holds: one interval a dimension.
inline std::vector<interval> local_box(const mesh& m, std::span<const std::int64_t> extents, const placement& p, int rank) {
  std::vector<interval> box;
  for (std::size_t d = 0; d < extents.size(); ++d)
    box.push_back(local_interval(m, extents[d], rank, [&](int a) { return p[a] == static_cast<axis_placement>(d); }));
  return box;
}

/// Elements that a rank holds.
inline std::int64_t local_count(const mesh& m, std::span<const std::int64_t> extents, const placement& p, int rank) {
  std::int64_t n = 1;
  for (const auto& i : local_box(m, extents, p, rank)) n *= i.size;
  return n;
}

/// Product of the sizes of the mesh axes that shard it: the s of replication r = p / s.
inline std::int64_t shards(const mesh& m, const placement& p) {
  std::int64_t s = 1;
  for (int a = 0; a < m.count(); ++a)
    if (p[a] >= 0) s *= m.axis(a).size;
  return s;
}

/// "S(embed),R" with one entry a mesh axis.
inline std::string text(const mesh& m, const placement& p, std::span<const std::string> dims) {
  std::string s;
  for (int a = 0; a < m.count(); ++a) {
    if (a) s += ',';
    if (p[a] == replicate) s += 'R';
    if (p[a] == partial) s += 'P';
    if (p[a] >= 0) s += "S(" + dims[static_cast<std::size_t>(p[a])] + ")";
  }
  return s;
}

}  // namespace mmr
