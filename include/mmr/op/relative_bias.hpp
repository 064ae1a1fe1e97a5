// The relative position bias of T5 (Raffel et al., arXiv 1910.10683): a learned number for each head and distance
// between query and key, where far distances share buckets of growing width.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <mmr/op/apply.hpp>
#include <string>

namespace mmr {

/// How distances fall into buckets.
struct distance_buckets {
  std::int64_t count = 32;          ///< of buckets
  std::int64_t max_distance = 128;  ///< from here on all distances share the last one
  bool both_ways = true;            ///< half of the buckets for later keys; otherwise later keys count as distance 0

  /// Buckets of one direction, and the distances that have one of their own.
  std::int64_t one_way() const { return both_ways ? count / 2 : count; }
  std::int64_t exact() const { return one_way() / 2; }
  void check() const {
    if (exact() < 1 || (both_ways && count % 2 != 0))
      fail("relative_bias: there are ", count, " buckets; give ", both_ways ? "an even number from 4" : "2 or more");
    if (max_distance <= exact())
      fail("relative_bias: the greatest distance is ", max_distance, "; give more than the ", exact(),
           " distances that have a bucket of their own");
  }
  /// Bucket of a key `offset` positions after the query (before it where negative).
  std::int64_t operator()(std::int64_t offset) const {
    const std::int64_t first = both_ways && offset > 0 ? one_way() : 0;
    const std::int64_t distance = both_ways ? std::abs(offset) : std::max<std::int64_t>(-offset, 0);
    if (distance < exact()) return first + distance;
    const double e = static_cast<double>(exact());
    const double part = std::log(static_cast<double>(distance) / e) / std::log(static_cast<double>(max_distance) / e);
    // A hair more than nothing, so that a distance on a bucket's edge is in it whatever the rounding of logarithms.
    const auto far = static_cast<std::int64_t>(part * static_cast<double>(one_way() - exact()) + 1e-9);
    return first + std::min(exact() + far, one_way() - 1);
  }
};

namespace op {

namespace detail {
/// Loops 0..4: batch, query, head, key, bucket.
inline signature bias_loops(const tensor_type& scores, const dimension& bucket, const char* name) {
  if (scores.dims.size() != 4) fail(name, ": scores have the axes (batch, query, head, key), in this order");
  signature s;
  for (const auto& d : scores.dims) s.add_loop(d);
  s.add_loop(bucket);
  return s;
}
}  // namespace detail

/// dtable[bucket, head] = sum of dy over the queries and keys whose distance falls into the bucket. Operand: dy.
struct relative_bias_grad {
  static constexpr std::string_view name = "relative_bias_grad";
  distance_buckets buckets;
  dimension bucket;
  signature sign(const std::vector<tensor_type>& in) const {
    auto s = detail::bias_loops(in[0], bucket, "relative_bias_grad");
    s.in = {{in[0].element, {0, 1, 2, 3}}};
    s.out = {{in[0].element, {4, 2}}};
    s.linear = true;
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return points(n.first(4)); }
};

/// y[batch, query, head, key] = x + table[bucket of (key - query), head]. Operands: x, table.
struct relative_bias {
  static constexpr std::string_view name = "relative_bias";
  distance_buckets buckets;
  signature sign(const std::vector<tensor_type>& in) const {
    buckets.check();
    if (in[1].dims.size() != 2 || in[1].dims[0].extent != buckets.count)
      fail("relative_bias: the table has the axes (bucket, head), with ", buckets.count, " buckets");
    auto s = detail::bias_loops(in[0], in[1].dims[0], "relative_bias");
    loops_over(s, in[1], "relative_bias");
    s.in = {{in[0].element, {0, 1, 2, 3}}, {in[1].element, {4, 2}}};
    s.out = {s.in[0]};
    s.loops[4].splittable = false;  // each element needs the row that its distance says
    s.reuse = {0};
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return points(n.first(4)); }
  void vjp(auto& c) const {
    c.add_grad(c.in(0), c.grad());
    if (c.needs_in(1)) c.add_grad(c.in(1), c.emit(relative_bias_grad{buckets, c.type(c.in(1)).dims[0]}, {c.grad()})[0]);
  }
};

}  // namespace op

/// Adds to the scores of each head what table[Buckets, Heads] holds for the distance between query and key.
template <class T, axis_type Batch, axis_type Queries, axis_type Heads, axis_type Keys, class Table>
tensor<T, Batch, Queries, Heads, Keys> relative_bias(tensor<T, Batch, Queries, Heads, Keys> scores, Table table,
                                                     const distance_buckets& buckets) {
  require_one_dtype<op::relative_bias, tensor<T, Batch, Queries, Heads, Keys>, Table>();
  require_last_axis<op::relative_bias, Heads, Table>();
  return apply<tensor<T, Batch, Queries, Heads, Keys>>(op::relative_bias{buckets}, scores, table);
}

}  // namespace mmr
