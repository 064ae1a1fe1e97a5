// Problems that are easy to keep within their limit and hard to solve: a choice is found with little work, and what is said on
// the way holds.
#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "catch.hpp"
#include "mmr/solve/evaluate.hpp"
#include "mmr/solve/solve.hpp"

namespace {

namespace solve = mmr::solve;

/// A random tree whose nodes are held for up to 30 steps.
solve::problem random_tree(int nodes, std::mt19937& draw) {
  const auto below = [&](int n) { return static_cast<int>(draw() % static_cast<unsigned>(n)); };
  solve::problem p;
  p.steps = nodes + 31;
  for (int v = 0; v < nodes; ++v) {
    solve::node n;
    std::vector<std::int64_t> bytes;
    const int strategies = 2 + below(9);
    for (int s = 0; s < strategies; ++s) {
      n.cost.push_back(below(1000000));
      bytes.push_back(below(1000000));
    }
    n.uses.push_back({v, v + 1 + below(30), bytes});
    p.nodes.push_back(n);
    if (v == 0) continue;
    solve::edge e;
    e.u = below(v), e.v = v;
    e.u_classes = static_cast<int>(p.nodes[static_cast<std::size_t>(e.u)].cost.size()), e.v_classes = strategies;
    for (int s = 0; s < e.u_classes; ++s) e.u_class.push_back(s);
    for (int s = 0; s < e.v_classes; ++s) e.v_class.push_back(s);
    for (int i = 0; i < e.u_classes * e.v_classes; ++i) e.cost.push_back(below(1000000));
    p.edges.push_back(e);
  }
  return p;
}

}  // namespace

TEST_CASE("where the least bytes of every node keep the limit, little work finds a choice") {
  std::mt19937 draw(7);
  for (const int nodes : {40, 300, 1000}) {
    const auto p = random_tree(nodes, draw);
    const auto leanest = solve::least_peak(p);
    for (const double slack : {1.0, 1.2, 2.0}) {
      INFO(nodes << " nodes, " << slack << " x the least");
      solve::request r{.minimise = solve::goal::cost};
      r.peak_limit = static_cast<std::int64_t>(slack * static_cast<double>(leanest));
      r.work = 2e6;
      double told = 0;
      r.on_better = [&](const solve::result& x) { told = std::max(told, x.bound); };
      const auto x = solve::minimise(p, r);
      REQUIRE(!x.choice.empty());
      CHECK(solve::keeps(solve::evaluate(p, x.choice), r));
      CHECK(told <= x.cost);
    }
  }
}

TEST_CASE("a bound told on the way is no better than the one at the end") {
  for (const unsigned seed : {1u, 5u, 6u}) {
    for (const double slack : {1.02, 1.5}) {
      INFO("seed " << seed << ", " << slack << " x the least");
      std::mt19937 draw(seed);
      const auto p = random_tree(60, draw);
      solve::request r{.minimise = solve::goal::cost};
      r.peak_limit = static_cast<std::int64_t>(slack * static_cast<double>(solve::least_peak(p)));
      r.work = 1e7;
      double told = 0;
      r.on_better = [&](const solve::result& x) { told = std::max(told, x.bound); };
      const auto x = solve::minimise(p, r);
      CHECK(told <= x.bound);
    }
  }
}
