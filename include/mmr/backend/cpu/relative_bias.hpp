// Adds a bias by head and distance to attention scores, and sums its gradient.
#pragma once

#include <cstdint>

#include "mmr/backend/cpu/elementwise.hpp"

namespace mmr::cpu {

struct score_shape {
  std::int64_t batch, query_begin, queries, heads, key_begin, keys;

  /// Calls f(row of (batch, query, head), head) for all rows of one query.
  template <class F>
  void for_each_row(std::int64_t query, F f) const {
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t h = 0; h < heads; ++h) f((b * queries + query) * heads + h, h);
  }
};

/// y[batch, query, head, key] = x + table[bucket_of(key - query), head]; y may be x. `row` holds `keys` numbers.
template <class T, class Buckets>
void relative_bias_forward(const T* x, const T* table, T* y, const score_shape& s, const Buckets& bucket_of,
                           std::int32_t* row) {
  for (std::int64_t q = 0; q < s.queries; ++q) {
    for (std::int64_t k = 0; k < s.keys; ++k)
      row[k] = static_cast<std::int32_t>(bucket_of(s.key_begin + k - s.query_begin - q));
    s.for_each_row(q, [&](std::int64_t r, std::int64_t h) {
      for (std::int64_t k = 0; k < s.keys; ++k) y[r * s.keys + k] = x[r * s.keys + k] + table[row[k] * s.heads + h];
    });
  }
}

/// dtable[bucket, head] = sums of dy, for buckets [first, first + count).
template <class T, class Buckets>
void relative_bias_backward(const T* dy, T* dtable, const score_shape& s, const Buckets& bucket_of, std::int64_t first,
                            std::int64_t count, std::int32_t* row) {
  fill(T(0), dtable, count * s.heads);
  for (std::int64_t q = 0; q < s.queries; ++q) {
    for (std::int64_t k = 0; k < s.keys; ++k)
      row[k] = static_cast<std::int32_t>(bucket_of(s.key_begin + k - s.query_begin - q) - first);
    s.for_each_row(q, [&](std::int64_t r, std::int64_t h) {
      for (std::int64_t k = 0; k < s.keys; ++k)
        if (row[k] >= 0 && row[k] < count) dtable[row[k] * s.heads + h] += dy[r * s.keys + k];
    });
  }
}

}  // namespace mmr::cpu
