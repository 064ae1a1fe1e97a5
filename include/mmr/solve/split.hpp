// Where to cut a space of choices in two, so that neither half holds what made the bound weak.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "mmr/solve/evaluate.hpp"
#include "mmr/solve/problem.hpp"
#include "mmr/solve/resource.hpp"

namespace mmr::solve::detail {

/// A node, and for each of its strategies whether it goes to the first half.
struct node_split {
  int node = 0;
  std::vector<char> first;
};

using dead_strategies = std::vector<std::vector<char>>;

/// Bytes of the priced steps (parts 1 and on) that strategy s of node v takes while the others choose as in `others`;
/// what an edge takes counts half at each end.
inline std::vector<double> bytes_taken(const problem& p, const std::vector<std::vector<std::size_t>>& incident,
                                       const std::vector<resource>& parts, std::size_t v, std::size_t s,
                                       std::vector<int> others) {
  others[v] = static_cast<int>(s);
  std::vector<double> out;
  for (std::size_t r = 1; r < parts.size(); ++r) {
    out.push_back(parts[r].node[v][s]);
    for (auto i : incident[v]) {
      const double bytes = parts[r].edge[i][chosen_pair(p.edges[i], others)];
      if (bytes < infinity) out.back() += 0.5 * bytes;
    }
  }
  return out;
}

/// Two choices that the prices make equal share a fractional solution: the node at which they differ most in bytes,
/// each strategy going with the choice that it is nearer to. node is -1 where no living strategies tell them apart.
inline node_split split_between(const problem& p, const std::vector<resource>& parts, const dead_strategies& dead,
                                const std::vector<int>& a, const std::vector<int>& b) {
  const auto incident = edges_by_node(p);
  const auto taken = [&](std::size_t v, std::size_t s, const std::vector<int>& others) {
    return bytes_taken(p, incident, parts, v, s, others);
  };
  const auto distance = [](const std::vector<double>& x, const std::vector<double>& y) {
    double sum = 0;
    for (std::size_t r = 0; r < x.size(); ++r) sum += std::abs(x[r] - y[r]);
    return sum;
  };
  node_split out{-1, {}};
  double farthest = -1;
  for (std::size_t v = 0; v < p.nodes.size(); ++v) {
    const auto in_a = static_cast<std::size_t>(a[v]), in_b = static_cast<std::size_t>(b[v]);
    if (in_a == in_b || dead[v][in_a] || dead[v][in_b]) continue;
    const double d = distance(taken(v, in_a, a), taken(v, in_b, b));
    if (d > farthest) {
      farthest = d;
      out.node = static_cast<int>(v);
    }
  }
  if (out.node < 0) return out;
  const auto v = static_cast<std::size_t>(out.node);
  const auto in_a = static_cast<std::size_t>(a[v]), in_b = static_cast<std::size_t>(b[v]);
  const auto of_a = taken(v, in_a, a), of_b = taken(v, in_b, b);
  for (std::size_t s = 0; s < dead[v].size(); ++s)
    out.first.push_back(distance(taken(v, s, a), of_a) <= distance(taken(v, s, b), of_b));
  out.first[in_a] = 1;
  out.first[in_b] = 0;
  return out;
}

/// The node whose living strategies weigh most differently at the prices, halved at the middle weight.
inline node_split split_by_weight(const problem& p, const std::vector<resource>& parts,
                                  const std::vector<double>& prices, const dead_strategies& dead) {
  const auto weight = [&](std::size_t v, std::size_t s) {
    double sum = 0;
    for (std::size_t r = 1; r < parts.size(); ++r) sum += prices[r] * parts[r].node[v][s];
    return sum;
  };
  node_split out;
  double most = -1, middle = 0;
  for (std::size_t v = 0; v < p.nodes.size(); ++v) {
    if (std::count(dead[v].begin(), dead[v].end(), 0) < 2) continue;
    double low = infinity, high = -infinity;
    for (std::size_t s = 0; s < dead[v].size(); ++s)
      if (!dead[v][s]) {
        low = std::min(low, weight(v, s));
        high = std::max(high, weight(v, s));
      }
    if (high - low > most) {
      most = high - low;
      middle = (high + low) / 2;
      out.node = static_cast<int>(v);
    }
  }
  const auto v = static_cast<std::size_t>(out.node);
  std::size_t ones = 0, alive = 0, any = 0;
  for (std::size_t s = 0; s < dead[v].size(); ++s) {
    out.first.push_back(weight(v, s) <= middle);
    if (dead[v][s]) continue;
    if (alive++ == 0) any = s;
    ones += out.first[s] != 0;
  }
  if (ones == 0 || ones == alive) {  // equal weights: one strategy against the rest
    out.first.assign(out.first.size(), 0);
    out.first[any] = 1;
  }
  return out;
}

}  // namespace mmr::solve::detail
