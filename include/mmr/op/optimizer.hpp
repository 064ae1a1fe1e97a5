// Parameter updates (SGD, AdamW) and the global gradient norm, as operators of the step's graph.
#pragma once

#include <mmr/op/apply.hpp>

namespace mmr::op {

/// Sum of the squares of all elements, a scalar.
struct sum_squares {
  static constexpr std::string_view name = "sum_squares";
  signature sign(const std::vector<tensor_type>& in) const {
    signature s;
    s.in = {loops_over(s, in[0], "sum_squares")};
    s.out = {{in[0].element, {}}};
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return 2 * points(n); }
};

/// Sum of any number of scalars. Linear, so that one reduction serves them all.
struct sum_of {
  static constexpr std::string_view name = "sum_of";
  signature sign(const std::vector<tensor_type>& in) const {
    auto s = elementwise(in, "sum_of");
    s.linear = true;
    return s;
  }
  double flops(std::span<const std::int64_t>) const { return 0; }
};

/// The factor min(1, limit / norm) of global-norm clipping, from the squared norm. As torch.nn.utils.clip_grad_norm_,
/// 1e-6 is added to the norm.
struct clip_scale {
  static constexpr std::string_view name = "clip_scale";
  double limit = 1;
  signature sign(const std::vector<tensor_type>& in) const { return elementwise(in, "clip_scale"); }
  double flops(std::span<const std::int64_t>) const { return 0; }
};

namespace detail {
/// Operands: gradient, parameter, and perhaps the clip scale (a scalar). Result: the new parameter, in place. A bf16
/// parameter is too coarse to be updated: its states are float, and the last of them is the parameter itself in float
/// (Micikevicius et al., Mixed Precision Training, arXiv 1710.03740).
inline signature update_signature(const std::vector<tensor_type>& in, const char* name, int states) {
  signature s;
  for (const auto& t : in) s.in.push_back(loops_over(s, t, name));
  s.out = {s.in[1]};
  auto state = s.in[1];
  if (state.element == dtype::bf16) {
    state.element = dtype::f32;
    ++states;
  }
  s.state.assign(static_cast<std::size_t>(states), state);
  s.reuse = {1};
  return s;
}
}  // namespace detail

/// p -= lr * (momentum * v + g) with v the velocity, as torch.optim.SGD with dampening 0; weight decay adds decay * p to g.
struct sgd {
  static constexpr std::string_view name = "sgd";
  double momentum = 0, weight_decay = 0;
  signature sign(const std::vector<tensor_type>& in) const {
    return detail::update_signature(in, "sgd", momentum != 0 ? 1 : 0);
  }
  double flops(std::span<const std::int64_t> n) const { return 6 * points(n); }
};

/// AdamW (Loshchilov and Hutter, arXiv 1711.05101) with bias correction, as torch.optim.AdamW.
struct adamw {
  static constexpr std::string_view name = "adamw";
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.01;
  signature sign(const std::vector<tensor_type>& in) const { return detail::update_signature(in, "adamw", 2); }
  double flops(std::span<const std::int64_t> n) const { return 16 * points(n); }
};

}  // namespace mmr::op
