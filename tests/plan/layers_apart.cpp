// Plans that let some layers go one way and others another: never behind the best of layers alike, never ahead of the best
// of all plans, and near it where two limits hold at once.
#include <mmr/plan/planner.hpp>

#include "catch.hpp"
#include "models.hpp"
#include "refusal.hpp"

using namespace models;
using mmr::goal;

namespace {

/// Plans of least memory within a slowdown and of least time within a budget, against the best of layers alike and of all
/// plans: at most the share `near` above these. Returns whether any is clearly ahead of layers alike.
bool check_between(const mmr::graph& g, const std::string& mesh, double near) {
  INFO("mesh " << mesh << ", " << g.ops() << " operators");
  mmr::planner plans(g, mmr::mesh::parse(mesh));
  const auto alike = plans.formulated({}), apart = plans.formulated({}, mmr::repeated::apart);
  const auto best = [](const mmr::formulation& f, const mmr::solve::request& q) {
    const auto x = mmr::solve::minimise(f.problem, q);
    REQUIRE(x.outcome == mmr::solve::status::optimal);
    return q.minimise == mmr::solve::goal::cost ? x.cost : static_cast<double>(x.peak);
  };
  const auto quick = plans.make({.minimise = goal::time});
  const auto lean = plans.make({.minimise = goal::memory});
  bool ahead = false;
  const auto check = [&](double value, double bound, const mmr::solve::request& q) {
    const double of_alike = best(alike, q), of_all = best(apart, q);
    INFO("alike " << of_alike << ", all " << of_all);
    CHECK(value <= of_alike * (1 + 1e-9));
    CHECK(value >= of_all * (1 - 1e-9));
    CHECK(value <= of_all * near);
    CHECK(bound <= of_all * (1 + 1e-9));
    ahead = ahead || value < 0.995 * of_alike;
  };
  for (const double slowdown : {0.02, 0.1}) {
    const auto p = plans.make({.minimise = goal::memory, .slowdown = slowdown});
    CHECK(p.step_seconds <= (1 + slowdown) * quick.step_seconds * (1 + 1e-9));
    check(static_cast<double>(mmr::peak_bytes(p)), p.lower_bound,
          {.minimise = mmr::solve::goal::peak, .cost_limit = (1 + slowdown) * quick.step_seconds});
  }
  for (const double share : {0.3, 0.7}) {
    const auto budget = static_cast<std::int64_t>((1 - share) * static_cast<double>(mmr::peak_bytes(lean)) +
                                                  share * static_cast<double>(mmr::peak_bytes(quick)));
    const auto p = plans.make({.minimise = goal::time, .budget = budget});
    CHECK(mmr::peak_bytes(p) <= budget);
    check(p.step_seconds, p.lower_bound, {.minimise = mmr::solve::goal::cost, .peak_limit = budget});
  }
  return ahead;
}

}  // namespace

TEST_CASE("layers go different ways where that is better") {
  CHECK(check_between(gpt({.layers = 11, .dropout = 0.1, .updates = optimizer::adamw}), "a=2", 1.02));
  CHECK(check_between(gpt({.layers = 5, .embed = 16, .seq = 8, .updates = optimizer::adamw, .recompute = true}), "a=2", 1.02));
}

TEST_CASE("of many layers, also with recomputation, plans are near their bound") {
  const auto g = gpt({.layers = 16, .embed = 32, .seq = 16, .updates = optimizer::adamw, .recompute = true});
  mmr::planner plans(g, mmr::mesh::parse("a=2"));
  const auto quick = plans.make({.minimise = goal::time}), lean = plans.make({.minimise = goal::memory});
  const auto within = plans.make({.minimise = goal::memory, .slowdown = 0.1});
  CHECK(static_cast<double>(mmr::peak_bytes(within)) <= 1.02 * within.lower_bound);
  const auto kept = plans.make({.minimise = goal::time, .budget = (mmr::peak_bytes(lean) + mmr::peak_bytes(quick)) / 2});
  CHECK(kept.step_seconds <= 1.02 * kept.lower_bound);
}

TEST_CASE("a slowdown and a budget that clash are refused with what is found for either") {
  const auto g = gpt({.layers = 8, .embed = 32, .seq = 16, .updates = optimizer::adamw, .recompute = true});
  mmr::planner plans(g, mmr::mesh::parse("a=2"));
  const auto quick = plans.make({.minimise = goal::time}), lean = plans.make({});
  for (const double tight : {0.0, 0.001, 0.02, 0.05}) {
    INFO("slowdown " << tight);
    const auto within = mmr::peak_bytes(plans.make({.slowdown = tight}));
    const auto budget = (mmr::peak_bytes(lean) + within) / 2;
    REQUIRE(budget < within);
    // On the way layers may be split; what is said of the plan found before is still said of that one.
    const auto why = refusal([&] { plans.make({.slowdown = tight, .budget = budget}); });
    const auto bytes = std::to_string(within) + " bytes; its peak is at step ";
    CHECK_THAT(why, contains("the least that would do is " + bytes) || contains("the best plan found takes " + bytes));
    CHECK_THAT(why, contains("where the largest items are") && contains("allow a slowdown of "));
    const double slowdown = std::stod(why.substr(why.find("a slowdown of ") + 14));
    const auto kept = plans.make({.slowdown = slowdown, .budget = budget});
    CHECK(mmr::peak_bytes(kept) <= budget);
    CHECK(kept.step_seconds <= (1 + slowdown) * quick.step_seconds * (1 + 1e-9));
  }
}
