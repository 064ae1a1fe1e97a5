// For inputs that the host holds whole: cuts out the part that a rank computes on.
#pragma once

#include <mmr/graph/graph.hpp>
#include <mmr/io/box_runs.hpp>
#include <mmr/mesh/placement.hpp>

#include <algorithm>
#include <span>
#include <vector>

namespace mmr {

/// Copies the box of an input out of `whole`, the dense row-major tensor with all its elements, as an input_filler must:
///
///   const auto fill = [&](const mmr::tensor_info& input, std::span<const mmr::interval> box, const mmr::step_info&, void* to) {
///     mmr::copy_part(input, box, std::span<const float>(points), to);
///   };
///
/// Fails where `whole` has another element type or count than the input.
template <class T>
void copy_part(const tensor_info& input, std::span<const interval> box, std::span<const T> whole, void* to) {
  if (input.type.element != dtype_of<T>)
    fail("input '", input.name, "' is ", name_of(input.type.element), " and was given ", name_of(dtype_of<T>));
  if (input.type.count() != static_cast<std::int64_t>(whole.size()))
    fail("input '", input.name, "' has ", input.type.count(), " elements and was given ", whole.size(),
         "; give the whole tensor, of which each rank takes its part");
  std::vector<std::int64_t> shape, start, extent;
  for (const auto& d : input.type.dims) shape.push_back(d.extent);
  for (const auto& i : box) start.push_back(i.begin), extent.push_back(i.size);
  detail::for_each_run(shape, start, extent, [&](std::int64_t offset, std::int64_t position, std::int64_t count) {
    std::copy_n(whole.data() + offset, count, static_cast<T*>(to) + position);
  });
}

}  // namespace mmr
