// How the bindings see shards: as a matrix whose columns are the trailing dimensions.
#pragma once

#include <mmr/op/kernel.hpp>

namespace mmr::cpu {

/// A dense shard as rows x cols, with the last `trailing` dimensions in the columns.
struct split {
  std::int64_t rows = 1, cols = 1;

  explicit split(const tensor_view& v, std::size_t trailing = 1) {
    for (std::size_t d = 0; d < v.sizes.size(); ++d) (d + trailing < v.sizes.size() ? rows : cols) *= v.sizes[d];
  }
};

}  // namespace mmr::cpu
