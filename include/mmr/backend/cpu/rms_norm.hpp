// Root-mean-square normalisation over the last axis (Zhang and Sennrich, arXiv 1910.07467), with 1/rms saved for
// backward.
#pragma once

#include <algorithm>
#include <cmath>

#include "mmr/backend/cpu/bias.hpp"
#include "mmr/backend/cpu/rows.hpp"

namespace mmr::cpu {

/// y[rows, n] = x * rstd * gain[n] with rstd[rows] = 1 / sqrt(mean of the squares of each row + eps). y may be x.
template <class T>
void rms_norm_forward(const T* x, const T* gain, T* y, T* rstd, int64_t rows, int64_t n, T eps) {
  for (int64_t i = 0; i < rows; ++i) {
    const T* row = x + i * n;
    const T squares = detail::sum_of<T>(
        n, [](pack<T> v) { return v * v; }, row);
    const T inverse = T(1) / std::sqrt((n ? squares / T(n) : T(0)) + eps);
    map_packs(
        n, y + i * n, [inverse](pack<T> v, pack<T> g) { return v * inverse * g; }, row, gain);
    rstd[i] = inverse;
  }
}

/// With h = x * rstd: dgain[n] = sum of dy * h over the rows, and
/// dx[rows, n] = rstd * (dy * gain - h * mean of dy * gain * h). dx may be dy.
template <class T>
void rms_norm_backward(const T* dy, const T* x, const T* gain, const T* rstd, T* dx, T* dgain, int64_t rows,
                       int64_t n) {
  fill(T(0), dgain, n);
  for (int64_t i = 0; i < rows; i += detail::summed_rows) {
    const int64_t end = std::min(rows, i + detail::summed_rows);
    for_each_pack<T>(n, [&](int64_t j, auto load, auto store) {
      pack<T> sum{};
      for (int64_t r = i; r < end; ++r) sum += load(dy + r * n + j) * (load(x + r * n + j) * rstd[r]);
      store(dgain + j, load(dgain + j) + sum);
    });
    for (int64_t r = i; r < end; ++r) {
      const T* d = dy + r * n;
      const T* row = x + r * n;
      const T inverse = rstd[r];
      const T along = detail::sum_of<T>(
                          n, [](pack<T> a, pack<T> g, pack<T> v) { return a * g * v; }, d, gain, row) *
                      inverse * inverse / T(n);
      map_packs(
          n, dx + r * n, [=](pack<T> a, pack<T> g, pack<T> v) { return inverse * (a * g - v * along); }, d, gain, row);
    }
  }
}

}  // namespace mmr::cpu
