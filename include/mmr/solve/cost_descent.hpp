// Makes a choice cheaper by small changes within a limit on the peak: costs first, which a few table rows tell, and
// bytes only for what would be cheaper.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "mmr/solve/evaluate.hpp"
#include "mmr/solve/held_bytes.hpp"
#include "mmr/solve/problem.hpp"

namespace mmr::solve {

/// Holds one choice of `p` that keeps a limit on the peak, and changes single nodes, together with what their
/// neighbours then like best, while that costs less. Deterministic.
class cost_descent {
 public:
  /// `p` must outlive this object.
  cost_descent(const problem& p, std::int64_t limit) : p_(p), limit_(limit), links_(p.nodes.size()), held_({}) {
    for (std::size_t i = 0; i < p.edges.size(); ++i) {
      if (p.edges[i].u == p.edges[i].v) continue;
      links_[at(p.edges[i].u)].push_back({i, true});
      links_[at(p.edges[i].v)].push_back({i, false});
    }
  }

  /// The choice that no such change makes cheaper, begun at `choice`; `choice` itself where it is forbidden or beyond
  /// the limit.
  template <class Stop>
  std::vector<int> run(std::vector<int> choice, Stop stop) {
    choice_ = std::move(choice);
    const auto e = evaluate(p_, choice_);
    if (!(e.cost < infinity) || e.peak > limit_) return choice_;
    held_ = held_bytes(e.bytes);
    std::vector<char> waits(p_.nodes.size(), 1);
    bool any = true;
    while (any && !stop()) {
      any = false;
      for (std::size_t v = 0; v < p_.nodes.size() && !stop(); ++v) {
        if (!waits[v]) continue;
        waits[v] = 0;
        while (improve(v)) {
          any = true;
          for (const auto& [node, before] : changes_) {
            waits[node] = 1;
            for (const auto& l : links_[node]) waits[other(l)] = 1;
          }
        }
      }
    }
    return choice_;
  }

 private:
  struct link {
    std::size_t edge;
    bool first;  // this node is the edge's u
  };

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  std::size_t other(const link& l) const { return at(l.first ? p_.edges[l.edge].v : p_.edges[l.edge].u); }

  /// Where an edge's tables hold what strategies of this node and of the other end take together.
  std::size_t pair(const link& l, std::size_t mine, std::size_t theirs) const {
    const auto& e = p_.edges[l.edge];
    return l.first ? at(e.u_class[mine]) * at(e.v_classes) + at(e.v_class[theirs])
                   : at(e.u_class[theirs]) * at(e.v_classes) + at(e.v_class[mine]);
  }

  /// What each strategy of v costs with its edges while the others stay, and into `least` what it costs at least
  /// whatever they do.
  void local_costs(std::size_t v, std::vector<double>& cost, std::vector<double>* least) const {
    cost = p_.nodes[v].cost;
    if (least) *least = cost;
    for (const auto& l : links_[v]) {
      const auto& e = p_.edges[l.edge];
      const auto& classes = l.first ? e.u_class : e.v_class;
      const auto columns = at(e.v_classes), mine = at(l.first ? e.u_classes : e.v_classes),
                 others = at(l.first ? e.v_classes : e.u_classes);
      const auto o = at(choice_[other(l)]);
      const auto theirs = at(l.first ? e.v_class[o] : e.u_class[o]);
      const auto pair = [&](std::size_t c, std::size_t t) {
        return e.cost[l.first ? c * columns + t : t * columns + c];
      };
      for (std::size_t s = 0; s < cost.size(); ++s) cost[s] += pair(at(classes[s]), theirs);
      if (!least) continue;
      row_least_.assign(mine, infinity);
      for (std::size_t c = 0; c < mine; ++c)
        for (std::size_t t = 0; t < others; ++t) row_least_[c] = std::min(row_least_[c], pair(c, t));
      for (std::size_t s = 0; s < cost.size(); ++s) (*least)[s] += row_least_[at(classes[s])];
    }
  }

  bool improve(std::size_t v) {
    local_costs(v, cost_, &least_);
    const double now = cost_[at(choice_[v])];
    const double tolerance = 1e-12 * std::abs(now);
    order_.clear();
    for (std::size_t s = 0; s < cost_.size(); ++s)
      if (static_cast<int>(s) != choice_[v] && least_[s] < now - tolerance) order_.push_back(s);
    std::sort(order_.begin(), order_.end(),
              [&](std::size_t a, std::size_t b) { return std::pair(cost_[a], a) < std::pair(cost_[b], b); });
    for (std::size_t s : order_) {
      changes_.clear();
      const int before = choice_[v];
      change(v, static_cast<int>(s));
      for (const auto& l : links_[v]) {
        if (l.first ? p_.edges[l.edge].u_class[s] == p_.edges[l.edge].u_class[at(before)]
                    : p_.edges[l.edge].v_class[s] == p_.edges[l.edge].v_class[at(before)])
          continue;
        const auto u = other(l);
        local_costs(u, answer_, nullptr);
        const auto best = static_cast<std::size_t>(std::min_element(answer_.begin(), answer_.end()) - answer_.begin());
        if (answer_[best] < answer_[at(choice_[u])]) change(u, static_cast<int>(best));
      }
      if (saved_by_changes() > tolerance && hold_changes()) return true;
      while (!changes_.empty()) {
        choice_[changes_.back().first] = changes_.back().second;
        changes_.pop_back();
      }
    }
    return false;
  }

  void change(std::size_t v, int s) {
    changes_.push_back({v, choice_[v]});
    choice_[v] = s;
  }

  /// Calls visit_node and visit_edge for all that the changes touch, each once, with its table entries before and
  /// after.
  template <class VisitNode, class VisitEdge>
  void for_each_touched(VisitNode visit_node, VisitEdge visit_edge) const {
    for (std::size_t c = 0; c < changes_.size(); ++c) {
      const auto [v, before] = changes_[c];
      visit_node(p_.nodes[v], at(before), at(choice_[v]));
      for (const auto& l : links_[v]) {
        const auto o = other(l);
        const auto met = std::find_if(changes_.begin(), changes_.end(), [o](const auto& x) { return x.first == o; });
        if (met - changes_.begin() < static_cast<std::ptrdiff_t>(c)) continue;
        const auto other_before = met == changes_.end() ? choice_[o] : met->second;
        visit_edge(p_.edges[l.edge], pair(l, at(before), at(other_before)), pair(l, at(choice_[v]), at(choice_[o])));
      }
    }
  }

  double saved_by_changes() const {
    double was = 0, is = 0;
    const auto pay = [&](const auto& thing, std::size_t before, std::size_t after) {
      was += thing.cost[before];
      is += thing.cost[after];
    };
    for_each_touched(pay, pay);
    return is < infinity ? was - is : -infinity;
  }

  /// Moves the bytes of the changed nodes and edges; takes the move back where that breaks the limit.
  bool hold_changes() {
    const auto move = [&](std::int64_t sign) {
      const auto hold = [&](const auto& thing, std::size_t before, std::size_t after) {
        for (const auto& use : thing.uses) held_.add(use.begin, use.end, sign * (use.bytes[after] - use.bytes[before]));
      };
      for_each_touched(hold, hold);
    };
    move(1);
    if (held_.peak() <= limit_) return true;
    move(-1);
    return false;
  }

  const problem& p_;
  std::int64_t limit_;
  std::vector<std::vector<link>> links_;
  std::vector<int> choice_;
  held_bytes held_;
  std::vector<double> cost_, least_, answer_;
  mutable std::vector<double> row_least_;
  std::vector<std::size_t> order_;
  std::vector<std::pair<std::size_t, int>> changes_;  // node and what it held before
};

}  // namespace mmr::solve
