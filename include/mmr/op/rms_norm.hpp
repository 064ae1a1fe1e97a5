// Root-mean-square normalisation over the last axis (Zhang and Sennrich, arXiv 1910.07467): layer normalisation without
// mean and shift.
#pragma once

#include <mmr/op/softmax.hpp>

namespace mmr {
namespace op {

/// Operands: dy, x, gain, rstd. Results: dx, dgain.
struct rms_norm_grad {
  static constexpr std::string_view name = "rms_norm_grad";
  signature sign(const std::vector<tensor_type>& in) const {
    auto s = detail::rowwise(in, "rms_norm_grad", 2);
    s.out[1] = s.in[2];
    s.reuse = {0, -1};
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return 10 * points(n); }
};

/// y = x * rstd * gain with rstd = 1 / sqrt(mean of x^2 + epsilon). Operands: x, gain. Results: y, and rstd for
/// backward.
struct rms_norm {
  static constexpr std::string_view name = "rms_norm";
  double epsilon = 1e-5;
  signature sign(const std::vector<tensor_type>& in) const {
    auto s = detail::rowwise(in, "rms_norm", 2);
    s.out[1].loops.pop_back();
    s.reuse = {0, -1};
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return 4 * points(n); }
  void vjp(auto& c) const {
    const auto grads = c.emit(rms_norm_grad{}, {c.grad(), c.in(0), c.in(1), c.out(1)});
    for (std::size_t i = 0; i < 2; ++i) c.add_grad(c.in(i), grads[i]);
  }
};

}  // namespace op

/// Divides x by the root of its mean square over `Over`, its last axis, then scales by gain[Over].
template <axis_type Over, class T, class... A, class Gain>
tensor<T, A...> rms_norm(tensor<T, A...> x, Gain gain, double epsilon = 1e-5) {
  require_last_axis<op::rms_norm, Over, tensor<T, A...>>();
  require_same_axes<op::rms_norm, tensor<T, Over>, Gain>();
  require_one_dtype<op::rms_norm, tensor<T, A...>, Gain>();
  using rows = tensor_over<T, axes_without<axes<A...>, axes<Over>>>;
  return std::get<0>(apply<tensor<T, A...>, rows>(op::rms_norm{epsilon}, x, gain));
}

}  // namespace mmr
