// Which tokens go to which experts: top-k gating with a capacity for each expert, within groups of tokens (Lepikhin et
// al., GShard, arXiv 2006.16668; Fedus et al., Switch Transformers, arXiv 2101.03961). A group (a row of the batch) is
// routed by itself, so that a split batch routes as a whole one does.
#pragma once

#include <cstdint>
#include <mmr/op/apply.hpp>
#include <string>

namespace mmr {
namespace op {

/// Gradient of the gates towards the probabilities. The choice of experts is taken for constant. Operands: dgates,
/// probs, slots. Result: dprobs.
struct route_grad {
  static constexpr std::string_view name = "route_grad";
  int top_k = 1;
  signature sign(const std::vector<tensor_type>& in) const {
    signature s;
    // Loops: group, position, expert, slot. Linear in dgates, so slots may be split.
    const auto probs = loops_over(s, in[1], "route_grad");
    s.in = {loops_over(s, in[0], "route_grad"), probs, loops_over(s, in[2], "route_grad")};
    s.out = {probs};
    s.loops[2].splittable = false;
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return (top_k + 1.0) * points(n.first(3)); }
};

/// Each token, in the order of positions, takes a free slot of the expert most probable for it; then each its second
/// choice, up to top_k. Equally probable experts are taken in their order. Who finds no slot free goes without. The
/// gate of a taken slot is the expert's probability (top_k = 1) or its share in the probabilities of the top_k chosen.
/// Operand: probs[group, position, expert]. Results: gates and slots[group, expert, slot] (the token in each slot and
/// its gate; -1 and 0 where it is empty), load[group, expert], the part of the tokens whose first choice the expert is.
struct route {
  static constexpr std::string_view name = "route";
  int top_k = 1;
  dimension capacity;  ///< the axis of slots
  signature sign(const std::vector<tensor_type>& in) const {
    if (in[0].dims.size() != 3) fail("route: the probabilities have the axes (group, position, expert), in this order");
    const auto experts = in[0].dims[2].extent;
    if (top_k < 1 || top_k > experts)
      fail("route: each token is to go to ", top_k, " of ", experts, " experts; give 1 to ", experts);
    signature s;
    s.in = {loops_over(s, in[0], "route")};
    const int slot = s.add_loop(capacity);
    s.out = {{in[0].element, {0, 2, slot}}, {dtype::i32, {0, 2, slot}}, {in[0].element, {0, 2}}};
    s.loops[1].splittable = s.loops[2].splittable = false;
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return (top_k + 1.0) * points(n.first(3)); }
  void vjp(auto& c) const {
    if (c.grad(0) >= 0) c.add_grad(c.in(0), c.emit(route_grad{top_k}, {c.grad(0), c.in(0), c.out(1)})[0]);
  }
};

}  // namespace op

/// Where tokens go, as `route` finds it.
template <class T, axis_type Group, axis_type Experts, axis_type Capacity>
struct routing {
  tensor<T, Group, Experts, Capacity> gates;             ///< weight of the token in each slot
  tensor<std::int32_t, Group, Experts, Capacity> slots;  ///< position of that token, or -1
  tensor<T, Group, Experts> load;                        ///< part of the group's tokens that prefer this expert
};

/// Routes each token to top_k experts by their probabilities; an expert takes at most `Capacity` tokens of a group.
template <axis_type Capacity, class T, axis_type Group, axis_type Position, axis_type Experts>
routing<T, Group, Experts, Capacity> route(tensor<T, Group, Position, Experts> probs, int top_k) {
  static_assert(detail::axes_are_distinct<Group, Position, Experts, Capacity>());
  const dimension slots{std::string(Capacity::name), probs.owner->template extent<Capacity>(), Capacity::splittable};
  const auto [gates, places, load] =
      apply<tensor<T, Group, Experts, Capacity>, tensor<std::int32_t, Group, Experts, Capacity>,
            tensor<T, Group, Experts>>(op::route{top_k, slots}, probs);
  return {gates, places, load};
}

}  // namespace mmr
