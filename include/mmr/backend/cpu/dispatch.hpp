// Rows of tokens copied to the slots of experts and back. A rank may hold any part of tokens, features, experts and
// slots: slots name tokens by their position in the whole group.
#pragma once

#include <cstdint>

#include "mmr/backend/cpu/elementwise.hpp"
#include "mmr/backend/cpu/rows.hpp"

namespace mmr::cpu {

struct dispatch_shape {
  std::int64_t groups, position_begin, positions, features, experts, slots;

  /// Calls f(row of the token or -1, row of the slot in (expert, group, slot), slot in (group, expert, slot)).
  template <class F>
  void for_each_slot(const std::int32_t* tokens, F f) const {
    for (std::int64_t e = 0; e < experts; ++e)
      for (std::int64_t g = 0; g < groups; ++g)
        for (std::int64_t c = 0; c < slots; ++c) {
          const std::int64_t at = (g * experts + e) * slots + c, t = tokens[at] - position_begin;
          const bool here = tokens[at] >= 0 && t >= 0 && t < positions;
          f(here ? g * positions + t : -1, (e * groups + g) * slots + c, at);
        }
  }
};

/// y[expert, group, slot, feature] = the row of x[group, position, feature] in that slot, or zero.
template <class T>
void dispatch_forward(const T* x, const std::int32_t* tokens, T* y, const dispatch_shape& s) {
  s.for_each_slot(tokens, [&](std::int64_t token, std::int64_t row, std::int64_t) {
    if (token < 0)
      fill(T(0), y + row * s.features, s.features);
    else
      copy(x + token * s.features, y + row * s.features, s.features);
  });
}

/// x[group, position, feature] = sums of the token's rows of y[expert, group, slot, feature], in the order of experts.
template <class T>
void collect_rows(const T* y, const std::int32_t* tokens, T* x, const dispatch_shape& s) {
  fill(T(0), x, s.groups * s.positions * s.features);
  s.for_each_slot(tokens, [&](std::int64_t token, std::int64_t row, std::int64_t) {
    if (token >= 0) add(x + token * s.features, y + row * s.features, x + token * s.features, s.features);
  });
}

/// The same, each row times its gate[group, expert, slot].
template <class T>
void combine_forward(const T* z, const T* gates, const std::int32_t* tokens, T* x, const dispatch_shape& s) {
  fill(T(0), x, s.groups * s.positions * s.features);
  s.for_each_slot(tokens, [&](std::int64_t token, std::int64_t row, std::int64_t slot) {
    if (token >= 0) axpy(gates[slot], z + row * s.features, x + token * s.features, s.features);
  });
}

/// dz = gate * dx of the token, dgates = sum of z * dx; dz may be z.
template <class T>
void combine_backward(const T* dx, const T* z, const T* gates, const std::int32_t* tokens, T* dz, T* dgates,
                      const dispatch_shape& s) {
  s.for_each_slot(tokens, [&](std::int64_t token, std::int64_t row, std::int64_t slot) {
    if (token < 0) {
      dgates[slot] = 0;
      return fill(T(0), dz + row * s.features, s.features);
    }
    dgates[slot] = detail::sum_of<T>(
        s.features, [](pack<T> a, pack<T> b) { return a * b; }, dx + token * s.features, z + row * s.features);
    scale(gates[slot], dx + token * s.features, dz + row * s.features, s.features);
  });
}

}  // namespace mmr::cpu
