// Small random problems of many shapes, with limits that only just do or just do not.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "mmr/solve/problem.hpp"

namespace test {

/// Chains, trees, dags and multigraphs of up to `most_nodes` nodes with up to `most_strategies` strategies; costs are
/// small integers, so that sums are exact and ties are common.
inline mmr::solve::problem random_problem(std::mt19937& draw, int most_nodes = 6, int most_strategies = 4) {
  using namespace mmr::solve;
  const auto below = [&](int n) { return static_cast<int>(draw() % static_cast<unsigned>(n)); };
  problem p;
  p.steps = below(8);
  const int nodes = 1 + below(most_nodes), shape = below(4);
  const bool rarely_forbidden = below(2) == 0;
  const auto interval = [&](auto& use) {
    use.begin = below(p.steps + 1);
    use.end = use.begin + below(p.steps - use.begin + 1);
  };
  const auto bytes = [&] { return static_cast<std::int64_t>(below(3) == 0 ? 0 : 4 * below(10)); };
  const auto cost = [&](int forbidden) { return below(100) < forbidden ? infinity : static_cast<double>(below(10)); };
  if (below(2) == 0)
    for (int t = 0; t < p.steps; ++t) p.base.push_back(4 * below(4));
  for (int v = 0; v < nodes; ++v) {
    node n{"n" + std::to_string(v), {}, {}};
    const int k = 1 + below(most_strategies);
    for (int s = 0; s < k; ++s) n.cost.push_back(cost(rarely_forbidden ? 1 : 8));
    for (int i = below(3); i > 0; --i) {
      n.uses.emplace_back();
      interval(n.uses.back());
      for (int s = 0; s < k; ++s) n.uses.back().bytes.push_back(bytes());
    }
    p.nodes.push_back(n);
  }
  const auto join = [&](int u, int v) {
    edge e;
    if (below(2)) std::swap(u, v);
    e.u = u;
    e.v = v;
    const int uk = strategies(p, u), vk = strategies(p, v);
    e.u_classes = 1 + below(uk + 1);
    e.v_classes = 1 + below(vk + 1);
    for (int s = 0; s < uk; ++s) e.u_class.push_back(below(e.u_classes));
    for (int s = 0; s < vk; ++s) e.v_class.push_back(below(e.v_classes));
    const bool diagonal = below(5) == 0;
    for (int i = 0; i < e.u_classes; ++i)
      for (int j = 0; j < e.v_classes; ++j)
        e.cost.push_back(diagonal ? (i == j ? cost(0) : infinity) : cost(rarely_forbidden ? 3 : 20));
    for (int i = below(3); i > 0; --i) {
      e.uses.emplace_back();
      interval(e.uses.back());
      for (std::size_t k = 0; k < e.cost.size(); ++k) e.uses.back().bytes.push_back(bytes());
    }
    p.edges.push_back(e);
  };
  for (int v = 1; v < nodes; ++v)
    if (shape == 0)
      join(v - 1, v);  // chain
    else if (shape == 1)
      join(below(v), v);  // tree
    else                  // dag; shape 3 has parallel and self edges too
      for (int u = 0; u < v; ++u)
        if (below(2)) join(u, v);
  if (shape == 3)
    for (int i = 0; i < 3; ++i) join(below(nodes), below(nodes));
  return p;
}

/// Nodes of equally many strategies that several edges join, both ways round, of which some permit only the pairs of a
/// permutation: ties that run beside other edges, and that merge into each other.
inline mmr::solve::problem multigraph_problem(std::mt19937& draw) {
  using namespace mmr::solve;
  const auto below = [&](int n) { return static_cast<int>(draw() % static_cast<unsigned>(n)); };
  problem p;
  p.steps = 2;
  const int nodes = 2 + below(4), k = 2 + below(2);
  std::vector<int> classes(static_cast<std::size_t>(k));
  std::iota(classes.begin(), classes.end(), 0);
  for (int v = 0; v < nodes; ++v) {
    node n{"n" + std::to_string(v), {}, {}};
    for (int s = 0; s < k; ++s) n.cost.push_back(below(10));
    if (below(2)) {
      n.uses.push_back({0, 1 + below(2), {}});
      for (int s = 0; s < k; ++s) n.uses.back().bytes.push_back(below(5));
    }
    p.nodes.push_back(n);
  }
  for (int i = nodes + below(2 * nodes); i > 0; --i) {
    const int u = below(nodes), v = (u + 1 + below(nodes - 1)) % nodes;
    edge e{
        .u = u, .v = v, .u_class = classes, .v_class = classes, .u_classes = k, .v_classes = k, .cost = {}, .uses = {}};
    auto partner = classes;
    std::shuffle(partner.begin(), partner.end(), draw);
    const bool tie = below(2) == 0;
    for (int a = 0; a < k; ++a)
      for (int b = 0; b < k; ++b)
        e.cost.push_back(below(10) == 0 || (tie && partner[static_cast<std::size_t>(a)] != b) ? infinity : below(10));
    p.edges.push_back(e);
  }
  return p;
}

/// Problems whose peaks lie a byte or two apart: a few weights decide most of each count, many strategies tie in all
/// that matters, many steps hold the same, and transient bytes of edges and pairs that are forbidden decide the rest.
inline mmr::solve::problem tied_problem(std::mt19937& draw, int most_nodes = 6, int most_strategies = 4) {
  using namespace mmr::solve;
  const auto below = [&](int n) { return static_cast<int>(draw() % static_cast<unsigned>(n)); };
  problem p;
  p.steps = 1 + below(9);
  const int nodes = 2 + below(most_nodes - 1), fine = 1 + below(3);
  for (int t = 0; t < p.steps; ++t) p.base.push_back(1000 * below(2));
  const auto bytes = [&] { return static_cast<std::int64_t>(100 * below(3) + (below(2) ? below(fine + 1) : 0)); };
  for (int v = 0; v < nodes; ++v) {
    node n{"n" + std::to_string(v), {}, {}};
    const int k = 1 + below(most_strategies);
    for (int s = 0; s < k; ++s) n.cost.push_back(below(30) == 0 ? infinity : static_cast<double>(below(4)));
    for (int i = 1 + below(2); i > 0; --i) {
      n.uses.push_back({below(p.steps), 0, {}});
      n.uses.back().end = n.uses.back().begin + 1 + below(p.steps - n.uses.back().begin);
      for (int s = 0; s < k; ++s) n.uses.back().bytes.push_back(bytes());
    }
    p.nodes.push_back(n);
  }
  for (int v = 1; v < nodes; ++v)
    for (int i = 1 + below(2); i > 0; --i) {
      edge e;
      e.u = below(v);
      e.v = v;
      e.u_classes = 1 + below(3);
      e.v_classes = 1 + below(3);
      for (int s = 0; s < strategies(p, e.u); ++s) e.u_class.push_back(below(e.u_classes));
      for (int s = 0; s < strategies(p, e.v); ++s) e.v_class.push_back(below(e.v_classes));
      for (int k = 0; k < e.u_classes * e.v_classes; ++k)
        e.cost.push_back(below(12) == 0 ? infinity : static_cast<double>(below(3)));
      for (int j = below(3); j > 0; --j) {
        const int t = below(p.steps);
        e.uses.push_back({t, t + 1, {}});
        for (std::size_t k = 0; k < e.cost.size(); ++k) e.uses.back().bytes.push_back(below(2) ? 0 : bytes());
      }
      p.edges.push_back(e);
    }
  return p;
}

/// Any strategy for every node.
inline std::vector<int> random_choice(std::mt19937& draw, const mmr::solve::problem& p) {
  std::vector<int> out;
  for (const auto& n : p.nodes) out.push_back(static_cast<int>(draw() % n.cost.size()));
  return out;
}

/// Groups of nodes with equal numbers of strategies.
inline std::vector<int> random_groups(std::mt19937& draw, const mmr::solve::problem& p) {
  std::vector<int> group, leader;
  for (std::size_t v = 0; v < p.nodes.size(); ++v) {
    int found = -1;
    for (std::size_t g = 0; g < leader.size(); ++g)
      if (p.nodes[static_cast<std::size_t>(leader[g])].cost.size() == p.nodes[v].cost.size() && draw() % 2)
        found = static_cast<int>(g);
    if (found < 0) {
      found = static_cast<int>(leader.size());
      leader.push_back(static_cast<int>(v));
    }
    group.push_back(found);
  }
  return group;
}

}  // namespace test
