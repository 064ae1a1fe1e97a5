// Makes a problem smaller without losing its optimum: what can never win, or is decided by something else, is taken out
// before any bound or program is computed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "mmr/solve/evaluate.hpp"
#include "mmr/solve/problem.hpp"
#include "mmr/solve/steps.hpp"
#include "mmr/solve/tie.hpp"
#include "mmr/solve/tighten.hpp"

namespace mmr::solve {

/// A smaller problem with the same optimum under any limits, and the way back.
struct reduction {
  problem small;
  double constant = 0;  ///< cost of what is decided already; its bytes are in small.base
  bool infeasible = false;
  std::vector<int> variable_of;               ///< node of the original -> node of small, -1 where decided
  std::vector<std::vector<int>> strategy_of;  ///< node of the original, strategy in small -> its own strategy

  /// The original's choice for a choice of `small`.
  std::vector<int> expand(const std::vector<int>& choice) const {
    std::vector<int> out(variable_of.size());
    for (std::size_t v = 0; v < out.size(); ++v) {
      const auto s = variable_of[v] < 0 ? 0 : choice[static_cast<std::size_t>(variable_of[v])];
      out[v] = strategy_of[v][static_cast<std::size_t>(s)];
    }
    return out;
  }
};

namespace detail {

class reducer {
 public:
  reducer(const problem& original, bool looks_at_bytes, bool keep_steps) : p_(original), keep_steps_(keep_steps) {
    if (!looks_at_bytes) {
      for (auto& n : p_.nodes) n.uses.clear();
      for (auto& e : p_.edges) e.uses.clear();
      p_.base.clear();
      p_.steps = 0;
    }
    if (!keep_steps_) drop_dominated_steps(p_);
    const auto nodes = p_.nodes.size();
    variable_of_.resize(nodes);
    std::iota(variable_of_.begin(), variable_of_.end(), 0);
    strategy_of_.resize(nodes);
    members_.resize(nodes);
    for (std::size_t v = 0; v < nodes; ++v) {
      strategy_of_[v].resize(p_.nodes[v].cost.size());
      std::iota(strategy_of_[v].begin(), strategy_of_[v].end(), 0);
      members_[v] = {static_cast<int>(v)};
    }
  }

  /// Keeps only the flagged strategies, before or between runs.
  void keep(std::size_t v, const std::vector<char>& flag) {
    if (std::all_of(flag.begin(), flag.end(), [](char f) { return f != 0; })) return;
    const auto filter = [&](auto& list) {
      std::size_t to = 0;
      for (std::size_t s = 0; s < flag.size(); ++s)
        if (flag[s]) list[to++] = list[s];
      list.resize(to);
    };
    filter(p_.nodes[v].cost);
    for (auto& use : p_.nodes[v].uses) filter(use.bytes);
    for (auto& e : p_.edges) {
      if (e.u == static_cast<int>(v)) filter(e.u_class);
      if (e.v == static_cast<int>(v)) filter(e.v_class);
    }
    for (int m : members_[v]) filter(strategy_of_[static_cast<std::size_t>(m)]);
    changed_ = true;
  }

  void run() {
    for (int round = 0; round < 50 && !infeasible_; ++round) {
      changed_ = false;
      for (std::size_t v = 0; v < p_.nodes.size(); ++v) drop_forbidden(v);
      if (infeasible_) return;
      fold_self_edges();
      merge_parallel_edges();
      for (auto& e : p_.edges) tighten_classes(e);
      drop_pairless_strategies();
      if (infeasible_) return;
      fold_one_class_edges();
      merge_decided_nodes();
      drop_dominated_strategies();
      if (!changed_) break;
    }
  }

  reduction finish() {
    reduction out;
    out.infeasible = infeasible_;
    out.variable_of.assign(variable_of_.size(), -1);
    out.strategy_of = strategy_of_;
    if (infeasible_) return out;
    std::vector<int> renumbered(p_.nodes.size(), -1);
    std::vector<char> joined(p_.nodes.size(), 0);
    for (const auto& e : p_.edges) joined[static_cast<std::size_t>(e.u)] = joined[static_cast<std::size_t>(e.v)] = 1;
    auto& small = out.small;
    small.steps = p_.steps;
    small.base = p_.base;
    small.base.resize(static_cast<std::size_t>(small.steps), 0);
    for (std::size_t v = 0; v < p_.nodes.size(); ++v) {
      if (members_[v].empty()) continue;
      auto& n = p_.nodes[v];
      if (n.cost.size() == 1 && !joined[v]) {
        out.constant += n.cost[0];
        for (const auto& use : n.uses)
          for (int t = use.begin; t < use.end; ++t) small.base[static_cast<std::size_t>(t)] += use.bytes[0];
        continue;
      }
      renumbered[v] = static_cast<int>(small.nodes.size());
      small.nodes.push_back(std::move(n));
    }
    for (auto& e : p_.edges) {
      e.u = renumbered[static_cast<std::size_t>(e.u)];
      e.v = renumbered[static_cast<std::size_t>(e.v)];
      small.edges.push_back(std::move(e));
    }
    for (std::size_t v = 0; v < variable_of_.size(); ++v)
      out.variable_of[v] = renumbered[static_cast<std::size_t>(variable_of_[v])];
    if (!keep_steps_) drop_dominated_steps(small);
    return out;
  }

 private:
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  void drop_forbidden(std::size_t v) {
    if (members_[v].empty()) return;
    const auto& cost = p_.nodes[v].cost;
    std::vector<char> flag(cost.size());
    for (std::size_t s = 0; s < cost.size(); ++s) flag[s] = cost[s] < infinity;
    if (std::none_of(flag.begin(), flag.end(), [](char f) { return f != 0; })) infeasible_ = true;
    if (!infeasible_) keep(v, flag);
  }

  /// Adds to node v what edge table entry `pair(s)` holds for its strategy s.
  template <class Pair>
  void add_to_node(std::size_t v, const edge& e, Pair pair) {
    auto& n = p_.nodes[v];
    for (std::size_t s = 0; s < n.cost.size(); ++s) n.cost[s] += e.cost[pair(s)];
    for (const auto& u : e.uses) {
      use extra{u.begin, u.end, std::vector<std::int64_t>(n.cost.size())};
      for (std::size_t s = 0; s < n.cost.size(); ++s) extra.bytes[s] = u.bytes[pair(s)];
      add_use(n.uses, extra);
    }
  }

  void fold_self_edges() {
    std::erase_if(p_.edges, [&](const edge& e) {
      if (e.u != e.v) return false;
      add_to_node(index(e.u), e, [&](std::size_t s) { return index(e.u_class[s] * e.v_classes + e.v_class[s]); });
      changed_ = true;
      return true;
    });
    if (!changed_) return;
    for (std::size_t v = 0; v < p_.nodes.size(); ++v) drop_forbidden(v);
  }

  void merge_parallel_edges() {
    std::map<std::pair<int, int>, std::size_t> first;
    std::vector<edge> merged;
    for (auto& original : p_.edges) {
      edge e = original.u < original.v ? std::move(original) : transposed(original);
      const auto [at, fresh] = first.try_emplace({e.u, e.v}, merged.size());
      if (fresh) {
        merged.push_back(std::move(e));
        continue;
      }
      auto& into = merged[at->second];
      into = sum_of(into, e);
      changed_ = true;
    }
    p_.edges = std::move(merged);
  }

  /// Numbers the distinct pairs (a[s], b[s]); `firsts` receives one pair for each number.
  static std::vector<int> common_refinement(const std::vector<int>& a, const std::vector<int>& b,
                                            std::vector<std::pair<int, int>>& firsts) {
    std::map<std::pair<int, int>, int> number;
    std::vector<int> out;
    for (std::size_t s = 0; s < a.size(); ++s) {
      const auto [at, fresh] = number.try_emplace({a[s], b[s]}, static_cast<int>(firsts.size()));
      if (fresh) firsts.push_back({a[s], b[s]});
      out.push_back(at->second);
    }
    return out;
  }

  static edge sum_of(const edge& a, const edge& b) {
    std::vector<std::pair<int, int>> rows, columns;
    edge out;
    out.u = a.u;
    out.v = a.v;
    out.u_class = common_refinement(a.u_class, b.u_class, rows);
    out.v_class = common_refinement(a.v_class, b.v_class, columns);
    out.u_classes = static_cast<int>(rows.size());
    out.v_classes = static_cast<int>(columns.size());
    std::vector<std::size_t> in_a, in_b;
    for (const auto& [ia, ib] : rows)
      for (const auto& [ja, jb] : columns) {
        in_a.push_back(index(ia * a.v_classes + ja));
        in_b.push_back(index(ib * b.v_classes + jb));
        out.cost.push_back(a.cost[in_a.back()] + b.cost[in_b.back()]);
      }
    const auto take = [&](const edge& from, const std::vector<std::size_t>& at) {
      for (const auto& u : from.uses) {
        edge_use extra{u.begin, u.end, {}};
        for (std::size_t i : at) extra.bytes.push_back(u.bytes[i]);
        add_use(out.uses, extra);
      }
    };
    take(a, in_a);
    take(b, in_b);
    return out;
  }

  /// Leaves out classes that no strategy has, and joins classes whose rows (then columns) are equal.
  void tighten_classes(edge& e) {
    const auto join_rows = [](const edge& from) {
      std::map<std::vector<double>, int> number;
      std::vector<int> renumbered(index(from.u_classes), -1), firsts;
      for (int c : from.u_class) {
        if (renumbered[index(c)] >= 0) continue;
        std::vector<double> row;
        const auto append = [&](const auto& table) {
          for (int j = 0; j < from.v_classes; ++j)
            row.push_back(static_cast<double>(table[index(c * from.v_classes + j)]));
        };
        append(from.cost);
        for (const auto& u : from.uses) append(u.bytes);
        const auto [at, fresh] = number.try_emplace(std::move(row), static_cast<int>(firsts.size()));
        if (fresh) firsts.push_back(c);
        renumbered[index(c)] = at->second;
      }
      edge out{from.u, from.v, from.u_class, from.v_class, static_cast<int>(firsts.size()), from.v_classes, {}, {}};
      for (int& c : out.u_class) c = renumbered[index(c)];
      const auto pick = [&](const auto& table, auto& to) {
        for (int c : firsts)
          to.insert(to.end(), table.begin() + c * from.v_classes, table.begin() + (c + 1) * from.v_classes);
      };
      pick(from.cost, out.cost);
      for (const auto& u : from.uses) {
        out.uses.push_back({u.begin, u.end, {}});
        pick(u.bytes, out.uses.back().bytes);
      }
      return out;
    };
    // An unused class of v would keep rows of u apart, so v's side is tightened on both sides of u's.
    e = transposed(join_rows(transposed(e)));
    e = join_rows(e);
    e = transposed(join_rows(transposed(e)));
    std::erase_if(e.uses, [](const edge_use& u) {
      return std::all_of(u.bytes.begin(), u.bytes.end(), [](auto b) { return b == 0; });
    });
  }

  /// Arc consistency: a strategy whose class has no permitted partner goes.
  void drop_pairless_strategies() {
    for (std::size_t i = 0; i < p_.edges.size() && !infeasible_; ++i) {
      const auto& e = p_.edges[i];
      std::vector<char> u_permitted(index(e.u_classes), 0), v_permitted(index(e.v_classes), 0);
      for (int a = 0; a < e.u_classes; ++a)
        for (int b = 0; b < e.v_classes; ++b)
          if (e.cost[index(a * e.v_classes + b)] < infinity) u_permitted[index(a)] = v_permitted[index(b)] = 1;
      const auto flags = [](const std::vector<int>& classes, const std::vector<char>& permitted) {
        std::vector<char> flag;
        for (int c : classes) flag.push_back(permitted[index(c)]);
        return flag;
      };
      const auto u_flag = flags(e.u_class, u_permitted), v_flag = flags(e.v_class, v_permitted);
      if (std::none_of(u_flag.begin(), u_flag.end(), [](char f) { return f != 0; })) {
        infeasible_ = true;
        return;
      }
      const auto u = index(e.u), v = index(e.v);
      keep(u, u_flag);
      keep(v, v_flag);
    }
  }

  void fold_one_class_edges() {
    std::erase_if(p_.edges, [&](const edge& e) {
      if (e.u_classes == 1)
        add_to_node(index(e.v), e, [&](std::size_t s) { return index(e.v_class[s]); });
      else if (e.v_classes == 1)
        add_to_node(index(e.u), e, [&](std::size_t s) { return index(e.u_class[s]); });
      else
        return false;
      changed_ = true;
      return true;
    });
  }

  /// Where each strategy of one end of an edge permits a single strategy of the other, the other follows it.
  void merge_decided_nodes() {
    for (std::size_t i = 0; i < p_.edges.size(); ++i) {
      edge e = p_.edges[i];
      auto follows = partner_of_classes(e);
      if (follows.empty()) {
        e = transposed(e);
        follows = partner_of_classes(e);
      }
      if (follows.empty()) continue;
      std::vector<int> partner;
      for (int c : e.u_class) partner.push_back(follows[index(c)]);
      p_.edges.erase(p_.edges.begin() + static_cast<std::ptrdiff_t>(i));
      follow(index(e.u), index(e.v), e, partner);
      changed_ = true;
      // Self and parallel edges may have come up; the passes above clear them in the next round.
      return;
    }
  }

  /// For each class of u its only permitted strategy of v; empty where some class permits several.
  static std::vector<int> partner_of_classes(const edge& e) {
    std::vector<int> strategy_of_class(index(e.v_classes), -1);
    for (std::size_t s = 0; s < e.v_class.size(); ++s) {
      auto& only = strategy_of_class[index(e.v_class[s])];
      only = only == -1 ? static_cast<int>(s) : -2;
    }
    std::vector<int> out(index(e.u_classes), -1);
    for (int a = 0; a < e.u_classes; ++a)
      for (int b = 0; b < e.v_classes; ++b) {
        if (!(e.cost[index(a * e.v_classes + b)] < infinity)) continue;
        if (out[index(a)] >= 0 || strategy_of_class[index(b)] < 0) return {};
        out[index(a)] = strategy_of_class[index(b)];
      }
    return out;
  }

  /// Node v now takes strategy partner[s] whenever u takes s.
  void follow(std::size_t u, std::size_t v, const edge& tie, const std::vector<int>& partner) {
    auto& leader = p_.nodes[u];
    add_to_node(u, tie,
                [&](std::size_t s) { return index(tie.u_class[s] * tie.v_classes + tie.v_class[index(partner[s])]); });
    for (std::size_t s = 0; s < partner.size(); ++s) leader.cost[s] += p_.nodes[v].cost[index(partner[s])];
    const auto through = [&](const auto& list) {
      std::decay_t<decltype(list)> out;
      for (int s : partner) out.push_back(list[index(s)]);
      return out;
    };
    for (const auto& n_use : p_.nodes[v].uses) add_use(leader.uses, use{n_use.begin, n_use.end, through(n_use.bytes)});
    for (auto& e : p_.edges) {
      if (index(e.u) == v) {
        e.u = static_cast<int>(u);
        e.u_class = through(e.u_class);
      }
      if (index(e.v) == v) {
        e.v = static_cast<int>(u);
        e.v_class = through(e.v_class);
      }
    }
    for (int m : members_[v]) {
      strategy_of_[index(m)] = through(strategy_of_[index(m)]);
      variable_of_[index(m)] = static_cast<int>(u);
      members_[u].push_back(m);
    }
    members_[v].clear();
    p_.nodes[v] = {};
  }

  /// Strategy t goes when some s is nowhere worse: own cost, bytes of every use, and whatever any neighbour does.
  void drop_dominated_strategies() {
    std::vector<std::vector<std::size_t>> incident(p_.nodes.size());
    for (std::size_t i = 0; i < p_.edges.size(); ++i) {
      incident[index(p_.edges[i].u)].push_back(i);
      incident[index(p_.edges[i].v)].push_back(i);
    }
    for (std::size_t v = 0; v < p_.nodes.size(); ++v) {
      const auto& n = p_.nodes[v];
      const auto k = n.cost.size();
      if (k < 2) continue;
      std::vector<const std::vector<int>*> classes;
      std::vector<int> counts;
      std::vector<std::vector<char>> no_worse;
      for (std::size_t i : incident[v]) {
        const auto& e = p_.edges[i];
        const bool first = index(e.u) == v;
        classes.push_back(first ? &e.u_class : &e.v_class);
        counts.push_back(first ? e.u_classes : e.v_classes);
        no_worse.push_back(class_order(e, first));
      }
      std::vector<char> flag(k, 1);
      for (std::size_t t = 0; t < k; ++t)
        for (std::size_t s = 0; s < k && flag[t]; ++s) {
          if (s == t || !flag[s] || n.cost[s] > n.cost[t]) continue;
          bool wins = true;
          for (std::size_t i = 0; wins && i < classes.size(); ++i)
            wins = no_worse[i][index((*classes[i])[s] * counts[i] + (*classes[i])[t])] != 0;
          for (std::size_t i = 0; wins && i < n.uses.size(); ++i) wins = n.uses[i].bytes[s] <= n.uses[i].bytes[t];
          // Equal strategies would drop each other, but a dropped one is no longer compared with.
          if (wins) flag[t] = 0;
        }
      keep(v, flag);
    }
  }

  /// Entry (a, b) says that class a is nowhere worse than class b.
  static std::vector<char> class_order(const edge& e, bool first) {
    const int mine = first ? e.u_classes : e.v_classes, others = first ? e.v_classes : e.u_classes;
    const auto at = [&](int a, int j) { return index(first ? a * e.v_classes + j : j * e.v_classes + a); };
    std::vector<char> out(index(mine * mine), 1);
    for (int a = 0; a < mine; ++a)
      for (int b = 0; b < mine; ++b) {
        auto& ok = out[index(a * mine + b)];
        for (int j = 0; ok && j < others; ++j) {
          ok = e.cost[at(a, j)] <= e.cost[at(b, j)];
          for (std::size_t i = 0; ok && i < e.uses.size(); ++i)
            ok = e.uses[i].bytes[at(a, j)] <= e.uses[i].bytes[at(b, j)];
        }
      }
    return out;
  }

  problem p_;
  std::vector<int> variable_of_;
  std::vector<std::vector<int>> strategy_of_, members_;
  bool keep_steps_ = false, changed_ = false, infeasible_ = false;
};

}  // namespace detail

/// Reduces `p`; a request that neither minimises nor limits the peak need not look at bytes. Every choice of `small`
/// has, expanded, the cost of `small` plus `constant` and the peak of `small` (where looked at), and no choice of `p`
/// beats all of these.
inline reduction reduce(const problem& p, bool looks_at_bytes = true) {
  detail::reducer r(p, looks_at_bytes, false);
  r.run();
  return r.finish();
}

/// Reduces `p` to what a limit on the peak leaves of it. Where `drop_idle` is set, the steps at which the limit cannot
/// be exceeded go too: then the peak of a choice of `small` tells only whether the limit is kept.
inline reduction reduce_to(problem p, const tightened& left, bool drop_idle) {
  for (std::size_t e = 0; e < p.edges.size(); ++e)
    for (std::size_t k = 0; k < p.edges[e].cost.size(); ++k)
      if (left.dead_pairs[e][k]) p.edges[e].cost[k] = infinity;
  if (drop_idle) {
    auto kept = left.idle;
    for (char& flag : kept) flag = flag == 0;
    keep_steps(p, kept);
  }
  detail::reducer r(p, true, !drop_idle);
  for (std::size_t v = 0; v < left.dead.size(); ++v) {
    auto alive = left.dead[v];
    for (char& flag : alive) flag = flag == 0;
    r.keep(v, alive);
  }
  r.run();
  return r.finish();
}

/// Reduces `p` without the strategies flagged in `dead[node][strategy]`; its steps keep their numbers.
inline reduction reduce_without(const problem& p, const std::vector<std::vector<char>>& dead) {
  detail::reducer r(p, true, true);
  for (std::size_t v = 0; v < dead.size(); ++v) {
    auto alive = dead[v];
    for (char& flag : alive) flag = flag == 0;
    r.keep(v, alive);
  }
  r.run();
  return r.finish();
}

}  // namespace mmr::solve
