// Dropout whose mask is a function of (seed, step, operator, global element index), so that it is the same under every
// sharding and is never stored: backward makes it again.
#pragma once

#include <mmr/op/bias.hpp>

#include <cstdint>

namespace mmr {
namespace op {

/// y = x * mask / (1 - p). It is its own vjp.
struct dropout {
  static constexpr std::string_view name = "dropout";
  double probability = 0;
  std::uint32_t stream = 0;  ///< tells the masks of one model apart
  signature sign(const std::vector<tensor_type>& in) const {
    auto s = elementwise(in, "dropout");
    s.linear = true;
    s.reuse = {0};
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return 12 * points(n); }
  void vjp(auto& c) const { c.add_grad(c.in(0), c.emit(*this, {c.grad()})[0]); }
};

/// dx = dropout(dy) and db = dx summed over the axes that b lacks. Operand: dy.
struct dropout_bias_grad {
  static constexpr std::string_view name = "dropout_bias_grad";
  double probability = 0;
  std::uint32_t stream = 0;
  std::size_t kept = 0;  ///< axes of b
  signature sign(const std::vector<tensor_type>& in) const {
    auto s = elementwise(in, "dropout_bias_grad", 2);
    const auto& all = s.in[0].loops;
    s.out[1].loops = {all.end() - static_cast<std::ptrdiff_t>(kept), all.end()};
    s.linear = true;
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return 13 * points(n); }
};

/// y = residual + dropout(x + b), with b over the trailing axes of x. Operands: x, b, residual.
struct bias_dropout_add {
  static constexpr std::string_view name = "bias_dropout_add";
  double probability = 0;
  std::uint32_t stream = 0;
  signature sign(const std::vector<tensor_type>& in) const {
    auto s = elementwise(in, "bias_dropout_add");
    s.reuse = {0};
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return 14 * points(n); }
  void vjp(auto& c) const {
    c.add_grad(c.in(2), c.grad());
    const auto kept = c.type(c.in(1)).dims.size();
    if (probability == 0) {
      c.add_grad(c.in(0), c.grad());
      if (c.needs_in(1)) c.add_grad(c.in(1), c.emit(sum_leading{kept}, {c.grad()})[0]);
      return;
    }
    const auto grads = c.emit(dropout_bias_grad{probability, stream, kept}, {c.grad()});
    c.add_grad(c.in(0), grads[0]);
    c.add_grad(c.in(1), grads[1]);
  }
};

/// dx = dy * mask / (1 - p). Operands: dy, mask.
struct stored_dropout_grad {
  static constexpr std::string_view name = "stored_dropout_grad";
  double probability = 0;
  signature sign(const std::vector<tensor_type>& in) const {
    auto s = elementwise(in, "stored_dropout_grad");
    s.linear = true;
    s.reuse = {0};
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return 2 * points(n); }
};

/// y = x * mask / (1 - p) with the mask of `dropout`, kept for backward as one byte an element (1: kept, 0: dropped): what
/// published rules of memory count. Operand: x. Results: y, mask.
struct stored_dropout {
  static constexpr std::string_view name = "stored_dropout";
  double probability = 0;
  std::uint32_t stream = 0;
  signature sign(const std::vector<tensor_type>& in) const {
    auto s = elementwise(in, "stored_dropout", 2);
    s.out[1].element = dtype::u8;
    s.reuse = {0, -1};
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return 12 * points(n); }
  void vjp(auto& c) const {
    c.add_grad(c.in(0), c.emit(stored_dropout_grad{probability}, {c.grad(), c.out(1)})[0]);
  }
};

}  // namespace op

/// Zeroes each element with the given probability and scales the others by 1 / (1 - probability).
template <class T, class... A>
tensor<T, A...> dropout(tensor<T, A...> x, double probability) {
  if (!(probability >= 0 && probability < 1)) fail("dropout: the probability is ", probability, "; it must be in [0, 1)");
  if (probability == 0) return x;
  return apply<tensor<T, A...>>(op::dropout{probability, x.owner->next_stream()}, x);
}

/// residual + dropout(x + b), with b over the trailing axes of x: one pass over memory.
template <class T, class... A, class U, class... B, class Residual>
tensor<T, A...> bias_dropout_add(tensor<T, A...> x, tensor<U, B...> b, Residual residual, double probability) {
  require_one_dtype<op::bias_dropout_add, tensor<T, A...>, tensor<U, B...>, Residual>();
  require_same_axes<op::bias_dropout_add, tensor<T, A...>, Residual>();
  detail::require_trailing<op::bias_dropout_add, tensor<T, A...>>(axes<B...>{});
  if (!(probability >= 0 && probability < 1)) fail("dropout: the probability is ", probability, "; it must be in [0, 1)");
  return apply<tensor<T, A...>>(op::bias_dropout_add{probability, x.owner->next_stream()}, x, b, residual);
}

/// As `dropout`, with equal masks; but the mask is stored for backward, a byte an element, and not made again.
template <class T, class... A>
tensor<T, A...> stored_dropout(tensor<T, A...> x, double probability) {
  if (!(probability >= 0 && probability < 1)) fail("dropout: the probability is ", probability, "; it must be in [0, 1)");
  if (probability == 0) return x;
  return std::get<0>(apply<tensor<T, A...>, tensor<std::uint8_t, A...>>(
      op::stored_dropout{probability, x.owner->next_stream()}, x));
}

}  // namespace mmr
