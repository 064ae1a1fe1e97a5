// First values of parameters: each element is a function of (seed, parameter name, global index), so that every sharding
// starts from the same model.
#pragma once

#include <mmr/graph/graph.hpp>
#include <mmr/mesh/placement.hpp>
#include <mmr/tensor/hash.hpp>

#include <cmath>
#include <numbers>
#include <span>

namespace mmr {

namespace detail {

/// Standard normal number of a key and an index (Box and Muller, 1958).
inline double normal_at(std::uint64_t key, std::uint64_t index) {
  const auto unit = [](std::uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53; };
  const double u = unit(mixed(key ^ mixed(2 * index))), v = unit(mixed(key ^ mixed(2 * index + 1)));
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

/// Calls f(local index, global index) for every element of a box, in row-major order.
template <class F>
void for_each_in_box(std::span<const interval> box, std::span<const std::int64_t> extents, F f) {
  std::int64_t count = 1;
  for (const auto& i : box) count *= i.size;
  for (std::int64_t n = 0; n < count; ++n) {
    std::int64_t rest = n, global = 0, scale = 1;
    for (std::size_t d = box.size(); d-- > 0;) {
      global += scale * (box[d].begin + rest % box[d].size);
      rest /= box[d].size;
      scale *= extents[d];
    }
    f(n, global);
  }
}

}  // namespace detail

/// Fills this rank's part of a parameter with its first values.
template <class T>
void fill_initial(const tensor_info& info, std::span<const interval> box, std::uint64_t seed, T* data) {
  std::vector<std::int64_t> extents;
  for (const auto& d : info.type.dims) extents.push_back(d.extent);
  const auto key = detail::mixed(seed ^ detail::hash_of(info.name));
  detail::for_each_in_box(box, extents, [&](std::int64_t n, std::int64_t global) {
    data[n] = info.start.kind == initial::law::normal
                  ? static_cast<T>(info.start.deviation * detail::normal_at(key, static_cast<std::uint64_t>(global)))
                  : static_cast<T>(info.start.kind == initial::law::one ? 1 : 0);
  });
}

}  // namespace mmr
