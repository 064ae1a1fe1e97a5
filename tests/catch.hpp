// Catch2 under one name: version 2 is one header, version 3 is many, and a few names differ.
#pragma once

#include <string>

#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;  // version 2 brings it of itself
/// Matches a text that contains `part`.
inline auto contains(const std::string& part) {
  return Catch::Matchers::ContainsSubstring(part);
}
#else
#include <catch2/catch.hpp>
inline auto contains(const std::string& part) {
  return Catch::Matchers::Contains(part);
}
#endif
