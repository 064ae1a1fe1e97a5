// Lowers the peak of a choice by small changes: one node at a time, together with what its neighbours then like best.
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

/// Holds one choice of `p` and changes it as long as that brings it nearer to what a request for the least peak wants:
/// first within its limits, then a lower peak, then a lower cost. Deterministic. (Costs alone: cost_descent.)
class descent {
 public:
  /// `p` must outlive this object.
  descent(const problem& p, const request& r)
      : p_(p), r_(r), incident_(edges_by_node(p)), held_(std::vector<std::int64_t>{}) {}

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
    int forbidden = 0;  // pairs and strategies that are forbidden
    double beyond = 0;  // what breaks the limits, relative to them
    std::int64_t peak = 0;
    std::int64_t at_peak = 0;  // steps that hold the peak
    double cost = 0;

    bool better_than(const standing& o) const {
      const auto less = [](double a, double b) { return a < b - 1e-12 * std::abs(b); };
      if (forbidden != o.forbidden) return forbidden < o.forbidden;
      if (less(beyond, o.beyond) || less(o.beyond, beyond)) return beyond < o.beyond;
      if (peak != o.peak) return peak < o.peak;
      if (at_peak != o.at_peak) return at_peak < o.at_peak;
      return less(cost, o.cost);
    }
  };

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  standing now() const {
    standing out{forbidden_, 0, held_.peak(), held_.at_peak(), cost_};
    if (out.peak > r_.peak_limit)
      out.beyond += static_cast<double>(out.peak) / static_cast<double>(std::max<std::int64_t>(r_.peak_limit, 1));
    if (!within(cost_, r_.cost_limit)) out.beyond += cost_ / std::max(r_.cost_limit, 1e-300);
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

  /// False where strategy s of v cannot lower the bytes of a step that holds the peak, whatever the neighbours answer.
  bool promises(std::size_t v, std::size_t s) const {
    const int t = held_.peak_step();
    std::int64_t change = 0;
    const auto live = [t](const auto& use) { return use.begin <= t && t < use.end; };
    for (const auto& use : p_.nodes[v].uses)
      if (live(use)) change += use.bytes[s] - use.bytes[at(choice_[v])];
    for (std::size_t i : incident_[v])
      for (const auto& use : p_.edges[i].uses)
        if (live(use)) change += least_of_pairs(i, v, s, use.bytes) - use.bytes[chosen_pair(p_.edges[i], choice_)];
    return change < 0;
  }

  /// The least entry of an edge's table while v takes s.
  std::int64_t least_of_pairs(std::size_t i, std::size_t v, std::size_t s,
                              const std::vector<std::int64_t>& table) const {
    const auto& e = p_.edges[i];
    const bool first = at(e.u) == v;
    const auto c = at(first ? e.u_class[s] : e.v_class[s]), columns = at(e.v_classes);
    auto least = table[first ? c * columns : c];
    for (std::size_t o = 1; o < at(first ? e.v_classes : e.u_classes); ++o)
      least = std::min(least, table[first ? c * columns + o : o * columns + c]);
    return least;
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
