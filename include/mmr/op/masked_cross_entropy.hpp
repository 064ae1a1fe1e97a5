// Cross-entropy over the rows whose target counts, as masked language models need it: how many they are is known only
// when the batch is there, and each rank sees but its own rows.
#pragma once

#include <mmr/op/cross_entropy.hpp>

namespace mmr {
namespace op {

/// n = targets that are not negative. Partial where the rows are split: the ranks add their counts.
struct count_targets {
  static constexpr std::string_view name = "count_targets";
  signature sign(const std::vector<tensor_type>& in) const {
    signature s;
    s.in = {loops_over(s, in[0], "count_targets")};
    s.out = {{in[0].element, {}}};
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return points(n); }
};

/// dl = (exp(l - m) / s - onehot(target)) * factor * dloss / n, zero in rows without a target. Operands: logits,
/// targets, m, s, n, dloss.
struct masked_cross_entropy_grad {
  static constexpr std::string_view name = "masked_cross_entropy_grad";
  double factor = 1;
  signature sign(const std::vector<tensor_type>& in) const {
    signature s;
    for (const auto& t : in) s.in.push_back(loops_over(s, t, "masked_cross_entropy_grad"));
    s.out = {s.in[0]};
    s.reuse = {0};
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return 12 * points(n); }
};

/// loss = factor / n * sum over the rows with a target of (log s + m - p), and 0 where n is. Operands: m, s, p,
/// targets, n. As for cross_entropy, the vjp goes straight to the logits.
struct masked_cross_entropy {
  static constexpr std::string_view name = "masked_cross_entropy";
  double factor = 1;
  tensor_id logits = -1;
  signature sign(const std::vector<tensor_type>& in) const {
    signature s;
    for (const auto& t : in) s.in.push_back(loops_over(s, t, "masked_cross_entropy"));
    s.out = {{in[0].element, {}}};
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return 10 * points(n); }
  void vjp(auto& c) const {
    const std::vector<tensor_id> operands{logits, c.in(3), c.in(0), c.in(1), c.in(4), c.grad()};
    c.add_grad(logits, c.emit(masked_cross_entropy_grad{factor}, operands)[0]);
  }
};

}  // namespace op

/// Mean of -log softmax(logits)[target] over the rows whose target is not negative, 0 where there are none:
/// logits[A..., Vocab], targets[A...] below Vocab. It is the mean of one microbatch; a step takes the mean of those of
/// its microbatches, each with the same weight however many targets it has.
template <class T, class... L, class Target, class... A>
scalar<T> masked_cross_entropy(tensor<T, L...> logits, tensor<Target, A...> targets) {
  const auto [m, s, p] = detail::terms_of_rows<op::masked_cross_entropy>(logits, targets);
  const auto n = apply<scalar<Target>>(op::count_targets{}, targets);
  const double factor = 1.0 / static_cast<double>(logits.owner->microbatches());
  return apply<scalar<T>>(op::masked_cross_entropy{factor, logits.id}, m, s, p, targets, n);
}

}  // namespace mmr
