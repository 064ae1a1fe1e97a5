// How contributions of several devices combine: named by operators, carried out by communicators.
#pragma once

#include <cstdint>
#include <string_view>

namespace mmr {

/// How contributions of several devices combine into one tensor.
enum class reduction : std::uint8_t { sum, max };

constexpr std::string_view name_of(reduction r) {
  return r == reduction::sum ? "sum" : "max";
}

}  // namespace mmr
