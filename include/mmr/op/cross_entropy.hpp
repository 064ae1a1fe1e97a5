// Mean cross-entropy of logits whose vocabulary may be split over devices. It is four small operators, because two
// reductions over the vocabulary stand between them: the row maximum and the sum of exponentials.
#pragma once

#include <mmr/op/apply.hpp>

#include <algorithm>
#include <string>

namespace mmr {
namespace op {

/// m[rows] = max over the last axis. Partial (max) where that axis is split.
struct row_max {
  static constexpr std::string_view name = "row_max";
  signature sign(const std::vector<tensor_type>& in) const {
    signature s;
    s.in = {loops_over(s, in[0], "row_max")};
    s.out = s.in;
    s.out[0].loops.pop_back();
    s.reduce = reduction::max;
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return points(n); }
};

/// s[rows] = sum of exp(l - m) over the last axis. Operands: logits l, row maxima m.
struct sum_exp {
  static constexpr std::string_view name = "sum_exp";
  signature sign(const std::vector<tensor_type>& in) const {
    signature s;
    for (const auto& t : in) s.in.push_back(loops_over(s, t, "sum_exp"));
    s.out = {s.in[1]};
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return 10 * points(n); }
};

/// p[rows] = the logit of the target, 0 where it lies in another part of the vocabulary. Operands: logits, targets.
struct pick {
  static constexpr std::string_view name = "pick";
  signature sign(const std::vector<tensor_type>& in) const {
    signature s;
    for (const auto& t : in) s.in.push_back(loops_over(s, t, "pick"));
    s.out = {{in[0].element, s.in[1].loops}};
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return points(n) / static_cast<double>(std::max<std::int64_t>(1, n.back())); }
};

/// dl = (exp(l - m) / s - onehot(target)) * scale * dloss. Operands: logits, targets, m, s, dloss.
struct cross_entropy_grad {
  static constexpr std::string_view name = "cross_entropy_grad";
  double factor = 1;
  signature sign(const std::vector<tensor_type>& in) const {
    signature s;
    for (const auto& t : in) s.in.push_back(loops_over(s, t, "cross_entropy_grad"));
    s.out = {s.in[0]};
    s.reuse = {0};
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return 12 * points(n); }
};

/// loss = scale * sum over rows of (log s + m - p). Operands: m, s, p. Its vjp goes straight to the logits: the paths
/// through m, s and p sum to softmax minus one-hot.
struct cross_entropy {
  static constexpr std::string_view name = "cross_entropy";
  double factor = 1;
  tensor_id logits = -1, targets = -1;
  signature sign(const std::vector<tensor_type>& in) const {
    signature s;
    for (const auto& t : in) s.in.push_back(loops_over(s, t, "cross_entropy"));
    s.out = {{in[0].element, {}}};
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return 10 * points(n); }
  void vjp(auto& c) const {
    c.add_grad(logits, c.emit(cross_entropy_grad{factor}, {logits, targets, c.in(0), c.in(1), c.grad()})[0]);
  }
};

}  // namespace op

namespace detail {
/// What the likelihood of each row's target is made of, whatever part of the vocabulary a rank holds.
template <class Rows>
struct row_terms {
  Rows max, sum_exp, picked;
};
template <class Op, class T, class... L, class Target, class... A>
row_terms<tensor<T, A...>> terms_of_rows(tensor<T, L...> logits, tensor<Target, A...> targets) {
  require_dtype<Op, std::int32_t, tensor<Target, A...>>();
  (require_axis<Op, A, tensor<T, L...>>(), ...);
  // The rows of the logits, without the vocabulary, are those of the targets.
  using vocabulary = typename last_axis<axes<L...>>::type;
  require_same_axes<Op, tensor<T, A...>, tensor_over<T, axes_without<axes<L...>, axes<vocabulary>>>>();
  using rows = tensor<T, A...>;
  const auto m = apply<rows>(op::row_max{}, logits);
  const auto s = apply<rows>(op::sum_exp{}, logits, m);
  return {m, s, apply<rows>(op::pick{}, logits, targets)};
}
}  // namespace detail

/// Mean over all rows (and over the microbatches of a step) of -log softmax(logits)[target]: logits[A..., Vocab],
/// targets[A...] in 0..Vocab-1. See masked_cross_entropy for targets that do not count.
template <class T, class... L, class Target, class... A>
scalar<T> cross_entropy(tensor<T, L...> logits, tensor<Target, A...> targets) {
  const auto [m, s, p] = detail::terms_of_rows<op::cross_entropy>(logits, targets);
  const double factor = 1.0 / static_cast<double>(logits.owner->count(targets.id) * logits.owner->microbatches());
  return apply<scalar<T>>(op::cross_entropy{factor, logits.id, targets.id}, m, s, p);
}

}  // namespace mmr
