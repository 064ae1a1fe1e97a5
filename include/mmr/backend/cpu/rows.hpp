// Reductions along one row, with several running packs to hide latency; the order of summation depends on n alone.
#pragma once

#include <limits>

#include "mmr/backend/cpu/pack.hpp"

namespace mmr::cpu::detail {

/// Sum over i < n of f(packs at i...). f must give zero where all operands are zero padding, unless n is in whole
/// packs.
template <class T, class F, class... X>
inline T sum_of(int64_t n, F f, const X*... x) {
  constexpr int64_t w = width<T>;
  pack<T> sum[4] = {};
  int64_t i = 0;
  for (; i + 4 * w <= n; i += 4 * w) {
    for (int64_t j = 0; j < 4; ++j) sum[j] += f(load<T>(x + i + j * w)...);
  }
  for (; i + w <= n; i += w) sum[0] += f(load<T>(x + i)...);
  if (const int64_t rest = n - i; rest > 0) sum[1] += f(load_part<T>(x + i, rest)...);
  return sum_lanes<T>((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

/// Largest of x[n]; minus infinity when n is zero.
template <class T>
inline T max_of(int64_t n, const T* x) {
  constexpr int64_t w = width<T>;
  constexpr T least = -std::numeric_limits<T>::infinity();
  pack<T> most[4] = {broadcast(least), broadcast(least), broadcast(least), broadcast(least)};
  int64_t i = 0;
  for (; i + 4 * w <= n; i += 4 * w) {
    for (int64_t j = 0; j < 4; ++j) most[j] = maximum<T>(most[j], load<T>(x + i + j * w));
  }
  for (; i + w <= n; i += w) most[0] = maximum<T>(most[0], load<T>(x + i));
  if (const int64_t rest = n - i; rest > 0) most[1] = maximum<T>(most[1], load_part<T>(x + i, rest, least));
  return max_lanes<T>(maximum<T>(maximum<T>(most[0], most[1]), maximum<T>(most[2], most[3])));
}

/// y[n] = exp((x[n] - shift) * factor), and their sum; y may be x.
template <class T>
inline T exp_row(int64_t n, const T* x, T shift, T factor, T* y) {
  constexpr int64_t w = width<T>;
  pack<T> sum[2] = {};
  int64_t i = 0;
  for (; i + 2 * w <= n; i += 2 * w) {
    const pack<T> a = exp<T>((load<T>(x + i) - shift) * factor), b = exp<T>((load<T>(x + i + w) - shift) * factor);
    store<T>(y + i, a);
    store<T>(y + i + w, b);
    sum[0] += a;
    sum[1] += b;
  }
  for (; i < n; i += w) {
    const int64_t count = n - i < w ? n - i : w;
    // Lanes past the end become exp(-inf) = 0 and add nothing.
    const pack<T> a = exp<T>((load_part<T>(x + i, count, -std::numeric_limits<T>::infinity()) - shift) * factor);
    store_part<T>(y + i, a, count);
    sum[0] += a;
  }
  return sum_lanes<T>(sum[0] + sum[1]);
}

}  // namespace mmr::cpu::detail
