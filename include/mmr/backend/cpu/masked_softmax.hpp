// Scaled softmax over the last axis, where a causal mask leaves a query the keys up to its own position.
#pragma once

#include <algorithm>

#include "mmr/backend/cpu/elementwise.hpp"
#include "mmr/backend/cpu/rows.hpp"

namespace mmr::cpu {

/// Which keys the rows see: row r has the query at begin + r / inner % queries, and sees the keys up to it. All see all
/// where `causal` is false.
struct key_mask {
  bool causal = false;
  std::int64_t begin = 0, queries = 1, inner = 1;
  std::int64_t seen(std::int64_t row, std::int64_t keys) const {
    return causal ? std::min(keys, begin + row / inner % queries + 1) : keys;
  }
};

/// y[rows, n] = softmax of factor * x over the keys that the row sees, 0 for the others; y may be x. factor > 0.
template <class T>
void masked_softmax_forward(const T* x, T* y, int64_t rows, int64_t n, T factor, const key_mask& mask) {
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t seen = mask.seen(i, n);
    const T sum = detail::exp_row(seen, x + i * n, detail::max_of(seen, x + i * n), factor, y + i * n);
    scale<T>(T(1) / sum, y + i * n, y + i * n, seen);
    fill(T(0), y + i * n + seen, n - seen);
  }
}

/// dx[rows, n] = factor * y * (dy - sum over the row of y * dy); dx may be dy.
template <class T>
void masked_softmax_backward(const T* dy, const T* y, T* dx, int64_t rows, int64_t n, T factor) {
  for (int64_t i = 0; i < rows; ++i) {
    const T* d = dy + i * n;
    const T* p = y + i * n;
    const T dot = detail::sum_of<T>(
        n, [](pack<T> a, pack<T> b) { return a * b; }, d, p);
    map_packs(
        n, dx + i * n, [dot, factor](pack<T> a, pack<T> b) { return b * (a - dot) * factor; }, d, p);
  }
}

}  // namespace mmr::cpu
