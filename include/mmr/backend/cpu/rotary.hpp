// Rotary position embedding (Su et al., arXiv 2104.09864): cosines and sines are made once for a position and serve all
// its rows. Angles are taken in double: at a position of 100,000 a float has lost half its digits.
#pragma once

#include <cmath>
#include <cstdint>

#include "mmr/backend/cpu/elementwise.hpp"

namespace mmr::cpu {

/// x is [outer, positions, inner, features], features even; its first position is position_begin of the whole.
struct rotary_shape {
  int64_t outer, positions, inner, features, position_begin;
  double theta;
  bool back;  ///< turn by the negative angle
};

/// Bytes of workspace of `rotary`: a row of frequencies, one of cosines and one of sines.
template <class T>
int64_t rotary_workspace(const rotary_shape& s) {
  return s.features / 2 * static_cast<int64_t>(sizeof(double) + 2 * sizeof(T));
}

/// Turns (x[i], x[i + features/2]) by position * theta^(-2 i / features); y may be x.
template <class T>
void rotary(const T* x, T* y, const rotary_shape& s, void* workspace) {
  const int64_t half = s.features / 2;
  double* const frequency = static_cast<double*>(workspace);
  T* const cosine = reinterpret_cast<T*>(frequency + half);
  T* const sine = cosine + half;
  for (int64_t i = 0; i < half; ++i)
    frequency[i] = std::pow(s.theta, -2 * static_cast<double>(i) / static_cast<double>(s.features));
  for (int64_t p = 0; p < s.positions; ++p) {
    const double position = static_cast<double>(s.position_begin + p) * (s.back ? -1 : 1);
    for (int64_t i = 0; i < half; ++i) {
      cosine[i] = static_cast<T>(std::cos(position * frequency[i]));
      sine[i] = static_cast<T>(std::sin(position * frequency[i]));
    }
    for (int64_t o = 0; o < s.outer; ++o) {
      for (int64_t r = 0; r < s.inner; ++r) {
        const int64_t at = ((o * s.positions + p) * s.inner + r) * s.features;
        const T* from = x + at;
        T* to = y + at;
        for_each_pack<T>(half, [&](int64_t i, auto load, auto store) {
          const pack<T> a = load(from + i), b = load(from + half + i), c = load(cosine + i), d = load(sine + i);
          store(to + i, a * c - b * d);
          store(to + half + i, b * c + a * d);
        });
      }
    }
  }
}

}  // namespace mmr::cpu
