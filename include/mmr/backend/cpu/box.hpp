// The part of a global tensor that one rank holds, for kernels whose result depends on where an element sits in the
// whole.
#pragma once

#include <cstdint>

namespace mmr::cpu {

/// A dense local shard of a row-major global tensor: along axis i it holds begin[i] .. begin[i] + size[i] of global[i].
/// rank is 1 to 8.
struct box {
  int rank;
  std::int64_t size[8], begin[8], global[8];

  /// Elements of the shard along the last axis.
  std::int64_t row_size() const { return size[rank - 1]; }

  /// Rows of the shard: the product of all sizes but the last.
  std::int64_t rows() const {
    std::int64_t product = 1;
    for (int i = 0; i + 1 < rank; ++i) product *= size[i];
    return product;
  }

  /// Global flat index of the first element of a local row.
  std::int64_t global_index(std::int64_t row) const {
    std::int64_t index = begin[rank - 1], stride = global[rank - 1];
    for (int i = rank - 2; i >= 0; --i) {
      index += (begin[i] + row % size[i]) * stride;
      row /= size[i];
      stride *= global[i];
    }
    return index;
  }
};

}  // namespace mmr::cpu
