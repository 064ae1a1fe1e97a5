// The reductions and their order: whatever changes is looked at again, and nothing else is, so that a problem of a
// hundred thousand edges costs little more than reading it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mmr/solve/edge_tables.hpp"
#include "mmr/solve/problem.hpp"
#include "mmr/solve/steps.hpp"
#include "mmr/solve/tie.hpp"
#include "mmr/solve/way_back.hpp"

namespace mmr::solve::detail {

/// Nodes and edges that wait to be looked at, each at most once.
class worklist {
 public:
  explicit worklist(std::size_t size) : waits_(size, 0) {}

  void push(std::size_t i) {
    if (i >= waits_.size()) waits_.resize(i + 1, 0);
    if (waits_[i]) return;
    waits_[i] = 1;
    list_.push_back(i);
  }

  bool empty() const { return next_ == list_.size(); }

  std::size_t pop() {
    const auto i = list_[next_++];
    waits_[i] = 0;
    if (next_ == list_.size()) {
      list_.clear();
      next_ = 0;
    }
    return i;
  }

 private:
  std::vector<std::size_t> list_;
  std::vector<char> waits_;
  std::size_t next_ = 0;
};

/// Reduces a copy of a problem in place. Nodes keep their numbers until `finish`.
class reducer {
 public:
  explicit reducer(problem p)
      : p_(std::move(p)),
        edges_of_(p_.nodes.size()),
        node_gone_(p_.nodes.size(), 0),
        edge_gone_(p_.edges.size(), 0),
        nodes_(p_.nodes.size()),
        edges_(p_.edges.size()),
        rivals_(p_.nodes.size()) {
    for (std::size_t i = 0; i < p_.edges.size(); ++i) {
      enlist(i);
      edges_.push(i);
    }
    for (std::size_t v = 0; v < p_.nodes.size(); ++v) {
      nodes_.push(v);
      rivals_.push(v);
    }
  }

  const problem& current() const { return p_; }
  bool infeasible() const { return infeasible_; }

  /// Keeps only the flagged strategies, before `run` or in it.
  void keep(std::size_t v, const std::vector<char>& flag) {
    if (std::all_of(flag.begin(), flag.end(), [](char f) { return f != 0; })) return;
    std::vector<int> kept;
    for (std::size_t s = 0; s < flag.size(); ++s)
      if (flag[s]) kept.push_back(static_cast<int>(s));
    infeasible_ = infeasible_ || kept.empty();
    if (infeasible_) return;
    const auto filter = [&](auto& list) {
      for (std::size_t i = 0; i < kept.size(); ++i) list[i] = list[index(kept[i])];
      list.resize(kept.size());
    };
    filter(p_.nodes[v].cost);
    for (auto& use : p_.nodes[v].uses) filter(use.bytes);
    for (std::size_t i : live_edges(v)) {
      auto& e = p_.edges[i];
      if (index(e.u) == v) filter(e.u_class);
      if (index(e.v) == v) filter(e.v_class);
    }
    way_back_.kept(static_cast<int>(v), std::move(kept));
    changed(v);
  }

  void run() {
    while (!infeasible_) {
      if (!nodes_.empty())
        drop_forbidden(nodes_.pop());
      else if (!edges_.empty())
        visit_edge(edges_.pop());
      else if (!rivals_.empty())
        visit_node(rivals_.pop());
      else
        return;
    }
  }

  /// What is left, with its nodes numbered anew: `node_of[i]` is the number that node i had. Decided nodes move into
  /// `constant` and the base.
  problem finish(std::vector<int>& node_of, double& constant) {
    problem out;
    out.steps = p_.steps;
    out.base = p_.base;
    out.base.resize(index(out.steps), 0);
    std::vector<int> renumbered(p_.nodes.size(), -1);
    for (std::size_t v = 0; v < p_.nodes.size(); ++v) {
      if (node_gone_[v]) continue;
      auto& n = p_.nodes[v];
      if (n.cost.size() == 1 && live_edges(v).empty()) {
        constant += n.cost[0];
        for (const auto& use : n.uses)
          for (int t = use.begin; t < use.end; ++t) out.base[index(t)] += use.bytes[0];
        way_back_.decided(static_cast<int>(v));
        continue;
      }
      renumbered[v] = static_cast<int>(out.nodes.size());
      node_of.push_back(static_cast<int>(v));
      out.nodes.push_back(std::move(n));
    }
    for (std::size_t i = 0; i < p_.edges.size(); ++i) {
      if (edge_gone_[i]) continue;
      auto& e = p_.edges[i];
      e.u = renumbered[index(e.u)];
      e.v = renumbered[index(e.v)];
      out.edges.push_back(std::move(e));
    }
    return out;
  }

  way_back take_way_back() { return std::move(way_back_); }

 private:
  static std::uint64_t pair_of(const edge& e) {
    const auto [low, high] = std::minmax(e.u, e.v);
    return static_cast<std::uint64_t>(low) << 32 | static_cast<std::uint64_t>(high);
  }

  void enlist(std::size_t i) {
    edges_of_[index(p_.edges[i].u)].push_back(i);
    if (p_.edges[i].u != p_.edges[i].v) edges_of_[index(p_.edges[i].v)].push_back(i);
  }

  /// The edges of v; those that are gone, or have moved to another node, leave the list here.
  const std::vector<std::size_t>& live_edges(std::size_t v) {
    std::erase_if(edges_of_[v], [&](std::size_t i) {
      return edge_gone_[i] || (index(p_.edges[i].u) != v && index(p_.edges[i].v) != v);
    });
    return edges_of_[v];
  }

  /// Node v is to be looked at again, and so is all that it shares an edge with.
  void changed(std::size_t v) {
    nodes_.push(v);
    rivals_.push(v);
    for (std::size_t i : live_edges(v)) edges_.push(i);
  }

  void remove(std::size_t i) {
    edge_gone_[i] = 1;
    const auto& e = p_.edges[i];
    const auto known = edge_between_.find(pair_of(e));
    if (known != edge_between_.end() && known->second == i) edge_between_.erase(known);
    rivals_.push(index(e.u));
    rivals_.push(index(e.v));
    p_.edges[i].cost = {};
    p_.edges[i].uses = {};
  }

  void drop_forbidden(std::size_t v) {
    if (node_gone_[v]) return;
    const auto& cost = p_.nodes[v].cost;
    std::vector<char> flag(cost.size());
    for (std::size_t s = 0; s < cost.size(); ++s) flag[s] = cost[s] < infinity;
    keep(v, flag);
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
    nodes_.push(v);
    rivals_.push(v);
  }

  void visit_edge(std::size_t i) {
    if (edge_gone_[i]) return;
    auto& e = p_.edges[i];
    if (e.u == e.v) {
      add_to_node(index(e.u), e, [&](std::size_t s) { return index(e.u_class[s] * e.v_classes + e.v_class[s]); });
      return remove(i);
    }
    if (const auto [other, fresh] = edge_between_.try_emplace(pair_of(e), i); !fresh && other->second != i) {
      auto& first = p_.edges[other->second];
      first = sum_of(first, first.u == e.u ? e : transposed(e));
      edges_.push(other->second);
      return remove(i);
    }
    tighten_classes(e);
    if (drop_pairless(i)) return;
    if (e.u_classes == 1) {
      add_to_node(index(e.v), e, [&](std::size_t s) { return index(e.v_class[s]); });
      return remove(i);
    }
    if (e.v_classes == 1) {
      add_to_node(index(e.u), e, [&](std::size_t s) { return index(e.u_class[s]); });
      return remove(i);
    }
    rivals_.push(index(e.u));
    rivals_.push(index(e.v));
    merge_decided(i);
  }

  /// Arc consistency: a strategy whose class has no permitted partner goes. True where one went: the edge is visited
  /// again.
  bool drop_pairless(std::size_t i) {
    const auto& e = p_.edges[i];
    std::vector<char> u_permitted(index(e.u_classes), 0), v_permitted(index(e.v_classes), 0);
    for (int a = 0; a < e.u_classes; ++a)
      for (int b = 0; b < e.v_classes; ++b)
        if (e.cost[index(a * e.v_classes + b)] < infinity) u_permitted[index(a)] = v_permitted[index(b)] = 1;
    const auto all = [](const std::vector<char>& flags) {
      return std::all_of(flags.begin(), flags.end(), [](char f) { return f != 0; });
    };
    if (all(u_permitted) && all(v_permitted)) return false;
    const auto flags = [](const std::vector<int>& classes, const std::vector<char>& permitted) {
      std::vector<char> flag;
      for (int c : classes) flag.push_back(permitted[index(c)]);
      return flag;
    };
    const auto u_flag = flags(e.u_class, u_permitted), v_flag = flags(e.v_class, v_permitted);
    const auto u = index(e.u), v = index(e.v);
    keep(u, u_flag);
    if (!infeasible_) keep(v, v_flag);
    edges_.push(i);
    return true;
  }

  /// Where each strategy of one end permits a single strategy of the other, the other follows it.
  void merge_decided(std::size_t i) {
    auto e = p_.edges[i];
    auto partner = partner_of_classes(e), back = partner_of_classes(transposed(e));
    if (partner.empty() && back.empty()) return;
    // Either may follow where both can: the one with fewer edges moves.
    const bool v_follows =
        back.empty() || (!partner.empty() && live_edges(index(e.v)).size() <= live_edges(index(e.u)).size());
    if (!v_follows) {
      e = transposed(e);
      partner = std::move(back);
    }
    std::vector<int> strategy;
    for (int c : e.u_class) strategy.push_back(partner[index(c)]);
    remove(i);
    follow(index(e.u), index(e.v), e, std::move(strategy));
  }

  /// Node v now takes strategy partner[s] whenever u takes s.
  void follow(std::size_t u, std::size_t v, const edge& tie, std::vector<int> partner) {
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
    for (std::size_t i : live_edges(v)) {
      auto& e = p_.edges[i];
      const auto known = edge_between_.find(pair_of(e));
      if (known != edge_between_.end() && known->second == i) edge_between_.erase(known);
      if (index(e.u) == v) {
        e.u = static_cast<int>(u);
        e.u_class = through(e.u_class);
      }
      if (index(e.v) == v) {
        e.v = static_cast<int>(u);
        e.v_class = through(e.v_class);
      }
      // What runs between u and v already stands at u: twice there, and its classes would be filtered twice.
      if (auto& at_u = edges_of_[u]; std::find(at_u.begin(), at_u.end(), i) == at_u.end()) at_u.push_back(i);
      edges_.push(i);
    }
    node_gone_[v] = 1;
    p_.nodes[v] = {};
    way_back_.follows(static_cast<int>(v), static_cast<int>(u), std::move(partner));
    changed(u);
  }

  void visit_node(std::size_t v) {
    if (node_gone_[v]) return;
    drop_dominated(v);
    if (!infeasible_ && nodes_.empty() && edges_.empty()) eliminate(v);
  }

  /// Strategy t goes when some s is nowhere worse: own cost, bytes of every use, and whatever any neighbour does.
  void drop_dominated(std::size_t v) {
    const auto& n = p_.nodes[v];
    const auto k = n.cost.size();
    if (k < 2) return;
    auto order = live_edges(v);
    std::vector<char> flag(k, 1);
    // Of very many strategies only the cheapest are tried against the others, which takes no more than squares of few.
    constexpr std::size_t many = 4096, cheapest = 256;
    std::vector<std::size_t> winners(k);
    std::iota(winners.begin(), winners.end(), std::size_t{0});
    if (k > many) {
      std::partial_sort(winners.begin(), winners.begin() + cheapest, winners.end(),
                        [&](auto a, auto b) { return std::pair(n.cost[a], a) < std::pair(n.cost[b], b); });
      winners.resize(cheapest);
    }
    for (std::size_t t = 0; t < k; ++t)
      for (const std::size_t s : winners) {
        if (!flag[t]) break;
        if (s == t || !flag[s] || n.cost[s] > n.cost[t]) continue;
        bool wins = true;
        for (std::size_t i = 0; wins && i < n.uses.size(); ++i) wins = n.uses[i].bytes[s] <= n.uses[i].bytes[t];
        for (std::size_t i = 0; wins && i < order.size(); ++i) {
          const auto& e = p_.edges[order[i]];
          wins = no_worse(e, index(e.u) == v, s, t);
          // What told two strategies apart is likely to tell the next two apart.
          if (!wins) std::swap(order[0], order[i]);
        }
        // Equal strategies would drop each other, but a dropped one is no longer compared with.
        if (wins) flag[t] = 0;
      }
    keep(v, flag);
  }

  /// A node that holds no bytes and has at most two edges answers its neighbours: it leaves, and what it and its edges
  /// cost at best stays with them, as long as that takes no more room than the edges did.
  void eliminate(std::size_t v) {
    const auto edges = live_edges(v);
    if (edges.empty() || edges.size() > 2 || !p_.nodes[v].uses.empty()) return;
    for (std::size_t i : edges)
      if (!p_.edges[i].uses.empty()) return;
    const auto from = [&](std::size_t i) { return index(p_.edges[i].u) == v ? transposed(p_.edges[i]) : p_.edges[i]; };
    const edge a = from(edges[0]);
    const edge b =
        edges.size() == 2 ? from(edges[1]) : edge{-1, a.v, {}, std::vector<int>(a.v_class.size(), 0), 1, 1, {0}, {}};
    const auto rows = index(a.u_classes), columns = index(b.u_classes);
    if (rows * columns > std::max<std::size_t>(64, a.cost.size() + b.cost.size())) return;
    const auto& own = p_.nodes[v].cost;
    std::vector<double> least(rows * columns, infinity);
    std::vector<int> best(rows * columns, 0);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < columns; ++c)
        for (std::size_t s = 0; s < own.size(); ++s) {
          const double sum = own[s] + a.cost[r * index(a.v_classes) + index(a.v_class[s])] +
                             b.cost[c * index(b.v_classes) + index(b.v_class[s])];
          if (sum < least[r * columns + c]) {
            least[r * columns + c] = sum;
            best[r * columns + c] = static_cast<int>(s);
          }
        }
    for (std::size_t i : edges) remove(i);
    node_gone_[v] = 1;
    p_.nodes[v] = {};
    way_back_.answers(static_cast<int>(v), a.u, a.u_class, b.u, b.u_class, static_cast<int>(columns), std::move(best));
    if (b.u < 0) {
      for (std::size_t s = 0; s < a.u_class.size(); ++s) p_.nodes[index(a.u)].cost[s] += least[index(a.u_class[s])];
      nodes_.push(index(a.u));
      rivals_.push(index(a.u));
      return;
    }
    p_.edges.push_back({a.u, b.u, a.u_class, b.u_class, a.u_classes, b.u_classes, std::move(least), {}});
    edge_gone_.push_back(0);
    enlist(p_.edges.size() - 1);
    edges_.push(p_.edges.size() - 1);
  }

  problem p_;
  std::vector<std::vector<std::size_t>> edges_of_;
  std::vector<char> node_gone_, edge_gone_;
  std::unordered_map<std::uint64_t, std::size_t> edge_between_;
  worklist nodes_, edges_, rivals_;  // forbidden strategies; edges; dominated strategies and elimination
  way_back way_back_;
  bool infeasible_ = false;
};

}  // namespace mmr::solve::detail
