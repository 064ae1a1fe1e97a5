// General contraction over named axes: every matrix product of a model, forward and backward.
#pragma once

#include <algorithm>
#include <mmr/op/apply.hpp>
#include <string>

namespace mmr {
namespace op {

/// Sums of products over shared loops: result[t.result] += in[t.lhs] * in[t.rhs] for each term t. A term walks the axes
/// of its operands and its result, and contracts those that the result lacks. One left operand with several right ones
/// (queries, keys and values of attention) is one operator, so that a resharding of the shared operand is paid once; so
/// is the sum in its backward. Where a loop of other terms alone is split, a term is computed on the loop's first part
/// and is zero on the rest, which leaves its result Partial as any result that lacks the loop.
struct contract {
  static constexpr std::string_view name = "contract";
  static constexpr bool matrix = true;
  using axis_names = std::vector<std::string>;
  struct term {
    int result, lhs, rhs;
    std::vector<int> without{};  ///< loops of the signature that other terms walk and this one does not
  };
  std::vector<term> terms;
  std::vector<axis_names> results;  ///< axes of each result

  /// Finds for each term the loops that it lacks. `operands` are the axes of the operands.
  static contract of(std::vector<term> terms, std::vector<axis_names> results,
                     const std::vector<axis_names>& operands) {
    axis_names loops;  // in the order of `sign`
    const auto walks = [](const axis_names& axes, const std::string& a) {
      return std::find(axes.begin(), axes.end(), a) != axes.end();
    };
    for (const auto& axes : operands)
      for (const auto& a : axes)
        if (!walks(loops, a)) loops.push_back(a);
    for (auto& t : terms)
      for (std::size_t l = 0; l < loops.size(); ++l)
        if (!walks(operands[static_cast<std::size_t>(t.lhs)], loops[l]) &&
            !walks(operands[static_cast<std::size_t>(t.rhs)], loops[l]) &&
            !walks(results[static_cast<std::size_t>(t.result)], loops[l]))
          t.without.push_back(static_cast<int>(l));
    return {std::move(terms), std::move(results)};
  }

  signature sign(const std::vector<tensor_type>& in) const {
    signature s;
    for (const auto& t : in) s.in.push_back(loops_over(s, t, "contract"));
    for (const auto& axes : results) {
      s.out.push_back({in[0].element, {}});
      for (const auto& a : axes) {
        const int l = s.find_loop(a);
        if (l < 0) fail("contract: no operand has the axis '", a, "' of the result");
        s.out.back().loops.push_back(l);
      }
    }
    return s;
  }
  double flops(std::span<const std::int64_t> n) const {
    double sum = 0;
    for (const auto& t : terms) {
      double own = 2 * points(n);
      // An empty share of a loop leaves nothing to divide.
      for (int l : t.without) own /= static_cast<double>(std::max<std::int64_t>(1, n[static_cast<std::size_t>(l)]));
      sum += own;
    }
    return sum;
  }

  void vjp(auto& c) const {
    // Gradient of a term's lhs is grad(result) * rhs, and the other way round.
    back(c, [](const term& t) { return std::pair{t.lhs, t.rhs}; });
    back(c, [](const term& t) { return std::pair{t.rhs, t.lhs}; });
  }

 private:
  // One operator for the gradients of the operands on one side of the terms; that of an operand of several terms is a
  // sum.
  void back(auto& c, auto sides) const {
    std::vector<term> grads;
    std::vector<int> to;  // the operand that each of its results is the gradient of
    std::vector<axis_names> results_axes, operand_axes;
    std::vector<tensor_id> operands;
    const auto number_of = [](auto& list, auto x) {
      const auto at = std::find(list.begin(), list.end(), x);
      if (at != list.end()) return static_cast<int>(at - list.begin());
      list.push_back(x);
      return static_cast<int>(list.size()) - 1;
    };
    for (const auto& t : terms) {
      const auto [target, other] = sides(t);
      const auto g = c.grad(static_cast<std::size_t>(t.result));
      if (g < 0 || !c.needs_in(static_cast<std::size_t>(target))) continue;
      grads.push_back(
          {number_of(to, target), number_of(operands, g), number_of(operands, c.in(static_cast<std::size_t>(other)))});
    }
    if (grads.empty()) return;
    for (int o : to) results_axes.push_back(axes_of(c, c.in(static_cast<std::size_t>(o))));
    for (auto t : operands) operand_axes.push_back(axes_of(c, t));
    const auto made = c.emit(of(std::move(grads), std::move(results_axes), operand_axes), operands);
    for (std::size_t r = 0; r < to.size(); ++r) c.add_grad(c.in(static_cast<std::size_t>(to[r])), made[r]);
  }

  static axis_names axes_of(auto& c, tensor_id t) {
    axis_names axes;
    for (const auto& d : c.type(t).dims) axes.push_back(d.axis);
    return axes;
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
  std::vector<op::contract::term> terms;
  for (int i = 0; i < static_cast<int>(sizeof...(W)); ++i) terms.push_back({i, 0, i + 1});
  const auto c = op::contract::of(std::move(terms), {names_of(typename contraction<X, W, list>::axis_list{})...},
                                  {names_of(typename X::axis_list{}), names_of(typename W::axis_list{})...});
  return apply<typename contraction<X, W, list>::type...>(c, x, w...);
}
}  // namespace detail

/// Contracts `x` with each of `w...` over the axes `Over...`, which all of them have. Each result has the other axes of
/// x, then those of its w that x lacks; axes of both that are not contracted are walked together. Returns a handle or a
/// tuple.
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
