// Updates of parameters in place, and the sum of squares that clipping needs.
#pragma once

#include <cmath>
#include <cstdint>

#include "mmr/backend/cpu/elementwise.hpp"

namespace mmr::cpu {

/// v = momentum * v + g, p -= lr * v, with g = g_scale * g + weight_decay * p (torch.optim.SGD with momentum);
/// v[n] is zero before the first step and may be null when momentum is zero.
template <class T>
void sgd(T* p, const T* g, T* v, int64_t n, double lr, double momentum, double weight_decay, double g_scale) {
  const T rate = T(lr), keep = T(momentum), decay = T(weight_decay), factor = T(g_scale);
  for_each_pack<T>(n, [&](int64_t i, auto load, auto store) {
    const pack<T> old = load(p + i);
    pack<T> step = load(g + i) * factor + old * decay;
    if (v) {
      step += load(v + i) * keep;
      store(v + i, step);
    }
    store(p + i, old - step * rate);
  });
}

/// Settings of one AdamW update; `step` counts from 1; `g_scale` multiplies the gradient first (clipping).
struct adamw_settings {
  double lr, beta1, beta2, eps, weight_decay;
  int64_t step;
  double g_scale;
};

/// One step of AdamW (Loshchilov and Hutter, arXiv 1711.05101) on p[n], m[n], v[n], in the order of torch.optim.AdamW:
/// p *= 1 - lr * decay; m, v move towards g, g^2; p -= lr / (1 - beta1^t) * m / (sqrt(v / (1 - beta2^t)) + eps).
template <class T>
void adamw(T* p, const T* g, T* m, T* v, int64_t n, const adamw_settings& by) {
  const double correction1 = 1 - std::pow(by.beta1, double(by.step));
  const double correction2 = 1 - std::pow(by.beta2, double(by.step));
  const T shrink = T(1 - by.lr * by.weight_decay), rate = T(by.lr / correction1);
  const T inverse = T(1 / std::sqrt(correction2)), eps = T(by.eps), factor = T(by.g_scale);
  const T keep1 = T(by.beta1), take1 = T(1 - by.beta1), keep2 = T(by.beta2), take2 = T(1 - by.beta2);
  for_each_pack<T>(n, [&](int64_t i, auto load, auto store) {
    const pack<T> gradient = load(g + i) * factor;
    const pack<T> first = load(m + i) * keep1 + gradient * take1;
    const pack<T> second = load(v + i) * keep2 + gradient * gradient * take2;
    store(m + i, first);
    store(v + i, second);
    store(p + i, load(p + i) * shrink - rate * first / (square_root<T>(second) * inverse + eps));
  });
}

/// Sum of x[i]^2 in double, in an order that depends on n alone.
template <class T>
double sum_squares(const T* x, int64_t n) {
  constexpr int64_t w = width<double>;
  pack<double> sum[4] = {};
  double rest = 0;
  int64_t i = 0;
  for (; i + 4 * w <= n; i += 4 * w) {
    for (int64_t j = 0; j < 4; ++j) {
      pack<double> value;
      for (int64_t l = 0; l < w; ++l) value[l] = double(x[i + j * w + l]);
      sum[j] += value * value;
    }
  }
  for (; i < n; ++i) rest += double(x[i]) * double(x[i]);
  return sum_lanes<double>((sum[0] + sum[1]) + (sum[2] + sum[3])) + rest;
}

}  // namespace mmr::cpu
