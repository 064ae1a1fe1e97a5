// The solver against exhaustive search, on problems small enough for both.
#include "mmr/solve/solve.hpp"

#include <cmath>
#include <random>
#include <set>
#include <sstream>

#include "catch.hpp"
#include "mmr/solve/brute_force.hpp"
#include "mmr/solve/json.hpp"
#include "mmr/solve/tie.hpp"
#include "solve/agrees.hpp"
#include "solve/gpt_like.hpp"
#include "solve/random_problem.hpp"

using namespace mmr::solve;

using test::agrees;

TEST_CASE("minimise equals exhaustive search, without limits and with limits that only just do or do not") {
  std::mt19937 draw(20250);
  int infeasible = 0;
  for (int i = 0; i < 300; ++i) {
    auto p = test::random_problem(draw);
    if (i % 3 == 0) p = mmr::solve::tie(p, test::random_groups(draw, p));
    INFO("problem " << i);
    const auto cheapest = brute_force(p, {goal::cost}), smallest = brute_force(p, {goal::peak});
    agrees(p, {goal::cost});
    agrees(p, {goal::peak});
    if (cheapest.outcome == status::infeasible) {
      ++infeasible;
      continue;
    }
    agrees(p, {goal::cost, infinity, smallest.peak});
    agrees(p, {goal::cost, infinity, smallest.peak - 1});
    agrees(p, {goal::cost, infinity, (smallest.peak + cheapest.peak) / 2}, smallest.choice);
    agrees(p, {goal::peak, cheapest.cost});
    agrees(p, {goal::peak, cheapest.cost - 0.5});
    agrees(p, {goal::peak, 1.2 * cheapest.cost}, cheapest.choice);
    agrees(p, {goal::peak, cheapest.cost + 2, (smallest.peak + cheapest.peak) / 2});
  }
  CHECK(infeasible > 3);
  CHECK(infeasible < 150);
}

TEST_CASE("minimise equals exhaustive search where ties run beside other edges") {
  std::mt19937 draw(5);
  int solved = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto p = test::multigraph_problem(draw);
    INFO("problem " << i);
    agrees(p, {goal::cost});
    agrees(p, {goal::peak});
    const auto smallest = brute_force(p, {goal::peak});
    if (smallest.outcome == status::optimal) agrees(p, {goal::cost, infinity, smallest.peak});
    solved += smallest.outcome == status::optimal;
  }
  CHECK(solved > 300);
}

TEST_CASE("whole costs are proved to the last unit, however large their sum") {
  std::mt19937 draw(6);
  for (int i = 0; i < 200; ++i) {
    auto p = test::random_problem(draw);
    p.nodes.push_back({"large", {1e12}, {}});
    INFO("problem " << i);
    const auto smallest = brute_force(p, {goal::peak});
    for (const auto& r :
         {request{.minimise = goal::cost}, request{.minimise = goal::cost, .peak_limit = smallest.peak}}) {
      const auto truth = brute_force(p, r), found = minimise(p, r, smallest.choice);
      REQUIRE(found.outcome == truth.outcome);
      if (truth.outcome != status::optimal) continue;
      CHECK(found.cost == truth.cost);
      CHECK(found.bound == truth.cost);
    }
  }
}

TEST_CASE("a wide graph and a node of very many strategies are no reason to look long") {
  std::mt19937 draw(7);
  problem wide;
  for (int v = 0; v < 1500; ++v) wide.nodes.push_back({"", {1, 2, 3}, {}});
  for (int i = 0; i < 12000; ++i) {
    const int u = static_cast<int>(draw() % 1500), v = static_cast<int>(draw() % 1500);
    if (u == v) continue;
    edge e{.u = u,
           .v = v,
           .u_class = {0, 1, 2},
           .v_class = {0, 1, 2},
           .u_classes = 3,
           .v_classes = 3,
           .cost = {},
           .uses = {}};
    for (int k = 0; k < 9; ++k) e.cost.push_back(static_cast<double>(draw() % 50));
    wide.edges.push_back(e);
  }
  const auto order = narrow_order(wide);  // takes minutes where every table is joined
  CHECK(std::set<int>(order.begin(), order.end()).size() == 1500);

  problem many;
  many.steps = 1;
  node n{"", {}, {{0, 1, {}}}};
  for (int s = 0; s < 70000; ++s) {
    n.cost.push_back(70000 - s);
    n.uses[0].bytes.push_back(s);
  }
  many.nodes = {n};
  const auto found = minimise(many, {.minimise = goal::cost, .peak_limit = 40000});
  CHECK(found.outcome == status::optimal);
  CHECK(found.cost == 30000);
}

TEST_CASE("branching and CBC agree with exhaustive search where the search has no room") {
  std::mt19937 draw(31);
  for (int i = 0; i < 100; ++i) {
    const auto p = test::random_problem(draw, 7, 3);
    INFO("problem " << i);
    const auto smallest = brute_force(p, {goal::peak}), cheapest = brute_force(p, {goal::cost});
    if (smallest.outcome != status::optimal) continue;
    for (const request& r : {request{goal::peak}, request{goal::peak, cheapest.cost + 3},
                             request{goal::cost, infinity, (smallest.peak + cheapest.peak) / 2},
                             request{goal::cost, infinity, smallest.peak}}) {
      detail::effort no_room;
      no_room.most_states = 1;
      agrees(p, r, detail::minimiser(p, r, no_room).run({}));
      no_room.program_below = 0;
      agrees(p, r, detail::minimiser(p, r, no_room).run({}));
      no_room.most_branches = 1;  // halves stay open: CBC has to close them
      agrees(p, r, detail::minimiser(p, r, no_room).run({}));
    }
  }
}

TEST_CASE("a training step is planned to proof, and its plans keep their order") {
  const auto step = test::gpt_like({3, 64, 4, 256, 4, 32, {2, 2}});
  const auto p = mmr::solve::tie(step.p, step.group);
  const auto cheapest = minimise(p, {goal::cost}), smallest = minimise(p, {goal::peak});
  const auto slower = minimise(p, {goal::peak, 1.05 * cheapest.cost}, cheapest.choice);
  const auto again = minimise(p, {goal::cost, infinity, slower.peak}, slower.choice);
  for (const auto& r : {cheapest, smallest, slower, again}) CHECK(r.outcome == status::optimal);
  CHECK(smallest.peak <= slower.peak);
  CHECK(slower.peak <= cheapest.peak);
  CHECK(cheapest.cost <= again.cost);
  CHECK(again.cost <= slower.cost);
  CHECK(again.peak <= slower.peak);
  CHECK(minimise(p, {goal::cost, infinity, smallest.peak - 1}).outcome == status::infeasible);
  CHECK(minimise(p, {goal::cost, infinity, smallest.peak}).outcome == status::optimal);
}

TEST_CASE("a search that is stopped on its way claims no more than is true") {
  const auto step = test::gpt_like({3, 64, 4, 256, 4, 32, {2, 2}});
  const auto p = mmr::solve::tie(step.p, step.group);
  const auto cheapest = minimise(p, {goal::cost});
  const auto slower = minimise(p, {goal::peak, 1.05 * cheapest.cost}, cheapest.choice);
  REQUIRE(slower.outcome == status::optimal);
  for (int branches = 0; branches < 8; ++branches) {
    const request r{goal::cost, infinity, slower.peak, 0.3};
    detail::effort little;
    little.most_states = 1;
    little.most_branches = branches;
    little.program_below = 0;
    const auto truth = minimise(p, {goal::cost, infinity, slower.peak}),
               found = detail::minimiser(p, r, little).run({});
    INFO(branches << " splits: " << name_of(found.outcome) << " " << found.cost << " bound " << found.bound);
    CHECK(found.bound <= truth.cost * (1 + 1e-9));
    CHECK(found.outcome != status::infeasible);
    if (found.outcome == status::optimal) CHECK(found.cost <= truth.cost * (1 + 1e-9));
  }
}

TEST_CASE("the same work gives the same answer, which claims no more than is true") {
  const auto step = test::gpt_like({3, 64, 4, 256, 4, 32, {2, 2}});
  const auto p = mmr::solve::tie(step.p, step.group);
  const auto cheapest = minimise(p, {goal::cost});
  for (auto wanted :
       {request{.minimise = goal::peak, .cost_limit = 1.05 * cheapest.cost}, request{.minimise = goal::peak},
        request{.minimise = goal::cost, .peak_limit = (minimise(p, {goal::peak}).peak + cheapest.peak) / 2}}) {
    const auto truth = minimise(p, wanted, cheapest.choice);
    REQUIRE(truth.outcome == status::optimal);
    const auto value = [&](const result& r) {
      return wanted.minimise == goal::cost ? r.cost : static_cast<double>(r.peak);
    };
    int open = 0;
    for (const double share : {0.0, 0.001, 0.01, 0.03, 0.1, 0.3, 0.6, 1.0}) {
      wanted.work = share * truth.work;
      const auto found = minimise(p, wanted, cheapest.choice), again = minimise(p, wanted, cheapest.choice);
      INFO("work " << wanted.work << ": " << name_of(found.outcome) << " " << value(found) << " bound " << found.bound);
      CHECK(found.choice == again.choice);
      CHECK(found.bound == again.bound);
      CHECK(found.work == again.work);
      CHECK(found.bound <= value(truth) * (1 + 1e-9));
      if (found.outcome == status::optimal) CHECK(value(found) <= value(truth) * (1 + 1e-9));
      if (share <= 0.01) CHECK(found.work <= 0.2 * truth.work);
      if (share == 1) CHECK(found.outcome == status::optimal);
      open += found.outcome != status::optimal;
    }
    CHECK(open >= 3);
  }
}

TEST_CASE("without time the answer is what was given, and the bound stays below the optimum") {
  std::mt19937 draw(13);
  for (int i = 0; i < 50; ++i) {
    const auto p = test::random_problem(draw, 7, 3);
    const auto truth = brute_force(p, {goal::peak});
    if (truth.outcome != status::optimal) continue;
    request hurried{goal::peak};
    hurried.seconds = 0;
    const auto found = minimise(p, hurried, brute_force(p, {goal::cost}).choice);
    CHECK(!found.choice.empty());
    CHECK(found.bound <= static_cast<double>(truth.peak));
    CHECK(found.peak >= truth.peak);
    CHECK((found.outcome != status::optimal || found.peak == truth.peak));
  }
}

TEST_CASE("a tied problem costs what its expansion costs, step by step") {
  std::mt19937 draw(7);
  for (int i = 0; i < 200; ++i) {
    const auto p = test::random_problem(draw, 8);
    const auto group = test::random_groups(draw, p);
    const auto tied = mmr::solve::tie(p, group);
    validate(tied);
    const auto choice = test::random_choice(draw, tied);
    const auto of_tied = evaluate(tied, choice), of_all = evaluate(p, expand(choice, group));
    CHECK(of_tied.cost == of_all.cost);
    CHECK(of_tied.bytes == of_all.bytes);
    CHECK(of_tied.peak == of_all.peak);
    CHECK(of_tied.peak_step == of_all.peak_step);
  }
}

TEST_CASE("a reduced problem keeps cost and peak of every choice that it still offers") {
  std::mt19937 draw(11);
  for (int i = 0; i < 200; ++i) {
    const auto p = test::random_problem(draw, 8);
    const auto reduced = reduce(p);
    if (reduced.infeasible) continue;
    validate(reduced.small);
    const auto choice = test::random_choice(draw, reduced.small);
    const auto of_small = evaluate(reduced.small, choice), of_all = evaluate(p, reduced.expand(choice));
    CHECK(of_small.cost + reduced.constant == of_all.cost);
    CHECK(of_small.peak == of_all.peak);
  }
}

TEST_CASE("the same request gets the same answer") {
  std::mt19937 draw(3);
  for (int i = 0; i < 20; ++i) {
    const auto p = test::random_problem(draw, 10);
    const auto a = minimise(p, {goal::peak}), b = minimise(p, {goal::peak});
    CHECK(a.choice == b.choice);
    CHECK(a.bound == b.bound);
  }
}

TEST_CASE("a saved problem loads as it was") {
  std::mt19937 draw(5);
  for (int i = 0; i < 50; ++i) {
    const auto p = test::random_problem(draw);
    std::stringstream text, again;
    save(p, text);
    const auto loaded = load(text);
    save(loaded, again);
    CHECK(again.str() == text.str());
    CHECK(size_of(loaded).strategies == size_of(p).strategies);
  }
  std::stringstream cut("{\"steps\": 3, \"nod");
  CHECK_THROWS_AS(load(cut), mmr::error);
}

TEST_CASE("problems that make no sense are refused by name") {
  problem p{{{"weights", {1, 2}, {}}}, {}, 2, {}};
  CHECK_NOTHROW(validate(p));
  CHECK_THROWS_WITH(minimise({}, {}), Catch::Matchers::Contains("no nodes"));
  auto bad = p;
  bad.nodes[0].uses.push_back({0, 3, {1, 1}});
  CHECK_THROWS_WITH(validate(bad), Catch::Matchers::Contains("weights"));
  bad = p;
  bad.nodes[0].cost[1] = -1;
  CHECK_THROWS_WITH(validate(bad), Catch::Matchers::Contains("weights"));
  bad = p;
  bad.edges.push_back({0, 1, {0, 0}, {0}, 1, 1, {0}, {}});
  CHECK_THROWS_AS(validate(bad), mmr::error);
  bad = p;
  bad.nodes.push_back({"nothing", {}, {}});
  CHECK_THROWS_WITH(validate(bad), Catch::Matchers::Contains("nothing"));
  CHECK_THROWS_AS(evaluate(p, {2}), mmr::error);
  CHECK_THROWS_AS(tie(p, {1}), mmr::error);
}
