// GeLU in the tanh form of GPT-2 (Hendrycks and Gimpel, arXiv 1606.08415), alone and fused with the bias before it.
// With u = sqrt(2/pi) (x + 0.044715 x^3), (1 + tanh u) / 2 is the logistic function of 2u, so one exp does it.
#pragma once

#include "mmr/backend/cpu/bias.hpp"

namespace mmr::cpu {

namespace detail {

template <class T>
struct gelu_terms {
  // 2 sqrt(2/pi), and that times 0.044715.
  static constexpr T linear = T(1.5957691216057307117), cubic = T(0.071354816272600248);
  // Beyond this the logistic function is 0 or 1 in every type; bounding x keeps inf * 0 out.
  static constexpr T bound = T(30);
};

template <class T>
inline pack<T> logistic(pack<T> x) {
  return T(1) / (T(1) + exp<T>(-x));
}

template <class T>
inline pack<T> gelu(pack<T> x) {
  using terms = gelu_terms<T>;
  const pack<T> low = maximum<T>(broadcast(-terms::bound), x);
  const pack<T> near = minimum<T>(broadcast(terms::bound), low);
  return low * logistic<T>(near * (terms::linear + terms::cubic * near * near));
}

template <class T>
inline pack<T> gelu_slope(pack<T> x) {
  using terms = gelu_terms<T>;
  const pack<T> near = minimum<T>(broadcast(terms::bound), maximum<T>(broadcast(-terms::bound), x));
  const pack<T> square = near * near;
  const pack<T> s = logistic<T>(near * (terms::linear + terms::cubic * square));
  return s + near * s * (T(1) - s) * (terms::linear + T(3) * terms::cubic * square);
}

}  // namespace detail

/// y[n] = gelu(x[n]); y may be x.
template <class T>
void gelu_forward(const T* x, T* y, int64_t n) {
  map_packs(
      n, y, [](pack<T> v) { return detail::gelu<T>(v); }, x);
}

/// dx[n] = dy[n] * gelu'(x[n]); dx may be dy or x.
template <class T>
void gelu_backward(const T* dy, const T* x, T* dx, int64_t n) {
  map_packs(
      n, dx, [](pack<T> d, pack<T> v) { return d * detail::gelu_slope<T>(v); }, dy, x);
}

/// y[rows, n] = gelu(x[rows, n] + b[n]); y may be x.
template <class T>
void bias_gelu_forward(const T* x, const T* b, T* y, int64_t rows, int64_t n) {
  for (int64_t i = 0; i < rows; ++i) {
    map_packs(
        n, y + i * n, [](pack<T> v, pack<T> c) { return detail::gelu<T>(v + c); }, x + i * n, b);
  }
}

/// dx[rows, n] = dy * gelu'(x + b), dbias[n] = sums of dx over the rows; dx may be dy or x; dbias may be null.
template <class T>
void bias_gelu_backward(const T* dy, const T* x, const T* b, T* dx, T* dbias, int64_t rows, int64_t n) {
  if (dbias) fill(T(0), dbias, n);
  for (int64_t i = 0; i < rows; i += detail::summed_rows) {
    const int64_t end = std::min(rows, i + detail::summed_rows);
    for (int64_t r = i; r < end; ++r) {
      map_packs(
          n, dx + r * n, [](pack<T> d, pack<T> v, pack<T> c) { return d * detail::gelu_slope<T>(v + c); }, dy + r * n,
          x + r * n, b);
    }
    if (dbias) accumulate_column_sums(static_cast<const T*>(dx) + i * n, dbias, end - i, n);
  }
}

}  // namespace mmr::cpu
