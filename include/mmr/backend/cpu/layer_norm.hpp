// Layer normalisation over the last axis (Ba et al., arXiv 1607.06450), with mean and 1/deviation saved for backward.
#pragma once

#include <algorithm>
#include <cmath>

#include "mmr/backend/cpu/bias.hpp"
#include "mmr/backend/cpu/rows.hpp"

namespace mmr::cpu {

/// y[rows, n] = (x - mean) * rstd * gamma[n] + beta[n] with mean[rows] and rstd[rows] = 1 / sqrt(variance + eps) of
/// each row; the variance is the biased one. y may be x.
template <class T>
void layer_norm_forward(const T* x, const T* gamma, const T* beta, T* y, T* mean, T* rstd, int64_t rows, int64_t n,
                        T eps) {
  for (int64_t i = 0; i < rows; ++i) {
    const T* row = x + i * n;
    const T average = n ? detail::sum_of<T>(
                              n, [](pack<T> v) { return v; }, row) /
                              T(n)
                        : T(0);
    const int64_t whole = n / width<T> * width<T>;
    T squares = detail::sum_of<T>(
        whole, [average](pack<T> v) { return (v - average) * (v - average); }, row);
    for (int64_t j = whole; j < n; ++j) squares += (row[j] - average) * (row[j] - average);
    const T inverse = T(1) / std::sqrt((n ? squares / T(n) : T(0)) + eps);
    map_packs(
        n, y + i * n, [average, inverse](pack<T> v, pack<T> g, pack<T> b) { return (v - average) * inverse * g + b; },
        row, gamma, beta);
    mean[i] = average;
    rstd[i] = inverse;
  }
}

/// With h = (x - mean) * rstd: dgamma[n] = sum of dy * h, dbeta[n] = sum of dy over the rows, and
/// dx[rows, n] = rstd * (dy * gamma - mean of dy * gamma - h * mean of dy * gamma * h). dx may be dy.
/// dx may be null, and so may dgamma and dbeta together.
template <class T>
void layer_norm_backward(const T* dy, const T* x, const T* gamma, const T* mean, const T* rstd, T* dx, T* dgamma,
                         T* dbeta, int64_t rows, int64_t n) {
  if (dgamma) {
    fill(T(0), dgamma, n);
    fill(T(0), dbeta, n);
  }
  for (int64_t i = 0; i < rows; i += detail::summed_rows) {
    const int64_t end = std::min(rows, i + detail::summed_rows);
    if (dgamma) {
      for_each_pack<T>(n, [&](int64_t j, auto load, auto store) {
        pack<T> scaled{}, plain{};
        for (int64_t r = i; r < end; ++r) {
          const pack<T> d = load(dy + r * n + j);
          scaled += d * ((load(x + r * n + j) - mean[r]) * rstd[r]);
          plain += d;
        }
        store(dgamma + j, load(dgamma + j) + scaled);
        store(dbeta + j, load(dbeta + j) + plain);
      });
    }
    if (!dx) continue;
    for (int64_t r = i; r < end; ++r) {
      const T* d = dy + r * n;
      const T* row = x + r * n;
      const T average = mean[r], inverse = rstd[r];
      const T plain = detail::sum_of<T>(
                          n, [](pack<T> a, pack<T> g) { return a * g; }, d, gamma) /
                      T(n);
      const T along =
          detail::sum_of<T>(
              n, [average](pack<T> a, pack<T> g, pack<T> v) { return a * g * (v - average); }, d, gamma, row) *
          inverse / T(n);
      map_packs(
          n, dx + r * n,
          [=](pack<T> a, pack<T> g, pack<T> v) {
            return inverse * (a * g - plain - (v - average) * (inverse * along));
          },
          d, gamma, row);
    }
  }
}

}  // namespace mmr::cpu
