// Elementwise sum, difference and product of tensors over equal axes, and multiplication by a constant.
#pragma once

#include <mmr/op/apply.hpp>

namespace mmr {
namespace op {

/// y = a + b; both over the same axes.
struct add {
  static constexpr std::string_view name = "add";
  signature sign(const std::vector<tensor_type>& in) const {
    auto s = elementwise(in, "add");
    s.linear = true;
    s.reuse = {0};
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return points(n); }
  void vjp(auto& c) const {
    c.add_grad(c.in(0), c.grad());
    c.add_grad(c.in(1), c.grad());
  }
};

/// y = a * b, element by element; both over the same axes.
struct multiply {
  static constexpr std::string_view name = "multiply";
  signature sign(const std::vector<tensor_type>& in) const { return elementwise(in, "multiply"); }
  double flops(std::span<const std::int64_t> n) const { return points(n); }
  void vjp(auto& c) const {
    for (std::size_t i : {0u, 1u})
      if (c.needs_in(i)) c.add_grad(c.in(i), c.emit(multiply{}, {c.grad(), c.in(1 - i)})[0]);
  }
};

/// y = factor * x.
struct scale {
  static constexpr std::string_view name = "scale";
  double factor = 1;
  signature sign(const std::vector<tensor_type>& in) const {
    auto s = elementwise(in, "scale");
    s.linear = true;
    s.reuse = {0};
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return points(n); }
  void vjp(auto& c) const { c.add_grad(c.in(0), c.emit(scale{factor}, {c.grad()})[0]); }
};

}  // namespace op

/// a + b over equal axes.
template <class T, class... A, class Other>
tensor<T, A...> add(tensor<T, A...> a, Other b) {
  require_one_dtype<op::add, tensor<T, A...>, Other>();
  require_same_axes<op::add, tensor<T, A...>, Other>();
  return apply<tensor<T, A...>>(op::add{}, a, b);
}
template <class T, class... A, class U, class... B>
tensor<T, A...> operator+(tensor<T, A...> a, tensor<U, B...> b) {
  return add(a, b);
}

/// a * b element by element over equal axes.
template <class T, class... A, class Other>
tensor<T, A...> multiply(tensor<T, A...> a, Other b) {
  require_one_dtype<op::multiply, tensor<T, A...>, Other>();
  require_same_axes<op::multiply, tensor<T, A...>, Other>();
  return apply<tensor<T, A...>>(op::multiply{}, a, b);
}
template <class T, class... A, class U, class... B>
tensor<T, A...> operator*(tensor<T, A...> a, tensor<U, B...> b) {
  return multiply(a, b);
}

/// factor * x.
template <class T, class... A>
tensor<T, A...> scale(tensor<T, A...> x, double factor) {
  return apply<tensor<T, A...>>(op::scale{factor}, x);
}

/// a - b over equal axes.
template <class T, class... A, class U, class... B>
tensor<T, A...> operator-(tensor<T, A...> a, tensor<U, B...> b) {
  return add(a, scale(b, -1));
}

}  // namespace mmr
