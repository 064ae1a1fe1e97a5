// Cross-entropy on logits whose vocabulary is split over ranks. Between the steps the ranks combine one number a row:
// the maximum of `row_max`, then the sums of `sum_exp` and `pick`; nothing of vocabulary size is sent.
#pragma once

#include <cmath>
#include <cstdint>

#include "mmr/backend/cpu/elementwise.hpp"
#include "mmr/backend/cpu/rows.hpp"

namespace mmr::cpu {

/// max[rows] = the largest of each row of logits[rows, v]; minus infinity when v is zero.
template <class T>
void row_max(const T* logits, T* max, int64_t rows, int64_t v) {
  for (int64_t i = 0; i < rows; ++i) max[i] = detail::max_of(v, logits + i * v);
}

/// s[rows] = sum over the row of exp(logits - max[row]).
template <class T>
void sum_exp(const T* logits, const T* max, T* s, int64_t rows, int64_t v) {
  for (int64_t i = 0; i < rows; ++i) {
    const T* row = logits + i * v;
    const T shift = max[i];
    const int64_t whole = v / width<T> * width<T>;
    s[i] = detail::sum_of<T>(
        whole, [shift](pack<T> l) { return exp<T>(l - shift); }, row);
    for (int64_t j = whole; j < v; ++j) s[i] += std::exp(row[j] - shift);
  }
}

/// picked[rows] = the logit of the row's target where this rank holds it (words from vocab_begin on), else zero.
template <class T>
void pick(const T* logits, const std::int32_t* targets, T* picked, int64_t rows, int64_t v, int64_t vocab_begin) {
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t word = targets[i] - vocab_begin;
    picked[i] = word >= 0 && word < v ? logits[i * v + word] : T(0);
  }
}

/// factor * the sum over rows of the negative log-likelihood log s + max - picked, summed in double.
template <class T>
T negative_log_likelihood(const T* max, const T* s, const T* picked, int64_t rows, double factor) {
  double sum = 0;
  for (int64_t i = 0; i < rows; ++i) sum += std::log(double(s[i])) + (double(max[i]) - double(picked[i]));
  return static_cast<T>(sum * factor);
}

/// dlogits[rows, v] = (exp(logits - max) / s - [word is the target]) * factor; dlogits may be logits.
template <class T>
void cross_entropy_backward(const T* logits, const T* max, const T* s, const std::int32_t* targets, T* dlogits,
                            int64_t rows, int64_t v, int64_t vocab_begin, T factor) {
  for (int64_t i = 0; i < rows; ++i) {
    const T shift = max[i], weight = factor / s[i];
    map_packs(
        v, dlogits + i * v, [=](pack<T> l) { return exp<T>(l - shift) * weight; }, logits + i * v);
    const int64_t word = targets[i] - vocab_begin;
    if (word >= 0 && word < v) dlogits[i * v + word] -= factor;
  }
}

}  // namespace mmr::cpu
