// A lower bound that costs a few passes over the edge tables: sequential tree-reweighted message passing (TRW-S,
// Kolmogorov 2006) in its reparametrised form. It also gives good choices, and tells which strategies cannot be in one
// that is better than a known value.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "mmr/solve/problem.hpp"
#include "mmr/solve/resource.hpp"

namespace mmr::solve {

/// Moves cost between edges and nodes so that the sum of all minima, a lower bound on the resource, grows. Strategies
/// with infinite cost in the resource count as taken out; `drop_above` takes out more.
class diffusion {
 public:
  /// `order` sets the direction of the sweeps; `p` must outlive this object.
  diffusion(const problem& p, const std::vector<int>& order)
      : p_(p),
        order_(order),
        u_message_(p.edges.size()),
        v_message_(p.edges.size()),
        incident_(p.nodes.size()),
        least_(p.nodes.size(), 0),
        backward_(p.nodes.size(), 0),
        dead_(p.nodes.size()) {
    std::vector<std::size_t> position(p.nodes.size());
    for (std::size_t i = 0; i < order.size(); ++i) position[at(order[i])] = i;
    for (std::size_t e = 0; e < p.edges.size(); ++e) {
      const auto& x = p.edges[e];
      u_message_[e].assign(at(x.u_classes), 0);
      v_message_[e].assign(at(x.v_classes), 0);
      const bool u_first = position[at(x.u)] < position[at(x.v)];
      incident_[at(x.u)].push_back({e, true, !u_first});
      incident_[at(x.v)].push_back({e, false, u_first});
      ++backward_[at(u_first ? x.v : x.u)];
    }
    for (std::size_t v = 0; v < p.nodes.size(); ++v) dead_[v].assign(p.nodes[v].cost.size(), 0);
  }

  /// Works on `r` from here on; messages are kept, so a resource near the last one starts well.
  void set(const resource& r) {
    r_ = r;
    for (std::size_t v = 0; v < dead_.size(); ++v)
      for (std::size_t s = 0; s < dead_[v].size(); ++s)
        if (dead_[v][s]) r_.node[v][s] = infinity;
    close_classes();
    // The bound is the sum of node minima only while every edge's least entry is 0: one sweep back restores that.
    sweep(false, infinity);
  }

  /// One pass along the order and one back. Strategies that cannot be in a choice below `cutoff` are taken out.
  void iterate(double cutoff = infinity) {
    sweep(true, cutoff);
    sweep(false, cutoff);
  }

  /// Infinity once some node has no strategy left: no choice is below the cutoffs given.
  double bound() const {
    double sum = r_.base;
    for (double least : least_) sum += least;
    return sum;
  }

  /// What the last pass would choose, node by node.
  const std::vector<int>& choice() const { return choice_; }
  /// dead()[v][s] is set for strategies taken out.
  const std::vector<std::vector<char>>& dead() const { return dead_; }
  std::size_t dropped() const { return dropped_; }

  /// The same resource with the costs where the messages moved them: every choice has the same total.
  resource reparametrised() const {
    resource out = r_;
    for (std::size_t v = 0; v < p_.nodes.size(); ++v)
      for (std::size_t s = 0; s < dead_[v].size(); ++s)
        for (const auto& i : incident_[v]) out.node[v][s] += message(i)[class_of(i, s)];
    for (std::size_t e = 0; e < p_.edges.size(); ++e) {
      const auto columns = at(p_.edges[e].v_classes);
      for (std::size_t k = 0; k < out.edge[e].size(); ++k)
        out.edge[e][k] -= u_message_[e][k / columns] + v_message_[e][k % columns];
    }
    return out;
  }

 private:
  struct incidence {
    std::size_t edge;
    bool first;    // this node is the edge's u
    bool earlier;  // the other end comes earlier in the order
  };

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  std::vector<double>& message(const incidence& i) { return i.first ? u_message_[i.edge] : v_message_[i.edge]; }
  const std::vector<double>& message(const incidence& i) const {
    return i.first ? u_message_[i.edge] : v_message_[i.edge];
  }
  std::size_t class_of(const incidence& i, std::size_t s) const {
    const auto& e = p_.edges[i.edge];
    return at(i.first ? e.u_class[s] : e.v_class[s]);
  }

  /// Forbids the pairs of classes that have no strategy left.
  void close_classes() {
    for (std::size_t e = 0; e < p_.edges.size(); ++e) {
      const auto& x = p_.edges[e];
      std::vector<char> u_open(at(x.u_classes), 0), v_open(at(x.v_classes), 0);
      for (std::size_t s = 0; s < x.u_class.size(); ++s)
        if (r_.node[at(x.u)][s] < infinity) u_open[at(x.u_class[s])] = 1;
      for (std::size_t s = 0; s < x.v_class.size(); ++s)
        if (r_.node[at(x.v)][s] < infinity) v_open[at(x.v_class[s])] = 1;
      const auto columns = v_open.size();
      for (std::size_t k = 0; k < r_.edge[e].size(); ++k)
        if (!u_open[k / columns] || !v_open[k % columns]) r_.edge[e][k] = infinity;
    }
  }

  /// Sets this node's message of an edge to the least that the edge adds for each of its classes.
  void collect(const incidence& i) {
    const auto& e = p_.edges[i.edge];
    const auto& table = r_.edge[i.edge];
    const auto rows = at(e.u_classes), columns = at(e.v_classes);
    auto& mine = message(i);
    if (i.first) {
      const auto& other = v_message_[i.edge];
      for (std::size_t a = 0; a < rows; ++a) {
        double least = infinity;
        for (std::size_t b = 0; b < columns; ++b) least = std::min(least, table[a * columns + b] - other[b]);
        mine[a] = least;
      }
    } else {
      const auto& other = u_message_[i.edge];
      std::fill(mine.begin(), mine.end(), infinity);
      for (std::size_t a = 0; a < rows; ++a)
        for (std::size_t b = 0; b < columns; ++b) mine[b] = std::min(mine[b], table[a * columns + b] - other[a]);
    }
  }

  void sweep(bool forward, double cutoff) {
    choice_.assign(order_.size(), -1);
    bool closed = false;
    for (std::size_t n = 0; n < order_.size(); ++n) {
      const int v = order_[forward ? n : order_.size() - 1 - n];
      auto& own = r_.node[at(v)];
      auto total = own;  // with all messages: cost as seen from here
      auto given = own;  // with what the nodes already passed have really chosen
      for (const auto& i : incident_[at(v)]) {
        const bool passed = i.earlier == forward;
        if (passed) collect(i);
        const auto& e = p_.edges[i.edge];
        for (std::size_t s = 0; s < own.size(); ++s) {
          const auto c = class_of(i, s);
          total[s] += message(i)[c];
          if (passed) {
            const auto other = at(choice_[at(i.first ? e.v : e.u)]);
            const auto o = at(i.first ? e.v_class[other] : e.u_class[other]);
            given[s] += r_.edge[i.edge][i.first ? c * at(e.v_classes) + o : o * at(e.v_classes) + c];
          } else {
            given[s] += message(i)[c];
          }
        }
      }
      const double least = *std::min_element(total.begin(), total.end());
      least_[at(v)] = least;
      if (!(least < infinity)) return;
      // Forbidden pairs may leave no strategy that suits the choices before; then the bound's favourite stands.
      auto best = std::min_element(given.begin(), given.end());
      choice_[at(v)] = static_cast<int>(
          *best < infinity ? best - given.begin() : std::min_element(total.begin(), total.end()) - total.begin());
      const double others = bound() - least;
      for (std::size_t s = 0; s < own.size(); ++s) {
        if (dead_[at(v)][s] || total[s] + others <= cutoff) continue;
        dead_[at(v)][s] = 1;
        own[s] = total[s] = infinity;
        ++dropped_;
        closed = true;
      }
      // A cutoff below the bound leaves nothing.
      if (std::none_of(total.begin(), total.end(), [](double c) { return c < infinity; })) {
        least_[at(v)] = infinity;
        return;
      }
      const auto degree = incident_[at(v)].size();
      const auto back = forward ? backward_[at(v)] : degree - backward_[at(v)];
      const double share = 1.0 / static_cast<double>(std::max<std::size_t>({back, degree - back, 1}));
      std::vector<double> left = total;
      for (const auto& i : incident_[at(v)]) {
        if (i.earlier == forward) {
          for (double& m : message(i))
            if (!(m < infinity)) m = 0;
          continue;
        }
        auto& mine = message(i);
        std::vector<double> least_of_class(mine.size(), infinity);
        for (std::size_t s = 0; s < total.size(); ++s) {
          auto& l = least_of_class[class_of(i, s)];
          l = std::min(l, total[s]);
        }
        for (double& l : least_of_class) l = l < infinity ? share * (l - least) : 0;
        for (std::size_t c = 0; c < mine.size(); ++c) mine[c] -= least_of_class[c];
        for (std::size_t s = 0; s < total.size(); ++s) left[s] -= least_of_class[class_of(i, s)];
      }
      least_[at(v)] = *std::min_element(left.begin(), left.end());
    }
    if (closed) close_classes();
  }

  const problem& p_;
  std::vector<int> order_;
  resource r_;
  std::vector<std::vector<double>> u_message_, v_message_;
  std::vector<std::vector<incidence>> incident_;
  std::vector<double> least_;
  std::vector<std::size_t> backward_;
  std::vector<std::vector<char>> dead_;
  std::vector<int> choice_;
  std::size_t dropped_ = 0;
};

}  // namespace mmr::solve
