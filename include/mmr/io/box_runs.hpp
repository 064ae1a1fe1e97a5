// A box (a shard) of a row-major tensor as the contiguous runs of elements that it is made of, so that a rank reads and
// writes its own part of a file and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mmr::detail {

/// Calls `run(offset, position, count)` for every contiguous run of the box that begins at `start` and has `extent`
/// elements along each axis of a tensor of `shape`: `offset` counts elements in the tensor, `position` in the box, and
/// both advance by `count`. Needs 0 ≤ start and start + extent ≤ shape.
///
///     shape [4, 6], start [1, 2], extent [2, 3]  →  run(8, 0, 3), run(14, 3, 3)
template <class Run>
void for_each_run(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& start,
                  const std::vector<std::int64_t>& extent, Run run) {
  std::vector<std::int64_t> stride(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;) stride[d - 1] = stride[d] * shape[d];
  std::int64_t first = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (extent[d] == 0) return;
    first += start[d] * stride[d];
  }

  // Trailing axes that the box takes whole belong to one run, and so does the axis before them.
  std::size_t outer = shape.size();
  std::int64_t count = 1;
  while (outer > 0) {
    --outer;
    count *= extent[outer];
    if (extent[outer] != shape[outer]) break;
  }

  std::vector<std::int64_t> at(outer, 0);
  for (std::int64_t position = 0;; position += count) {
    std::int64_t offset = first;
    for (std::size_t d = 0; d < outer; ++d) offset += at[d] * stride[d];
    run(offset, position, count);
    std::size_t d = outer;
    while (d > 0 && ++at[d - 1] == extent[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace mmr::detail
