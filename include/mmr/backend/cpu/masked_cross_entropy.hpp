// Cross-entropy over the rows whose target is not negative; see cross_entropy.hpp for what goes before.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "mmr/backend/cpu/cross_entropy.hpp"

namespace mmr::cpu {

/// Targets that are not negative.
inline std::int32_t count_targets(const std::int32_t* targets, int64_t rows) {
  return static_cast<std::int32_t>(std::count_if(targets, targets + rows, [](std::int32_t t) { return t >= 0; }));
}

/// factor * the sum over the rows with a target of log s + max - picked, summed in double.
template <class T>
T masked_negative_log_likelihood(const T* max, const T* s, const T* picked, const std::int32_t* targets, int64_t rows,
                                 double factor) {
  double sum = 0;
  for (int64_t i = 0; i < rows; ++i)
    if (targets[i] >= 0) sum += std::log(double(s[i])) + (double(max[i]) - double(picked[i]));
  return static_cast<T>(sum * factor);
}

/// dlogits[rows, v] as cross_entropy_backward gives it in rows with a target, zero in the others; dlogits may be
/// logits.
template <class T>
void masked_cross_entropy_backward(const T* logits, const T* max, const T* s, const std::int32_t* targets, T* dlogits,
                                   int64_t rows, int64_t v, int64_t vocab_begin, T factor) {
  for (int64_t i = 0; i < rows; ++i) {
    if (targets[i] < 0) {
      fill(T(0), dlogits + i * v, v);
      continue;
    }
    cross_entropy_backward(logits + i * v, max + i, s + i, targets + i, dlogits + i * v, 1, v, vocab_begin, factor);
  }
}

}  // namespace mmr::cpu
