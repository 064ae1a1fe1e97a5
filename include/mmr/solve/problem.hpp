// The plain problem of choosing one strategy for every node, so that solvers, oracles and benches share one type that
// knows nothing of tensors.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "mmr/tensor/error.hpp"

namespace mmr::solve {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double most_exact = 9e15;  ///< whole numbers add up exactly as doubles up to here, a little below 2^53

/// Bytes held by a node during the steps [begin, end): `bytes[s]` under strategy s. An empty interval holds nothing.
struct use {
  int begin = 0, end = 0;
  std::vector<std::int64_t> bytes;
};

/// A choice among `cost.size()` strategies. A cost of infinity forbids its strategy.
struct node {
  std::string name;
  std::vector<double> cost;
  std::vector<use> uses;
};

/// Transient bytes of an edge during [begin, end): one entry for each class pair, row-major.
struct edge_use {
  int begin = 0, end = 0;
  std::vector<std::int64_t> bytes;
};

/// What two nodes pay together. Strategies of a node that look alike from this edge (the same placement) share a class,
/// so the table has u_classes x v_classes entries, row-major. Infinity forbids a pair. u == v is legal.
struct edge {
  int u = 0, v = 0;
  std::vector<int> u_class, v_class;
  int u_classes = 0, v_classes = 0;
  std::vector<double> cost;
  std::vector<edge_use> uses;
};

/// Costs are at least 0 and add up; bytes are at least 0 and add up step by step, on top of `base` (constant bytes for
/// each step; empty means none).
struct problem {
  std::vector<node> nodes;
  std::vector<edge> edges;
  int steps = 0;
  std::vector<std::int64_t> base;
};

/// Number of strategies of node v.
inline int strategies(const problem& p, int v) {
  return static_cast<int>(p.nodes[static_cast<std::size_t>(v)].cost.size());
}

/// The edges of every node; an edge from a node to itself is listed once.
inline std::vector<std::vector<std::size_t>> edges_by_node(const problem& p) {
  std::vector<std::vector<std::size_t>> out(p.nodes.size());
  for (std::size_t i = 0; i < p.edges.size(); ++i) {
    const auto& e = p.edges[i];
    out[static_cast<std::size_t>(e.u)].push_back(i);
    if (e.u != e.v) out[static_cast<std::size_t>(e.v)].push_back(i);
  }
  return out;
}

/// Throws mmr::error naming the first node or edge whose sizes, indices, costs or bytes do not fit the problem.
inline void validate(const problem& p) {
  const auto nodes = static_cast<int>(p.nodes.size());
  if (p.steps < 0) fail("problem: ", p.steps, " steps; give 0 or more");
  if (!p.base.empty() && p.base.size() != static_cast<std::size_t>(p.steps))
    fail("problem: base has ", p.base.size(), " entries but there are ", p.steps, " steps; give one a step or none");
  for (auto b : p.base)
    if (b < 0) fail("problem: base holds ", b, " bytes; give 0 or more");
  const auto check_cost = [](const std::vector<double>& cost, const auto&... where) {
    for (double c : cost)
      if (!(c >= 0)) fail(where..., " has the cost ", c, "; give 0 or more, infinity to forbid");
  };
  const auto check_use = [&](const auto& use, std::size_t size, const auto&... where) {
    if (use.bytes.size() != size) fail(where..., " has a use with ", use.bytes.size(), " byte counts; it needs ", size);
    if (use.begin < use.end && (use.begin < 0 || use.end > p.steps))
      fail(where..., " is in use in [", use.begin, ", ", use.end, ") outside the ", p.steps, " steps");
    for (auto b : use.bytes)
      if (b < 0) fail(where..., " has a use of ", b, " bytes; give 0 or more");
  };
  for (const auto& n : p.nodes) {
    if (n.cost.empty()) fail("node '", n.name, "' has no strategies; give at least one");
    check_cost(n.cost, "node '", n.name, "'");
    for (const auto& use : n.uses) check_use(use, n.cost.size(), "node '", n.name, "'");
  }
  for (std::size_t i = 0; i < p.edges.size(); ++i) {
    const auto& e = p.edges[i];
    if (e.u < 0 || e.u >= nodes || e.v < 0 || e.v >= nodes)
      fail("edge ", i, " joins ", e.u, " and ", e.v, " but there are ", nodes, " nodes");
    const auto check_classes = [&](const std::vector<int>& classes, int count, int v) {
      const auto& n = p.nodes[static_cast<std::size_t>(v)];
      if (classes.size() != n.cost.size())
        fail("edge ", i, " gives classes to ", classes.size(), " strategies of node '", n.name, "', which has ",
             n.cost.size());
      for (int c : classes)
        if (c < 0 || c >= count) fail("edge ", i, " has class ", c, " of node '", n.name, "' outside 0..", count - 1);
    };
    check_classes(e.u_class, e.u_classes, e.u);
    check_classes(e.v_class, e.v_classes, e.v);
    const auto pairs = static_cast<std::size_t>(e.u_classes) * static_cast<std::size_t>(e.v_classes);
    if (e.cost.size() != pairs) fail("edge ", i, " has ", e.cost.size(), " costs; its classes need ", pairs);
    check_cost(e.cost, "edge ", i);
    for (const auto& use : e.uses) check_use(use, pairs, "edge ", i);
  }
}

}  // namespace mmr::solve
