// What limits on bytes take out, and the proofs built on it, against exhaustive search.
#include "mmr/solve/tighten.hpp"

#include <algorithm>
#include <random>

#include "catch.hpp"
#include "mmr/solve/brute_force.hpp"
#include "mmr/solve/reduce.hpp"
#include "mmr/solve/solve.hpp"
#include "solve/agrees.hpp"
#include "solve/random_problem.hpp"

using namespace mmr::solve;

namespace {

/// Calls f with every choice that costs less than infinity, and its evaluation.
template <class F>
void for_each_choice(const problem& p, F f) {
  std::vector<int> choice(p.nodes.size(), 0);
  for (;;) {
    const auto e = evaluate(p, choice);
    if (e.cost < infinity) f(choice, e);
    std::size_t v = 0;
    while (v < choice.size() && ++choice[v] == strategies(p, static_cast<int>(v))) choice[v++] = 0;
    if (v == choice.size()) return;
  }
}

problem any_problem(std::mt19937& draw, int i) {
  return i % 2 == 0 ? test::tied_problem(draw, 5, 4) : test::random_problem(draw, 5, 4);
}

}  // namespace

TEST_CASE("a limit takes out nothing that a choice within it has, and keeps no idle step that one exceeds") {
  std::mt19937 draw(404);
  std::size_t dropped = 0, idle = 0, refuted = 0, infeasible = 0;
  for (int i = 0; i < 400; ++i) {
    const auto p = any_problem(draw, i);
    const auto smallest = brute_force(p, {goal::peak});
    if (smallest.outcome != status::optimal) continue;
    for (const std::int64_t limit : {smallest.peak - 1, smallest.peak, smallest.peak + 1, smallest.peak + 150}) {
      INFO("problem " << i << ", limit " << limit << ", least peak " << smallest.peak);
      const auto left = tighten(p, limit);
      if (limit < smallest.peak) ++infeasible;
      if (left.infeasible) {
        CHECK(limit < smallest.peak);
        ++refuted;
        continue;
      }
      dropped += left.dropped;
      idle += static_cast<std::size_t>(std::count(left.idle.begin(), left.idle.end(), 1));
      bool fine = true;
      for_each_choice(p, [&](const std::vector<int>& choice, const evaluation& e) {
        bool whole = true;
        for (std::size_t v = 0; v < choice.size(); ++v)
          whole = whole && !left.dead[v][static_cast<std::size_t>(choice[v])];
        for (std::size_t k = 0; k < p.edges.size(); ++k)
          whole = whole && !left.dead_pairs[k][chosen_pair(p.edges[k], choice)];
        if (e.peak <= limit) fine = fine && whole;
        if (whole)
          for (std::size_t t = 0; t < left.idle.size(); ++t) fine = fine && (!left.idle[t] || e.bytes[t] <= limit);
      });
      CHECK(fine);
      // Without idle steps the reduced problem still tells the same choices apart.
      const auto reduced = reduce_to(p, left, true);
      request within{goal::cost, infinity, limit};
      const auto truth = brute_force(p, within);
      if (reduced.infeasible) {
        CHECK(truth.outcome == status::infeasible);
        continue;
      }
      const auto small = brute_force(reduced.small, within);
      REQUIRE(small.outcome == truth.outcome);
      if (truth.outcome == status::optimal) CHECK(small.cost + reduced.constant == truth.cost);
    }
  }
  CHECK(dropped > 1000);
  CHECK(idle > 300);
  CHECK(refuted > infeasible * 2 / 3);
}

TEST_CASE("peaks a byte apart are told apart, with and without limits") {
  std::mt19937 draw(77);
  for (int i = 0; i < 400; ++i) {
    const auto p = test::tied_problem(draw, 7, 4);
    INFO("problem " << i);
    const auto cheapest = brute_force(p, {goal::cost}), smallest = brute_force(p, {goal::peak});
    test::agrees(p, {goal::peak});
    if (cheapest.outcome != status::optimal) continue;
    test::agrees(p, {goal::peak}, cheapest.choice);
    test::agrees(p, {goal::cost, infinity, smallest.peak}, smallest.choice);
    test::agrees(p, {goal::cost, infinity, smallest.peak - 1});
    test::agrees(p, {goal::cost, infinity, smallest.peak + 1});
    test::agrees(p, {goal::peak, cheapest.cost + 1});
    test::agrees(p, {goal::peak, cheapest.cost + 2, smallest.peak + 1}, smallest.choice);
    test::agrees(p, {goal::peak, infinity, smallest.peak});
    test::agrees(p, {goal::peak, infinity, smallest.peak - 1});
  }
}

TEST_CASE("guessed peaks and halves that stay open raise no bound above the truth") {
  std::mt19937 draw(88);
  int proved = 0, open = 0;
  for (int i = 0; i < 300; ++i) {
    auto p = any_problem(draw, i);
    // The guesses of peaks go by units: with one byte as the unit each of them counts.
    p.nodes.push_back({"odd", {0, 0}, {}});
    if (p.steps > 0) p.nodes.back().uses.push_back({0, 1, {1, 2}});
    const auto cheapest = brute_force(p, {goal::cost}), smallest = brute_force(p, {goal::peak});
    if (smallest.outcome != status::optimal) continue;
    for (const request& r : {request{goal::peak}, request{goal::peak, cheapest.cost + 1},
                             request{goal::cost, infinity, (smallest.peak + cheapest.peak) / 2},
                             request{goal::cost, infinity, smallest.peak}})
      for (const int branches : {0, 1, 2, 5, 1000000}) {
        detail::effort weak;
        weak.tightening = weak.messages = weak.programs = false;
        weak.program_below = 0;
        weak.most_branches = branches;
        for (const std::size_t states : {1, 2, 1000}) {
          weak.most_states = states;
          const auto truth = brute_force(p, r), found = detail::minimiser(p, r, weak).run({});
          const double best = r.minimise == goal::cost ? truth.cost : static_cast<double>(truth.peak);
          INFO("problem " << i << ", " << branches << " splits, " << states << " states: truth " << best << ", found "
                          << name_of(found.outcome) << " " << found.cost << " " << found.peak << " bound "
                          << found.bound);
          CHECK(found.outcome != status::infeasible);
          CHECK(found.bound <= best * (1 + 1e-9));
          const bool optimal = found.outcome == status::optimal;
          if (optimal)
            CHECK((r.minimise == goal::cost ? found.cost : static_cast<double>(found.peak)) <= best * (1 + 1e-9));
          if (branches == 1000000) CHECK(optimal);
          ++(optimal ? proved : open);
        }
      }
  }
  CHECK(proved > 1000);
  CHECK(open > 50);
}
