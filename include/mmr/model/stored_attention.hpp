// Attention that stores its scores: what frameworks did before memory-efficient attention, and what published rules of
// activation memory count (Korthikanti et al., arXiv 2205.05198). It also takes what the fused operator does not:
// dropout of the probabilities, and terms added to the scores.
#pragma once

#include <cmath>
#include <mmr/declare.hpp>
#include <optional>

namespace mmr {

struct stored_scores {
  bool causal = true;             ///< query i sees keys 0..i
  std::optional<double> scale{};  ///< of the scores; 1 / sqrt(features) where none is given
  double dropout = 0;             ///< of the probabilities
  bool store_masks = false;       ///< of dropout, a byte an element; they are made again in backward otherwise
};

/// dropout(x), its mask stored or made again.
template <class T, class... A>
tensor<T, A...> dropout_of(tensor<T, A...> x, double probability, bool store_mask) {
  return store_mask ? stored_dropout(x, probability) : dropout(x, probability);
}

/// residual + dropout(x + b). With a stored mask it is three operators, of which only the mask is kept.
template <class X, class B>
X bias_dropout_add_of(X x, B b, X residual, double probability, bool store_mask) {
  if (!store_mask || probability == 0) return bias_dropout_add(x, b, residual, probability);
  return stored_dropout(bias(x, b), probability) + residual;
}

/// Attention of queries over (Batch, Queries, Heads, Features) to keys and values over (Batch, Keys, Heads, Features);
/// the result is like the queries. `change` takes the scores (Batch, Queries, Heads, Keys) before softmax and gives
/// others.
template <class T, axis_type Batch, axis_type Queries, axis_type Keys, axis_type Heads, axis_type Features,
          class Change>
tensor<T, Batch, Queries, Heads, Features> stored_attention(tensor<T, Batch, Queries, Heads, Features> q,
                                                            tensor<T, Batch, Keys, Heads, Features> k,
                                                            tensor<T, Batch, Keys, Heads, Features> v,
                                                            const stored_scores& how, Change change) {
  const double scale = how.scale.value_or(1 / std::sqrt(static_cast<double>(q.owner->template extent<Features>())));
  const tensor<T, Batch, Queries, Heads, Keys> scores = change(contract<Features>(q, k));
  const auto weights = how.causal ? causal_softmax<Queries, Keys>(scores, scale) : scaled_softmax<Keys>(scores, scale);
  return contract<Keys>(dropout_of(weights, how.dropout, how.store_masks), v);
}
template <class Q, class K, class V>
Q stored_attention(Q q, K k, V v, const stored_scores& how) {
  return stored_attention(q, k, v, how, [](auto scores) { return scores; });
}

}  // namespace mmr
