// Top-k gating with capacities, group by group: the order of tokens decides who finds a slot, so a group is one
// thread's.
#pragma once

#include <algorithm>
#include <cstdint>

#include "mmr/backend/cpu/elementwise.hpp"

namespace mmr::cpu {

/// Extents of one routing problem; a rank may hold some of the slots, and some of the positions in backward.
struct routing_shape {
  std::int64_t groups, positions, experts;
  std::int64_t slot_begin, slots, capacity;  ///< slots [slot_begin, slot_begin + slots) of `capacity`
  std::int64_t position_begin = 0;
  int top_k = 1;
};

namespace detail {

/// chosen[top_k] = the experts of greatest probability, the first ones among equals.
template <class T>
void choose_experts(const T* probs, std::int64_t experts, int top_k, std::int32_t* chosen) {
  for (int j = 0; j < top_k; ++j) {
    std::int32_t best = -1;
    for (std::int32_t e = 0; e < experts; ++e) {
      if (std::find(chosen, chosen + j, e) != chosen + j) continue;
      if (best < 0 || probs[e] > probs[best]) best = e;
    }
    chosen[j] = best;
  }
}

/// Sum of the probabilities that share the gates of a token; 1 where a gate is the probability itself.
template <class T>
T gate_divisor(const T* probs, const std::int32_t* chosen, int top_k) {
  if (top_k == 1) return T(1);
  T sum = 0;
  for (int j = 0; j < top_k; ++j) sum += probs[chosen[j]];
  return sum;
}

}  // namespace detail

/// Numbers of 32 bits that routing needs: the choices of a group, and how full its experts are.
inline std::int64_t route_scratch(const routing_shape& s) {
  return s.positions * s.top_k + s.experts;
}

/// gates, slots[groups, experts, slots] and load[groups, experts] from probs[groups, positions, experts]. The load is
/// left zero by all but the rank with the first slots, since loads are summed over ranks.
template <class T>
void route_forward(const T* probs, T* gates, std::int32_t* slots, T* load, const routing_shape& s,
                   std::int32_t* scratch) {
  const bool counts_load = s.slot_begin == 0 && s.slots > 0;
  std::int32_t *chosen = scratch, *taken = scratch + s.positions * s.top_k;
  for (std::int64_t g = 0; g < s.groups; ++g) {
    const T* p = probs + g * s.positions * s.experts;
    const std::int64_t first = g * s.experts;
    fill(T(0), gates + first * s.slots, s.experts * s.slots);
    fill(std::int32_t(-1), slots + first * s.slots, s.experts * s.slots);
    fill(T(0), load + first, s.experts);
    fill(std::int32_t(0), taken, s.experts);
    for (std::int64_t t = 0; t < s.positions; ++t) {
      std::int32_t* mine = chosen + t * s.top_k;
      detail::choose_experts(p + t * s.experts, s.experts, s.top_k, mine);
      if (counts_load) load[first + mine[0]] += T(1);
    }
    scale(T(1) / static_cast<T>(std::max<std::int64_t>(1, s.positions)), load + first, load + first, s.experts);
    for (int j = 0; j < s.top_k; ++j)
      for (std::int64_t t = 0; t < s.positions; ++t) {
        const std::int32_t* mine = chosen + t * s.top_k;
        const std::int64_t slot = taken[mine[j]]++;
        if (slot >= s.capacity || slot < s.slot_begin || slot >= s.slot_begin + s.slots) continue;
        const std::int64_t at = (first + mine[j]) * s.slots + slot - s.slot_begin;
        slots[at] = static_cast<std::int32_t>(t);
        gates[at] = p[t * s.experts + mine[j]] / detail::gate_divisor(p + t * s.experts, mine, s.top_k);
      }
  }
}

/// dprobs[groups, positions, experts] from dgates[groups, experts, slots]. With gate q = p / sum of the chosen p, the
/// gradient of a chosen p is (dq - sum over the chosen of dq q) / that sum; a chosen expert without a slot has dq = 0.
template <class T>
void route_backward(const T* dgates, const T* probs, const std::int32_t* slots, T* dprobs, const routing_shape& s,
                    std::int32_t* chosen) {
  fill(T(0), dprobs, s.groups * s.positions * s.experts);
  for (std::int64_t g = 0; g < s.groups; ++g) {
    const std::int64_t from = g * s.positions * s.experts;
    for (std::int64_t e = 0; e < s.experts; ++e)
      for (std::int64_t c = 0; c < s.slots; ++c) {
        const std::int64_t at = (g * s.experts + e) * s.slots + c, t = slots[at] - s.position_begin;
        if (slots[at] >= 0 && t >= 0 && t < s.positions) dprobs[from + t * s.experts + e] = dgates[at];
      }
    if (s.top_k == 1) continue;
    for (std::int64_t t = 0; t < s.positions; ++t) {
      const T* p = probs + from + t * s.experts;
      T* d = dprobs + from + t * s.experts;
      detail::choose_experts(p, s.experts, s.top_k, chosen);
      const T sum = detail::gate_divisor(p, chosen, s.top_k);
      T along = 0;
      for (int j = 0; j < s.top_k; ++j) along += d[chosen[j]] * p[chosen[j]];
      for (int j = 0; j < s.top_k; ++j) d[chosen[j]] = (d[chosen[j]] - along / sum) / sum;
    }
  }
}

}  // namespace mmr::cpu
