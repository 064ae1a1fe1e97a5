// One vector register of numbers, written with the vector extension that GCC and clang share, so that the kernels need
// neither intrinsics for one machine nor -ffast-math to be vectorised. The width follows the compiler's target flags.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace mmr::cpu {

using std::int64_t;

#if defined(__AVX512F__)
inline constexpr int pack_bytes = 64;
#elif defined(__AVX__)
inline constexpr int pack_bytes = 32;
#else
inline constexpr int pack_bytes = 16;
#endif

namespace detail {

template <class T>
struct pack_types;
template <>
struct pack_types<float> {
  typedef float pack __attribute__((vector_size(pack_bytes)));
  typedef std::int32_t bits __attribute__((vector_size(pack_bytes)));
};
template <>
struct pack_types<double> {
  typedef double pack __attribute__((vector_size(pack_bytes)));
  typedef std::int64_t bits __attribute__((vector_size(pack_bytes)));
};

template <class T, int Lanes>
struct lanes_of {
  typedef T type __attribute__((vector_size(Lanes * sizeof(T))));
};

/// low, high = the lanes of a and b in turn: a0 b0 a1 b1 ... The sequence counts the lanes.
template <class Line, int... I>
inline void interleave(const Line& a, const Line& b, Line& low, Line& high, std::integer_sequence<int, I...>) {
  constexpr int lanes = sizeof...(I);
#if defined(__CUDACC__)  // nvcc's front end does not pass shuffles of dependent width on to the host compiler
  Line* const out[2] = {&low, &high};
  for (int i = 0; i < lanes; ++i) {
    (*out[2 * i / lanes])[2 * i % lanes] = a[i];
    (*out[2 * i / lanes])[2 * i % lanes + 1] = b[i];
  }
#else
  low = __builtin_shufflevector(a, b, (I / 2 + I % 2 * lanes)...);
  high = __builtin_shufflevector(a, b, (lanes / 2 + I / 2 + I % 2 * lanes)...);
#endif
}

}  // namespace detail

/// A register of `width<T>` values of T (float or double); arithmetic and comparisons work by lane.
template <class T>
using pack = typename detail::pack_types<T>::pack;

/// Lanes of a pack.
template <class T>
inline constexpr int64_t width = pack_bytes / static_cast<int>(sizeof(T));

template <class T>
inline pack<T> broadcast(T value) {
  // Minus zero, unlike plus zero, changes no value, -0 included: the compiler emits the broadcast alone.
  return value - pack<T>{};
}

/// Loads a full pack; no alignment needed.
template <class T>
inline pack<T> load(const T* from) {
  pack<T> value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

namespace detail {

template <class T, int... I>
constexpr pack<T> lane_numbers(std::integer_sequence<int, I...>) {
  return pack<T>{T(I)...};
}

}  // namespace detail

/// The value in lanes before `count`, `rest` in the others.
template <class T>
inline pack<T> keep_lanes(pack<T> value, int64_t count, T rest) {
  const pack<T> lane = detail::lane_numbers<T>(std::make_integer_sequence<int, static_cast<int>(width<T>)>{});
  return lane < T(count) ? value : broadcast<T>(rest);
}

/// Loads `count` < width values; the other lanes hold `rest`.
template <class T>
inline pack<T> load_part(const T* from, int64_t count, T rest = T(0)) {
#if defined(__AVX512F__)
  const unsigned mask = (1U << count) - 1;
  if constexpr (sizeof(T) == 4) return _mm512_mask_loadu_ps(broadcast(rest), static_cast<__mmask16>(mask), from);
  if constexpr (sizeof(T) == 8) return _mm512_mask_loadu_pd(broadcast(rest), static_cast<__mmask8>(mask), from);
#else
  pack<T> value = broadcast<T>(rest);
  std::memcpy(&value, from, static_cast<std::size_t>(count) * sizeof(T));
  return value;
#endif
}

template <class T>
inline void store(T* to, pack<T> value) {
  std::memcpy(to, &value, sizeof(value));
}

/// Stores the first `count` < width lanes.
template <class T>
inline void store_part(T* to, pack<T> value, int64_t count) {
#if defined(__AVX512F__)
  const unsigned mask = (1U << count) - 1;
  if constexpr (sizeof(T) == 4) _mm512_mask_storeu_ps(to, static_cast<__mmask16>(mask), value);
  if constexpr (sizeof(T) == 8) _mm512_mask_storeu_pd(to, static_cast<__mmask8>(mask), value);
#else
  std::memcpy(to, &value, static_cast<std::size_t>(count) * sizeof(T));
#endif
}

/// The larger by lane; b where either is NaN.
template <class T>
inline pack<T> maximum(pack<T> a, pack<T> b) {
#if defined(__AVX512F__)
  // GCC 12 does not find these instructions in the comparison, and warns about the plain forms' undefined operand.
  if constexpr (sizeof(T) == 4) return _mm512_maskz_max_ps(0xffff, a, b);
  if constexpr (sizeof(T) == 8) return _mm512_maskz_max_pd(0xff, a, b);
#else
  return a > b ? a : b;
#endif
}

/// The smaller by lane; b where either is NaN.
template <class T>
inline pack<T> minimum(pack<T> a, pack<T> b) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_maskz_min_ps(0xffff, a, b);
  if constexpr (sizeof(T) == 8) return _mm512_maskz_min_pd(0xff, a, b);
#else
  return a < b ? a : b;
#endif
}

namespace detail {

template <class T, int Lanes, class Combine>
inline T fold(typename lanes_of<T, Lanes>::type value, Combine combine) {
  if constexpr (Lanes == 1) {
    return value[0];
  } else {
    typename lanes_of<T, Lanes / 2>::type half[2];
    std::memcpy(&half, &value, sizeof(value));
    return fold<T, Lanes / 2>(combine(half[0], half[1]), combine);
  }
}

}  // namespace detail

/// Sum of the lanes, in a fixed tree order.
template <class T>
inline T sum_lanes(pack<T> value) {
  return detail::fold<T, static_cast<int>(width<T>)>(value, [](auto a, auto b) { return a + b; });
}

/// Largest of the lanes.
template <class T>
inline T max_lanes(pack<T> value) {
  return detail::fold<T, static_cast<int>(width<T>)>(value, [](auto a, auto b) { return a > b ? a : b; });
}

template <class T>
inline pack<T> square_root(pack<T> x) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_maskz_sqrt_ps(0xffff, x);
  if constexpr (sizeof(T) == 8) return _mm512_maskz_sqrt_pd(0xff, x);
#elif defined(__AVX__)
  if constexpr (sizeof(T) == 4) return _mm256_sqrt_ps(x);
  if constexpr (sizeof(T) == 8) return _mm256_sqrt_pd(x);
#elif defined(__SSE2__)
  if constexpr (sizeof(T) == 4) return _mm_sqrt_ps(x);
  if constexpr (sizeof(T) == 8) return _mm_sqrt_pd(x);
#else
  for (int64_t i = 0; i < width<T>; ++i) x[i] = T(__builtin_sqrt(x[i]));
  return x;
#endif
}

namespace detail {

template <class T>
struct exp_constants;
template <>
struct exp_constants<float> {
  // Arguments from `lowest` down give zero, from `highest` up infinity.
#if defined(__AVX512F__)
  static constexpr float lowest = -105.0F, highest = 90.0F;
#else
  static constexpr float lowest = -87.0F, highest = 88.72283F;
#endif
  // Adding this rounds to an integer, which then stands in the low bits of the mantissa.
  static constexpr float rounder = 12582912.0F;
  static constexpr int mantissa_bits = 23;
  static constexpr int degree = 7;
  static constexpr float ln2_high = 0.693145751953125F, ln2_low = 1.42860682030941723212e-6F;
};
template <>
struct exp_constants<double> {
#if defined(__AVX512F__)
  static constexpr double lowest = -746.0, highest = 710.0;
#else
  static constexpr double lowest = -708.0, highest = 709.782712893384;
#endif
  static constexpr double rounder = 6755399441055744.0;
  static constexpr int mantissa_bits = 52;
  static constexpr int degree = 13;
  static constexpr double ln2_high = 0.693145751953125, ln2_low = 1.42860682030941723212e-6;
};

template <class T>
constexpr T inverse_factorial(int n) {
  double product = 1;
  for (int i = 2; i <= n; ++i) product *= i;
  return static_cast<T>(1 / product);
}

template <class T, int Power>
inline pack<T> taylor(pack<T> r) {
  if constexpr (Power == exp_constants<T>::degree) {
    return broadcast<T>(inverse_factorial<T>(Power));
  } else {
    return taylor<T, Power + 1>(r) * r + inverse_factorial<T>(Power);
  }
}

}  // namespace detail

/// e^x by lane, to about one unit in the last place; zero where the result is below the smallest normal number (it may
/// also be a denormal there), infinity where it is too large; NaN stays NaN.
/// x = n ln 2 + r with |r| <= ln 2 / 2; e^r by its Taylor series, whose remainder is below the rounding there.
template <class T>
inline pack<T> exp(pack<T> x) {
  using constants = detail::exp_constants<T>;
  const pack<T> bounded = maximum<T>(broadcast(constants::lowest), minimum<T>(broadcast(constants::highest), x));
  const pack<T> shifted = bounded * T(1.44269504088896340736) + constants::rounder;
  const pack<T> n = shifted - constants::rounder;
  pack<T> r = bounded - n * constants::ln2_high;
  r = r - n * constants::ln2_low;
  const pack<T> e = detail::taylor<T, 0>(r);
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_maskz_scalef_ps(0xffff, e, n);
  if constexpr (sizeof(T) == 8) return _mm512_maskz_scalef_pd(0xff, e, n);
#else
  // 2^(n-1) stays a normal number at both ends; the missing factor two goes on e.
  typename detail::pack_types<T>::bits exponent, one;
  const pack<T> half = broadcast(T(0.5));
  std::memcpy(&exponent, &shifted, sizeof(exponent));
  std::memcpy(&one, &half, sizeof(one));
  exponent = (exponent << constants::mantissa_bits) + one;
  pack<T> scale;
  std::memcpy(&scale, &exponent, sizeof(scale));
  const pack<T> result = (e + e) * scale;
  const pack<T> infinity = broadcast(std::numeric_limits<T>::infinity());
  return x <= constants::lowest ? pack<T>{} : (x >= constants::highest ? infinity : result);
#endif
}

/// Calls f(offset, load, store) for each full pack of n values and once for the rest, with load and store that know how
/// many lanes count; the unused lanes of a partial load are zero.
template <class T, class F>
inline void for_each_pack(int64_t n, F&& f) {
  int64_t i = 0;
  for (; i + width<T> <= n; i += width<T>) {
    f(
        i, [](const T* from) { return load<T>(from); }, [](T* to, pack<T> value) { store<T>(to, value); });
  }
  if (const int64_t rest = n - i; rest > 0) {
    f(
        i, [rest](const T* from) { return load_part<T>(from, rest); },
        [rest](T* to, pack<T> value) { store_part<T>(to, value, rest); });
  }
}

}  // namespace mmr::cpu
