// Plans for which the time ran out: never behind a scheme or an earlier plan, and no word of proof that was not given.
#include <mmr/plan/planner.hpp>

#include "catch.hpp"
#include "models.hpp"
#include "refusal.hpp"

using namespace models;
using mmr::goal;

namespace {

constexpr double none = 1e-9, enough = 20;

mmr::graph demo(std::int64_t layers = 4) {
  return gpt({.layers = layers,
              .heads = 4,
              .embed = 64,
              .seq = 32,
              .batch = 8,
              .vocab = 128,
              .updates = optimizer::adamw_clipped});
}

/// The number after `words` in `text`.
double number_after(const std::string& text, const std::string& words) {
  const auto at = text.find(words);
  INFO(text);
  REQUIRE(at != std::string::npos);
  return std::stod(text.substr(at + words.size()));
}

}  // namespace

TEST_CASE("without time to search, plans are no worse than the schemes") {
  const auto g = demo();
  const auto m = mmr::mesh::parse("data=2,model=2");
  mmr::planner known(g, m);
  for (const bool pinned : {false, true}) {
    mmr::pins fixed;
    if (pinned) fixed.shard(tensor_named(g, "wte.weight"), "", "data");
    for (const auto name : mmr::scheme_names) {
      const mmr::plan_request scheme{
          .scheme = std::string(name), .axes = gpt_axes(), .fixed = fixed, .seconds = enough};
      mmr::plan by_scheme;
      try {
        by_scheme = known.make(scheme);
      } catch (const mmr::error&) {
        REQUIRE(pinned);  // the pin leaves nothing of the scheme
        continue;
      }
      INFO(name << (pinned ? " pinned" : ""));
      const auto axes = gpt_axes();
      const auto peak = mmr::peak_bytes(by_scheme);
      const auto lean = mmr::planner(g, m).make({.axes = axes, .fixed = fixed, .seconds = none});
      CHECK(mmr::peak_bytes(lean) <= peak);
      const auto kept = mmr::planner(g, m).make({.budget = peak, .axes = axes, .fixed = fixed, .seconds = none});
      CHECK(mmr::peak_bytes(kept) <= peak);
      const auto quick = mmr::planner(g, m).make(
          {.minimise = goal::time, .budget = peak, .axes = axes, .fixed = fixed, .seconds = none});
      CHECK(mmr::peak_bytes(quick) <= peak);
      CHECK(quick.step_seconds <= by_scheme.step_seconds * (1 + 1e-9));
    }
  }
}

TEST_CASE("without time to search, more freedom never costs memory or time") {
  const auto g = demo(2);
  mmr::planner plans(g, mmr::mesh::parse("data=2,model=2"));
  auto peak = mmr::solve::no_peak_limit;
  // The first searches have time, the later ones must not fall behind them.
  double seconds = 1;
  for (const double slowdown : {0.01, 0.05, 0.2, 1.0, 10.0}) {
    const auto p = plans.make({.slowdown = slowdown, .axes = gpt_axes(), .seconds = seconds});
    CHECK(mmr::peak_bytes(p) <= peak);
    peak = mmr::peak_bytes(p);
    seconds = none;
  }
  CHECK(mmr::peak_bytes(plans.make({.axes = gpt_axes(), .seconds = none})) <= peak);
}

TEST_CASE("what is called proved or refused holds, however little the work") {
  const auto g = demo(2);
  const auto m = mmr::mesh::parse("data=2,model=2");
  const auto lean = mmr::planner(g, m).make({.axes = gpt_axes(), .seconds = enough});
  REQUIRE(lean.least);
  const auto least = mmr::peak_bytes(lean);
  const auto fast = mmr::planner(g, m).make({.minimise = goal::time, .axes = gpt_axes(), .seconds = enough});
  const auto middle =
      mmr::planner(g, m).make({.minimise = goal::time, .budget = least, .axes = gpt_axes(), .seconds = enough});
  for (const double work : {0.0, 1e3, 1e4, 3e4, 1e5, 1e6, 1e7}) {
    for (const bool seeded : {false, true}) {
      INFO("work " << work << (seeded ? ", from the schemes" : ""));
      const auto axes = seeded ? gpt_axes() : mmr::scheme_axes{};
      const auto p = mmr::planner(g, m).make({.axes = axes, .work = work});
      CHECK(p.lower_bound <= static_cast<double>(least));
      if (p.least) CHECK(mmr::peak_bytes(p) == least);
      if (p.proved) {
        CHECK(p.least);
        CHECK(p.step_seconds <= middle.step_seconds * (1 + 1e-6));
      }
      const auto q = mmr::planner(g, m).make({.minimise = goal::time, .axes = axes, .work = work});
      CHECK(q.lower_bound <= q.step_seconds);
      if (q.least) CHECK(q.step_seconds <= fast.step_seconds * (1 + 1e-6));
      if (q.proved) CHECK(mmr::peak_bytes(q) <= mmr::peak_bytes(fast));
      for (const auto how : {goal::memory, goal::time}) {
        for (const auto budget : {least, least - 1, least / 2}) {
          const auto why = refusal([&] {
            const auto kept = mmr::planner(g, m).make({.minimise = how, .budget = budget, .axes = axes, .work = work});
            CHECK(mmr::peak_bytes(kept) <= budget);
          });
          if (budget >= least) CHECK_THAT(why, !contains("no plan keeps"));
          if (budget < least) CHECK_THAT(why, contains("no plan keeps the budget") || contains(" was found in "));
          if (why.find("the least that would do is ") != std::string::npos)
            CHECK(number_after(why, "the least that would do is ") == static_cast<double>(least));
          if (why.find("at least ") != std::string::npos) {
            CHECK(number_after(why, "at least ") <= static_cast<double>(least));
            CHECK(number_after(why, "the best plan found takes ") >= static_cast<double>(least));
          }
        }
      }
    }
  }
}

TEST_CASE("a budget refused within a slowdown says which slowdown would do") {
  const auto g = mlp({.layers = 2, .batch = 96, .in = 160, .hidden = 210, .out = 128});
  mmr::planner plans(g, mmr::mesh::parse("data=2"));
  const auto least = mmr::peak_bytes(plans.make({}));
  const auto within = mmr::peak_bytes(plans.make({.slowdown = 0}));
  REQUIRE(least < within);
  const auto why = refusal([&] { plans.make({.slowdown = 0, .budget = least}); });
  CHECK_THAT(why, contains("no plan keeps the budget of " + std::to_string(least) +
                           " bytes a rank within the slowdown of 0: "));
  CHECK(number_after(why, "the least that would do is ") == static_cast<double>(within));
  const double enough_slower = number_after(why, "or allow a slowdown of ");
  CHECK(mmr::peak_bytes(plans.make({.slowdown = enough_slower, .budget = least})) == least);
  CHECK_THAT(refusal([&] { plans.make({.slowdown = enough_slower - 0.0002, .budget = least}); }),
             contains("no plan keeps"));
  const auto never = refusal([&] { plans.make({.slowdown = 0.1, .budget = least - 1}); });
  CHECK_THAT(never, contains(" bytes a rank at any slowdown: the least that would do is " + std::to_string(least)));
}

TEST_CASE("the slowdown that a refusal advises is more than the one asked for") {
  const auto g = demo(3);
  const auto m = mmr::mesh::parse("data=2,model=2");
  const auto ends = [&](goal minimise) { return mmr::planner(g, m).make({.minimise = minimise, .axes = gpt_axes(), .work = 1e7}); };
  const auto lean = mmr::peak_bytes(ends(goal::memory)), quick = mmr::peak_bytes(ends(goal::time));
  for (const double work : {1e5, 1e6})
    for (const double share : {0.1, 0.3, 0.6})
      for (const double slowdown : {0.1, 0.3}) {
        const auto budget = lean + static_cast<std::int64_t>(share * static_cast<double>(quick - lean));
        INFO("work " << work << ", budget " << budget << ", slowdown " << slowdown);
        const auto why = refusal([&] {
          const auto p = mmr::planner(g, m).make({.slowdown = slowdown, .budget = budget, .axes = gpt_axes(), .work = work});
          CHECK(mmr::peak_bytes(p) <= budget);
        });
        if (why.find("or allow a slowdown of ") != std::string::npos)
          CHECK(number_after(why, "or allow a slowdown of ") > slowdown);
      }
}

TEST_CASE("no bound is above the value that it bounds") {
  for (const std::int64_t embed : {24, 30, 64}) {
    const auto g = gpt({.layers = 2, .heads = 2, .embed = embed, .seq = 20, .batch = 5, .vocab = 301});
    mmr::planner plans(g, mmr::mesh::parse("data=3"));
    for (const auto name : mmr::scheme_names) {
      const auto p = plans.make({.scheme = std::string(name), .axes = gpt_axes()});
      CHECK(p.lower_bound <= p.step_seconds);
      CHECK(p.proved);
    }
    const auto quick = plans.make({.minimise = goal::time});
    CHECK(quick.lower_bound <= quick.step_seconds);
  }
}

TEST_CASE("Megatron-LM along a mesh axis of one rank is called what it is") {
  const auto g = gpt({});
  for (const char* scheme : {"megatron", "megatron-sp"}) {
    mmr::planner alone(g, mmr::mesh::parse("data=2,model=1")), split(g, mmr::mesh::parse("data=1,model=2"));
    const auto p = alone.make({.scheme = scheme, .axes = gpt_axes()});
    CHECK(p.name == std::string(scheme) + " (= ddp)");
    CHECK(p.strategies == alone.make({.scheme = "ddp", .axes = gpt_axes()}).strategies);
    CHECK(split.make({.scheme = scheme, .axes = gpt_axes()}).name == scheme);
  }
}
