// The planner: equal to exhaustive search where that can be done, never behind a fixed scheme, true to its pins and
// budget, and the same every time.
#include <functional>
#include <mmr/plan/planner.hpp>
#include <mmr/solve/brute_force.hpp>

#include "catch.hpp"
#include "models.hpp"
#include "refusal.hpp"

using namespace models;
using mmr::goal;

namespace {

constexpr double seconds = 20;

double choices(const mmr::solve::problem& p) {
  double n = 1;
  for (const auto& node : p.nodes) n *= static_cast<double>(node.cost.size());
  return n;
}

/// Least peak and least cost over all choices, under a limit on the other, and the best second goal at the best first
/// one.
struct exhaustive {
  const mmr::solve::problem& p;
  std::vector<std::pair<double, std::int64_t>> all;  // cost, peak

  explicit exhaustive(const mmr::solve::problem& problem) : p(problem) {
    std::vector<int> choice(p.nodes.size(), 0);
    for (;;) {
      const auto e = mmr::solve::evaluate(p, choice);
      if (e.cost < mmr::solve::infinity) all.emplace_back(e.cost, e.peak);
      std::size_t v = 0;
      while (v < choice.size() && ++choice[v] == mmr::solve::strategies(p, static_cast<int>(v))) choice[v++] = 0;
      if (v == choice.size()) return;
    }
  }
  double least_cost(std::int64_t peak_limit = mmr::solve::no_peak_limit) const {
    double least = mmr::solve::infinity;
    for (const auto& [cost, peak] : all)
      if (peak <= peak_limit) least = std::min(least, cost);
    return least;
  }
  std::int64_t least_peak(double cost_limit = mmr::solve::infinity) const {
    auto least = mmr::solve::no_peak_limit;
    for (const auto& [cost, peak] : all)
      if (mmr::solve::within(cost, cost_limit)) least = std::min(least, peak);
    return least;
  }
};

void check_optimal(const mmr::graph& g, const std::string& spec, const mmr::pins& fixed) {
  INFO("mesh " << spec);
  mmr::planner plans(g, mmr::mesh::parse(spec));
  const auto p = plans.formulated({.fixed = fixed}).problem;
  INFO(choices(p) << " choices");
  REQUIRE(choices(p) > 1000);
  REQUIRE(choices(p) < 1e6);
  const exhaustive best(p);

  const auto lean = plans.make({.minimise = goal::memory, .fixed = fixed, .seconds = seconds});
  CHECK(lean.proved);
  CHECK(mmr::peak_bytes(lean) == best.least_peak());
  CHECK(lean.lower_bound <= static_cast<double>(best.least_peak()));
  CHECK(lean.step_seconds == Approx(best.least_cost(best.least_peak())).epsilon(1e-8));
  // The oracle of solve/ agrees with the one above.
  CHECK(mmr::solve::brute_force(p, {.minimise = mmr::solve::goal::peak}).peak == best.least_peak());

  for (double slowdown : {0.0, 0.05, 0.5}) {
    const auto limit = (1 + slowdown) * best.least_cost();
    const auto within =
        plans.make({.minimise = goal::memory, .slowdown = slowdown, .fixed = fixed, .seconds = seconds});
    CHECK(within.proved);
    CHECK(mmr::solve::within(within.step_seconds, limit * (1 + 1e-9)));
    CHECK(mmr::peak_bytes(within) == best.least_peak(limit));
    CHECK(within.lower_bound <= static_cast<double>(best.least_peak(limit)));
  }

  const auto quick = plans.make({.minimise = goal::time, .fixed = fixed, .seconds = seconds});
  CHECK(quick.proved);
  CHECK(quick.step_seconds == Approx(best.least_cost()).epsilon(1e-8));
  CHECK(quick.lower_bound <= best.least_cost() * (1 + 1e-9));
  CHECK(mmr::peak_bytes(quick) == best.least_peak(best.least_cost()));

  const auto middle = (best.least_peak() + mmr::peak_bytes(quick)) / 2;
  for (auto budget : {best.least_peak(), middle}) {
    const auto kept = plans.make({.minimise = goal::time, .budget = budget, .fixed = fixed, .seconds = seconds});
    CHECK(kept.proved);
    CHECK(mmr::peak_bytes(kept) <= budget);
    CHECK(kept.step_seconds == Approx(best.least_cost(budget)).epsilon(1e-8));
    CHECK(kept.lower_bound <= best.least_cost(budget) * (1 + 1e-9));
  }
}

/// Large enough that links and memory both matter: something is to be won by every kind of choice.
constexpr mlp_size wide{.batch = 96, .in = 160, .hidden = 210, .out = 128};

}  // namespace

TEST_CASE("plans of one layer equal exhaustive search") {
  for (const auto* spec : {"data=2", "data=3"})
    for (const auto& size :
         {wide, mlp_size{.batch = 5, .in = 300, .out = 70, .microbatches = 3, .updates = optimizer::adamw}}) {
      const auto g = mlp(size);
      mmr::pins some;
      some.split("report", "", "data");
      check_optimal(g, spec, some);
    }
}

TEST_CASE("plans of one layer on a mesh of two axes equal exhaustive search") {
  const auto g = mlp(wide);
  mmr::pins some;
  some.shard(tensor_named(g, "x"), "batch", "data").shard(tensor_named(g, "t"), "batch", "data");
  some.split("contract", "batch", "data").split("gradient", "", "data").split("sgd", "in", "data");
  some.shard(tensor_named(g, "w0"), "", "data").shard(tensor_named(g, "t"), "", "model");
  check_optimal(g, "data=2,model=2", some);
}

TEST_CASE("plans of two layers equal exhaustive search") {
  auto size = wide;
  size.layers = 2;
  const auto g = mlp(size);
  mmr::pins some;
  for (const auto* name : {"x", "t"}) some.shard(tensor_named(g, name), "batch", "data");
  some.split("gelu", "batch", "data").split("gelu_grad", "batch", "data");
  for (const auto* name : {"w1", "w1.gradient"}) some.shard(tensor_named(g, name), "", "data");
  some.split("sgd", "out", "data");
  check_optimal(g, "data=2", some);
}

TEST_CASE(
    "no scheme needs less memory than the memory plan, or less time than the time plan; plans are the same twice") {
  const std::pair<gpt_size, std::vector<const char*>> cases[] = {
      {{.heads = 4, .embed = 64, .seq = 32, .batch = 8, .vocab = 100, .dropout = 0.1},
       {"data=2", "data=3", "data=4", "data=2,model=2"}},
      {{.layers = 2, .heads = 2, .embed = 30, .seq = 20, .batch = 5, .vocab = 301, .microbatches = 2},
       {"data=3", "data=4"}}};
  for (const auto& [size, specs] : cases) {
    const auto g = gpt(size);
    for (const auto* spec : specs) {
      INFO(size.layers << " layers on " << spec);
      mmr::planner plans(g, mmr::mesh::parse(spec));
      const auto lean = plans.make({.minimise = goal::memory, .seconds = seconds});
      const auto quick = plans.make({.minimise = goal::time, .seconds = seconds});
      CHECK(lean.lower_bound <= static_cast<double>(mmr::peak_bytes(lean)));
      CHECK(quick.lower_bound <= quick.step_seconds * (1 + 1e-9));
      for (const auto name : mmr::scheme_names) {
        INFO(name);
        const auto fixed = plans.make({.scheme = std::string(name), .axes = gpt_axes(), .seconds = seconds});
        CHECK(fixed.name == name);
        CHECK(mmr::peak_bytes(lean) <= mmr::peak_bytes(fixed));
        CHECK(quick.step_seconds <= fixed.step_seconds * (1 + 1e-8));
        // What holds for every plan holds for the schemes.
        CHECK(lean.lower_bound <= static_cast<double>(mmr::peak_bytes(fixed)));
      }
      if (lean.proved) CHECK(plans.make({.minimise = goal::memory, .seconds = seconds}).strategies == lean.strategies);
      mmr::planner again(g, mmr::mesh::parse(spec));
      CHECK(again.make({.minimise = goal::time, .seconds = seconds}).strategies == quick.strategies);
    }
  }
}

TEST_CASE("pins are kept, in whatever order they were given") {
  const auto g = gpt({.heads = 4, .embed = 64, .seq = 32, .batch = 8, .vocab = 100});
  mmr::planner plans(g, mmr::mesh::parse("data=2,model=2"));
  const auto wte = tensor_named(g, "wte.weight"), w1 = tensor_named(g, "h.0.mlp.c_fc.weight");
  mmr::pins one, other;
  one.shard(wte, "vocab", "model")
      .shard(w1, "", "data")
      .split("attention", "heads", "model")
      .split("layer_norm", "", "data");
  other.split("layer_norm", "", "data")
      .split("attention", "heads", "model")
      .shard(w1, "", "data")
      .shard(wte, "vocab", "model");
  const auto p = plans.make({.minimise = goal::time, .fixed = one, .seconds = seconds});
  CHECK(plans.make({.minimise = goal::time, .fixed = other, .seconds = seconds}).strategies == p.strategies);
  auto& s = plans.where();
  const auto place = [&](mmr::tensor_id t) {
    return s.made_placement(t, p.strategies[static_cast<std::size_t>(g.tensor_of(t).producer)]);
  };
  CHECK(place(wte)[1] == 0);
  CHECK(place(w1)[0] == mmr::replicate);
  int pinned = 0;
  for (mmr::op_id o = 0; o < g.ops(); ++o) {
    const auto& op = g.op(o);
    if (!op.rules) continue;
    const auto& c = p.strategies[static_cast<std::size_t>(o)];
    const bool attention = op.rules->name() == "attention", norm = op.rules->name() == "layer_norm";
    pinned += attention + norm;
    if (attention) CHECK(op.loops.find_loop("heads") == c[1]);
    if (norm) CHECK(c[0] == mmr::unsplit);
  }
  CHECK(pinned == 4);
}

TEST_CASE("pins that clash, or name what is not there, are refused by name") {
  const auto g = gpt({});
  mmr::planner plans(g, mmr::mesh::parse("data=2,model=2"));
  const auto wte = tensor_named(g, "wte.weight");
  const auto refused = [&](const std::function<void(mmr::pins&)>& pin) {
    mmr::pins p;
    pin(p);
    return refusal([&] { plans.make({.minimise = goal::time, .fixed = p, .seconds = seconds}); });
  };
  CHECK_THAT(refused([&](auto& p) { p.shard(wte, "vocab", "model").shard(wte, "", "model").split("attention", "heads", "model"); }),
             contains("the pins 'wte.weight' sharded over vocab along model and 'wte.weight' replicated along model leave operator "
                      "'wte.weight' no strategy"));
  CHECK_THAT(refused([&](auto& p) { p.split("attention", "heads", "data").split("attention", "batch", "data"); }),
             contains("the pins 'attention' split over heads along data and 'attention' split over batch along data leave operator "
                      "'h.0.attention' no strategy"));
  CHECK_THAT(refused([&](auto& p) { p.shard(wte, "vocab", "tensor"); }),
             contains("mesh axis 'tensor'; the mesh is data=2,model=2"));
  CHECK_THAT(refused([&](auto& p) { p.shard(wte, "heads", "model"); }), contains("wte.weight"));
  CHECK_THAT(refused([&](auto& p) { p.shard(g.tensors(), "vocab", "model"); }),
             contains("a tensor that the graph does not have"));
  CHECK_THAT(refused([&](auto& p) { p.split("convolution", "batch", "data"); }), contains("operator 'convolution'"));
  CHECK_THAT(refused([&](auto& p) { p.split("attention", "vocab", "data"); }),
             contains("'attention' with a loop over 'vocab'"));
  // A loop that may not be split.
  CHECK_THAT(refused([&](auto& p) { p.split("layer_norm", "embed", "data"); }), contains("layer_norm"));
}

TEST_CASE("a budget that no plan keeps is refused with the least that would do, which is kept") {
  const auto g = mlp({.layers = 2, .batch = 96, .in = 160, .hidden = 210, .out = 128});
  mmr::planner plans(g, mmr::mesh::parse("data=2"));
  const auto least = mmr::peak_bytes(plans.make({.minimise = goal::memory, .seconds = seconds}));
  for (auto how : {goal::memory, goal::time}) {
    const auto exact = plans.make({.minimise = how, .budget = least, .seconds = seconds});
    CHECK(mmr::peak_bytes(exact) == least);
    const auto why = refusal([&] { plans.make({.minimise = how, .budget = least - 1, .seconds = seconds}); });
    CHECK_THAT(why, contains("no plan keeps the budget of " + std::to_string(least - 1) + " bytes a rank"));
    CHECK_THAT(why, contains("the least that would do is " + std::to_string(least) + " bytes"));
    CHECK_THAT(why, contains("where the largest items are "));
    // Three of them, in bytes.
    const auto items = why.substr(why.find("items are "), why.find("; raise") - why.find("items are "));
    CHECK(std::count(items.begin(), items.end(), ',') == 2);
  }
  CHECK_THAT(refusal([&] { plans.make({.budget = 0}); }), contains("the budget is 0 bytes"));
  CHECK_THAT(refusal([&] { plans.make({.slowdown = -0.1}); }), contains("the slowdown is -0.1"));
}

TEST_CASE("a pin under a tight budget stays feasible, or is named") {
  const auto g = gpt({.heads = 4, .embed = 64, .seq = 32, .batch = 8, .vocab = 100});
  mmr::planner plans(g, mmr::mesh::parse("data=2,model=2"));
  const auto wte = tensor_named(g, "wte.weight");
  const auto least_with = [&](const mmr::pins& p) { return mmr::peak_bytes(plans.make({.fixed = p, .seconds = seconds})); };
  mmr::pins whole, harmless;
  whole.shard(wte, "", "model").shard(wte, "", "data");
  harmless.split("attention", "heads", "model");
  const auto least = least_with({});
  REQUIRE(least_with(whole) > least);
  for (const bool turned : {false, true}) {
    mmr::pins both;
    if (turned) both.split("attention", "heads", "model");
    both.shard(wte, "", "model").shard(wte, "", "data");
    if (!turned) both.split("attention", "heads", "model");
    const auto needed = least_with(both);
    for (auto how : {goal::memory, goal::time})
      CHECK(mmr::peak_bytes(plans.make({.minimise = how, .budget = needed, .fixed = both, .seconds = seconds})) <= needed);
    for (auto how : {goal::memory, goal::time}) {
      const auto why = refusal([&] { plans.make({.minimise = how, .budget = needed - 1, .fixed = both, .seconds = seconds}); });
      CHECK_THAT(why, contains("the least that would do is " + std::to_string(needed) + " bytes"));
      CHECK_THAT(why, contains("the budget clashes with the pin 'wte.weight' replicated along"));
      CHECK_THAT(why, !contains("clashes with the pin 'attention'"));
    }
  }
}

TEST_CASE("a scheme that is none, or lacks the model's axes, is refused") {
  const auto g = mlp({});
  mmr::planner plans(g, mmr::mesh::parse("data=2"));
  CHECK_THAT(refusal([&] { plans.make({.scheme = "zero4"}); }), contains("'zero4' is no plan"));
  CHECK_THAT(refusal([&] { plans.make({.scheme = "megatron"}); }),
             contains("'megatron' needs to know the tensor axes"));
}
