// Brings tokens to the slots of experts and their results back. Tokens are split by groups and experts by themselves:
// what lies between the two is one resharding, an all-to-all (GShard, arXiv 2006.16668).
#pragma once

#include <mmr/op/route.hpp>

namespace mmr {
namespace op {

namespace detail {
/// Loops 0..4: group, position, feature, expert, slot. Each may be split: a rank copies the tokens it has to the slots
/// it has, and the sum over ranks is the whole.
inline signature expert_loops(const dimension& group, const dimension& position, const dimension& feature,
                              const dimension& expert, const dimension& slot) {
  signature s;
  for (const auto& d : {group, position, feature, expert, slot}) s.add_loop(d);
  return s;
}
inline access tokens(dtype t) {
  return {t, {0, 1, 2}};
}
inline access expert_tokens(dtype t) {
  return {t, {3, 0, 4, 2}};
}
inline access of_slots(dtype t) {
  return {t, {0, 3, 4}};
}
/// Extents are checked against loops already there.
inline void require_extents(signature& s, const std::vector<tensor_type>& in, const char* op) {
  for (const auto& t : in) loops_over(s, t, op);
}
// Work is done for every feature of a slot; the loop over positions only says whether its token is here.
inline double slot_features(std::span<const std::int64_t> n) {
  return static_cast<double>(n[0]) * static_cast<double>(n[2]) * static_cast<double>(n[3]) * static_cast<double>(n[4]);
}
}  // namespace detail

/// x[group, position, feature] = sum of what lies in the token's slots. Operands: y[expert, group, slot, feature],
/// slots.
struct collect {
  static constexpr std::string_view name = "collect";
  dimension position;
  signature sign(const std::vector<tensor_type>& in) const {
    const auto& y = in[0].dims;
    auto s = detail::expert_loops(y[1], position, y[3], y[0], y[2]);
    detail::require_extents(s, in, "collect");
    s.in = {detail::expert_tokens(in[0].element), detail::of_slots(dtype::i32)};
    s.out = {detail::tokens(in[0].element)};
    s.linear = true;
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return detail::slot_features(n); }
};

/// y[expert, group, slot, feature] = the token in the slot, or zero. Operands: x[group, position, feature], slots.
struct dispatch {
  static constexpr std::string_view name = "dispatch";
  signature sign(const std::vector<tensor_type>& in) const {
    const auto &x = in[0].dims, &slots = in[1].dims;
    auto s = detail::expert_loops(x[0], x[1], x[2], slots[1], slots[2]);
    detail::require_extents(s, in, "dispatch");
    s.in = {detail::tokens(in[0].element), detail::of_slots(dtype::i32)};
    s.out = {detail::expert_tokens(in[0].element)};
    s.linear = true;
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return detail::slot_features(n); }
  void vjp(auto& c) const { c.add_grad(c.in(0), c.emit(collect{c.type(c.in(0)).dims[1]}, {c.grad(), c.in(1)})[0]); }
};

/// dz = gate * dx and dgate = sum over features of z * dx, with dx that of the token in the slot. Operands: dx, z,
/// gates, slots.
struct combine_grad {
  static constexpr std::string_view name = "combine_grad";
  signature sign(const std::vector<tensor_type>& in) const {
    const auto &x = in[0].dims, &z = in[1].dims;
    const auto t = in[0].element;
    auto s = detail::expert_loops(x[0], x[1], x[2], z[0], z[2]);
    detail::require_extents(s, in, "combine_grad");
    s.in = {detail::tokens(t), detail::expert_tokens(t), detail::of_slots(t), detail::of_slots(dtype::i32)};
    s.out = {detail::expert_tokens(t), detail::of_slots(t)};
    s.reuse = {1, -1};
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return 3 * detail::slot_features(n); }
};

/// x[group, position, feature] = sum over the token's slots of gate * z. Operands: z[expert, group, slot, feature],
/// gates, slots.
struct combine {
  static constexpr std::string_view name = "combine";
  dimension position;
  signature sign(const std::vector<tensor_type>& in) const {
    const auto& z = in[0].dims;
    const auto t = in[0].element;
    auto s = detail::expert_loops(z[1], position, z[3], z[0], z[2]);
    detail::require_extents(s, in, "combine");
    s.in = {detail::expert_tokens(t), detail::of_slots(t), detail::of_slots(dtype::i32)};
    s.out = {detail::tokens(t)};
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return 2 * detail::slot_features(n); }
  void vjp(auto& c) const {
    const auto grads = c.emit(combine_grad{}, {c.grad(), c.in(0), c.in(1), c.in(2)});
    c.add_grad(c.in(0), grads[0]);
    c.add_grad(c.in(1), grads[1]);
  }
};

}  // namespace op

namespace detail {
/// Tokens (Group, Position, Features) in the slots of experts; void where the axes are not so.
template <class X, class Group, class Experts, class Capacity>
struct in_slots {
  using type = void;
};
template <class T, class Group, class Position, class Features, class Experts, class Capacity>
struct in_slots<tensor<T, Group, Position, Features>, Group, Experts, Capacity> {
  using type = tensor<T, Experts, Group, Capacity, Features>;
};
/// And back at their positions.
template <class Z, class Group, class Position, class Experts, class Capacity>
struct at_positions {
  using type = void;
};
template <class T, class Group, class Position, class Features, class Experts, class Capacity>
struct at_positions<tensor<T, Experts, Group, Capacity, Features>, Group, Position, Experts, Capacity> {
  using type = tensor<T, Group, Position, Features>;
};
template <class Op, class Result, class X, class... Needed>
consteval void require_routed_axes() {
  if constexpr ((contains<typename X::axis_list, Needed> && ...)) {
    if constexpr (std::same_as<Result, void>)
      static_assert(mistake::operands_have_different_axes<Op, X, tensor<typename X::element, Needed...>>,
                    "mmr: operands_have_different_axes<operator, operands...>: tokens are over (group, position, "
                    "features), and in "
                    "the slots of experts over (experts, group, capacity, features)");
  } else {
    (require_axis<Op, Needed, X>(), ...);
  }
}
}  // namespace detail

/// The tokens of x (Group, Position, Features) in the slots that the routing gives them: (Experts, Group, Capacity,
/// Features).
template <class X, class T, axis_type Group, axis_type Experts, axis_type Capacity>
auto dispatch(X x, const routing<T, Group, Experts, Capacity>& where) {
  using result = typename detail::in_slots<X, Group, Experts, Capacity>::type;
  require_one_dtype<op::dispatch, X, tensor<T, Group>>();
  detail::require_routed_axes<op::dispatch, result, X, Group>();
  if constexpr (!std::same_as<result, void>) return apply<result>(op::dispatch{}, x, where.slots);
}

/// The experts' results z (Experts, Group, Capacity, Features) back at the positions of their tokens, each times its
/// gate: (Group, Position, Features). Zero for a token that has no slot.
template <axis_type Position, class Z, class T, axis_type Group, axis_type Experts, axis_type Capacity>
auto combine(Z z, const routing<T, Group, Experts, Capacity>& where) {
  using result = typename detail::at_positions<Z, Group, Position, Experts, Capacity>::type;
  require_one_dtype<op::combine, Z, tensor<T, Group>>();
  detail::require_routed_axes<op::combine, result, Z, Experts, Group, Capacity>();
  if constexpr (!std::same_as<result, void>) {
    const dimension positions{std::string(Position::name), z.owner->template extent<Position>(), Position::splittable};
    return apply<result>(op::combine{positions}, z, where.gates, where.slots);
  }
}

}  // namespace mmr
