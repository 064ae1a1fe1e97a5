// Hashes whose values are part of what mmr promises: saved plans are known by them, and first weights and batches are
// drawn with them.
#pragma once

#include <cstdint>
#include <string_view>

namespace mmr::detail {

/// FNV-1a (Fowler, Noll, Vo). The hash of one text is where that of the next may start.
constexpr std::uint64_t hash_of(std::string_view text, std::uint64_t h = 0xcbf29ce484222325u) {
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return h;
}

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014): a bijection whose outputs pass
/// as random.
constexpr std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace mmr::detail
