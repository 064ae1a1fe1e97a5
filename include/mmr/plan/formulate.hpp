// Writes the choice of strategies as the plain problem of solve/: one node an operator or source, one edge an operand.
#pragma once

#include <mmr/plan/cost.hpp>
#include <mmr/solve/problem.hpp>
#include <mmr/solve/tie.hpp>

#include <functional>
#include <map>

namespace mmr {

/// Whether an operator may take a strategy; pins and baselines are such restrictions.
using restriction = std::function<bool(op_id, const op_info&, const strategy&)>;

/// The problem, with what is needed to read its solution.
struct formulation {
  solve::problem full;                          ///< node i is operator i
  std::vector<std::vector<strategy>> choices;   ///< strategies of each operator
  std::vector<int> groups;                      ///< operators of one group take one strategy

  std::vector<strategy> chosen(const std::vector<int>& pick) const {
    std::vector<strategy> s;
    for (std::size_t o = 0; o < choices.size(); ++o) s.push_back(choices[o][static_cast<std::size_t>(pick[o])]);
    return s;
  }
};

namespace detail {

/// Numbers the distinct placements that strategies give one operand or result.
struct placement_classes {
  std::vector<int> of_strategy;
  std::vector<placement> distinct;

  template <class Place>
  placement_classes(const std::vector<strategy>& all, Place place) {
    std::map<placement, int> index;
    for (const auto& s : all) {
      const auto [at, fresh] = index.try_emplace(place(s), static_cast<int>(distinct.size()));
      if (fresh) distinct.push_back(at->first);
      of_strategy.push_back(at->second);
    }
  }
  int count() const { return static_cast<int>(distinct.size()); }
};

/// Edge for tensor t from one set of placements to another, at `step`; `times` is how often a step runs it.
template <class Bytes>
solve::edge reshard_edge(setting& s, tensor_id t, int u, int v, const placement_classes& from, const placement_classes& to,
                         int step, double times, Bytes bytes) {
  solve::edge e{.u = u, .v = v, .u_class = from.of_strategy, .v_class = to.of_strategy,
                .u_classes = from.count(), .v_classes = to.count(), .cost = {}, .uses = {}};
  solve::edge_use use{step, step + 1, {}};
  bool any = false;
  for (const auto& a : from.distinct)
    for (const auto& b : to.distinct) {
      const auto& path = s.find_route(t, a, b);
      e.cost.push_back(times * path.seconds);
      use.bytes.push_back(bytes(path));
      any = any || use.bytes.back() > 0;
    }
  if (any) e.uses.push_back(std::move(use));
  return e;
}

}  // namespace detail

/// Formulates a step under a restriction. Fails, naming the operator, where the restriction leaves it no strategy.
inline formulation formulate(setting& s, const restriction& allowed = {}) {
  const auto& g = s.g;
  formulation f;
  auto& p = f.full;
  p.steps = s.live.steps();
  std::map<std::pair<std::string, std::string>, int> group_of;
  for (op_id o = 0; o < g.ops(); ++o) {
    const auto& op = g.op(o);
    std::vector<strategy> all;
    for (const auto& c : strategies_of(op, s.m))
      if (!allowed || allowed(o, op, c)) all.push_back(c);
    if (all.empty()) fail("the pins leave operator '", op.name, "' no strategy; take one of them away");
    solve::node n{.name = op.name, .cost = {}, .uses = {}};
    for (const auto& c : all) n.cost.push_back(repetitions(g, o) * op_seconds(s, o, c));
    auto charge = [&](lifetime life, auto bytes) {
      solve::use u{life.begin, life.end, {}};
      for (const auto& c : all) u.bytes.push_back(bytes(c));
      if (life.begin < life.end) n.uses.push_back(std::move(u));
    };
    for (const auto* made : {&op.out, &op.state})
      for (auto t : *made)
        if (op.writes_back < 0 || made == &op.state)
          charge(s.live.life[static_cast<std::size_t>(t)],
                 [&](const strategy& c) { return s.bytes(t, s.made_placement(t, c), 0); });
    if (op.rules) {
      const int step = s.live.position[static_cast<std::size_t>(o)];
      charge({step, step + 1}, [&](const strategy& c) { return s.workspace(op, c, 0); });
    }
    p.nodes.push_back(std::move(n));
    // Repetitions of a block share the group of the first one.
    const auto key = op.where.block.empty() ? std::pair{std::string(), std::to_string(o)}
                                            : std::pair{op.where.block, op.where.position};
    f.groups.push_back(group_of.try_emplace(key, static_cast<int>(group_of.size())).first->second);
    f.choices.push_back(std::move(all));
  }
  for (op_id o = 0; o < g.ops(); ++o) {
    const auto& op = g.op(o);
    const auto& mine = f.choices[static_cast<std::size_t>(o)];
    const int step = s.live.position[static_cast<std::size_t>(o)];
    for (std::size_t i = 0; i < op.in.size(); ++i) {
      const auto t = op.in[i];
      const auto maker = g.tensor_of(t).producer;
      const bool dying = s.live.dying[static_cast<std::size_t>(o)][i];
      const detail::placement_classes from(f.choices[static_cast<std::size_t>(maker)],
                                           [&](const strategy& c) { return s.made_placement(t, c); });
      const detail::placement_classes to(mine, [&](const strategy& c) { return operand_placement(op, i, c); });
      p.edges.push_back(detail::reshard_edge(s, t, maker, o, from, to, step, repetitions(g, o),
                                             [&](const route& r) { return r.bytes(dying); }));
    }
    if (op.writes_back >= 0) {
      const auto t = op.writes_back;
      const auto maker = g.tensor_of(t).producer;
      const detail::placement_classes from(mine, [&](const strategy& c) { return result_placement(op, 0, c); });
      const detail::placement_classes to(f.choices[static_cast<std::size_t>(maker)],
                                         [&](const strategy& c) { return s.made_placement(t, c); });
      // The last step fills the parameter's own buffer.
      p.edges.push_back(detail::reshard_edge(s, t, o, maker, from, to, step, 1, [&](const route& r) {
        return r.steps.empty() ? 0 : r.bytes(false) - r.steps.back().bytes;
      }));
    }
  }
  return f;
}

}  // namespace mmr
