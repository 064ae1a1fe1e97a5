// Numbers with units, as people write and read them. Bytes are decimal: 1 GB is 10^9 bytes, as in the papers on memory.
#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <mmr/tensor/error.hpp>
#include <string>
#include <string_view>

namespace mmr {

namespace detail {

/// Three significant digits, but whole numbers below 1000 as they are.
inline std::string three_digits(double x) {
  std::array<char, 32> text{};
  const double size = std::abs(x);
  const int decimals = x == std::floor(x) && size < 1000 ? 0 : size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
  std::snprintf(text.data(), text.size(), "%.*f", decimals, x);
  return text.data();
}

}  // namespace detail

/// 0 B, 512 B, 1.54 kB, 31.4 GB.
inline std::string format_bytes(double bytes) {
  constexpr std::array<std::string_view, 6> units{"B", "kB", "MB", "GB", "TB", "PB"};
  std::size_t unit = 0;
  while (std::abs(bytes) >= 999.5 && unit + 1 < units.size()) {
    bytes /= 1000;
    ++unit;
  }
  return detail::three_digits(bytes) + " " + std::string(units[unit]);
}

/// 0 s, 250 ns, 1.50 ms, 12.3 s, 2 min 05 s, 3 h 20 min.
inline std::string format_seconds(double seconds) {
  if (!std::isfinite(seconds)) return "unknown";
  const double size = std::abs(seconds);
  if (size == 0) return "0 s";
  if (size < 999.5e-9) return detail::three_digits(seconds * 1e9) + " ns";
  if (size < 999.5e-6) return detail::three_digits(seconds * 1e6) + " us";
  if (size < 999.5e-3) return detail::three_digits(seconds * 1e3) + " ms";
  if (size < 99.5) return detail::three_digits(seconds) + " s";
  std::array<char, 48> text{};
  const auto whole = std::llround(std::min(size, 1e15));
  const char* sign = seconds < 0 ? "-" : "";
  if (whole < 3600) {
    std::snprintf(text.data(), text.size(), "%s%lld min %02lld s", sign, whole / 60, whole % 60);
  } else {
    std::snprintf(text.data(), text.size(), "%s%lld h %02lld min", sign, whole / 3600, whole % 3600 / 60);
  }
  return text.data();
}

/// Bytes from "1500000", "1.5MB", "800 MiB" or "2G". Throws for anything else, and for less than one byte.
inline std::uint64_t parse_bytes(std::string_view text) {
  const auto refuse = [text] { fail("'", text, "' is no number of bytes: write for example 800MB, 1.5GB or 512MiB"); };
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || !(value > 0)) refuse();
  std::string unit;
  for (const char c : std::string_view(end, static_cast<std::size_t>(text.data() + text.size() - end))) {
    if (c != ' ') unit += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  double factor = 1;
  if (!unit.empty() && unit != "b") {
    const auto power = std::string_view("kmgtp").find(unit[0]);
    const std::string_view rest = std::string_view(unit).substr(1);
    if (power == std::string_view::npos || (rest != "" && rest != "b" && rest != "i" && rest != "ib")) refuse();
    factor = std::pow(rest.starts_with('i') ? 1024.0 : 1000.0, static_cast<double>(power + 1));
  }
  const double bytes = value * factor;
  if (!(bytes >= 1) || std::isinf(bytes)) refuse();
  if (bytes > 9e18) fail("'", text, "' is more than can be counted: give at most 9e18 bytes");
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace mmr
