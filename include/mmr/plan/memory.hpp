// Bytes of a rank under given strategies: by class, redundant, at the peak, and the live bytes of every step.
#pragma once

#include <mmr/plan/arena.hpp>

namespace mmr {

/// Bytes that one rank holds. A class counts at the step where most of it is live (copies made by resharding and
/// workspaces apart, which only the peak includes).
struct rank_memory {
  std::int64_t parameters = 0, gradients = 0, optimizer = 0, activations = 0;
  /// Redundant bytes of the tensors that are stored: parameters, optimizer state, accumulated gradients, and activations
  /// saved for backward. c |T| (r - 1) / p of each, with replication r = p / shards (Shi et al., FITEE 2025).
  std::int64_t redundant = 0;
  std::int64_t peak_live = 0;
  int peak_step = 0;
  std::int64_t arena = 0;
};

/// Whether a tensor outlives the step that makes it for a later pass: it is what replication makes redundant. What may be
/// kept or made again is stored where `chosen`, the strategies of all operators, keeps it; without them, where it may be.
inline bool is_stored(const setting& s, tensor_id t, const std::vector<strategy>* chosen = nullptr) {
  const auto& info = s.g.tensor_of(t);
  if (info.kind == tensor_class::input) return false;
  if (info.persistent || s.g.op(info.producer).accumulates) return true;
  if (info.kind == tensor_class::gradient)
    return s.g.op(info.producer).rules->name() == "gradient";
  if (!info.forward) return false;
  if (const auto by = s.live.keeper[static_cast<std::size_t>(t)]; by >= 0)
    if (!chosen || (*chosen)[static_cast<std::size_t>(s.g.tensor_of(by).producer)].kind == presence::keep) return true;
  for (auto [e, end] = boost::out_edges(static_cast<std::size_t>(info.producer), s.g.dag()); e != end; ++e) {
    const auto user = static_cast<op_id>(boost::target(*e, s.g.dag()));
    const auto& op = s.g.op(user);
    if (s.g.dag()[*e].tensor == t && !op.out.empty() && !s.g.tensor_of(op.out[0]).forward) return true;
  }
  return false;
}

/// c |T| (r - 1) / p of a stored tensor on a rank; a local part that is larger than its even share counts whole.
inline double redundant_bytes(const setting& s, tensor_id t, const placement& p, int rank) {
  const double whole = static_cast<double>(s.element_bytes(t)) *
                       static_cast<double>(s.g.tensor_of(t).type.count());
  const double share = whole / s.m.rank_count();
  return std::max(0.0, static_cast<double>(s.bytes(t, p, rank)) - share);
}

inline rank_memory measure(setting& s, const std::vector<strategy>& chosen, int rank, const program& run) {
  rank_memory out;
  const auto live = run.live_bytes();
  for (std::size_t t = 0; t < live.size(); ++t)
    if (live[t] > out.peak_live) out.peak_live = live[t], out.peak_step = static_cast<int>(t);
  out.arena = lay_out(run).bytes;
  std::vector<live_sum> by_class(5, live_sum(run.steps));
  double redundant = 0;
  for (tensor_id t = 0; t < s.g.tensors(); ++t) {
    const auto& info = s.g.tensor_of(t);
    const auto& maker = s.g.op(info.producer);
    if (maker.writes_back >= 0 && maker.out[0] == t) continue;
    const auto& made = chosen[static_cast<std::size_t>(info.producer)];
    if (!is_there(maker, static_cast<std::size_t>(info.result), made)) continue;
    const auto place = s.made_placement(t, made);
    const auto& life = made.runs() ? s.live.life : s.live.kept;
    by_class[static_cast<std::size_t>(info.kind)].add(life[static_cast<std::size_t>(t)], s.bytes(t, place, rank));
    if (is_stored(s, t, &chosen)) redundant += redundant_bytes(s, t, place, rank);
  }
  const auto most = [&](tensor_class c) { return by_class[static_cast<std::size_t>(c)].most(); };
  out.parameters = most(tensor_class::parameter);
  out.gradients = most(tensor_class::gradient);
  out.optimizer = most(tensor_class::optimizer);
  out.activations = most(tensor_class::activation);
  out.redundant = static_cast<std::int64_t>(redundant + 0.5);
  return out;
}

inline rank_memory measure(setting& s, const std::vector<strategy>& chosen, int rank) {
  return measure(s, chosen, rank, program(s, chosen, rank));
}

}  // namespace mmr
