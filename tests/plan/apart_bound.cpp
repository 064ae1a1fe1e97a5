// The bound for plans whose repeated layers need not be alike: never above the best of them, and close to it where layers
// are many.
#include <mmr/plan/apart_bound.hpp>
#include <mmr/plan/pin.hpp>
#include <mmr/solve/solve.hpp>

#include "catch.hpp"
#include "models.hpp"

using namespace models;

namespace {

void check_bound(const mmr::graph& g, const std::string& mesh, double near, const mmr::pins& fixed = {}) {
  INFO("mesh " << mesh << ", " << g.ops() << " operators, " << fixed.size() << " pins");
  mmr::setting s(g, mmr::mesh::parse(mesh));
  const auto allowed = fixed.empty() ? mmr::restriction{} : fixed.as_restriction(g, s.m);
  const auto alike = mmr::formulate(s, allowed, mmr::repeated::in_classes, fixed.singled_out(g)),
             apart = mmr::formulate(s, allowed, mmr::repeated::apart);
  const auto ask = [&](mmr::solve::goal goal, double cost_limit, std::int64_t peak_limit) {
    const mmr::solve::request q{.minimise = goal, .cost_limit = cost_limit, .peak_limit = peak_limit, .seconds = 60};
    const auto x = mmr::solve::minimise(alike.problem, q);
    REQUIRE(x.outcome == mmr::solve::status::optimal);
    const auto best = mmr::solve::minimise(apart.problem, q);
    REQUIRE(best.outcome == mmr::solve::status::optimal);
    const bool for_cost = goal == mmr::solve::goal::cost;
    const double least = for_cost ? best.cost : static_cast<double>(best.peak);
    const double bound = mmr::bound_apart(s, allowed, alike, q, x);
    INFO((for_cost ? "cost" : "peak") << ", cost limit " << cost_limit << ", peak limit " << peak_limit);
    CHECK(bound <= least * (1 + 1e-9));
    CHECK(bound <= x.bound);
    CHECK(bound >= near * least);
    // What a limit on bytes leaves tells the least peak exactly wherever plans with layers alike are as lean.
    if (!for_cost && cost_limit == mmr::solve::infinity && x.peak == best.peak) CHECK(bound == x.bound);
    return x;
  };
  const auto quick = ask(mmr::solve::goal::cost, mmr::solve::infinity, mmr::solve::no_peak_limit);
  const auto lean = ask(mmr::solve::goal::peak, mmr::solve::infinity, mmr::solve::no_peak_limit);
  ask(mmr::solve::goal::peak, 1.02 * quick.cost, mmr::solve::no_peak_limit);
  ask(mmr::solve::goal::cost, mmr::solve::infinity, lean.peak + (quick.peak - lean.peak) / 2);
}

}  // namespace

TEST_CASE("no plan, of layers alike or not, is below the bound") {
  for (const int layers : {2, 9, 11})
    for (const int microbatches : {1, 2}) {
      check_bound(mlp({.layers = layers, .microbatches = microbatches, .updates = optimizer::adamw_clipped}), "a=2", 0.9);
      check_bound(gpt({.layers = layers, .dropout = 0.1, .microbatches = microbatches, .updates = optimizer::adamw}), "a=2", 0.9);
    }
  check_bound(gpt({.layers = 11, .updates = optimizer::adamw, .recompute = true}), "a=2", 0.9);
  check_bound(mlp({.layers = 9, .updates = optimizer::adamw}), "a=2,b=2", 0.9);
}

TEST_CASE("a pin in one layer does not hold for the others in the bound") {
  const auto g = gpt({.layers = 11, .dropout = 0.1, .updates = optimizer::adamw});
  for (const auto* layer : {"h.3", "h.4", "h.10"}) {
    mmr::pins fixed;
    fixed.shard(tensor_named(g, std::string(layer) + ".mlp.c_fc.weight"), "hidden", "a");
    check_bound(g, "a=2", 0.8, fixed);
  }
}
