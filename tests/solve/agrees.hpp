// What a solver found, held against exhaustive search.
#pragma once

#include <cmath>
#include <vector>

#include "catch.hpp"
#include "mmr/solve/brute_force.hpp"
#include "mmr/solve/solve.hpp"

namespace test {

/// What is found must be what exhaustive search says, with proof.
inline void agrees(const mmr::solve::problem& p, const mmr::solve::request& r, const mmr::solve::result& found) {
  using namespace mmr::solve;
  const auto truth = brute_force(p, r);
  INFO("goal " << (r.minimise == goal::cost ? "cost" : "peak") << ", cost limit " << r.cost_limit << ", peak limit "
               << r.peak_limit << ": truth " << name_of(truth.outcome) << " " << truth.cost << " " << truth.peak
               << ", found " << name_of(found.outcome) << " " << found.cost << " " << found.peak);
  REQUIRE(found.outcome == truth.outcome);
  if (truth.outcome != status::optimal) {
    CHECK(found.choice.empty());
    return;
  }
  const auto e = evaluate(p, found.choice);
  CHECK(e.cost == found.cost);
  CHECK(e.peak == found.peak);
  CHECK(keeps(e, r));
  if (r.minimise == goal::cost) {
    CHECK(std::abs(found.cost - truth.cost) <= cost_tolerance * truth.cost);
    CHECK(found.bound <= truth.cost * (1 + 1e-9));
  } else {
    CHECK(found.peak == truth.peak);
    CHECK(found.bound <= static_cast<double>(truth.peak));
  }
}

inline void agrees(const mmr::solve::problem& p, const mmr::solve::request& r, const std::vector<int>& start = {}) {
  agrees(p, r, mmr::solve::minimise(p, r, start));
}

}  // namespace test
