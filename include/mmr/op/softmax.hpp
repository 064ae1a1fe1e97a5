// Softmax over the last axis.
#pragma once

#include <mmr/op/apply.hpp>

namespace mmr {
namespace op {

namespace detail {
/// Elementwise, but the last axis stays whole on a device.
inline signature rowwise(const std::vector<tensor_type>& in, const char* name, int results = 1) {
  auto s = elementwise(in, name, results);
  if (in[0].dims.empty()) fail(name, ": needs an operand with at least one axis");
  s.loops[static_cast<std::size_t>(s.in[0].loops.back())].splittable = false;
  return s;
}
}  // namespace detail

/// dx = y * (dy - sum(y * dy)). Operands: dy, y.
struct softmax_grad {
  static constexpr std::string_view name = "softmax_grad";
  signature sign(const std::vector<tensor_type>& in) const {
    auto s = detail::rowwise(in, "softmax_grad");
    s.reuse = {0};
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return 4 * points(n); }
};

/// y = exp(x - max) / sum(exp(x - max)) over the last axis.
struct softmax {
  static constexpr std::string_view name = "softmax";
  signature sign(const std::vector<tensor_type>& in) const { return detail::rowwise(in, "softmax"); }
  double flops(std::span<const std::int64_t> n) const { return 12 * points(n); }
  void vjp(auto& c) const { c.add_grad(c.in(0), c.emit(softmax_grad{}, {c.grad(), c.out(0)})[0]); }
};

}  // namespace op

/// Softmax over `Over`, the last axis of x.
template <axis_type Over, class T, class... A>
tensor<T, A...> softmax(tensor<T, A...> x) {
  require_last_axis<op::softmax, Over, tensor<T, A...>>();
  return apply<tensor<T, A...>>(op::softmax{}, x);
}

}  // namespace mmr
