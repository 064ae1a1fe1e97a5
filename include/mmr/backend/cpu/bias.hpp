// Bias rows and their gradients, the sums of columns.
#pragma once

#include "mmr/backend/cpu/elementwise.hpp"

namespace mmr::cpu {

namespace detail {

/// Rows that a column sum adds in registers before it touches memory; also shortens the chains of rounding.
inline constexpr int64_t summed_rows = 8;

}  // namespace detail

/// y[rows, n] = x[rows, n] + b[n]; y may be x.
template <class T>
void add_bias(const T* x, const T* b, T* y, int64_t rows, int64_t n) {
  for (int64_t i = 0; i < rows; ++i) add(x + i * n, b, y + i * n, n);
}

/// b[n] += sums over the rows of x[rows, n].
template <class T>
void accumulate_column_sums(const T* x, T* b, int64_t rows, int64_t n) {
  int64_t i = 0;
  for (; i + detail::summed_rows <= rows; i += detail::summed_rows) {
    const T* from = x + i * n;
    for_each_pack<T>(n, [&](int64_t j, auto load, auto store) {
      pack<T> even = load(from + j), odd = load(from + n + j);
      for (int64_t r = 2; r < detail::summed_rows; r += 2) {
        even += load(from + r * n + j);
        odd += load(from + (r + 1) * n + j);
      }
      store(b + j, load(b + j) + (even + odd));
    });
  }
  for (; i < rows; ++i) add(b, x + i * n, b, n);
}

/// b[n] = sums over the rows of x[rows, n].
template <class T>
void column_sums(const T* x, T* b, int64_t rows, int64_t n) {
  fill(T(0), b, n);
  accumulate_column_sums(x, b, rows, n);
}

}  // namespace mmr::cpu
