// Seconds of an operator on one device.
#pragma once

#include <mmr/plan/buffers.hpp>

namespace mmr {

/// max(flops / rate, bytes / bandwidth) of rank 0's share, which is a largest one (roofline: Williams et al., 2009).
inline double op_seconds(const setting& s, op_id o, const strategy& chosen) {
  const auto& op = s.g.op(o);
  if (op.when == phase::source || !chosen.runs()) return 0;
  std::vector<std::int64_t> sizes;
  for (const auto& r : local_ranges(op, s.m, chosen, 0)) sizes.push_back(r.size);
  double bytes = 0;
  for (std::size_t i = 0; i < op.in.size(); ++i)
    bytes += static_cast<double>(s.bytes(op.in[i], operand_placement(op, i, chosen), 0));
  for (const auto* made : {&op.out, &op.state})
    for (auto t : *made) bytes += static_cast<double>(s.bytes(t, s.made_placement(t, chosen), 0));
  const auto& d = s.m.device;
  const double rate = (op.rules->matrix() ? d.matrix : d.other).of(op.element);
  return d.launch + std::max(op.rules->flops(sizes) / rate, bytes / d.memory_bytes);
}

/// How often an operator runs in a step.
inline int repetitions(const graph& g, op_id o) { return g.op(o).when == phase::microbatch ? g.microbatches : 1; }

}  // namespace mmr
