// Causal self-attention that never stores the score matrix: online softmax by blocks (Dao et al., arXiv 2205.14135) with
// the log-sum-exp of each row saved for backward (arXiv 2307.08691).
#pragma once

#include <mmr/op/apply.hpp>

#include <string>

namespace mmr {
namespace op {

namespace detail {
/// Loops 0..4: batch, query position, head, key position, head feature. Query rows may be split, keys stay whole.
inline signature attention_loops(const tensor_type& q, const tensor_type& k, const char* name) {
  if (q.dims.size() != 4 || k.dims.size() != 4)
    fail(name, ": operands have the axes (batch, position, heads, features), in this order");
  signature s;
  s.add_loop(q.dims[0]);
  s.add_loop(q.dims[1]);
  s.add_loop(q.dims[2]);
  s.add_loop(k.dims[1], false);  // the same axis as the queries' positions, walked by a loop of its own
  s.add_loop(q.dims[3], false);
  return s;
}
inline access queries(dtype t) { return {t, {0, 1, 2, 4}}; }
inline access keys(dtype t) { return {t, {0, 3, 2, 4}}; }
inline access row_sums(dtype t) { return {t, {0, 1, 2}}; }
}  // namespace detail

/// Operands: dout, q, k, v, out, lse. Results: dq, dk, dv; splitting the queries leaves dk and dv Partial.
struct attention_grad {
  static constexpr std::string_view name = "attention_grad";
  static constexpr bool matrix = true;
  signature sign(const std::vector<tensor_type>& in) const {
    auto s = detail::attention_loops(in[1], in[2], "attention_grad");
    const auto t = in[0].element;
    s.in = {detail::queries(t), detail::queries(t), detail::keys(t), detail::keys(t), detail::queries(t), detail::row_sums(t)};
    s.out = {detail::queries(t), detail::keys(t), detail::keys(t)};
    return s;
  }
  // Five products over the visible half of the score matrix.
  double flops(std::span<const std::int64_t> n) const { return 5.0 * points(n); }
};

/// out = softmax(q k^T / sqrt(features), causal) v. Operands: q, k, v. Results: out, and lse for backward.
struct attention {
  static constexpr std::string_view name = "attention";
  static constexpr bool matrix = true;
  signature sign(const std::vector<tensor_type>& in) const {
    auto s = detail::attention_loops(in[0], in[1], "attention");
    const auto t = in[0].element;
    s.in = {detail::queries(t), detail::keys(t), detail::keys(t)};
    s.out = {detail::queries(t), detail::row_sums(t)};
    return s;
  }
  // Two products over the visible half of the score matrix.
  double flops(std::span<const std::int64_t> n) const { return 2.0 * points(n); }
  void vjp(auto& c) const {
    const auto grads = c.emit(attention_grad{}, {c.grad(), c.in(0), c.in(1), c.in(2), c.out(0), c.out(1)});
    for (std::size_t i = 0; i < 3; ++i) c.add_grad(c.in(i), grads[i]);
  }
};

}  // namespace op

namespace detail {
template <class T, axis_type Batch, axis_type Seq, axis_type Heads, axis_type Features>
tensor<T, Batch, Seq, Heads> attention_rows(tensor<T, Batch, Seq, Heads, Features>);
template <class Seq, class... A>
inline constexpr bool positions_second = false;
template <class Seq, class Batch, class Heads, class Features>
inline constexpr bool positions_second<Seq, Batch, Seq, Heads, Features> = true;
template <class Op, class Seq, class T, class... A>
consteval void require_heads(const tensor<T, A...>*) {
  require_axis<Op, Seq, tensor<T, A...>>();
  if constexpr (!positions_second<Seq, A...>)
    static_assert(mistake::operand_misplaces_axis<Op, Seq, tensor<T, A...>>,
                  "mmr: operand_misplaces_axis<operator, axis, operand>: attention is over (batch, positions, heads, features)");
}
}  // namespace detail

/// Causal attention of each head over positions `Seq`: q, k, v over (Batch, Seq, Heads, Features), and so the result.
template <axis_type Seq, class Q, class K, class V>
Q causal_attention(Q q, K k, V v) {
  detail::require_heads<op::attention, Seq>(static_cast<const Q*>(nullptr));
  require_one_dtype<op::attention, Q, K, V>();
  require_same_axes<op::attention, Q, K, V>();
  return std::get<0>(apply<Q, decltype(detail::attention_rows(q))>(op::attention{}, q, k, v));
}

}  // namespace mmr
