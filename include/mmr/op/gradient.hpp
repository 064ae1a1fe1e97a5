// Operators that hold a training step together: the seed of the backward pass, accumulation over microbatches, and the
// report of the loss.
#pragma once

#include <mmr/op/apply.hpp>

#include <optional>

namespace mmr::op {

/// A tensor whose elements all equal `value`.
struct constant {
  static constexpr std::string_view name = "constant";
  double value = 0;
  tensor_type type;
  signature sign(const std::vector<tensor_type>&) const {
    signature s;
    s.out = {loops_over(s, type, "constant")};
    return s;
  }
  double flops(std::span<const std::int64_t>) const { return 0; }
};

/// Sum over the microbatches of a step. With one microbatch it is the identity, and only names the place where the
/// gradient is kept; splitting it is what ZeRO-2 does. Linear: partial sums may be accumulated before they are reduced.
struct accumulate {
  static constexpr std::string_view name = "gradient";
  int microbatches = 1;
  std::optional<dtype> kept{};  ///< type of the sum, where it is not that of what is added
  signature sign(const std::vector<tensor_type>& in) const {
    auto s = elementwise(in, "gradient");
    s.linear = true;
    s.out[0].element = kept.value_or(in[0].element);
    if (microbatches == 1 && s.out[0].element == in[0].element) s.reuse = {0};
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return microbatches > 1 ? points(n) : 0; }
};

/// Brings a tensor to every rank, whole, for the host to read.
struct report {
  static constexpr std::string_view name = "report";
  signature sign(const std::vector<tensor_type>& in) const {
    auto s = elementwise(in, "report");
    for (auto& l : s.loops) l.splittable = false;
    return s;
  }
  double flops(std::span<const std::int64_t>) const { return 0; }
};

}  // namespace mmr::op
