// The bound for plans whose repeated layers need not be alike. The planner chooses one strategy for corresponding operators
// of all repetitions; what it finds is measured against all plans, in which each repetition goes its own way.
#pragma once

#include <mmr/plan/apart_room.hpp>
#include <mmr/solve/diffusion.hpp>
#include <mmr/solve/result.hpp>

#include <map>
#include <set>
#include <string>
#include <tuple>

namespace mmr {

namespace detail {

/// Groups operators that hold alike at every one of `steps` and have like neighbours: those at one position of a block,
/// the first and last repetitions apart, the others by turns, so that no operator reads one of its own group.
inline std::function<std::string(op_id)> groups_by_turns(const setting& s, std::vector<int> steps) {
  constexpr int ends = 3;  // repetitions at either end that see, or neighbour, what is outside the block
  std::map<std::string, int> last;
  for (op_id o = 0; o < s.g.ops(); ++o) {
    const auto& where = s.g.op(o).where;
    if (!where.block.empty()) last[where.block] = std::max(last[where.block], where.repetition);
  }
  return [&s, steps, last](op_id o) {
    const auto& op = s.g.op(o);
    const auto& where = op.where;
    if (where.block.empty()) return own_group(o);
    const int end = last.at(where.block) + 1 - ends;
    const bool repeats = end - ends >= 4;  // each of the two kinds stands for two repetitions at least
    if (!repeats || where.repetition < ends || where.repetition >= end) return own_group(o);
    const auto place = [&](int step) {
      return std::to_string(std::lower_bound(steps.begin(), steps.end(), step) - steps.begin()) + ' ';
    };
    auto key = position_of(op) + (where.repetition % 2 ? "|odd " : "|even ");
    const int step = s.live.position[static_cast<std::size_t>(o)];
    if (step >= 0) key += place(step) + place(step + 1);
    const auto add = [&](const lifetime& life) {
      const auto from = place(life.begin), to = place(life.end);
      key += from == to ? "- " : from + to;
    };
    for (const auto* made : {&op.out, &op.state})
      for (auto t : *made) add(s.live.life[static_cast<std::size_t>(t)]);
    for (std::size_t r = 0; r < op.keepable.size(); ++r)
      if (op.keepable[r]) add(s.live.kept[static_cast<std::size_t>(op.out[r])]);
    return key;
  };
}

/// A bound on a priced sum over all choices, from a formulation by turns. What lies between the ends of a block repeats, so
/// it is bounded as a ring: a repetition and the next, each the other's neighbour on both sides. The messages across are
/// the same all along; at the ends of the block they become costs of the operators there.
class ring_bound {
 public:
  ring_bound(const setting& s, const formulation& f, const solve::step_prices& prices) : s_(s), f_(f), prices_(prices) {
    members_ = f.members();
    operands_.assign(f.problem.edges.size(), 0);
    for (const auto& x : f.instances) ++operands_[static_cast<std::size_t>(x.edge)];
    inner_.assign(members_.size(), 0);
    for (op_id o = 0; o < s.g.ops(); ++o)
      if (members_[group(o)] > 1) inner_[group(o)] = 1;
  }

  /// Minus infinity where repetitions are not alike enough.
  double climb(int passes) const {
    const auto ring = part(true);
    auto ends = part(false);
    solve::diffusion around(ring.problem);
    converge(around, passes);
    double sum = 0;
    for (std::size_t v = 0; v < ring.group_of.size(); ++v) sum += members_[ring.group_of[v]] * around.least(v);

    // Which edge of the ring an operand of a group is, seen from either end: the group, the position of the other end, and
    // which operand. Every member of a group must stand at every such end once, or it would be given a message of no edge.
    using end = std::tuple<std::size_t, bool, std::string, int>;
    const auto end_of = [&](const formulation::instance& x, bool u) {
      return u ? end{group(x.u), u, position_of(s_.g.op(x.v)), x.operand} : end{group(x.v), u, position_of(s_.g.op(x.u)), x.operand};
    };
    std::map<end, std::size_t> edges;
    std::map<end, std::set<op_id>> stand;
    for (const auto& x : f_.instances) {
      if (!inner_[group(x.u)] || !inner_[group(x.v)]) continue;
      const auto e = ring.edge_of.at(static_cast<std::size_t>(x.edge));
      for (const bool u : {true, false}) {
        const auto key = end_of(x, u);
        const bool first = stand[key].insert(u ? x.u : x.v).second;
        if (edges.try_emplace(key, e).first->second != e || !first) return -solve::infinity;
      }
    }
    std::vector<double> table;
    for (const auto& x : f_.instances) {
      const bool u_inside = inner_[group(x.u)], v_inside = inner_[group(x.v)];
      if (u_inside == v_inside) continue;
      const auto inside = u_inside ? x.u : x.v, outside = u_inside ? x.v : x.u;
      const auto &in = s_.g.op(inside).where, &out = s_.g.op(outside).where;
      // What it holds and costs together with operators outside the block is no less than nothing.
      if (in.block != out.block) continue;
      const auto known = edges.find(end_of(x, u_inside));
      if (known == edges.end()) continue;
      if (!stand[known->first].insert(inside).second) return -solve::infinity;
      const auto& e = f_.problem.edges[static_cast<std::size_t>(x.edge)];
      const auto& r = ring.problem.edges[known->second];
      const auto message = u_inside ? around.message_to_u(known->second) : around.message_to_v(known->second);
      const auto& message_class = u_inside ? r.u_class : r.v_class;
      table.resize(e.cost.size());
      prices_.of(e.cost, e.uses, table.data());
      const auto& in_class = u_inside ? e.u_class : e.v_class;
      const auto& out_class = u_inside ? e.v_class : e.u_class;
      auto& cost = ends.problem.nodes[static_cast<std::size_t>(ends.node_of.at(group(outside)))].cost;
      std::vector<double> least(static_cast<std::size_t>(u_inside ? e.v_classes : e.u_classes), solve::infinity);
      for (std::size_t c = 0; c < least.size(); ++c)
        for (std::size_t k = 0; k < in_class.size(); ++k) {
          const auto a = static_cast<std::size_t>(in_class[k]), columns = static_cast<std::size_t>(e.v_classes);
          least[c] = std::min(least[c], table[u_inside ? a * columns + c : c * columns + a] -
                                            message[static_cast<std::size_t>(message_class[k])]);
        }
      for (std::size_t k = 0; k < cost.size(); ++k) cost[k] += least[static_cast<std::size_t>(out_class[k])];
    }
    for (const auto& [key, ops] : stand)
      if (static_cast<int>(ops.size()) != members_[std::get<0>(key)]) return -solve::infinity;
    solve::diffusion outside(ends.problem);
    converge(outside, passes);
    return sum + outside.bound();
  }

 private:
  /// The groups that are inside blocks, or the others, one member each, at the prices.
  struct piece {
    solve::problem problem;
    std::vector<std::size_t> group_of;       // of each node
    std::map<std::size_t, int> node_of;      // of a group
    std::map<std::size_t, std::size_t> edge_of;
  };

  std::size_t group(op_id o) const { return static_cast<std::size_t>(f_.groups[static_cast<std::size_t>(o)]); }

  std::vector<double> priced(const auto& x, int among) const {
    std::vector<double> out(x.cost.size());
    prices_.of(x.cost, x.uses, out.data());
    for (auto& value : out) value /= among;
    return out;
  }

  piece part(bool inside) const {
    piece out;
    for (std::size_t g = 0; g < members_.size(); ++g)
      if ((inner_[g] != 0) == inside) {
        out.node_of[g] = static_cast<int>(out.group_of.size());
        out.group_of.push_back(g);
        out.problem.nodes.push_back({"", priced(f_.problem.nodes[g], members_[g]), {}});
      }
    for (std::size_t i = 0; i < f_.problem.edges.size(); ++i) {
      const auto& e = f_.problem.edges[i];
      const auto u = static_cast<std::size_t>(e.u), v = static_cast<std::size_t>(e.v);
      if ((inner_[u] != 0) != inside || (inner_[v] != 0) != inside) continue;
      out.edge_of[i] = out.problem.edges.size();
      out.problem.edges.push_back({out.node_of[u], out.node_of[v], e.u_class, e.v_class, e.u_classes, e.v_classes,
                                   priced(e, operands_[i]), {}});
    }
    return out;
  }

  static void converge(solve::diffusion& messages, int passes) {
    messages.set({1, {}});
    double last = -solve::infinity;
    for (int i = 0; i < passes; ++i) {
      messages.iterate();
      const double now = messages.bound();
      if (i > 5 && now < last + 1e-6 * std::abs(last)) return;
      last = now;
    }
  }

  const setting& s_;
  const formulation& f_;
  const solve::step_prices& prices_;
  std::vector<int> members_, operands_;
  std::vector<char> inner_;  // by group: between the ends of a block
};

}  // namespace detail

namespace detail {

/// What any operator at one position of its block may take, whatever the repetition: no less than a restriction that singles
/// out some of them allows to each.
inline restriction allowed_to_any(const graph& g, const restriction& allowed) {
  if (!allowed) return {};
  std::map<std::string, std::vector<op_id>> at_position;
  for (op_id o = 0; o < g.ops(); ++o)
    at_position[g.op(o).where.block.empty() ? own_group(o) : position_of(g.op(o))].push_back(o);
  std::vector<std::vector<op_id>> alike(static_cast<std::size_t>(g.ops()));
  for (const auto& [position, ops] : at_position)
    for (op_id o : ops) alike[static_cast<std::size_t>(o)] = ops;
  return [&g, allowed, alike = std::move(alike)](op_id o, const op_info&, const strategy& c) {
    const auto& ops = alike[static_cast<std::size_t>(o)];
    return std::any_of(ops.begin(), ops.end(), [&](op_id i) { return allowed(i, g.op(i), c); });
  };
}

/// The same at the prices with which `x` was bounded; minus infinity where there are none.
inline double bound_by_prices(setting& s, const restriction& allowed, const formulation& alike, const solve::request& q,
                              const solve::result& x) {
  const bool for_cost = q.minimise == solve::goal::cost;
  if (x.step_price.size() != static_cast<std::size_t>(alike.problem.steps)) return -solve::infinity;
  double price_sum = 0;
  for (double price : x.step_price) price_sum += price;
  if (!for_cost && !(price_sum > 0)) return -solve::infinity;
  double allowance = 0;
  if (for_cost && price_sum > 0) allowance = price_sum * static_cast<double>(q.peak_limit);
  if (!for_cost && x.cost_price > 0) allowance = x.cost_price * q.cost_limit * (1 + solve::cost_tolerance);

  // At steps without a price it does not matter what is held. The fewer steps tell repetitions apart, the more are alike.
  std::vector<int> steps;
  std::vector<double> price;
  for (std::size_t t = 0; t < x.step_price.size(); ++t) {
    if (!(x.step_price[t] > 0)) continue;
    steps.push_back(alike.steps[t]);
    price.push_back(x.step_price[t]);
  }
  const auto any = allowed_to_any(s.g, allowed);
  const auto f = formulating(s, any, groups_by_turns(s, steps)).run(steps);
  const solve::step_prices prices(for_cost ? 1.0 : x.cost_price, price);
  const double sum = ring_bound(s, f, prices).climb(60);
  if (!(sum > -solve::infinity)) return -solve::infinity;
  const double scale = for_cost ? 1 : 1 / price_sum;  // prices of steps share one peak
  return scale * (sum - allowance - 1e-12 * (std::abs(sum) + std::abs(allowance)));
}

}  // namespace detail

/// A lower bound on the goal of `q` over all choices in which every operator takes a strategy of its own, from `x`, the best
/// choice for layers alike, its bound and the prices that this was found with. At most the bound for layers alike.
inline double bound_apart(setting& s, const restriction& allowed, const formulation& alike, const solve::request& q,
                          const solve::result& x) {
  const auto members = alike.members();
  if (std::all_of(members.begin(), members.end(), [](int n) { return n == 1; })) return x.bound;
  const bool for_cost = q.minimise == solve::goal::cost;
  // Alone, every operator takes its least.
  double bound = for_cost ? 0 : static_cast<double>(solve::least_peak(alike.problem));
  if (for_cost)
    for (const auto& n : alike.problem.nodes) bound += *std::min_element(n.cost.begin(), n.cost.end());
  bound = std::min(std::max(bound * (1 - 1e-12), detail::bound_by_prices(s, allowed, alike, q, x)), x.bound);
  // Bytes alone tell nothing of a limit on the cost.
  const bool by_bytes = !for_cost && !(q.cost_limit < solve::infinity);
  return by_bytes ? detail::raised_by_room(s, allowed, alike, bound, x.bound) : bound;
}

}  // namespace mmr
