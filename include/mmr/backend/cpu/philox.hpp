// Philox4x32-10, the counter-based generator of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
// A counter and a key give four random words, with no state: any rank can make any part of one global stream.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "mmr/backend/cpu/pack.hpp"

namespace mmr::cpu {

/// Names one stream of random words: word g is lane g % 4 of counter g / 4, with `stream` as the counter's upper half
/// and `seed` as the key.
struct philox_stream {
  std::uint64_t seed, stream;
};

/// The four words of one counter: the plain form, one step a line of the paper.
inline std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0], b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return counter;
}

namespace detail {

/// Random words made at a time.
inline constexpr int philox_words = 64;

typedef std::uint64_t wide_pack __attribute__((vector_size(pack_bytes)));
inline constexpr int wide_lanes = pack_bytes / 8;

/// The 64-bit products of the low halves of the lanes.
inline wide_pack multiply_low_halves(wide_pack a, wide_pack b) {
#if defined(__AVX512F__)
  return reinterpret_cast<wide_pack>(
      _mm512_maskz_mul_epu32(0xff, reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#elif defined(__AVX2__)
  return reinterpret_cast<wide_pack>(_mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
#elif defined(__SSE2__) && !defined(__AVX__)
  return reinterpret_cast<wide_pack>(_mm_mul_epu32(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
#else
  return (a & 0xffffffffU) * (b & 0xffffffffU);
#endif
}

template <std::uint64_t... I>
constexpr wide_pack wide_lane_numbers(std::integer_sequence<std::uint64_t, I...>) {
  return wide_pack{I...};
}

inline void store_interleaved(wide_pack a, wide_pack b, std::uint32_t* out) {
  wide_pack low, high;
  interleave(a, b, low, high, std::make_integer_sequence<int, wide_lanes>{});
  std::memcpy(out, &low, sizeof(low));
  std::memcpy(out + 2 * wide_lanes, &high, sizeof(high));
}

/// The `philox_words` words of the stream that start at word 4 * counter. One counter sits in each 64-bit lane; the
/// upper halves of the lanes hold leftovers that the products ignore.
inline void philox_block(philox_stream from, std::uint64_t counter, std::uint32_t* out) {
  constexpr int groups = philox_words / (4 * wide_lanes);
  wide_pack c[groups][4];
  for (int g = 0; g < groups; ++g) {
    c[g][0] = wide_lane_numbers(std::make_integer_sequence<std::uint64_t, wide_lanes>{}) +
              (counter + static_cast<std::uint64_t>(g * wide_lanes));
    c[g][1] = c[g][0] >> 32;
    c[g][2] = wide_pack{} + from.stream;
    c[g][3] = wide_pack{} + (from.stream >> 32);
  }
  std::uint32_t key[2] = {static_cast<std::uint32_t>(from.seed), static_cast<std::uint32_t>(from.seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    for (int g = 0; g < groups; ++g) {
      const wide_pack a = multiply_low_halves(c[g][0], wide_pack{} + std::uint64_t{0xD2511F53});
      const wide_pack b = multiply_low_halves(c[g][2], wide_pack{} + std::uint64_t{0xCD9E8D57});
      c[g][0] = (b >> 32) ^ c[g][1] ^ (wide_pack{} + key[0]);
      c[g][1] = b;
      c[g][2] = (a >> 32) ^ c[g][3] ^ (wide_pack{} + key[1]);
      c[g][3] = a;
    }
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  for (int g = 0; g < groups; ++g) {
    const wide_pack first = (c[g][0] & 0xffffffffU) | (c[g][1] << 32);
    const wide_pack second = (c[g][2] & 0xffffffffU) | (c[g][3] << 32);
    store_interleaved(first, second, out + g * 4 * wide_lanes);
  }
}

}  // namespace detail

}  // namespace mmr::cpu
