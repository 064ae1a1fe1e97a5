// Adds a tensor over some trailing axes to one over more: biases, position embeddings.
#pragma once

#include <mmr/op/apply.hpp>
#include <mmr/op/contract.hpp>

namespace mmr {
namespace op {

/// Sums x over the axes that the result lacks; the result has the trailing `kept` axes of x.
struct sum_leading {
  static constexpr std::string_view name = "sum_leading";
  std::size_t kept = 0;
  signature sign(const std::vector<tensor_type>& in) const {
    signature s;
    s.in = {loops_over(s, in[0], "sum_leading")};
    const auto& all = s.in[0].loops;
    s.out = {{in[0].element, {all.end() - static_cast<std::ptrdiff_t>(kept), all.end()}}};
    s.linear = true;
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return points(n); }
};

/// y = x + b, with b over the trailing axes of x.
struct bias {
  static constexpr std::string_view name = "bias";
  signature sign(const std::vector<tensor_type>& in) const {
    auto s = elementwise(in, "bias");
    s.reuse = {0};
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return points(n); }
  void vjp(auto& c) const {
    c.add_grad(c.in(0), c.grad());
    if (c.needs_in(1)) c.add_grad(c.in(1), c.emit(sum_leading{c.type(c.in(1)).dims.size()}, {c.grad()})[0]);
  }
};

}  // namespace op

namespace detail {
template <class Op, class X, class... B>
consteval void require_trailing(axes<B...>) {
  (require_axis<Op, B, X>(), ...);
  using lead = axes_without<typename X::axis_list, axes<B...>>;
  if constexpr (!std::same_as<typename concat_axes<lead, axes<B...>>::type, typename X::axis_list>)
    static_assert(mistake::operands_have_different_axes<Op, X, tensor<typename X::element, B...>>,
                  "mmr: operands_have_different_axes<operator, operands...>: the second operand must be over the trailing axes of the first");
}
}  // namespace detail

/// x + b, with b over the trailing axes of x.
template <class T, class... A, class U, class... B>
tensor<T, A...> bias(tensor<T, A...> x, tensor<U, B...> b) {
  require_one_dtype<op::bias, tensor<T, A...>, tensor<U, B...>>();
  detail::require_trailing<op::bias, tensor<T, A...>>(axes<B...>{});
  return apply<tensor<T, A...>>(op::bias{}, x, b);
}

/// x times the weight w plus the bias b: b[Out] + sum over In of x[.., In] * w[In, Out].
template <class X, class W, class B>
auto linear(X x, W w, B b) {
  return bias(linear(x, w), b);
}

}  // namespace mmr
