// GeLU in the tanh form of GPT-2 (Hendrycks and Gimpel, arXiv 1606.08415), alone and with the bias before it.
#pragma once

#include <mmr/op/bias.hpp>

namespace mmr {
namespace op {

/// dx = dy * gelu'(x). Operands: dy, x.
struct gelu_grad {
  static constexpr std::string_view name = "gelu_grad";
  signature sign(const std::vector<tensor_type>& in) const {
    auto s = elementwise(in, "gelu_grad");
    s.reuse = {0};
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return 16 * points(n); }
};

/// y = 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
struct gelu {
  static constexpr std::string_view name = "gelu";
  signature sign(const std::vector<tensor_type>& in) const { return elementwise(in, "gelu"); }
  double flops(std::span<const std::int64_t> n) const { return 12 * points(n); }
  void vjp(auto& c) const { c.add_grad(c.in(0), c.emit(gelu_grad{}, {c.grad(), c.in(0)})[0]); }
};

/// dx = dy * gelu'(x + b) and db = dx summed over the axes that b lacks. Operands: dy, x, b.
struct bias_gelu_grad {
  static constexpr std::string_view name = "bias_gelu_grad";
  signature sign(const std::vector<tensor_type>& in) const {
    auto s = elementwise(in, "bias_gelu_grad", 2);
    s.out[1] = s.in[2];
    s.reuse = {0, -1};
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return 18 * points(n); }
};

/// y = gelu(x + b), with b over the trailing axes of x.
struct bias_gelu {
  static constexpr std::string_view name = "bias_gelu";
  signature sign(const std::vector<tensor_type>& in) const { return elementwise(in, "bias_gelu"); }
  double flops(std::span<const std::int64_t> n) const { return 13 * points(n); }
  void vjp(auto& c) const {
    const auto grads = c.emit(bias_gelu_grad{}, {c.grad(), c.in(0), c.in(1)});
    c.add_grad(c.in(0), grads[0]);
    c.add_grad(c.in(1), grads[1]);
  }
};

}  // namespace op

/// GeLU of every element.
template <class T, class... A>
tensor<T, A...> gelu(tensor<T, A...> x) {
  return apply<tensor<T, A...>>(op::gelu{}, x);
}

/// gelu(x + b), with b over the trailing axes of x; keeps one tensor less for backward than bias and gelu apart.
template <class T, class... A, class U, class... B>
tensor<T, A...> bias_gelu(tensor<T, A...> x, tensor<U, B...> b) {
  require_one_dtype<op::bias_gelu, tensor<T, A...>, tensor<U, B...>>();
  detail::require_trailing<op::bias_gelu, tensor<T, A...>>(axes<B...>{});
  return apply<tensor<T, A...>>(op::bias_gelu{}, x, b);
}

}  // namespace mmr
