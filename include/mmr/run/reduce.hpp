// Reductions over ranks, always in the order 0, 1, 2, ...: floating-point sums then have the same bits on every rank,
// in every run and under every communicator, so losses can be compared exactly.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <mmr/run/block.hpp>
#include <mmr/tensor/dtype.hpp>
#include <mmr/tensor/reduction.hpp>

namespace mmr {

namespace detail {

struct add {
  template <class T>
  constexpr T operator()(T a, T b) const {
    return static_cast<T>(a + b);
  }
};

/// Unlike std::max this keeps a NaN from either side: a maximum over ranks must not hide that one of them failed.
struct larger {
  template <class T>
  constexpr T operator()(T a, T b) const {
    return b > a || b != b ? b : a;
  }
};

/// What one rank gives to a reduction: the elements of `where` in `data`, from number `first` on.
struct contribution {
  const void* data = nullptr;
  block where;
  std::int64_t first = 0;
};

/// dst[i] = part(0)[i] op part(1)[i] op ... in that order, for `count` elements. dst may be one of the dense parts.
template <class Part>
void reduce_in_rank_order(int ranks, Part&& part, std::int64_t count, void* dst, dtype type, reduction how) {
  with_type(type, [&]<class T>(T) {
    const auto run = [&]<class Op>(Op op) {
      // The sum of a tile is finished in cache before any of it is written, as dst may be one of the parts.
      constexpr std::int64_t tile = 1024;
      T sum[tile];
      for (std::int64_t start = 0; start < count; start += tile) {
        const std::int64_t n = std::min(tile, count - start);
        for (int k = 0; k < ranks; ++k) {
          const contribution from = part(k);
          const T* source = static_cast<const T*>(from.data);
          for_each_run(from.where, from.first + start, n,
                       [&](std::int64_t take, std::int64_t done, std::int64_t length) {
                         const T* read = source + take;
                         T* write = sum + done;
                         if (k == 0) {
                           for (std::int64_t i = 0; i < length; ++i) write[i] = read[i];
                         } else {
                           for (std::int64_t i = 0; i < length; ++i) write[i] = op(write[i], read[i]);
                         }
                       });
        }
        std::memcpy(static_cast<T*>(dst) + start, sum, static_cast<std::size_t>(n) * sizeof(T));
      }
    };
    if (how == reduction::sum) {
      run(add{});
    } else {
      run(larger{});
    }
  });
}

/// Where rank k's part of an all-reduce of `count` elements over n ranks begins; the part ends where that of k + 1
/// begins.
constexpr std::int64_t share_begin(std::int64_t count, int n, int k) {
  return count / n * k + std::min<std::int64_t>(count % n, k);
}

constexpr block share_of(std::int64_t count, int n, int k) {
  const std::int64_t begin = share_begin(count, n, k);
  return dense_block(begin, share_begin(count, n, k + 1) - begin);
}

}  // namespace detail
}  // namespace mmr
