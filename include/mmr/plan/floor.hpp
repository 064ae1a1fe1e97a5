// The zero-redundancy floor: what a device would hold if no byte were kept twice.
#pragma once

#include <mmr/plan/buffers.hpp>

namespace mmr {

/// Bytes a device at the fullest step where every tensor is spread evenly over all p devices, c |T| / p each, and nothing
/// is copied to reshard it. No plan can be below it, and few graphs have one that reaches it.
inline std::int64_t zero_redundancy_floor(const setting& s) {
  live_sum whole(s.live.steps());
  for (tensor_id t = 0; t < s.g.tensors(); ++t) {
    const auto& maker = s.g.op(s.g.tensor_of(t).producer);
    if (maker.writes_back >= 0 && maker.out[0] == t) continue;  // lives in the parameter's buffer
    whole.add(s.live.life[static_cast<std::size_t>(t)], s.element_bytes(t) * s.g.tensor_of(t).type.count());
  }
  const std::int64_t p = s.m.rank_count();
  return (whole.most() + p - 1) / p;
}

}  // namespace mmr
