// Element types, as tags that survive the end of the typed declaration.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mmr {

enum class dtype : std::uint8_t { f32, f64, i32, bf16, u8 };

/// bfloat16: the upper half of a float. Storage only: models of it can be declared and planned for devices that compute in
/// it; CPU ranks have no kernels for it.
struct bf16 {
  std::uint16_t bits = 0;
};

/// Bytes of one element.
constexpr std::size_t size_of(dtype t) {
  switch (t) {
    case dtype::f64: return 8;
    case dtype::bf16: return 2;
    case dtype::u8: return 1;
    case dtype::f32:
    case dtype::i32: break;
  }
  return 4;
}

/// Whether its elements are numbers to compute with, and not indices or masks.
constexpr bool is_floating(dtype t) { return t == dtype::f32 || t == dtype::f64 || t == dtype::bf16; }

constexpr std::string_view name_of(dtype t) {
  switch (t) {
    case dtype::f32: return "float32";
    case dtype::f64: return "float64";
    case dtype::i32: return "int32";
    case dtype::bf16: return "bfloat16";
    case dtype::u8: return "uint8";
  }
  return "unknown";
}

template <class T>
struct dtype_traits;
template <>
struct dtype_traits<float> {
  static constexpr dtype value = dtype::f32;
};
template <>
struct dtype_traits<double> {
  static constexpr dtype value = dtype::f64;
};
template <>
struct dtype_traits<std::int32_t> {
  static constexpr dtype value = dtype::i32;
};
template <>
struct dtype_traits<bf16> {
  static constexpr dtype value = dtype::bf16;
};
template <>
struct dtype_traits<std::uint8_t> {
  static constexpr dtype value = dtype::u8;
};

/// The tag of a C++ element type: float, double, int32, bf16 or uint8.
template <class T>
inline constexpr dtype dtype_of = dtype_traits<T>::value;

}  // namespace mmr
