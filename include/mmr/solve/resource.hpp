// Cost and the bytes of single steps seen alike: each is a sum over nodes and edges, to be minimised or kept below a
// limit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "mmr/solve/evaluate.hpp"
#include "mmr/solve/problem.hpp"

namespace mmr::solve {

/// node[v][s] and edge[e][class pair] add up, on top of `base`, to what a choice takes. Infinity marks what is
/// forbidden, in every resource. Byte counts stay exact as doubles up to 2^53.
struct resource {
  std::vector<std::vector<double>> node, edge;
  double base = 0;
};

inline resource cost_resource(const problem& p) {
  resource r;
  for (const auto& n : p.nodes) r.node.push_back(n.cost);
  for (const auto& e : p.edges) r.edge.push_back(e.cost);
  return r;
}

/// Bytes held in step t.
inline resource step_resource(const problem& p, int t) {
  const auto live_bytes = [t](const auto& cost, const auto& uses) {
    std::vector<double> bytes(cost.size(), 0);
    for (const auto& use : uses)
      if (use.begin <= t && t < use.end)
        for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] += static_cast<double>(use.bytes[i]);
    for (std::size_t i = 0; i < bytes.size(); ++i)
      if (!(cost[i] < infinity)) bytes[i] = infinity;
    return bytes;
  };
  resource r;
  r.base = p.base.empty() ? 0 : static_cast<double>(p.base[static_cast<std::size_t>(t)]);
  for (const auto& n : p.nodes) r.node.push_back(live_bytes(n.cost, n.uses));
  for (const auto& e : p.edges) r.edge.push_back(live_bytes(e.cost, e.uses));
  return r;
}

/// A price for cost and one for the bytes of every step: one sum that bounds what the limits cost.
class step_prices {
 public:
  step_prices(double cost, const std::vector<double>& of_step) : cost_(cost), before_(of_step.size() + 1, 0) {
    for (std::size_t t = 0; t < of_step.size(); ++t) before_[t + 1] = before_[t] + of_step[t];
  }

  double cost() const { return cost_; }

  /// What the entries of a table are worth, into `out`; infinity where they are forbidden.
  template <class Uses>
  void of(const std::vector<double>& cost, const Uses& uses, double* out) const {
    for (std::size_t k = 0; k < cost.size(); ++k) out[k] = cost[k] < infinity ? cost_ * cost[k] : infinity;
    for (const auto& use : uses) {
      if (use.begin >= use.end) continue;
      const double price = before_[static_cast<std::size_t>(use.end)] - before_[static_cast<std::size_t>(use.begin)];
      if (price > 0)
        for (std::size_t k = 0; k < cost.size(); ++k) out[k] += price * static_cast<double>(use.bytes[k]);
    }
  }

  /// What the constant bytes are worth.
  double base(const problem& p) const {
    double sum = 0;
    for (std::size_t t = 0; t < p.base.size(); ++t)
      sum += (before_[t + 1] - before_[t]) * static_cast<double>(p.base[t]);
    return sum;
  }

 private:
  double cost_;
  std::vector<double> before_;  // sum of the prices of all steps before
};

}  // namespace mmr::solve
