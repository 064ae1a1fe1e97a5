// Attention that never stores the score matrix: online softmax by blocks (Dao et al., arXiv 2205.14135) with the
// log-sum-exp of each row saved for backward (arXiv 2307.08691). One operator for self-attention, causal or not, for
// cross-attention, and for groups of queries that share keys and values (Ainslie et al., arXiv 2305.13245).
#pragma once

#include <cmath>
#include <mmr/op/apply.hpp>
#include <optional>
#include <string>

namespace mmr {
namespace op {

namespace detail {
/// Loops 0..4: batch, query position, head, key position, head feature; and 5, the queries of a head that share its
/// keys, where the queries have five axes. Query rows and groups may be split, keys stay whole: their gradients are
/// then Partial.
inline signature attention_loops(const tensor_type& q, const tensor_type& k, const char* name) {
  if ((q.dims.size() != 4 && q.dims.size() != 5) || k.dims.size() != 4)
    fail(name,
         ": queries have the axes (batch, position, heads, features) or (batch, position, heads, group, features), "
         "keys and values (batch, position, heads, features)");
  signature s;
  s.add_loop(q.dims[0]);
  s.add_loop(q.dims[1]);
  s.add_loop(q.dims[2]);
  s.add_loop(k.dims[1], false);  // of self-attention: the axis of the queries' positions, walked by a loop of its own
  s.add_loop(q.dims.back(), false);
  if (q.dims.size() == 5) s.add_loop(q.dims[3]);
  return s;
}
inline bool grouped(const signature& s) {
  return s.loops.size() == 6;
}
inline access queries(const signature& s, dtype t) {
  return grouped(s) ? access{t, {0, 1, 2, 5, 4}} : access{t, {0, 1, 2, 4}};
}
inline access keys(dtype t) {
  return {t, {0, 3, 2, 4}};
}
inline access row_sums(const signature& s, dtype t) {
  return grouped(s) ? access{t, {0, 1, 2, 5}} : access{t, {0, 1, 2}};
}
/// Flops of `products` matrix products over the scores that are seen; a causal mask hides half of them.
inline double attention_flops(std::span<const std::int64_t> n, bool causal, double products) {
  return (causal ? 1 : 2) * products * points(n);
}
}  // namespace detail

/// Operands: dout, q, k, v, out, lse. Results: dq, dk, dv; splitting the queries leaves dk and dv Partial.
struct attention_grad {
  static constexpr std::string_view name = "attention_grad";
  static constexpr bool matrix = true;
  bool causal = true;
  std::optional<double> scale{};
  signature sign(const std::vector<tensor_type>& in) const {
    auto s = detail::attention_loops(in[1], in[2], "attention_grad");
    const auto t = in[0].element;
    const auto q = detail::queries(s, t), k = detail::keys(t);
    s.in = {q, q, k, k, q, detail::row_sums(s, t)};
    s.out = {q, k, k};
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return detail::attention_flops(n, causal, 5); }
};

/// out = softmax(scale * q k^T, masked) v. Operands: q, k, v. Results: out, and lse for backward. With `causal` query i
/// sees the keys 0..i.
struct attention {
  static constexpr std::string_view name = "attention";
  static constexpr bool matrix = true;
  bool causal = true;
  std::optional<double> scale{};  ///< of the scores; 1 / sqrt(features) where none is given
  signature sign(const std::vector<tensor_type>& in) const {
    if (scale && !(*scale > 0 && std::isfinite(*scale)))
      fail("attention: the scores are scaled by ", *scale, "; give a positive number");
    auto s = detail::attention_loops(in[0], in[1], "attention");
    const auto t = in[0].element;
    const auto q = detail::queries(s, t), k = detail::keys(t);
    s.in = {q, k, k};
    s.out = {q, detail::row_sums(s, t)};
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return detail::attention_flops(n, causal, 2); }
  void vjp(auto& c) const {
    const auto grads = c.emit(attention_grad{causal, scale}, {c.grad(), c.in(0), c.in(1), c.in(2), c.out(0), c.out(1)});
    for (std::size_t i = 0; i < 3; ++i) c.add_grad(c.in(i), grads[i]);
  }
};

}  // namespace op

namespace detail {
/// What the axes of queries say of the other tensors: the row sums, and the keys at positions `Keys`.
template <class Q>
struct attention_axes {
  static constexpr bool known = false;
};
template <class T, class Batch, class Seq, class Heads, class Features>
struct attention_axes<tensor<T, Batch, Seq, Heads, Features>> {
  static constexpr bool known = true;
  using positions = Seq;
  using rows = tensor<T, Batch, Seq, Heads>;
  template <class Keys>
  using keys = tensor<T, Batch, Keys, Heads, Features>;
};
template <class T, class Batch, class Seq, class Heads, class Group, class Features>
struct attention_axes<tensor<T, Batch, Seq, Heads, Group, Features>> {
  static constexpr bool known = true;
  using positions = Seq;
  using rows = tensor<T, Batch, Seq, Heads, Group>;
  template <class Keys>
  using keys = tensor<T, Batch, Keys, Heads, Features>;
};

template <class Seq, class Keys, class Q, class K, class V>
Q attention(const op::attention& rule, Q q, K k, V v) {
  using of = attention_axes<Q>;
  require_axis<op::attention, Seq, Q>();
  constexpr bool placed = [] {
    if constexpr (of::known) return std::same_as<typename of::positions, Seq>;
    return false;
  }();
  if constexpr (!placed) {
    static_assert(
        mistake::operand_misplaces_axis<op::attention, Seq, Q>,
        "mmr: operand_misplaces_axis<operator, axis, operand>: the queries of attention are over (batch, positions, "
        "heads, features) or (batch, positions, heads, group, features)");
  } else {
    require_one_dtype<op::attention, Q, K, V>();
    require_same_axes<op::attention, typename of::template keys<Keys>, K, V>();
    return std::get<0>(apply<Q, typename of::rows>(rule, q, k, v));
  }
}
}  // namespace detail

/// Causal attention of each head over positions `Seq`: q is over (Batch, Seq, Heads, Features), and so are k, v and the
/// result. With grouped queries q and the result are over (Batch, Seq, Heads, Group, Features): the queries of a group
/// share the keys and values of their head.
template <axis_type Seq, class Q, class K, class V>
Q causal_attention(Q q, K k, V v, std::optional<double> scale = {}) {
  return detail::attention<Seq, Seq>(op::attention{true, scale}, q, k, v);
}

/// Attention of the queries at positions `Seq` to all keys at positions `Keys`: the same for self-attention, another
/// axis, perhaps of another length, for cross-attention. q is over (Batch, Seq, Heads, Features) or (Batch, Seq, Heads,
/// Group, Features), and so is the result; k and v are over (Batch, Keys, Heads, Features). Scores are multiplied by
/// `scale`, or by 1 / sqrt(features) where none is given.
template <axis_type Seq, axis_type Keys = Seq, class Q, class K, class V>
Q attention(Q q, K k, V v, std::optional<double> scale = {}) {
  return detail::attention<Seq, Keys>(op::attention{false, scale}, q, k, v);
}

}  // namespace mmr
