// Rotary position embedding (Su et al., arXiv 2104.09864) in the order of Llama and Hugging Face: feature i turns
// together with feature i + features/2, not with its neighbour.
#pragma once

#include <cmath>
#include <mmr/op/apply.hpp>
#include <string>

namespace mmr {
namespace op {

/// Turns the pair (x[i], x[i + features/2]) at position p by the angle p * theta^(-2 i / features), or back. Positions
/// are global, so that a split position axis turns as the whole.
struct rotary {
  static constexpr std::string_view name = "rotary";
  std::string positions;  ///< the axis whose index is the position
  double theta = 10000;
  bool back = false;  ///< turns by the negative angle: the transpose, which is the gradient
  signature sign(const std::vector<tensor_type>& in) const {
    if (!(theta > 0 && std::isfinite(theta))) fail("rotary: theta is ", theta, "; give a positive number");
    auto s = elementwise(in, "rotary");
    const auto at = s.find_loop(positions);
    if (at < 0 || at == s.in[0].loops.back())
      fail("rotary: the positions '", positions,
           "' must be an axis of the operand, and not the last one, which it turns");
    auto& features = s.loops.back();
    if (features.extent % 2 != 0)
      fail("rotary: axis '", features.axis, "' has extent ", features.extent, "; features turn in pairs: make it even");
    features.splittable = false;
    s.linear = true;
    s.reuse = {0};
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return 3 * points(n); }
  void vjp(auto& c) const { c.add_grad(c.in(0), c.emit(rotary{positions, theta, !back}, {c.grad()})[0]); }
};

}  // namespace op

/// Turns the features of x, its last axis, by angles that grow with the position along `Seq`.
template <axis_type Seq, class T, class... A>
tensor<T, A...> rotary(tensor<T, A...> x, double theta = 10000) {
  require_axis<op::rotary, Seq, tensor<T, A...>>();
  if constexpr (std::same_as<typename last_axis<axes<A...>>::type, Seq>)
    static_assert(
        mistake::operand_misplaces_axis<op::rotary, Seq, tensor<T, A...>>,
        "mmr: operand_misplaces_axis<operator, axis, operand>: the last axis holds the features that turn, not the "
        "positions");
  return apply<tensor<T, A...>>(op::rotary{std::string(Seq::name), theta}, x);
}

}  // namespace mmr
