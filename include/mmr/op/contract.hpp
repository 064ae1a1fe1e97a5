// General contraction over named axes: every matrix product of a model, forward and backward.
#pragma once

#include <mmr/op/apply.hpp>

#include <algorithm>
#include <string>

namespace mmr {
namespace op {

/// Sums of products over shared loops: result[t.result] += in[t.lhs] * in[t.rhs] for each term t; all results have the
/// axes `result_axes`, every other axis is contracted. One left operand with several right ones (queries, keys and values
/// of attention) is one operator, so that a resharding of the shared operand is paid once; so is the sum in its backward.
struct contract {
  static constexpr std::string_view name = "contract";
  static constexpr bool matrix = true;
  struct term {
    int result, lhs, rhs;
  };
  std::vector<term> terms;
  std::vector<std::string> result_axes;

  signature sign(const std::vector<tensor_type>& in) const {
    signature s;
    for (const auto& t : in) s.in.push_back(loops_over(s, t, "contract"));
    access result{in[0].element, {}};
    for (const auto& a : result_axes) {
      const int l = s.find_loop(a);
      if (l < 0) fail("contract: no operand has the axis '", a, "' of the result");
      result.loops.push_back(l);
    }
    int results = 0;
    for (const auto& t : terms) results = std::max(results, t.result + 1);
    s.out.assign(static_cast<std::size_t>(results), result);
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return 2.0 * points(n) * static_cast<double>(terms.size()); }

  void vjp(auto& c) const {
    // Gradient of a term's lhs is grad(result) * rhs, and the other way round.
    back(c, [](const term& t) { return std::pair{t.lhs, t.rhs}; });
    back(c, [](const term& t) { return std::pair{t.rhs, t.lhs}; });
  }

 private:
  void back(auto& c, auto sides) const {
    std::vector<std::pair<int, term>> wanted;  // operand, term
    for (const auto& t : terms)
      if (c.grad(static_cast<std::size_t>(t.result)) >= 0 && c.needs_in(static_cast<std::size_t>(sides(t).first)))
        wanted.emplace_back(sides(t).first, t);
    // Results of one operator have equal axes, so operands that differ in theirs get operators of their own.
    while (!wanted.empty()) {
      const auto axes = axes_of(c, wanted.front().first);
      const auto rest = std::stable_partition(wanted.begin(), wanted.end(),
                                              [&](auto& w) { return axes_of(c, w.first) == axes; });
      back(c, sides, {wanted.begin(), rest}, axes);
      wanted.erase(wanted.begin(), rest);
    }
  }

  static std::vector<std::string> axes_of(auto& c, int operand) {
    std::vector<std::string> axes;
    for (const auto& d : c.type(c.in(static_cast<std::size_t>(operand))).dims) axes.push_back(d.axis);
    return axes;
  }

  // One operator for the gradients of operands over `axes`: their sum, where all are of one operand.
  static void back(auto& c, auto sides, const std::vector<std::pair<int, term>>& wanted, std::vector<std::string> axes) {
    const bool shared = std::all_of(wanted.begin(), wanted.end(), [&](auto& w) { return w.first == wanted[0].first; });
    contract grad;
    grad.result_axes = std::move(axes);
    std::vector<tensor_id> operands;
    auto operand = [&](tensor_id t) {
      const auto at = std::find(operands.begin(), operands.end(), t);
      if (at != operands.end()) return static_cast<int>(at - operands.begin());
      operands.push_back(t);
      return static_cast<int>(operands.size()) - 1;
    };
    int results = 0;
    for (const auto& [to, t] : wanted) {
      const int g = operand(c.grad(static_cast<std::size_t>(t.result)));
      const int other = operand(c.in(static_cast<std::size_t>(sides(t).second)));
      grad.terms.push_back({shared ? 0 : results++, g, other});
    }
    const auto made = c.emit(grad, operands);
    if (shared) return c.add_grad(c.in(static_cast<std::size_t>(wanted[0].first)), made[0]);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      c.add_grad(c.in(static_cast<std::size_t>(wanted[i].first)), made[i]);
  }
};

}  // namespace op

namespace detail {
template <class... A>
std::vector<std::string> names_of(axes<A...>) {
  return {std::string(A::name)...};
}
template <class X, class W, class Over>
struct contraction {
  using left = axes_without<typename X::axis_list, Over>;
  using right = axes_without<axes_without<typename W::axis_list, Over>, left>;
  using axis_list = typename concat_axes<left, right>::type;
  using type = tensor_over<typename X::element, axis_list>;
};
template <class Op, class X, class... W, class... Over>
auto contract_over(axes<Over...>, X x, W... w) {
  require_one_dtype<Op, X, W...>();
  (require_axis<Op, Over, X>(), ...);
  using list = axes<Over...>;
  (detail::require_axes<Op, W>(list{}), ...);
  using first = typename contraction<X, std::tuple_element_t<0, std::tuple<W...>>, list>::axis_list;
  require_same_axes<Op, tensor_over<float, first>,
                    tensor_over<float, typename contraction<X, W, list>::axis_list>...>();
  op::contract c;
  c.result_axes = names_of(first{});
  for (int i = 0; i < static_cast<int>(sizeof...(W)); ++i) c.terms.push_back({i, 0, i + 1});
  return apply<typename contraction<X, W, list>::type...>(c, x, w...);
}
}  // namespace detail

/// Contracts `x` with each of `w...` over the axes `Over...`, which all of them have. A result has the other axes of x,
/// then those of w that x lacks; axes of both that are not contracted are walked together. Returns a handle or a tuple.
template <axis_type... Over, class X, class... W>
auto contract(X x, W... w) {
  return detail::contract_over<op::contract>(axes<Over...>{}, x, w...);
}

namespace op {
/// Names the typed function `linear` in messages.
struct linear;
}  // namespace op

/// x times the weight w, contracted over every axis that both have: x[.., In] * w[In, Out] is [.., Out].
template <class X, class W>
auto linear(X x, W w) {
  using shared = common_axes<typename W::axis_list, typename X::axis_list>;
  if constexpr (shared::count == 0 && W::axis_list::count > 0)
    detail::require_axes<op::linear, X>(typename W::axis_list{});
  else
    return detail::contract_over<op::linear>(shared{}, x, w);
}

}  // namespace mmr
