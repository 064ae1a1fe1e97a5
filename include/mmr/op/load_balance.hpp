// The auxiliary loss that keeps experts equally busy (Switch Transformers, arXiv 2101.03961, equation 4), within each
// group of tokens as in GShard, so that it is a sum over groups.
#pragma once

#include <mmr/op/route.hpp>

namespace mmr {
namespace op {

/// dprobs = factor * load * dloss. Operands: load[group, expert], dloss.
struct load_balance_grad {
  static constexpr std::string_view name = "load_balance_grad";
  double factor = 1;
  tensor_type probs;
  signature sign(const std::vector<tensor_type>& in) const {
    signature s;
    s.out = {loops_over(s, probs, "load_balance_grad")};
    for (const auto& t : in) s.in.push_back(loops_over(s, t, "load_balance_grad"));
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return 2 * points(n); }
};

/// loss = factor * sum of load * probs. Operands: probs[group, position, expert], load[group, expert], which is taken
/// for constant.
struct load_balance {
  static constexpr std::string_view name = "load_balance";
  double factor = 1;
  signature sign(const std::vector<tensor_type>& in) const {
    signature s;
    for (const auto& t : in) s.in.push_back(loops_over(s, t, "load_balance"));
    s.out = {{in[0].element, {}}};
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return 2 * points(n); }
  void vjp(auto& c) const {
    c.add_grad(c.in(0), c.emit(load_balance_grad{factor, c.type(c.in(0))}, {c.in(1), c.grad()})[0]);
  }
};

}  // namespace op

/// weight * E * mean over groups of the sum over the E experts of f * P, with f the part of a group's tokens that
/// prefer the expert and P its mean probability; the mean over the microbatches of a step too. It is `weight` where all
/// are equal.
template <class T, axis_type Group, axis_type Position, axis_type Experts, axis_type Capacity>
scalar<T> load_balance(tensor<T, Group, Position, Experts> probs, const routing<T, Group, Experts, Capacity>& where,
                       double weight) {
  const auto& m = *probs.owner;
  const double tokens =
      static_cast<double>(m.template extent<Group>() * m.template extent<Position>() * m.microbatches());
  const double factor = weight * static_cast<double>(m.template extent<Experts>()) / tokens;
  return apply<scalar<T>>(op::load_balance{factor}, probs, where.load);
}

}  // namespace mmr
