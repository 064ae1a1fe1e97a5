// Softmax over the last axis.
#pragma once

#include "mmr/backend/cpu/elementwise.hpp"
#include "mmr/backend/cpu/rows.hpp"

namespace mmr::cpu {

/// y[rows, n] = softmax of each row of x; y may be x.
template <class T>
void softmax_forward(const T* x, T* y, int64_t rows, int64_t n) {
  for (int64_t i = 0; i < rows; ++i) {
    const T sum = detail::exp_row(n, x + i * n, detail::max_of(n, x + i * n), T(1), y + i * n);
    scale<T>(T(1) / sum, y + i * n, y + i * n, n);
  }
}

/// dx[rows, n] = y * (dy - sum over the row of y * dy); dx may be dy or y.
template <class T>
void softmax_backward(const T* dy, const T* y, T* dx, int64_t rows, int64_t n) {
  for (int64_t i = 0; i < rows; ++i) {
    const T* d = dy + i * n;
    const T* p = y + i * n;
    const T dot = detail::sum_of<T>(
        n, [](pack<T> a, pack<T> b) { return a * b; }, d, p);
    map_packs(
        n, dx + i * n, [dot](pack<T> a, pack<T> b) { return b * (a - dot); }, d, p);
  }
}

}  // namespace mmr::cpu
