// SiLU, x times its logistic function (Hendrycks and Gimpel, arXiv 1606.08415), alone and as the gate of SwiGLU
// (Shazeer, arXiv 2002.05202).
#pragma once

#include <mmr/op/apply.hpp>

namespace mmr {
namespace op {

/// dx = dy * silu'(x). Operands: dy, x.
struct silu_grad {
  static constexpr std::string_view name = "silu_grad";
  signature sign(const std::vector<tensor_type>& in) const {
    auto s = elementwise(in, "silu_grad");
    s.reuse = {0};
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return 12 * points(n); }
};

/// y = x / (1 + exp(-x)).
struct silu {
  static constexpr std::string_view name = "silu";
  signature sign(const std::vector<tensor_type>& in) const { return elementwise(in, "silu"); }
  double flops(std::span<const std::int64_t> n) const { return 8 * points(n); }
  void vjp(auto& c) const { c.add_grad(c.in(0), c.emit(silu_grad{}, {c.grad(), c.in(0)})[0]); }
};

/// dgate = dy * up * silu'(gate) and dup = dy * silu(gate). Operands: dy, gate, up.
struct swiglu_grad {
  static constexpr std::string_view name = "swiglu_grad";
  signature sign(const std::vector<tensor_type>& in) const {
    auto s = elementwise(in, "swiglu_grad", 2);
    s.reuse = {1, 2};
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return 15 * points(n); }
};

/// y = silu(gate) * up. Backward needs gate and up, and makes silu(gate) again. Operands: gate, up.
struct swiglu {
  static constexpr std::string_view name = "swiglu";
  signature sign(const std::vector<tensor_type>& in) const {
    auto s = elementwise(in, "swiglu");
    s.reuse = {0};
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return 9 * points(n); }
  void vjp(auto& c) const {
    const auto grads = c.emit(swiglu_grad{}, {c.grad(), c.in(0), c.in(1)});
    for (std::size_t i = 0; i < 2; ++i) c.add_grad(c.in(i), grads[i]);
  }
};

}  // namespace op

/// SiLU of every element.
template <class T, class... A>
tensor<T, A...> silu(tensor<T, A...> x) {
  return apply<tensor<T, A...>>(op::silu{}, x);
}

/// silu(gate) * up over equal axes; keeps one tensor less for backward than silu and product apart.
template <class T, class... A, class Up>
tensor<T, A...> swiglu(tensor<T, A...> gate, Up up) {
  require_one_dtype<op::swiglu, tensor<T, A...>, Up>();
  require_same_axes<op::swiglu, tensor<T, A...>, Up>();
  return apply<tensor<T, A...>>(op::swiglu{}, gate, up);
}

}  // namespace mmr
