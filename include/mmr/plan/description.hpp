// A plan described so that nothing else is needed to check it: mesh, operators, tensors, strategies and routes, and
// what mmr claims of them, down to the offset of every buffer. bench/evaluate_plan.py reads it, and shares no code with
// mmr.
#pragma once

#include <algorithm>
#include <filesystem>
#include <mmr/plan/json.hpp>
#include <mmr/plan/mesh_json.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace mmr {

inline constexpr int description_format_version = 1;

namespace detail {

constexpr std::string_view name_of(phase p) {
  constexpr std::string_view names[] = {"source", "microbatch", "update"};
  return names[static_cast<std::size_t>(p)];
}
constexpr std::string_view name_of(presence p) {
  constexpr std::string_view names[] = {"run", "keep", "absent"};
  return names[static_cast<std::size_t>(p)];
}

/// Which ranks are described in full: the first, the fullest and the last; of a few ranks all.
inline std::vector<int> described_ranks(const plan& p) {
  const auto count = static_cast<int>(p.per_rank.size());
  std::vector<int> ranks{0, static_cast<int>(&fullest_rank(p) - p.per_rank.data()), count - 1};
  if (count <= 4)
    for (int r = 0; r < count; ++r) ranks.push_back(r);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

/// [[tensor, loop of dimension 0, loop of dimension 1, ...], ...].
inline nlohmann::ordered_json accesses_json(const std::vector<tensor_id>& tensors,
                                            const std::vector<access>& accesses) {
  auto all = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    nlohmann::ordered_json one{tensors[i]};
    for (int l : accesses[i].loops) one.push_back(l);
    all.push_back(std::move(one));
  }
  return all;
}

/// [["all-gather", mesh axis, dimension that is split after it, or -1], ...].
inline nlohmann::ordered_json route_json(const transfer& t) {
  auto steps = nlohmann::ordered_json::array();
  if (t.path)
    for (const auto& s : t.path->steps) steps.push_back({name_of(s.kind), s.axis, s.to_dim});
  return steps;
}

inline nlohmann::ordered_json tensor_json(const setting& s, tensor_id t) {
  const auto& info = s.g.tensor_of(t);
  const auto& maker = s.g.op(info.producer);
  const auto r = static_cast<std::size_t>(info.result);
  const bool state = r < maker.state.size() && maker.state[r] == t;
  nlohmann::ordered_json j{{"name", info.name},
                           {"class", name_of(info.kind)},
                           {"element", name_of(info.type.element)},
                           {"element_bytes", s.element_bytes(t)},
                           {"extents", s.extents[static_cast<std::size_t>(t)]},
                           {"axes", axes_of(info.type)},
                           {"made_by", info.producer}};
  j[state ? "state" : "result"] = info.result;
  if (info.persistent) j["persistent"] = true;
  if (info.forward) j["forward"] = true;
  return j;
}

/// `run` is what the instruction of this operator moves; null for sources.
inline nlohmann::ordered_json operator_json(const setting& s, const plan& p, op_id o, const instruction* run) {
  const auto& op = s.g.op(o);
  const auto& chosen = p.strategies[static_cast<std::size_t>(o)];
  nlohmann::ordered_json j{{"name", op.name}, {"phase", name_of(op.when)}, {"element", mmr::name_of(op.element)}};
  if (op.rules) j["kind"] = op.rules->name();
  j["loops"] = nlohmann::ordered_json::array();
  for (const auto& l : op.loops.loops) j["loops"].push_back({l.axis, l.extent, l.splittable});
  j["in"] = accesses_json(op.in, op.loops.in);
  j["out"] = accesses_json(op.out, op.loops.out);
  j["state"] = accesses_json(op.state, op.loops.state);
  j["reuse"] = op.loops.reuse;
  j["linear"] = op.loops.linear;
  if (op.writes_back >= 0) j["writes_back"] = op.writes_back;
  if (op.accumulates) j["accumulates"] = true;
  if (op.again >= 0) {
    j["again"] = op.again;
    j["keepable"] = op.keepable;
  }
  j["does"] = name_of(chosen.kind);
  j["along"] = nlohmann::ordered_json::array();
  for (int a = 0; a < s.m.count(); ++a) {
    const auto c = chosen[a];
    if (c >= 0)
      j["along"].push_back(c);
    else
      j["along"].push_back(c == unsplit ? "none" : "partial");
  }
  if (op.rules) {
    std::vector<std::int64_t> sizes;
    for (const auto& r : local_ranges(op, s.m, chosen, 0)) sizes.push_back(r.size);
    j["matrix"] = op.rules->matrix();
    j["flops"] = op.rules->flops(sizes);
  }
  if (run && run->runs) {
    j["routes"] = nlohmann::ordered_json::array();
    for (const auto& t : run->operands) j["routes"].push_back(route_json(t));
    if (op.writes_back >= 0) j["route_back"] = route_json(run->write_back);
  }
  return j;
}

inline nlohmann::ordered_json rank_json(setting& s, const plan& p, int rank) {
  const program run(s, p.strategies, rank);
  const auto laid_out = lay_out(run);
  const auto& claimed = p.per_rank[static_cast<std::size_t>(rank)];
  nlohmann::ordered_json j{{"rank", rank}};
  j.update(to_json(claimed));
  j["peak_step"] = claimed.peak_step;
  j["laid_out"] = laid_out.bytes;
  j["live"] = run.live_bytes();
  // The workspace of a kernel is code of its operator, and depends on where a rank's part lies.
  j["workspace"] = nlohmann::ordered_json::array();
  for (auto o : s.live.schedule)
    if (const auto bytes = s.workspace(s.g.op(o), p.strategies[static_cast<std::size_t>(o)], rank); bytes > 0)
      j["workspace"].push_back({o, bytes});
  j["buffers"] = nlohmann::ordered_json::array();
  for (std::size_t b = 0; b < run.buffers.size(); ++b) {
    const auto& x = run.buffers[b];
    j["buffers"].push_back({laid_out.offset[b], x.bytes, x.life.begin, x.life.end, x.tensor, x.op, x.transient});
  }
  return j;
}

}  // namespace detail

/// Everything that a plan depends on, and everything that is claimed of it. The plan was assessed in this setting.
///
/// {"mmr_description": 1, "mesh": {...}, "microbatches", "tensors": [...], "operators": [...], "claims": {...}}.
/// Operators stand in schedule order, sources among them; a number that names an operator or a tensor is its place in
/// its list. "along" has an entry a mesh axis: a loop, "none" or "partial". "flops" are those of rank 0's share, as
/// they are a function in code; so is the workspace of a kernel, which stands with the rank. An entry of "buffers" is
/// [offset or -1, bytes, first step, step after the last, tensor or -1, operator, whether it is a copy or workspace].
inline nlohmann::ordered_json describe(const plan& p, setting& s) {
  const auto& g = s.g;
  nlohmann::ordered_json j;
  j["mmr_description"] = description_format_version;
  j["name"] = p.name;
  j["objective"] = p.objective;
  j["mesh"] = to_json(s.m);
  j["microbatches"] = g.microbatches;
  j["tensors"] = nlohmann::ordered_json::array();
  for (tensor_id t = 0; t < g.tensors(); ++t) j["tensors"].push_back(detail::tensor_json(s, t));
  const program first(s, p.strategies, 0);
  j["operators"] = nlohmann::ordered_json::array();
  for (op_id o = 0; o < g.ops(); ++o) {
    const auto at = s.live.position[static_cast<std::size_t>(o)];
    j["operators"].push_back(
        detail::operator_json(s, p, o, at < 0 ? nullptr : &first.instructions[static_cast<std::size_t>(at)]));
  }
  auto& claims = j["claims"];
  claims["step_time_s"] = p.step_seconds;
  claims["compute_s"] = p.compute_seconds;
  claims["sent_bytes"] = p.sent_bytes;
  claims["lower_bound"] = p.lower_bound;
  claims["lower_bound_unit"] = unit_of(p.minimised);
  claims["least_proved"] = p.least;
  claims["proved"] = p.proved;
  for (const auto& r : p.per_rank) claims["peak_live"].push_back(r.peak_live);
  for (const int r : detail::described_ranks(p)) claims["ranks"].push_back(detail::rank_json(s, p, r));
  return j;
}

/// Replaces the file by the description of a plan, or leaves it as it was and throws.
inline void save_description(const plan& p, setting& s, const std::filesystem::path& path) {
  write_text_file(path, describe(p, s).dump() + "\n");
}

}  // namespace mmr
