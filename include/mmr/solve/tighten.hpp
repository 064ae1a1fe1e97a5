// A limit on bytes says more than it seems: at each step the least that everything else must hold leaves a small rest,
// and what does not fit into that rest can go before any bound is computed; so can the steps that no longer can exceed
// the limit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "mmr/solve/problem.hpp"
#include "mmr/solve/slack.hpp"

namespace mmr::solve {

/// What a limit on the peak leaves of a problem. Every choice that keeps the limit is made of what is not flagged.
struct tightened {
  bool infeasible = false;                    ///< no choice keeps the limit
  std::vector<std::vector<char>> dead;        ///< [node][strategy]
  std::vector<std::vector<char>> dead_pairs;  ///< [edge][class pair]
  std::vector<char> idle;                     ///< [step]: no choice of what is left exceeds the limit there
  std::size_t dropped = 0;                    ///< flagged strategies and pairs
};

namespace detail {

/// Bounds the bytes of one step after another from below, for every strategy and class pair, until nothing more can be
/// flagged. The bound of a step is exact where the edges that hold bytes there form a forest; the least of the others
/// counts alone.
class tightener {
 public:
  /// `known`, where given, is what a limit no lower leaves.
  tightener(const problem& p, std::int64_t limit, const tightened* known)
      : p_(p), limit_(limit), incident_(edges_by_node(p)) {
    for (const auto& n : p.nodes) {
      out_.dead.emplace_back(n.cost.size(), 0);
      for (std::size_t s = 0; s < n.cost.size(); ++s) out_.dead.back()[s] = !(n.cost[s] < infinity);
    }
    for (std::size_t i = 0; i < p.edges.size(); ++i) {
      const auto& e = p.edges[i];
      out_.dead_pairs.emplace_back(e.cost.size(), 0);
      for (std::size_t k = 0; k < e.cost.size(); ++k) out_.dead_pairs.back()[k] = !(e.cost[k] < infinity);
    }
    if (known != nullptr) {
      out_.dead = known->dead;
      out_.dead_pairs = known->dead_pairs;
    }
    out_.idle.assign(at(p.steps), 0);
    live_edges_.resize(at(p.steps));
    list_live(p.edges, live_edges_);
    // Where no edge holds bytes the sums of nodes alone are exact.
    for (int t = 0; t < p.steps; ++t)
      if (!live_edges_[at(t)].empty()) forests_.push_back(t);
    if (forests_.empty()) return;
    live_nodes_.resize(at(p.steps));
    list_live(p.nodes, live_nodes_);
    node_.resize(p.nodes.size());
    edge_.resize(p.edges.size());
    part_.resize(p.nodes.size());
  }

  tightened run() {
    constexpr int most_rounds = 50;
    for (int round = 0; round < most_rounds && !out_.infeasible; ++round) {
      const auto before = out_.dropped;
      close_pairs();
      if (!out_.infeasible) visit_all_alone();
      for (int t : forests_)
        if (!out_.infeasible && !out_.idle[at(t)]) visit(t);
      if (round > 0 && out_.dropped == before) break;
    }
    return std::move(out_);
  }

 private:
  using bytes = std::int64_t;
  static constexpr bytes never = bytes{1} << 60;
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  struct link {
    std::size_t edge;
    int other;
  };
  /// A node's place in the forest of one step.
  struct place {
    std::vector<link> links;
    int parent = -1;
    std::size_t parent_edge = 0;
    bool seen = false;
    std::vector<bytes> below, total;  // least of the subtree, then of the whole tree, for each strategy
    std::vector<bytes> up;            // what the parent's classes get from here
  };

  template <class Things>
  static void list_live(const Things& things, std::vector<std::vector<int>>& live) {
    for (std::size_t i = 0; i < things.size(); ++i)
      for (const auto& use : things[i].uses)
        for (int t = use.begin; t < use.end; ++t)
          if (live[at(t)].empty() || live[at(t)].back() != static_cast<int>(i))
            live[at(t)].push_back(static_cast<int>(i));
  }

  template <class Uses>
  static void sum_live(const Uses& uses, int t, const std::vector<char>& dead, std::vector<bytes>& table) {
    table.assign(dead.size(), 0);
    for (const auto& use : uses)
      if (use.begin <= t && t < use.end)
        for (std::size_t k = 0; k < dead.size(); ++k) table[k] += use.bytes[k];
    for (std::size_t k = 0; k < dead.size(); ++k)
      if (dead[k]) table[k] = never;
  }

  static std::pair<bytes, bytes> range(const std::vector<bytes>& table) {
    bytes low = never, high = 0;
    for (bytes b : table)
      if (b < never) {
        low = std::min(low, b);
        high = std::max(high, b);
      }
    return {low, high};
  }

  void kill(std::size_t v, std::size_t s) {
    if (out_.dead[v][s]) return;
    out_.dead[v][s] = 1;
    ++out_.dropped;
    if (std::all_of(out_.dead[v].begin(), out_.dead[v].end(), [](char d) { return d != 0; })) out_.infeasible = true;
  }

  void kill_pair(std::size_t e, std::size_t k) {
    if (out_.dead_pairs[e][k]) return;
    out_.dead_pairs[e][k] = 1;
    ++out_.dropped;
  }

  /// Arc consistency: pairs without strategies and strategies without pairs go, until none does.
  void close_pairs() {
    std::vector<std::size_t> queue(p_.edges.size());
    std::vector<char> queued(p_.edges.size(), 1);
    for (std::size_t i = 0; i < queue.size(); ++i) queue[i] = i;
    while (!queue.empty() && !out_.infeasible) {
      const auto i = queue.back();
      queue.pop_back();
      queued[i] = 0;
      const auto& e = p_.edges[i];
      const auto columns = at(e.v_classes);
      const auto open = [&](const std::vector<int>& classes, int count, std::size_t v) {
        std::vector<char> out(at(count), 0);
        for (std::size_t s = 0; s < classes.size(); ++s)
          if (!out_.dead[v][s]) out[at(classes[s])] = 1;
        return out;
      };
      const auto u_open = open(e.u_class, e.u_classes, at(e.u)), v_open = open(e.v_class, e.v_classes, at(e.v));
      std::vector<char> u_paired(u_open.size(), 0), v_paired(v_open.size(), 0);
      for (std::size_t k = 0; k < e.cost.size(); ++k) {
        const auto a = k / columns, b = k % columns;
        if (!u_open[a] || !v_open[b]) kill_pair(i, k);
        if (!out_.dead_pairs[i][k]) u_paired[a] = v_paired[b] = 1;
      }
      const auto drop = [&](const std::vector<int>& classes, const std::vector<char>& paired, int v) {
        const auto before = out_.dropped;
        for (std::size_t s = 0; s < classes.size(); ++s)
          if (!paired[at(classes[s])]) kill(at(v), s);
        if (out_.dropped == before) return;
        for (auto j : incident_[at(v)])
          if (!queued[j]) {
            queued[j] = 1;
            queue.push_back(j);
          }
      };
      drop(e.u_class, u_paired, e.u);
      drop(e.v_class, v_paired, e.v);
    }
  }

  /// Every step at once: what each node and edge holds at least, alone, leaves the others the rest of the limit.
  void visit_all_alone() {
    std::vector<bytes> least(at(p_.steps) + 1, 0), most = least;
    const auto each = [&](auto visit) {
      for (std::size_t v = 0; v < p_.nodes.size(); ++v) visit(p_.nodes[v].uses, out_.dead[v], v, true);
      for (std::size_t i = 0; i < p_.edges.size(); ++i) visit(p_.edges[i].uses, out_.dead_pairs[i], i, false);
    };
    each([&](const auto& uses, const std::vector<char>& dead, std::size_t, bool) {
      for_each_piece(uses, dead.size(), [&](int begin, int end, const std::vector<bytes>& held) {
        const auto [low, high] = range_alive(held, dead);
        if (low > high) return;  // nothing is left: arc consistency says so
        least[at(begin)] += low;
        least[at(end)] -= low;
        most[at(begin)] += high;
        most[at(end)] -= high;
      });
    });
    std::vector<bytes> slack(at(p_.steps));
    bytes low = 0, high = 0;
    for (std::size_t t = 0; t < slack.size(); ++t) {
      low += least[t];
      high += most[t];
      const auto base = p_.base.empty() ? 0 : p_.base[t];
      out_.infeasible = out_.infeasible || base + low > limit_;
      if (base + high <= limit_) out_.idle[t] = 1;
      slack[t] = limit_ - base - low;
    }
    if (out_.infeasible) return;
    const range_least rest(std::move(slack));
    each([&](const auto& uses, const std::vector<char>& dead, std::size_t i, bool is_node) {
      for_each_piece(uses, dead.size(), [&](int begin, int end, const std::vector<bytes>& held) {
        const auto [least_held, most_held] = range_alive(held, dead);
        const auto room = rest.over(begin, end);
        if (most_held - least_held <= room) return;
        for (std::size_t k = 0; k < held.size(); ++k) {
          if (dead[k] || held[k] - least_held <= room) continue;
          if (is_node)
            kill(i, k);
          else
            kill_pair(i, k);
        }
      });
    });
  }

  void visit(int t) {
    bytes least = p_.base.empty() ? 0 : p_.base[at(t)], most = least;
    std::vector<int> nodes, edges, trees;
    for (int v : live_nodes_[at(t)]) {
      sum_live(p_.nodes[at(v)].uses, t, out_.dead[at(v)], node_[at(v)]);
      const auto [low, high] = range(node_[at(v)]);
      most += high;
      nodes.push_back(v);
    }
    for (int i : live_edges_[at(t)]) {
      sum_live(p_.edges[at(i)].uses, t, out_.dead_pairs[at(i)], edge_[at(i)]);
      const auto [low, high] = range(edge_[at(i)]);
      if (!(low < never)) {
        out_.infeasible = true;
        return;
      }
      most += high;
      if (high > low)
        edges.push_back(i);
      else
        least += low;
    }
    if (most <= limit_) {
      out_.idle[at(t)] = 1;
      return;
    }
    const auto root_of = [&](int v) {
      while (part_[at(v)] != v) v = part_[at(v)] = part_[at(part_[at(v)])];
      return v;
    };
    std::vector<place> places;
    std::vector<int> touched;
    for (int i : edges)
      for (int v : {p_.edges[at(i)].u, p_.edges[at(i)].v}) part_[at(v)] = -1;
    for (int i : edges)
      for (int v : {p_.edges[at(i)].u, p_.edges[at(i)].v}) {
        if (part_[at(v)] >= 0) continue;
        part_[at(v)] = v;
        touched.push_back(v);
        if (!std::binary_search(live_nodes_[at(t)].begin(), live_nodes_[at(t)].end(), v))
          sum_live(std::vector<use>{}, t, out_.dead[at(v)], node_[at(v)]);
      }
    std::sort(touched.begin(), touched.end());
    places.resize(touched.size());
    const auto place_of = [&](int v) -> place& {
      return places[static_cast<std::size_t>(std::lower_bound(touched.begin(), touched.end(), v) - touched.begin())];
    };
    std::vector<int> loose;
    for (int i : edges) {
      const auto& e = p_.edges[at(i)];
      const int a = root_of(e.u), b = root_of(e.v);
      if (a == b) {
        loose.push_back(i);
        least += range(edge_[at(i)]).first;
        continue;
      }
      part_[at(a)] = b;
      place_of(e.u).links.push_back({at(i), e.v});
      place_of(e.v).links.push_back({at(i), e.u});
    }
    for (int v : nodes)
      if (!std::binary_search(touched.begin(), touched.end(), v)) least += range(node_[at(v)]).first;
    // Leaves first.
    std::vector<int> order;
    std::vector<bytes> tree_least;
    std::vector<std::size_t> tree_of_root;
    for (int v : touched) {
      if (place_of(v).seen) continue;
      const auto first = order.size();
      place_of(v).seen = true;
      order.push_back(v);
      for (auto i = first; i < order.size(); ++i)
        for (const auto& l : place_of(order[i]).links) {
          auto& o = place_of(l.other);
          if (o.seen) continue;
          o.seen = true;
          o.parent = order[i];
          o.parent_edge = l.edge;
          order.push_back(l.other);
        }
    }
    for (std::size_t i = order.size(); i-- > 0;) {
      const int v = order[i];
      auto& mine = place_of(v);
      if (mine.below.empty()) mine.below = node_[at(v)];
      if (mine.parent < 0) {
        least += range(mine.below).first;
        continue;
      }
      auto& parent = place_of(mine.parent);
      if (parent.below.empty()) parent.below = node_[at(mine.parent)];
      mine.up = through(mine.parent_edge, v, mine.below);
      add(mine.parent_edge, mine.parent, mine.up, parent.below);
    }
    if (least > limit_) {
      out_.infeasible = true;
      return;
    }
    const bytes slack = limit_ - least;
    for (int v : nodes)
      if (!std::binary_search(touched.begin(), touched.end(), v)) drop_above(v, node_[at(v)], slack);
    for (int i : loose) drop_pairs_above(i, slack);
    for (int v : order) {
      auto& mine = place_of(v);
      if (mine.parent < 0) {
        mine.total = mine.below;
      } else {
        // The parent's total without what came from here, and on through the edge.
        const auto& parent = place_of(mine.parent);
        auto rest = parent.total;
        subtract(mine.parent_edge, mine.parent, mine.up, rest);
        drop_edge_above(mine.parent_edge, mine.parent, rest, v, mine.below, slack);
        const auto down = through(mine.parent_edge, mine.parent, rest);
        mine.total = mine.below;
        add(mine.parent_edge, v, down, mine.total);
      }
      drop_above(v, mine.total, slack);
    }
  }

  /// Least of `from`'s table plus the edge, for each class of the other end.
  std::vector<bytes> through(std::size_t i, int from, const std::vector<bytes>& table) const {
    const auto& e = p_.edges[i];
    const bool from_u = e.u == from;
    const auto& mine = from_u ? e.u_class : e.v_class;
    const auto columns = at(e.v_classes);
    const auto least = least_of_classes(mine, from_u ? e.u_classes : e.v_classes, table);
    std::vector<bytes> out(at(from_u ? e.v_classes : e.u_classes), never);
    for (std::size_t k = 0; k < edge_[i].size(); ++k) {
      const auto a = k / columns, b = k % columns;
      if (edge_[i][k] >= never || least[from_u ? a : b] >= never) continue;
      auto& o = out[from_u ? b : a];
      o = std::min(o, edge_[i][k] + least[from_u ? a : b]);
    }
    return out;
  }

  static std::vector<bytes> least_of_classes(const std::vector<int>& classes, int count,
                                             const std::vector<bytes>& table) {
    std::vector<bytes> least(at(count), never);
    for (std::size_t s = 0; s < table.size(); ++s) least[at(classes[s])] = std::min(least[at(classes[s])], table[s]);
    return least;
  }

  void add(std::size_t i, int to, const std::vector<bytes>& message, std::vector<bytes>& table) const {
    const auto& classes = p_.edges[i].u == to ? p_.edges[i].u_class : p_.edges[i].v_class;
    for (std::size_t s = 0; s < table.size(); ++s) {
      const auto m = message[at(classes[s])];
      table[s] = table[s] >= never || m >= never ? never : table[s] + m;
    }
  }

  void subtract(std::size_t i, int from, const std::vector<bytes>& message, std::vector<bytes>& table) const {
    const auto& classes = p_.edges[i].u == from ? p_.edges[i].u_class : p_.edges[i].v_class;
    for (std::size_t s = 0; s < table.size(); ++s)
      if (table[s] < never) table[s] -= message[at(classes[s])];
  }

  void drop_above(int v, const std::vector<bytes>& table, bytes slack) {
    const auto low = range(table).first;
    for (std::size_t s = 0; s < table.size(); ++s)
      if (table[s] >= never || table[s] - low > slack) kill(at(v), s);
  }

  void drop_pairs_above(int i, bytes slack) {
    const auto low = range(edge_[at(i)]).first;
    for (std::size_t k = 0; k < edge_[at(i)].size(); ++k)
      if (edge_[at(i)][k] < never && edge_[at(i)][k] - low > slack) kill_pair(at(i), k);
  }

  void drop_edge_above(std::size_t i, int parent, const std::vector<bytes>& rest, int child,
                       const std::vector<bytes>& below, bytes slack) {
    const auto& e = p_.edges[i];
    const auto& u_table = e.u == parent ? rest : below;
    const auto& v_table = e.v == child ? below : rest;
    const auto u_least = least_of_classes(e.u_class, e.u_classes, u_table);
    const auto v_least = least_of_classes(e.v_class, e.v_classes, v_table);
    const auto columns = at(e.v_classes);
    std::vector<bytes> total(edge_[i].size(), never);
    for (std::size_t k = 0; k < total.size(); ++k) {
      const auto a = u_least[k / columns], b = v_least[k % columns];
      if (edge_[i][k] < never && a < never && b < never) total[k] = edge_[i][k] + a + b;
    }
    const auto low = range(total).first;
    for (std::size_t k = 0; k < total.size(); ++k)
      if (total[k] >= never || total[k] - low > slack) kill_pair(i, k);
  }

  const problem& p_;
  bytes limit_;
  tightened out_;
  std::vector<std::vector<std::size_t>> incident_;
  std::vector<std::vector<int>> live_nodes_, live_edges_;
  std::vector<int> forests_;                     // steps at which edges hold bytes
  std::vector<std::vector<bytes>> node_, edge_;  // bytes at the step in hand
  std::vector<int> part_;
};

}  // namespace detail

/// What is left of `p` where the peak may be at most `limit`. Self edges are permitted; their bytes count alone.
/// `known`, where given, is what was left of it by a limit no lower, from where it goes on.
inline tightened tighten(const problem& p, std::int64_t limit, const tightened* known = nullptr) {
  return detail::tightener(p, limit, known).run();
}

}  // namespace mmr::solve
