// Dropout whose mask is a function of seed, stream and the global index of the element alone: every sharding, and the
// backward pass, finds the same mask without storing it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "mmr/backend/cpu/bias.hpp"
#include "mmr/backend/cpu/box.hpp"
#include "mmr/backend/cpu/philox.hpp"

namespace mmr::cpu {

namespace detail {

/// Decides which elements of one row stay; made once for a kernel call.
template <class T>
struct dropper {
  philox_stream stream;
  std::uint32_t threshold;
  T factor;

  dropper(philox_stream s, double p)
      : stream(s),
        // An element is dropped when its word is below p * 2^32.
        threshold(static_cast<std::uint32_t>(std::min(p * 4294967296.0, 4294967295.0))),
        factor(p < 1 ? static_cast<T>(1 / (1 - p)) : T(0)) {}

  /// Calls f(offset, count, masks) along a row of n elements whose first has the given global index; masks[i] is the
  /// factor of element offset + i, zero or 1/(1-p). `count` is at most philox_words.
  template <class F>
  void for_masks(int64_t global_index, int64_t n, F&& f) const {
    alignas(pack_bytes) std::uint32_t words[philox_words];
    alignas(pack_bytes) T masks[philox_words];
    int64_t at = 0;
    while (at < n) {
      const int64_t skip = (global_index + at) % philox_words;
      const int64_t count = std::min<int64_t>(philox_words - skip, n - at);
      philox_block(stream, static_cast<std::uint64_t>((global_index + at - skip) / 4), words);
      for (int i = 0; i < philox_words; ++i) masks[i] = words[i] >= threshold ? factor : T(0);
      f(at, count, static_cast<const T*>(masks) + skip);
      at += count;
    }
  }
};

}  // namespace detail

/// y = x with each element zeroed with probability p, the others times 1/(1-p); x, y are dense shards of `shard`.
/// Also its own backward: dx = dropout(dy). y may be x. p is in [0, 1].
template <class T>
void dropout(const T* x, T* y, const box& shard, philox_stream stream, double p) {
  const int64_t rows = shard.rows(), n = shard.row_size();
  if (p == 0) return copy(x, y, rows * n);
  const detail::dropper<T> drop(stream, p);
  for (int64_t i = 0; i < rows; ++i) {
    drop.for_masks(shard.global_index(i), n, [&](int64_t at, int64_t count, const T* masks) {
      multiply(x + i * n + at, masks, y + i * n + at, count);
    });
  }
}

/// The same as `dropout`, and mask = 1 where an element stays, 0 where it does not. y may be x.
template <class T>
void stored_dropout_forward(const T* x, T* y, std::uint8_t* mask, const box& shard, philox_stream stream, double p) {
  const int64_t rows = shard.rows(), n = shard.row_size();
  const detail::dropper<T> drop(stream, p);
  for (int64_t i = 0; i < rows; ++i) {
    drop.for_masks(shard.global_index(i), n, [&](int64_t at, int64_t count, const T* masks) {
      multiply(x + i * n + at, masks, y + i * n + at, count);
      for (int64_t j = 0; j < count; ++j) mask[i * n + at + j] = masks[j] != T(0);
    });
  }
}

/// dx = dy * mask / (1 - p); dx may be dy.
template <class T>
void stored_dropout_backward(const T* dy, const std::uint8_t* mask, T* dx, int64_t n, double p) {
  const T factor = static_cast<T>(1 / (1 - p));
  for (int64_t i = 0; i < n; ++i) dx[i] = mask[i] ? dy[i] * factor : T(0);
}

/// y = residual + dropout(x + bias[n]) with n the last axis of the shard; y may be x or residual.
template <class T>
void bias_dropout_add_forward(const T* x, const T* bias, const T* residual, T* y, const box& shard,
                              philox_stream stream, double p) {
  const int64_t rows = shard.rows(), n = shard.row_size();
  const detail::dropper<T> drop(stream, p);
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t row = i * n;
    if (p == 0) {
      map_packs(
          n, y + row, [](auto v, auto b, auto r) { return r + (v + b); }, x + row, bias, residual + row);
      continue;
    }
    drop.for_masks(shard.global_index(i), n, [&](int64_t at, int64_t count, const T* masks) {
      map_packs(
          count, y + row + at, [](auto v, auto b, auto r, auto mask) { return r + (v + b) * mask; }, x + row + at,
          bias + at, residual + row + at, masks);
    });
  }
}

/// dx = dropout(dy), dbias[n] = sums of dx over all rows of the shard; dx may be dy. (The residual's gradient is dy.)
template <class T>
void bias_dropout_add_backward(const T* dy, T* dx, T* dbias, const box& shard, philox_stream stream, double p) {
  const int64_t rows = shard.rows(), n = shard.row_size();
  dropout(dy, dx, shard, stream, p);
  column_sums(static_cast<const T*>(dx), dbias, rows, n);
}

}  // namespace mmr::cpu
