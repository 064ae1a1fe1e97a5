// Layer normalisation over the last axis (Ba et al., arXiv 1607.06450).
#pragma once

#include <mmr/op/softmax.hpp>

namespace mmr {
namespace op {

/// Operands: dy, x, gamma, mean, rstd. Results: dx, dgamma, dbeta.
struct layer_norm_grad {
  static constexpr std::string_view name = "layer_norm_grad";
  signature sign(const std::vector<tensor_type>& in) const {
    auto s = detail::rowwise(in, "layer_norm_grad", 3);
    s.out[1] = s.out[2] = s.in[2];
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return 14 * points(n); }
};

/// y = (x - mean) * rstd * gamma + beta. Operands: x, gamma, beta. Results: y, and for backward mean and rstd.
struct layer_norm {
  static constexpr std::string_view name = "layer_norm";
  double epsilon = 1e-5;
  signature sign(const std::vector<tensor_type>& in) const {
    auto s = detail::rowwise(in, "layer_norm", 3);
    s.out[1].loops.pop_back();
    s.out[2].loops.pop_back();
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return 8 * points(n); }
  void vjp(auto& c) const {
    const auto grads = c.emit(layer_norm_grad{}, {c.grad(), c.in(0), c.in(1), c.out(1), c.out(2)});
    for (std::size_t i = 0; i < 3; ++i) c.add_grad(c.in(i), grads[i]);
  }
};

}  // namespace op

/// Normalises x over `Over`, its last axis, then scales by gamma[Over] and shifts by beta[Over].
template <axis_type Over, class T, class... A, class Gamma, class Beta>
tensor<T, A...> layer_norm(tensor<T, A...> x, Gamma gamma, Beta beta, double epsilon = 1e-5) {
  require_last_axis<op::layer_norm, Over, tensor<T, A...>>();
  require_same_axes<op::layer_norm, tensor<T, Over>, Gamma, Beta>();
  require_one_dtype<op::layer_norm, tensor<T, A...>, Gamma, Beta>();
  using rows = tensor_over<T, axes_without<axes<A...>, axes<Over>>>;
  return std::get<0>(apply<tensor<T, A...>, rows, rows>(op::layer_norm{epsilon}, x, gamma, beta));
}

}  // namespace mmr
