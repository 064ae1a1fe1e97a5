// Writes the choice of strategies as the plain problem of solve/: one node an operator or source, one edge an operand.
// Repetitions of a block are formulated once and counted.
#pragma once

#include <mmr/plan/cost.hpp>
#include <mmr/plan/fold.hpp>
#include <mmr/solve/problem.hpp>
#include <mmr/solve/result.hpp>
#include <mmr/solve/tie.hpp>

#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

namespace mmr {

/// Whether an operator may take a strategy; pins and baselines are such restrictions.
using restriction = std::function<bool(op_id, const op_info&, const strategy&)>;

/// Which corresponding operators of a block's repetitions take one strategy: all of them; all, but what runs again for
/// backward is chosen for each class of repetitions, so that any number of them may; those of a class, so that any number of
/// repetitions may go one way and the others another; or none, each takes its own.
enum class repeated : std::uint8_t { alike, again_in_classes, in_classes, apart };

/// The problem, with what is needed to read its solution.
struct formulation {
  solve::problem problem;                       ///< node i is group i; its steps are some of the schedule
  std::vector<std::vector<strategy>> choices;   ///< strategies of each group
  std::vector<int> groups;                      ///< of each operator; operators of one group take one strategy
  std::vector<int> steps;                       ///< of the schedule: for each step of the problem; the peak is among them

  /// What an edge of the problem stands for: one operand (or new parameter) of one operator.
  struct instance {
    int edge, operand;  // operand: of v, or -1 for the new parameter that u writes back
    op_id u, v;
  };
  std::vector<instance> instances;              ///< where edges were not merged
  solve::sizes unfolded;                        ///< of the problem in which every operator is a node

  /// The strategy of each operator, from the choice of each group.
  std::vector<strategy> chosen(const std::vector<int>& pick) const {
    std::vector<strategy> s;
    for (int g : groups) s.push_back(choices[static_cast<std::size_t>(g)][static_cast<std::size_t>(pick[static_cast<std::size_t>(g)])]);
    return s;
  }
  std::vector<int> members() const {
    std::vector<int> count(choices.size(), 0);
    for (int g : groups) ++count[static_cast<std::size_t>(g)];
    return count;
  }
};

namespace detail {

/// Numbers the distinct placements (or whatever else one end of an edge sees of the other) that strategies give.
template <class Seen>
struct classes {
  std::vector<int> of_strategy;
  std::vector<Seen> distinct;

  template <class Place>
  classes(const std::vector<strategy>& all, Place place) {
    std::map<Seen, int> index;
    for (const auto& s : all) {
      const auto [at, fresh] = index.try_emplace(place(s), static_cast<int>(distinct.size()));
      if (fresh) distinct.push_back(at->first);
      of_strategy.push_back(at->second);
    }
  }
  int count() const { return static_cast<int>(distinct.size()); }
};

/// Formulates a step: walks the operators once, and meets the tables of a group's members only with the first of them.
class formulating {
 public:
  /// `key_of` names the group of each operator.
  formulating(setting& s, const restriction& allowed, std::function<std::string(op_id)> key_of, bool in_classes = false)
      : s_(s), allowed_(allowed), key_of_(std::move(key_of)), in_classes_(in_classes) {}

  /// At the steps that count. Parallel edges that see the same classes become one.
  formulation run() {
    walk();
    f_.steps = steps_that_count(s_, held_, repetition_classes(s_.g, in_classes_));
    charge();
    f_.instances.clear();
    std::vector<int> same(f_.choices.size());
    std::iota(same.begin(), same.end(), 0);
    f_.problem = solve::tie(f_.problem, same);
    return std::move(f_);
  }
  /// At these steps, edges as they are.
  formulation run(const std::vector<int>& steps) {
    walk();
    f_.steps = steps;
    charge();
    return std::move(f_);
  }

 private:
  const op_info& first(int group) const { return s_.g.op(first_[static_cast<std::size_t>(group)]); }
  std::vector<strategy>& choices(int group) { return f_.choices[static_cast<std::size_t>(group)]; }
  int group_of(op_id o) const { return f_.groups[static_cast<std::size_t>(o)]; }

  void walk() {
    for (op_id o = 0; o < s_.g.ops(); ++o) enter(o);
    for (op_id o = 0; o < s_.g.ops(); ++o) connect(o);
    auto& all = f_.unfolded;
    all.nodes = s_.g.ops();
    all.edges = static_cast<int>(f_.instances.size());
    for (int g : f_.groups) all.strategies += static_cast<int>(choices(g).size());
    all.variables = all.strategies;
    for (const auto& x : f_.instances)
      all.variables += static_cast<int>(f_.problem.edges[static_cast<std::size_t>(x.edge)].cost.size());
  }

  // Finds the operator's group, and makes its node where this is the first of it.
  void enter(op_id o) {
    const auto& op = s_.g.op(o);
    const auto [at, fresh] = index_.try_emplace(key_of_(o), static_cast<int>(first_.size()));
    const int group = at->second;
    f_.groups.push_back(group);
    if (fresh) {
      first_.push_back(o);
      auto& all = f_.choices.emplace_back();
      for (const auto& c : strategies_of(op, s_.m))
        if (!allowed_ || allowed_(o, op, c)) all.push_back(c);
      if (all.empty()) fail("the pins leave operator '", op.name, "' no strategy; take one of them away");
      auto& n = f_.problem.nodes.emplace_back();
      n.name = op.name;
      for (const auto& c : all) n.cost.push_back(repetitions(s_.g, o) * op_seconds(s_, o, c));
      one_cost_.push_back(n.cost);
      first_use_.push_back(held_.size());
      for_each_held(op, [&](tensor_id t, presence kind, lifetime) {
        table(group, [&](const strategy& c) { return c.kind == kind ? s_.bytes(t, s_.made_placement(t, c), 0) : 0; });
      });
      if (op.rules) table(group, [&](const strategy& c) { return s_.workspace(op, c, 0); });
    } else {
      auto& n = f_.problem.nodes[static_cast<std::size_t>(group)];
      for (std::size_t k = 0; k < n.cost.size(); ++k) n.cost[k] += one_cost_[static_cast<std::size_t>(group)][k];
    }
    // When each of its tables is held by this member, in the order in which they were made.
    auto use = first_use_[static_cast<std::size_t>(group)];
    for_each_held(op, [&](tensor_id, presence, lifetime when) { held_[use++].when.push_back(when); });
    if (op.rules) held_[use].when.push_back(at_step(o));
  }

  // What an operator holds where it runs, and what an again-operator holds where it keeps what is there already.
  template <class Visit>
  void for_each_held(const op_info& op, Visit visit) const {
    for (const auto* made : {&op.out, &op.state})
      for (auto t : *made)
        if (op.writes_back < 0 || made == &op.state) visit(t, presence::run, s_.live.life[static_cast<std::size_t>(t)]);
    for (std::size_t r = 0; r < op.keepable.size(); ++r)
      if (op.keepable[r]) visit(op.out[r], presence::keep, s_.live.kept[static_cast<std::size_t>(op.out[r])]);
  }

  lifetime at_step(op_id o) const {
    const int step = s_.live.position[static_cast<std::size_t>(o)];
    return {step, step + 1};
  }
  template <class Bytes>
  void table(int group, Bytes bytes) {
    held h{.node = group, .edge = -1, .bytes = {}, .when = {}};
    for (const auto& c : choices(group)) h.bytes.push_back(bytes(c));
    held_.push_back(std::move(h));
  }

  // Makes the edges of the operator's operands, of its new parameter and of what it keeps, or counts them where they are made.
  void connect(op_id o) {
    const auto& op = s_.g.op(o);
    for (std::size_t i = 0; i < op.in.size(); ++i) {
      const auto t = op.in[i];
      const auto& info = s_.g.tensor_of(t);
      const auto& maker = s_.g.op(info.producer);
      const bool dying = s_.live.dying[static_cast<std::size_t>(o)][i];
      // Nothing is there of an again-operator that is absent, and nothing is asked by one that does not run.
      using seen = std::optional<placement>;
      edge<seen>(info.producer, o, {static_cast<int>(i), info.result, dying}, repetitions(s_.g, o), at_step(o),
                 [&](const strategy& c) {
                   return is_there(maker, static_cast<std::size_t>(info.result), c) ? seen(s_.made_placement(t, c)) : seen();
                 },
                 [&](const strategy& c) { return c.runs() ? seen(operand_placement(op, i, c)) : seen(); },
                 [&, routes = static_cast<router*>(nullptr)](const seen& there, const seen& asked) mutable -> paid {
                   if (!asked) return {};
                   if (!there) return {solve::infinity, 0};
                   if (!routes) routes = &s_.router_of(t);
                   const auto& path = routes->cost(*there, *asked);
                   return {path.seconds, path.bytes_of(dying)};
                 });
    }
    if (op.writes_back >= 0) {
      const auto t = op.writes_back;
      edge<placement>(o, s_.g.tensor_of(t).producer, {-1, 0, false}, 1, at_step(o),
                      [&](const strategy& c) { return result_placement(op, 0, c); },
                      [&](const strategy& c) { return s_.made_placement(t, c); },
                      [&](const placement& from, const placement& to) -> paid {
                        const auto& path = s_.router_of(t).cost(from, to);
                        // The last step fills the parameter's own buffer.
                        return {path.seconds, path.bytes - path.last};
                      });
    }
    if (op.again >= 0) {
      // What is kept lies as the first run has left it.
      using kept = std::optional<std::vector<placement>>;
      edge<kept>(op.again, o, {-2, 0, false}, 1, at_step(o),
                 [&](const strategy& c) { return c.kind == presence::absent ? kept() : kept(kept_placements(op, c)); },
                 [&](const strategy& c) { return c.kind == presence::keep ? kept(kept_placements(op, c)) : kept(); },
                 [](const kept& left, const kept& wanted) -> paid {
                   return {!wanted || wanted == left ? 0 : solve::infinity, 0};
                 });
    }
  }

  /// What the two ends of an edge pay together.
  struct paid {
    double seconds = 0;
    std::int64_t bytes = 0;
  };
  /// `Seen` is what each end shows the other of its strategy; `cost` says what two of them pay.
  template <class Seen, class From, class To, class Cost>
  void edge(op_id from, op_id to, std::tuple<int, int, bool> what, double times, lifetime when, From seen_of_from,
            To seen_of_to, Cost cost) {
    const int u = group_of(from), v = group_of(to);
    const auto [at, fresh] = edges_.try_emplace({u, v, what}, made_edge{static_cast<int>(f_.problem.edges.size()), -1, {}});
    auto& made = at->second;
    f_.instances.push_back({made.edge, std::get<0>(what), from, to});
    if (fresh) {
      const classes<Seen> a(choices(u), seen_of_from), b(choices(v), seen_of_to);
      solve::edge e{.u = u, .v = v, .u_class = a.of_strategy, .v_class = b.of_strategy,
                    .u_classes = a.count(), .v_classes = b.count(), .cost = {}, .uses = {}};
      held h{.node = -1, .edge = made.edge, .bytes = {}, .when = {}};
      bool any = false;
      for (const auto& x : a.distinct)
        for (const auto& y : b.distinct) {
          const paid one = cost(x, y);
          e.cost.push_back(times * one.seconds);
          h.bytes.push_back(one.bytes);
          any = any || one.bytes > 0;
        }
      made.one_cost = e.cost;
      if (any) {
        made.use = static_cast<int>(held_.size());
        held_.push_back(std::move(h));
      }
      f_.problem.edges.push_back(std::move(e));
    } else {
      auto& sum = f_.problem.edges[static_cast<std::size_t>(made.edge)].cost;
      for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += made.one_cost[k];
    }
    if (made.use >= 0) held_[static_cast<std::size_t>(made.use)].when.push_back(when);
  }

  // Gives nodes and edges their uses at the steps that count, equal intervals as one.
  void charge() {
    f_.problem.steps = static_cast<int>(f_.steps.size());
    const auto place = [&](int step) {
      return static_cast<int>(std::lower_bound(f_.steps.begin(), f_.steps.end(), step) - f_.steps.begin());
    };
    for (const auto& h : held_) {
      std::map<std::pair<int, int>, std::int64_t> times;
      for (const auto& l : h.when)
        if (const std::pair at{place(l.begin), place(l.end)}; at.first < at.second) ++times[at];
      for (const auto& [at, n] : times) {
        auto bytes = h.bytes;
        for (auto& b : bytes) b *= n;
        if (h.node >= 0)
          f_.problem.nodes[static_cast<std::size_t>(h.node)].uses.push_back({at.first, at.second, std::move(bytes)});
        else
          f_.problem.edges[static_cast<std::size_t>(h.edge)].uses.push_back({at.first, at.second, std::move(bytes)});
      }
    }
  }

  struct made_edge {
    int edge, use;                 // use: index in held_, or -1 where it never holds anything
    std::vector<double> one_cost;  // of one member
  };

  setting& s_;
  const restriction& allowed_;
  std::function<std::string(op_id)> key_of_;
  bool in_classes_;
  formulation f_;
  std::map<std::string, int> index_;
  std::vector<op_id> first_;                      // member of each group
  std::vector<std::vector<double>> one_cost_;     // of one member of each group
  std::vector<std::size_t> first_use_;            // of each group, in held_
  std::vector<held> held_;
  std::map<std::tuple<int, int, std::tuple<int, int, bool>>, made_edge> edges_;
};

/// The group of an operator that has one of its own.
inline std::string own_group(op_id o) { return '#' + std::to_string(o); }

/// What operators at one position of a block have in common, whatever the repetition.
inline std::string position_of(const op_info& op) {
  auto key = op.where.block + '|' + op.where.position;
  for (const auto& l : op.loops.loops) key += '|' + std::to_string(l.extent);
  for (bool k : op.keepable) key += k ? "|keepable" : "|";
  return key;
}

}  // namespace detail

/// Formulates a step under a restriction. Operators that it treats unlike their repetitions are named in `apart`. Fails,
/// naming the operator, where the restriction leaves it no strategy.
inline formulation formulate(setting& s, const restriction& allowed = {}, repeated repetitions = repeated::alike,
                             const std::vector<op_id>& apart = {}) {
  const bool all_in_classes = repetitions == repeated::in_classes;
  const bool in_classes = all_in_classes || (repetitions == repeated::again_in_classes && recomputes(s.g));
  const detail::repetition_classes classes(s.g, in_classes);
  const auto key_of = [&](op_id o) {
    const auto& op = s.g.op(o);
    const bool own = repetitions == repeated::apart || op.where.block.empty() ||
                     std::find(apart.begin(), apart.end(), o) != apart.end();
    if (own) return detail::own_group(o);
    return detail::position_of(op) + (all_in_classes || op.again >= 0 ? '|' + classes.name_of(op.where) : "");
  };
  return detail::formulating(s, allowed, key_of, in_classes).run();
}

}  // namespace mmr
