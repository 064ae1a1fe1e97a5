// Element types, as tags that survive the end of the typed declaration.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mmr {

enum class dtype : std::uint8_t { f32, f64, i32 };

/// Bytes of one element.
constexpr std::size_t size_of(dtype t) { return t == dtype::f64 ? 8 : 4; }

constexpr std::string_view name_of(dtype t) {
  switch (t) {
    case dtype::f32: return "float32";
    case dtype::f64: return "float64";
    case dtype::i32: return "int32";
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

/// The tag of a C++ element type: float, double or int32.
template <class T>
inline constexpr dtype dtype_of = dtype_traits<T>::value;

}  // namespace mmr
