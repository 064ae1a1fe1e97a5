// What a plan makes again for backward, and what that costs.
#pragma once

#include <mmr/plan/cost.hpp>

#include <vector>

namespace mmr {

struct recomputed {
  int operators = 0;     ///< that run again
  int kept = 0;          ///< operators whose results are kept instead
  double seconds = 0;    ///< modelled, of a step: of the operators and of the resharding of their operands
};

inline recomputed recomputed_in(setting& s, const std::vector<strategy>& chosen) {
  recomputed out;
  for (auto o : s.live.schedule) {
    const auto& op = s.g.op(o);
    const auto& mine = chosen[static_cast<std::size_t>(o)];
    if (op.again < 0 || !op.rules) continue;
    out.kept += mine.kind == presence::keep;
    if (!mine.runs()) continue;
    ++out.operators;
    double once = op_seconds(s, o, mine);
    for (std::size_t i = 0; i < op.in.size(); ++i) {
      const auto t = op.in[i];
      const auto from = s.made_placement(t, chosen[static_cast<std::size_t>(s.g.tensor_of(t).producer)]);
      once += s.router_of(t).cost(from, operand_placement(op, i, mine)).seconds;
    }
    out.seconds += repetitions(s.g, o) * once;
  }
  return out;
}

}  // namespace mmr
