// Problems beyond exhaustive search: no claim may contradict a choice that any other request found.
#pragma once

#include <cmath>
#include <vector>

#include "catch.hpp"
#include "mmr/solve/solve.hpp"

namespace test {

struct answered {
  mmr::solve::request asked;
  mmr::solve::result found;
};

/// Asks for least costs under limits from the least peak up, and for least peaks under limits from the least cost up.
/// `beyond` says by which part of that least. Every choice met joins the list that every claim is held against.
inline void no_contradiction(const mmr::solve::problem& p, double seconds,
                             const std::vector<double>& beyond = {-0.001, 0.0, 0.0005, 0.002, 0.01, 0.05, 0.3}) {
  using namespace mmr::solve;
  using mmr::solve::goal;
  std::vector<answered> all;
  const auto ask = [&](request r, const std::vector<int>& start = {}) {
    r.seconds = seconds;
    all.push_back({r, minimise(p, r, start)});
    return all.back().found;
  };
  const auto cheapest = ask({goal::cost}), smallest = ask({goal::peak});
  if (cheapest.choice.empty() || smallest.choice.empty()) {
    CHECK(cheapest.outcome == smallest.outcome);
    return;
  }
  for (const double x : beyond) {
    const double peak = static_cast<double>(smallest.peak) * (1 + x);
    ask({goal::cost, infinity, static_cast<std::int64_t>(std::llround(peak))});
    ask({goal::cost, infinity, static_cast<std::int64_t>(std::llround(peak))}, smallest.choice);
    ask({goal::peak, cheapest.cost * (1 + x)});
  }
  for (const auto& a : all) {
    const auto& found = a.found;
    INFO("goal " << (a.asked.minimise == goal::cost ? "cost" : "peak") << ", cost limit " << a.asked.cost_limit
                 << ", peak limit " << a.asked.peak_limit << ": " << name_of(found.outcome) << ", cost " << found.cost
                 << ", peak " << found.peak << ", bound " << found.bound);
    for (const auto& b : all) {
      if (b.found.choice.empty()) continue;
      const auto e = evaluate(p, b.found.choice);
      if (!keeps(e, a.asked)) continue;
      const double value = a.asked.minimise == goal::cost ? e.cost : static_cast<double>(e.peak);
      CHECK(found.outcome != status::infeasible);
      CHECK(found.bound <= value * (1 + 1e-7));
      if (found.outcome == status::optimal)
        CHECK((a.asked.minimise == goal::cost ? found.cost : static_cast<double>(found.peak)) <= value * (1 + 1e-7));
    }
  }
}

}  // namespace test
