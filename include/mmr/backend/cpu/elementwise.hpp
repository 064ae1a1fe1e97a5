// Arithmetic by element. A result may be the same buffer as an operand, so that results can reuse what dies.
#pragma once

#include <algorithm>

#include "mmr/backend/cpu/pack.hpp"

namespace mmr::cpu {

/// y[i] = f(x[i]...) for i < n, by packs: f takes and returns pack<T>; a generic lambda of arithmetic does.
template <class T, class F, class... X>
void map_packs(int64_t n, T* y, F f, const X*... x) {
  for_each_pack<T>(n, [&](int64_t i, auto load, auto store) { store(y + i, f(load(x + i)...)); });
}

/// y[i] = f(x[i]...) for i < n, by element: f takes and returns T.
template <class T, class F, class... X>
void map(int64_t n, T* y, F f, const X*... x) {
  for (int64_t i = 0; i < n; ++i) y[i] = f(x[i]...);
}

/// y = a + b
template <class T>
void add(const T* a, const T* b, T* y, int64_t n) {
  map_packs(
      n, y, [](auto p, auto q) { return p + q; }, a, b);
}

/// y = a * b
template <class T>
void multiply(const T* a, const T* b, T* y, int64_t n) {
  map_packs(
      n, y, [](auto p, auto q) { return p * q; }, a, b);
}

/// y = factor * x
template <class T>
void scale(T factor, const T* x, T* y, int64_t n) {
  map_packs(
      n, y, [factor](auto p) { return p * factor; }, x);
}

/// y += factor * x
template <class T>
void axpy(T factor, const T* x, T* y, int64_t n) {
  map_packs(
      n, y, [factor](auto p, auto q) { return q + p * factor; }, x, static_cast<const T*>(y));
}

/// y = x; the buffers are the same or apart.
template <class T>
void copy(const T* x, T* y, int64_t n) {
  if (x != y) std::copy_n(x, n, y);
}

template <class T>
void fill(T value, T* y, int64_t n) {
  std::fill_n(y, n, value);
}

}  // namespace mmr::cpu
