// Softmax of stored attention scores: scaled, and each query blind to later keys where the mask is causal.
#pragma once

#include <cmath>
#include <mmr/op/softmax.hpp>

namespace mmr {
namespace op {

/// dx = scale * y * (dy - sum(y * dy)). Operands: dy, y, which is zero where it is masked.
struct masked_softmax_grad {
  static constexpr std::string_view name = "masked_softmax_grad";
  double scale = 1;
  signature sign(const std::vector<tensor_type>& in) const {
    auto s = detail::rowwise(in, "masked_softmax_grad");
    s.reuse = {0};
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return 5 * points(n); }
};

/// y = softmax of scale * x over the last axis; with `query` >= 0, the dimension of the query's position i, over the
/// keys 0..i alone, and zero for the others. A query's row of keys stays whole; queries may be split.
struct masked_softmax {
  static constexpr std::string_view name = "masked_softmax";
  double scale = 1;
  int query = -1;
  signature sign(const std::vector<tensor_type>& in) const {
    if (!(scale > 0 && std::isfinite(scale)))
      fail("masked_softmax: the scores are scaled by ", scale, "; give a positive number");
    auto s = detail::rowwise(in, "masked_softmax");
    s.reuse = {0};
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return (query < 0 ? 13 : 6.5) * points(n); }
  void vjp(auto& c) const { c.add_grad(c.in(0), c.emit(masked_softmax_grad{scale}, {c.grad(), c.out(0)})[0]); }
};

}  // namespace op

/// Softmax of scale * x over `Keys`, the last axis of x.
template <axis_type Keys, class T, class... A>
tensor<T, A...> scaled_softmax(tensor<T, A...> x, double scale) {
  require_last_axis<op::masked_softmax, Keys, tensor<T, A...>>();
  return apply<tensor<T, A...>>(op::masked_softmax{scale, -1}, x);
}

/// The same, where position i of `Queries` sees positions 0..i of `Keys`.
template <axis_type Queries, axis_type Keys, class T, class... A>
tensor<T, A...> causal_softmax(tensor<T, A...> x, double scale) {
  require_last_axis<op::masked_softmax, Keys, tensor<T, A...>>();
  require_axis<op::masked_softmax, Queries, tensor<T, A...>>();
  int query = 0, i = 0;
  ((std::same_as<Queries, A> ? void(query = i) : void(), ++i), ...);
  return apply<tensor<T, A...>>(op::masked_softmax{scale, query}, x);
}

}  // namespace mmr
