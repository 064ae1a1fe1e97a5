// What changes from one plan to another: which tensors lie elsewhere, and what that costs in bytes and seconds.
#pragma once

#include <mmr/io/format.hpp>
#include <mmr/io/table.hpp>
#include <mmr/plan/plan.hpp>

#include <array>
#include <cstdlib>
#include <map>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

namespace mmr {

/// "h.3.ln_1.weight" as "h.*.ln_1.weight": the name that repetitions of a block share.
inline std::string shared_name(const std::string& name, const block_position& where) {
  if (where.block.empty()) return name;
  const auto own = where.block + "." + std::to_string(where.repetition) + ".";
  auto text = name;
  if (const auto at = text.find(own); at != std::string::npos) text.replace(at, own.size(), where.block + ".*.");
  return text;
}

inline constexpr std::size_t tensor_classes = 5;

/// The difference of two plans of one graph and mesh, "to" less "from", on the first device.
struct plan_difference {
  struct change {
    std::string tensor;  ///< shared by the repetitions that change alike
    tensor_class kind;
    std::string from, to;      ///< placements
    int times = 0;
    std::int64_t bytes = 0;    ///< a device, all times together
  };
  std::vector<change> changes;
  std::array<std::int64_t, tensor_classes> class_bytes{};   ///< where most of a class is live
  std::array<std::int64_t, tensor_classes> class_sent{};    ///< to reshard tensors of a class
  std::array<double, tensor_classes> class_seconds{};       ///< the same
  std::int64_t peak = 0, arena = 0, redundant = 0, sent = 0;
  double compute_seconds = 0, step_seconds = 0;

  bool empty() const { return changes.empty(); }
};

namespace detail {
/// Where a tensor is under a strategy of its maker, in words.
inline std::string whereabouts(const setting& s, tensor_id t, const strategy& made) {
  const auto& info = s.g.tensor_of(t);
  if (!is_there(s.g.op(info.producer), static_cast<std::size_t>(info.result), made)) return "not there";
  return text(s.m, s.made_placement(t, made), axes_of(info.type)) + (made.runs() ? "" : ", kept");
}

/// Adds what resharding costs a plan, by class of the tensor that is moved.
inline void add_moves(setting& s, const plan& p, int sign, plan_difference& d) {
  const program run(s, p.strategies, 0);
  for (const auto& x : run.instructions) {
    const int times = sign * repetitions(s.g, x.op);
    const auto add = [&](const transfer& t) {
      if (!t.path) return;
      const auto kind = static_cast<std::size_t>(s.g.tensor_of(t.tensor).kind);
      d.class_seconds[kind] += times * t.path->seconds;
      for (const auto& step : t.path->steps) d.class_sent[kind] += times * step.sent;
    };
    for (const auto& t : x.operands) add(t);
    add(x.write_back);
  }
}
}  // namespace detail

/// What changes from plan a to plan b, both of this setting and assessed. Tensors in the order of the graph.
inline plan_difference diff(setting& s, const plan& a, const plan& b) {
  for (const auto* p : {&a, &b})
    if (p->strategies.size() != static_cast<std::size_t>(s.g.ops()) || p->per_rank.empty())
      fail("plan '", p->name, "' has ", p->strategies.size(), " strategies where the graph has ", s.g.ops(),
           " operators, or was not assessed; compare plans of one graph");
  plan_difference d;
  std::map<std::tuple<std::string, std::string, std::string>, std::size_t> known;
  for (tensor_id t = 0; t < s.g.tensors(); ++t) {
    const auto& info = s.g.tensor_of(t);
    const auto& maker = s.g.op(info.producer);
    if (maker.writes_back >= 0 && maker.out[0] == t) continue;  // the new value of a parameter lies as its states do
    const auto &before = a.strategies[static_cast<std::size_t>(info.producer)], &after = b.strategies[static_cast<std::size_t>(info.producer)];
    const auto name = shared_name(info.name, maker.where);
    const std::tuple key{name, detail::whereabouts(s, t, before), detail::whereabouts(s, t, after)};
    if (std::get<1>(key) == std::get<2>(key)) continue;
    const auto [at, fresh] = known.try_emplace(key, d.changes.size());
    if (fresh) d.changes.push_back({name, info.kind, std::get<1>(key), std::get<2>(key), 0, 0});
    auto& change = d.changes[at->second];
    ++change.times;
    const auto held = [&](const strategy& made) {
      return is_there(maker, static_cast<std::size_t>(info.result), made) ? s.bytes(t, s.made_placement(t, made), 0) : 0;
    };
    change.bytes += held(after) - held(before);
  }
  detail::add_moves(s, b, 1, d);
  detail::add_moves(s, a, -1, d);
  const auto &x = a.per_rank.front(), &y = b.per_rank.front();
  const auto of = [&](tensor_class c) -> std::int64_t& { return d.class_bytes[static_cast<std::size_t>(c)]; };
  of(tensor_class::parameter) = y.parameters - x.parameters;
  of(tensor_class::gradient) = y.gradients - x.gradients;
  of(tensor_class::optimizer) = y.optimizer - x.optimizer;
  of(tensor_class::activation) = y.activations - x.activations;
  d.redundant = y.redundant - x.redundant;
  d.peak = y.peak_live - x.peak_live;
  d.arena = y.arena - x.arena;
  d.sent = b.sent_bytes - a.sent_bytes;
  d.compute_seconds = b.compute_seconds - a.compute_seconds;
  d.step_seconds = b.step_seconds - a.step_seconds;
  return d;
}

/// The difference as two tables: the tensors, those that weigh most first, and the sums by class.
inline void print_diff(std::ostream& out, const plan_difference& d, const std::string& from, const std::string& to) {
  const auto bytes = [](std::int64_t b) { return (b > 0 ? "+" : "") + format_bytes(static_cast<double>(b)); };
  const auto seconds = [](double s) { return (s > 0 ? "+" : "") + format_seconds(s); };
  out << "from plan '" << from << "' to plan '" << to << "'\n";
  if (d.empty()) out << "every tensor lies alike\n";
  auto changes = d.changes;
  std::stable_sort(changes.begin(), changes.end(), [](auto& a, auto& b) { return std::abs(a.bytes) > std::abs(b.bytes); });
  text_table moved({{"tensor", align::left}, {"class", align::left}, {"from", align::left}, {"to", align::left},
                    {"times", align::right}, {"a device", align::right}});
  for (const auto& c : changes)
    moved.add_row({c.tensor, std::string(name_of(c.kind)), c.from, c.to, std::to_string(c.times), bytes(c.bytes)});
  if (!d.empty()) out << moved << "\n";
  text_table sums({{"", align::left}, {"bytes", align::right}, {"resharding sends", align::right}, {"takes", align::right}});
  for (std::size_t c = 0; c < tensor_classes; ++c) {
    const auto kind = static_cast<tensor_class>(c);
    sums.add_row({std::string(name_of(kind)), kind == tensor_class::input ? "" : bytes(d.class_bytes[c]),
                  bytes(d.class_sent[c]), seconds(d.class_seconds[c])});
  }
  sums.add_rule();
  sums.add_row({"compute", "", "", seconds(d.compute_seconds)});
  sums.add_row({"all, at the peak", bytes(d.peak), bytes(d.sent), seconds(d.step_seconds)});
  sums.add_row({"redundant", bytes(d.redundant), "", ""});
  sums.add_row({"arena", bytes(d.arena), "", ""});
  out << sums;
}

}  // namespace mmr
