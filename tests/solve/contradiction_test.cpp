// What cannot be searched exhaustively: claims held against each other, and the parts that large problems rest on.
#include <algorithm>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "mmr/solve/ascent.hpp"
#include "mmr/solve/brute_force.hpp"
#include "mmr/solve/cost_descent.hpp"
#include "mmr/solve/descent.hpp"
#include "mmr/solve/held_bytes.hpp"
#include "mmr/solve/neighbourhood.hpp"
#include "mmr/solve/reduce.hpp"
#include "mmr/solve/solve.hpp"
#include "mmr/solve/tie.hpp"
#include "solve/gpt_like.hpp"
#include "solve/no_contradiction.hpp"
#include "solve/random_problem.hpp"

using namespace mmr::solve;

TEST_CASE("no proof contradicts a choice found by another request: training steps") {
  for (const auto& shape :
       {test::gpt_shape{2, 64, 4, 256, 4, 32, {2, 2}}, test::gpt_shape{3, 48, 4, 300, 8, 16, {4}},
        test::gpt_shape{2, 128, 4, 256, 8, 64, {2, 2}}, test::gpt_shape{2, 32, 2, 101, 3, 20, {3}}}) {
    const auto step = test::gpt_like(shape);
    test::no_contradiction(mmr::solve::tie(step.p, step.group), 4);
  }
}

TEST_CASE("no proof contradicts a choice found by another request: random problems of middle size") {
  std::mt19937 draw(417);
  for (int i = 0; i < 60; ++i)
    test::no_contradiction(i % 2 == 0 ? test::random_problem(draw, 30, 5) : test::tied_problem(draw, 30, 5), 2);
}

TEST_CASE("bytes held by steps are summed, and their greatest found, as one by one") {
  std::mt19937 draw(9);
  const auto below = [&](std::size_t n) { return static_cast<int>(draw() % n); };
  for (int i = 0; i < 100; ++i) {
    std::vector<std::int64_t> bytes(static_cast<std::size_t>(1 + below(40)));
    for (auto& b : bytes) b = below(9);
    held_bytes held(bytes);
    for (int change = 0; change < 30; ++change) {
      const int begin = below(bytes.size() + 1),
                end = begin + below(bytes.size() + 1 - static_cast<std::size_t>(begin));
      const std::int64_t more = below(7) - 3;
      held.add(begin, end, more);
      for (int t = begin; t < end; ++t) bytes[static_cast<std::size_t>(t)] += more;
      const auto most = std::max_element(bytes.begin(), bytes.end());
      CHECK(held.peak() == *most);
      CHECK(held.at_peak() == std::count(bytes.begin(), bytes.end(), *most));
      CHECK(bytes[static_cast<std::size_t>(held.peak_step())] == *most);
    }
  }
}

TEST_CASE("a descent never leaves its limits nor loses ground") {
  std::mt19937 draw(23);
  int better = 0;
  for (int i = 0; i < 300; ++i) {
    const auto p = i % 2 == 0 ? test::random_problem(draw, 12, 4) : test::tied_problem(draw, 12, 4);
    const auto start = test::random_choice(draw, p);
    const auto before = evaluate(p, start);
    if (!(before.cost < infinity)) continue;
    for (const auto aim : {goal::cost, goal::peak}) {
      request r{aim};
      if (draw() % 2) r.peak_limit = before.peak;
      if (draw() % 2) r.cost_limit = before.cost;
      const auto never = [] { return false; };
      const auto after = evaluate(
          p, aim == goal::cost ? cost_descent(p, r.peak_limit).run(start, never) : descent(p, r).run(start, 8, never));
      CHECK(keeps(after, r));
      CHECK((aim == goal::cost ? after.cost <= before.cost * (1 + 1e-9) : after.peak <= before.peak));
      better += aim == goal::cost ? after.cost < before.cost : after.peak < before.peak;
    }
  }
  CHECK(better > 100);
}

TEST_CASE("a descent on costs keeps the limit and never pays more") {
  std::mt19937 draw(29);
  int better = 0;
  for (int i = 0; i < 300; ++i) {
    const auto p = i % 2 == 0 ? test::random_problem(draw, 12, 4) : test::tied_problem(draw, 12, 4);
    const auto start = test::random_choice(draw, p);
    const auto before = evaluate(p, start);
    if (!(before.cost < infinity)) continue;
    const auto after = evaluate(p, cost_descent(p, before.peak).run(start, [] { return false; }));
    CHECK(after.cost <= before.cost);
    CHECK(after.peak <= before.peak);
    better += after.cost < before.cost;
  }
  CHECK(better > 50);
}

TEST_CASE("prices of all steps bound from below, round within the limit, and drop nothing that is news") {
  std::mt19937 draw(31);
  int rounded = 0, dropped = 0;
  for (int i = 0; i < 200; ++i) {
    const auto p = reduce(i % 2 == 0 ? test::random_problem(draw, 7, 4) : test::tied_problem(draw, 7, 4)).small;
    if (p.nodes.empty()) continue;
    const auto least = brute_force(p, {goal::peak});
    if (least.outcome != status::optimal) continue;
    const std::int64_t limit = least.peak + static_cast<std::int64_t>(draw() % 20);
    const auto truth = brute_force(p, {goal::cost, infinity, limit});
    price_ascent ascent(p, limit, {});
    for (int n = 0; n < 60; ++n) {
      REQUIRE(ascent.iterate(truth.cost, truth.cost));
      CHECK(ascent.bound() <= truth.cost * (1 + 1e-9));
      const auto choice = ascent.rounded();
      if (choice.empty()) continue;
      const auto e = evaluate(p, choice);
      // What holds transient bytes on edges may round beyond the limit: the caller evaluates.
      rounded += e.peak <= limit;
    }
    // A cutoff at the optimum leaves the optimum.
    for (const auto& node : ascent.messages().dead())
      dropped += static_cast<int>(std::count(node.begin(), node.end(), 1));
    for (std::size_t v = 0; v < p.nodes.size(); ++v)
      CHECK(std::count(ascent.messages().dead()[v].begin(), ascent.messages().dead()[v].end(), 0) > 0);
  }
  CHECK(rounded > 1000);
  CHECK(dropped > 100);
}

TEST_CASE("freed nodes with the rest as it was cost and hold what the whole does") {
  std::mt19937 draw(37);
  for (int i = 0; i < 200; ++i) {
    const auto p = reduce(i % 2 == 0 ? test::random_problem(draw, 12, 4) : test::tied_problem(draw, 12, 4)).small;
    if (p.nodes.empty()) continue;
    std::vector<int> nodes{static_cast<int>(draw() % p.nodes.size())}, members;
    const auto choice = test::random_choice(draw, p), other = test::random_choice(draw, p);
    grow(p, edges_by_node(p), nodes, 1 + draw() % p.nodes.size());
    const auto part = freed(p, choice, edges_by_node(p), nodes, members);
    validate(part);
    std::vector<int> was, is;
    auto changed = choice;
    for (int v : members) {
      was.push_back(choice[static_cast<std::size_t>(v)]);
      is.push_back(other[static_cast<std::size_t>(v)]);
      changed[static_cast<std::size_t>(v)] = is.back();
    }
    const auto a = evaluate(p, choice), b = evaluate(p, changed), pa = evaluate(part, was), pb = evaluate(part, is);
    CHECK(pa.bytes == a.bytes);
    CHECK(pb.bytes == b.bytes);
    if (a.cost < infinity && b.cost < infinity) CHECK(pb.cost - pa.cost == b.cost - a.cost);
  }
}
