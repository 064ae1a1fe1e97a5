// Makes a choice better by small changes: one node at a time, together with what its neighbours then like best.
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
#include "mmr/solve/result.hpp"

namespace mmr::solve {

/// Holds one choice of `p` and changes it as long as that brings it nearer to what a request wants: first within its
/// limits, then less of its goal. Deterministic.
class descent {
 public:
  /// `p` must outlive this object.
  descent(const problem& p, const request& r)
      : p_(p), r_(r), incident_(p.nodes.size()), held_(std::vector<std::int64_t>{}) {
    for (std::size_t i = 0; i < p.edges.size(); ++i) {
      incident_[at(p.edges[i].u)].push_back(i);
      if (p.edges[i].u != p.edges[i].v) incident_[at(p.edges[i].v)].push_back(i);
    }
  }

  /// The choice that no single change improves, begun at `choice`, which must hold nothing forbidden. Looks at every
  /// node at most `most_passes` times.
  template <class Stop>
  std::vector<int> run(std::vector<int> choice, int most_passes, Stop stop) {
    choice_ = std::move(choice);
    const auto e = evaluate(p_, choice_);
    if (!(e.cost < infinity)) return choice_;
    cost_ = e.cost;
    held_ = held_bytes(e.bytes);
    for (int pass = 0; pass < most_passes; ++pass) {
      bool better = false;
      for (std::size_t v = 0; v < p_.nodes.size(); ++v) {
        if (stop()) return choice_;
        better = improve(v) || better;
      }
      if (!better) break;
    }
    return choice_;
  }

 private:
  /// Less is better, in this order.
  struct standing {
    int forbidden = 0;         // pairs and strategies that are forbidden
    double beyond = 0;         // what breaks the limits, relative to them
    double goal = 0;           // cost, or peak
    std::int64_t at_peak = 0;  // steps that hold the peak, where the peak counts
    double other = 0;          // cost, where it is not the goal

    bool better_than(const standing& o) const {
      const auto less = [](double a, double b) { return a < b - 1e-12 * std::abs(b); };
      if (forbidden != o.forbidden) return forbidden < o.forbidden;
      if (less(beyond, o.beyond) || less(o.beyond, beyond)) return beyond < o.beyond;
      if (less(goal, o.goal) || less(o.goal, goal)) return goal < o.goal;
      if (at_peak != o.at_peak) return at_peak < o.at_peak;
      return less(other, o.other);
    }
  };

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  standing now() const {
    standing out;
    out.forbidden = forbidden_;
    const auto peak = held_.peak();
    const bool too_high = peak > r_.peak_limit;
    if (too_high)
      out.beyond += static_cast<double>(peak) / static_cast<double>(std::max<std::int64_t>(r_.peak_limit, 1));
    if (!within(cost_, r_.cost_limit)) out.beyond += cost_ / std::max(r_.cost_limit, 1e-300);
    const bool for_cost = r_.minimise == goal::cost;
    out.goal = for_cost ? cost_ : static_cast<double>(peak);
    out.at_peak = !for_cost || too_high ? held_.at_peak() : 0;
    out.other = for_cost ? 0 : cost_;
    return out;
  }

  bool improve(std::size_t v) {
    bool better = false;
    for (std::size_t s = 0; s < p_.nodes[v].cost.size(); ++s) {
      if (static_cast<int>(s) == choice_[v] || !(p_.nodes[v].cost[s] < infinity)) continue;
      if (forbidden_ == 0 && !promises(v, s)) continue;
      const auto before = now();
      const int before_choice = choice_[v];
      changes_.clear();
      change(v, static_cast<int>(s));
      // The neighbours that see a difference answer once each, in the order of their edges.
      for (std::size_t i : incident_[v]) {
        const auto& e = p_.edges[i];
        if (e.u == e.v) continue;
        const bool first = at(e.u) == v;
        const auto& seen = first ? e.u_class : e.v_class;
        if (seen[s] != seen[at(before_choice)]) answer(at(first ? e.v : e.u), first ? e.v_class : e.u_class);
      }
      if (now().better_than(before)) {
        better = true;
        continue;
      }
      while (!changes_.empty()) {
        const auto [node, strategy] = changes_.back();
        changes_.pop_back();
        put(node, strategy);
      }
    }
    return better;
  }

  /// False where strategy s of v cannot bring what counts first nearer, whatever the neighbours answer: the cost, or
  /// the bytes of a step that holds the peak.
  bool promises(std::size_t v, std::size_t s) const {
    if (r_.minimise == goal::cost && held_.peak() <= r_.peak_limit) return least_cost_change(v, s) < 0;
    const int t = held_.peak_step();
    double change = 0;
    const auto live = [t](const auto& use) { return use.begin <= t && t < use.end; };
    for (const auto& use : p_.nodes[v].uses)
      if (live(use)) change += static_cast<double>(use.bytes[s] - use.bytes[at(choice_[v])]);
    for (std::size_t i : incident_[v])
      for (const auto& use : p_.edges[i].uses)
        if (live(use))
          change +=
              least_of_pairs(i, v, s, use.bytes) - static_cast<double>(use.bytes[chosen_pair(p_.edges[i], choice_)]);
    return change < 0;
  }

  double least_cost_change(std::size_t v, std::size_t s) const {
    double change = p_.nodes[v].cost[s] - p_.nodes[v].cost[at(choice_[v])];
    for (std::size_t i : incident_[v])
      change += least_of_pairs(i, v, s, p_.edges[i].cost) - p_.edges[i].cost[chosen_pair(p_.edges[i], choice_)];
    return change;
  }

  /// The least entry of an edge's table while v takes s.
  template <class Number>
  double least_of_pairs(std::size_t i, std::size_t v, std::size_t s, const std::vector<Number>& table) const {
    const auto& e = p_.edges[i];
    const bool first = at(e.u) == v;
    const auto c = at(first ? e.u_class[s] : e.v_class[s]), columns = at(e.v_classes);
    Number least = table[first ? c * columns : c];
    for (std::size_t o = 1; o < at(first ? e.v_classes : e.u_classes); ++o)
      least = std::min(least, table[first ? c * columns + o : o * columns + c]);
    return static_cast<double>(least);
  }

  /// Node u takes what stands best while all others stay, if its class on the edge that changed differs.
  void answer(std::size_t u, const std::vector<int>& classes) {
    const int mine = choice_[u];
    int best = mine;
    auto least = now();
    for (std::size_t s = 0; s < p_.nodes[u].cost.size(); ++s) {
      if (classes[s] == classes[at(mine)] || !(p_.nodes[u].cost[s] < infinity)) continue;
      put(u, static_cast<int>(s));
      if (const auto here = now(); here.better_than(least)) {
        least = here;
        best = static_cast<int>(s);
      }
    }
    put(u, mine);
    if (best != mine) change(u, best);
  }

  void change(std::size_t v, int s) {
    changes_.push_back({v, choice_[v]});
    put(v, s);
  }

  void put(std::size_t v, int s) {
    if (choice_[v] == s) return;
    count(v, -1);
    choice_[v] = s;
    count(v, 1);
  }

  /// Adds (or takes away) what node v and its edges pay and hold under the choice.
  void count(std::size_t v, int sign) {
    const auto pay = [&](double cost) {
      if (cost < infinity)
        cost_ += sign * cost;
      else
        forbidden_ += sign;
    };
    const auto& n = p_.nodes[v];
    const auto s = at(choice_[v]);
    pay(n.cost[s]);
    for (const auto& use : n.uses) held_.add(use.begin, use.end, sign * use.bytes[s]);
    for (std::size_t i : incident_[v]) {
      const auto& e = p_.edges[i];
      const auto pair = chosen_pair(e, choice_);
      pay(e.cost[pair]);
      for (const auto& use : e.uses) held_.add(use.begin, use.end, sign * use.bytes[pair]);
    }
  }

  const problem& p_;
  request r_;
  std::vector<std::vector<std::size_t>> incident_;
  std::vector<int> choice_;
  held_bytes held_;
  double cost_ = 0;
  int forbidden_ = 0;
  std::vector<std::pair<std::size_t, int>> changes_;  // node and what it held before
};

}  // namespace mmr::solve
