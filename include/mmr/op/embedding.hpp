// Embedding lookup in a table whose vocabulary may be split over devices.
#pragma once

#include <mmr/op/apply.hpp>

#include <algorithm>

namespace mmr {
namespace op {

/// Sums the rows of dy into the rows of the table that the tokens name. Operands: tokens, dy. Result: dtable[vocab, ...].
struct embedding_grad {
  static constexpr std::string_view name = "embedding_grad";
  tensor_type table;
  signature sign(const std::vector<tensor_type>& in) const {
    signature s;
    for (const auto& t : in) s.in.push_back(loops_over(s, t, "embedding_grad"));
    s.out = {loops_over(s, table, "embedding_grad")};
    return s;
  }
  // One addition per token and feature; the vocabulary loop only chooses where it goes.
  double flops(std::span<const std::int64_t> n) const { return points(n) / static_cast<double>(std::max<std::int64_t>(1, n[vocabulary])); }
  std::size_t vocabulary = 0;  ///< index of the vocabulary loop
};

/// y[.., e] = table[token[..], e]; rows outside the local part of the vocabulary give zero, so that a split vocabulary
/// leaves the result Partial. Operands: tokens (int32), table[vocab, e].
struct embedding {
  static constexpr std::string_view name = "embedding";
  signature sign(const std::vector<tensor_type>& in) const {
    signature s;
    for (const auto& t : in) s.in.push_back(loops_over(s, t, "embedding"));
    s.out = {{in[1].element, s.in[0].loops}};
    s.out[0].loops.push_back(s.in[1].loops[1]);
    return s;
  }
  double flops(std::span<const std::int64_t> n) const { return points(n) / static_cast<double>(std::max<std::int64_t>(1, n[n.size() - 2])); }
  void vjp(auto& c) const {
    // Loops of the gradient: those of the tokens, then the feature axis, then the vocabulary.
    const auto last = c.type(c.in(0)).dims.size() + 1;
    c.add_grad(c.in(1), c.emit(embedding_grad{c.type(c.in(1)), last}, {c.in(0), c.grad()})[0]);
  }
};

}  // namespace op

/// Rows of `table` named by the tokens: tokens[A...] and table[Vocab, Embed] give [A..., Embed].
template <class Token, class... A, class T, axis_type Vocab, axis_type Embed>
tensor<T, A..., Embed> embedding(tensor<Token, A...> tokens, tensor<T, Vocab, Embed> table) {
  require_dtype<op::embedding, std::int32_t, tensor<Token, A...>>();
  static_assert(detail::axes_are_distinct<A..., Vocab, Embed>());
  return apply<tensor<T, A..., Embed>>(op::embedding{}, tokens, table);
}

}  // namespace mmr
