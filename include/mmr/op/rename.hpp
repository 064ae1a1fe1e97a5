// The same tensor over an axis of another name: a contraction walks axes of equal names together, so that the keys of
// self-attention need another name for their positions than the queries.
#pragma once

#include <mmr/op/apply.hpp>
#include <string>

namespace mmr {
namespace op {

/// y = x, with axis `from` called `to`. Placements carry over, and so does the buffer where x is read no more.
struct rename {
  static constexpr std::string_view name = "rename";
  std::string from;
  dimension to;
  signature sign(const std::vector<tensor_type>& in) const {
    signature s;
    auto renamed = in[0];
    for (auto& d : renamed.dims)
      if (d.axis == from) {
        if (d.extent != to.extent)
          fail("rename: axis '", from, "' has extent ", d.extent, " and '", to.axis, "' has ", to.extent,
               "; give both the same");
        d = to;
      }
    s.in = s.out = {loops_over(s, renamed, "rename")};
    s.linear = true;
    s.reuse = {0};
    return s;
  }
  double flops(std::span<const std::int64_t>) const { return 0; }
  void vjp(auto& c) const {
    for (const auto& d : c.type(c.in(0)).dims)
      if (d.axis == from) c.add_grad(c.in(0), c.emit(rename{to.axis, d}, {c.grad()})[0]);
  }
};

}  // namespace op

namespace detail {
template <class From, class To, class A>
using renamed_axis = std::conditional_t<std::same_as<From, A>, To, A>;
}  // namespace detail

/// x with its axis `From` called `To`, which has the same extent.
template <axis_type From, axis_type To, class T, class... A>
tensor<T, detail::renamed_axis<From, To, A>...> rename(tensor<T, A...> x) {
  require_axis<op::rename, From, tensor<T, A...>>();
  const op::rename made{std::string(From::name),
                        {std::string(To::name), x.owner->template extent<To>(), To::splittable}};
  return apply<tensor<T, detail::renamed_axis<From, To, A>...>>(made, x);
}

}  // namespace mmr
