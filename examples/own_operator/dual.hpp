// Dual numbers: a value with its slope. A formula written once for any number type gives its derivative when it is
// called with them (forward-mode differentiation; Clifford 1871, Wengert 1964).
#pragma once

#include <cmath>

template <class T>
struct dual {
  T value = 0, slope = 0;

  dual(T v, T s) : value(v), slope(s) {}
  template <class C>
  explicit dual(C constant) : value(static_cast<T>(constant)) {}  // which has no slope

  friend dual operator+(dual a, dual b) { return {a.value + b.value, a.slope + b.slope}; }
  friend dual operator-(dual a, dual b) { return {a.value - b.value, a.slope - b.slope}; }
  friend dual operator-(dual a) { return {-a.value, -a.slope}; }
  friend dual operator*(dual a, dual b) { return {a.value * b.value, a.slope * b.value + a.value * b.slope}; }
  friend dual operator/(dual a, dual b) {
    const T q = a.value / b.value;
    return {q, (a.slope - q * b.slope) / b.value};
  }
  friend bool operator>(dual a, dual b) { return a.value > b.value; }
  friend dual exp(dual a) {
    const T e = std::exp(a.value);
    return {e, e * a.slope};
  }
  friend dual tanh(dual a) {
    const T t = std::tanh(a.value);
    return {t, (1 - t * t) * a.slope};
  }
};
