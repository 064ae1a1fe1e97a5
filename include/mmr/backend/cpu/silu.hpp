// SiLU (Hendrycks and Gimpel, arXiv 1606.08415), and SwiGLU (Shazeer, arXiv 2002.05202): silu(gate) * up.
#pragma once

#include "mmr/backend/cpu/gelu.hpp"

namespace mmr::cpu {

namespace detail {

// Beyond this the logistic function is 0 or 1 in every type; bounding x keeps inf * 0 out.
template <class T>
inline constexpr T silu_bound = T(1000);

template <class T>
inline pack<T> silu(pack<T> x) {
  const pack<T> low = maximum<T>(broadcast(-silu_bound<T>), x);
  return low * logistic<T>(low);
}

template <class T>
inline pack<T> silu_slope(pack<T> x) {
  const pack<T> near = minimum<T>(broadcast(silu_bound<T>), maximum<T>(broadcast(-silu_bound<T>), x));
  const pack<T> s = logistic<T>(near);
  return s + near * s * (T(1) - s);
}

}  // namespace detail

/// y[n] = x / (1 + exp(-x)); y may be x.
template <class T>
void silu_forward(const T* x, T* y, int64_t n) {
  map_packs(
      n, y, [](pack<T> v) { return detail::silu<T>(v); }, x);
}

/// dx[n] = dy * silu'(x); dx may be dy or x.
template <class T>
void silu_backward(const T* dy, const T* x, T* dx, int64_t n) {
  map_packs(
      n, dx, [](pack<T> d, pack<T> v) { return d * detail::silu_slope<T>(v); }, dy, x);
}

/// y[n] = silu(gate) * up; y may be either operand.
template <class T>
void swiglu_forward(const T* gate, const T* up, T* y, int64_t n) {
  map_packs(
      n, y, [](pack<T> g, pack<T> u) { return detail::silu<T>(g) * u; }, gate, up);
}

/// dgate[n] = dy * up * silu'(gate), dup[n] = dy * silu(gate); each may be any of the operands, but not the other.
template <class T>
void swiglu_backward(const T* dy, const T* gate, const T* up, T* dgate, T* dup, int64_t n) {
  for_each_pack<T>(n, [&](int64_t i, auto load, auto store) {
    const pack<T> d = load(dy + i), g = load(gate + i), u = load(up + i);
    store(dgate + i, d * u * detail::silu_slope<T>(g));
    store(dup + i, d * detail::silu<T>(g));
  });
}

}  // namespace mmr::cpu
