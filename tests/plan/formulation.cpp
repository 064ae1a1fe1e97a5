// The problem that the solver sees and the program that runs are one: bytes of every step and seconds agree for every
// choice, whatever the strategies, meshes and extents.
#include <mmr/plan/plan.hpp>
#include <mmr/solve/evaluate.hpp>

#include <array>

#include "catch.hpp"
#include "draw.hpp"
#include "models.hpp"

using namespace models;

namespace {

std::int64_t peak_of(const std::vector<std::int64_t>& bytes) {
  return *std::max_element(bytes.begin(), bytes.end());
}

void check_agreement(const mmr::graph& g, const mmr::mesh& m, int draws) {
  INFO("mesh " << m.text() << ", " << g.ops() << " operators");
  mmr::setting s(g, m);
  const auto apart = mmr::formulate(s, {}, mmr::repeated::apart), alike = mmr::formulate(s),
             again = mmr::formulate(s, {}, mmr::repeated::again_in_classes), classes = mmr::formulate(s, {}, mmr::repeated::in_classes);
  for (const auto* f : {&apart, &alike, &again, &classes}) mmr::solve::validate(f->problem);
  REQUIRE(static_cast<int>(apart.problem.nodes.size()) == g.ops());
  REQUIRE(apart.problem.steps == s.live.steps());
  std::mt19937 random(static_cast<unsigned>(g.ops() * 100 + m.rank_count()));
  for (int draw = 0; draw < draws; ++draw) {
    const auto& f = *std::array{&apart, &alike, &again, &classes}[static_cast<std::size_t>(draw % 4)];
    const auto pick = any_choice(s, f, random);
    mmr::plan p;
    p.strategies = f.chosen(pick);
    const auto predicted = mmr::solve::evaluate(f.problem, pick);
    REQUIRE(predicted.cost < mmr::solve::infinity);
    const auto live = mmr::program(s, p.strategies, 0).live_bytes();
    REQUIRE(predicted.peak == peak_of(live));
    for (std::size_t t = 0; t < f.steps.size(); ++t)
      REQUIRE(predicted.bytes[t] == live[static_cast<std::size_t>(f.steps[t])]);
    mmr::price(s, p);
    REQUIRE(predicted.cost == Approx(p.step_seconds).epsilon(1e-12));
    for (int r = 1; r < m.rank_count(); ++r)
      REQUIRE(peak_of(mmr::program(s, p.strategies, r).live_bytes()) <= predicted.peak);
  }
}

}  // namespace

TEST_CASE("problem and program agree on MLPs") {
  for (const auto* spec : {"a=2", "a=3", "a=5", "a=2,b=2", "a=3,b=2", "a=2,b=1", "a=2,b=2,c=2"}) {
    check_agreement(mlp({.layers = 1}), mmr::mesh::parse(spec), 20);
    check_agreement(mlp({.layers = 2, .microbatches = 3, .updates = optimizer::adamw_clipped}), mmr::mesh::parse(spec),
                    20);
  }
}

TEST_CASE("problem and program agree on GPTs") {
  for (const auto* spec : {"a=2", "a=3", "a=2,b=2", "a=2,b=3"}) {
    check_agreement(gpt({.heads = 2, .embed = 6, .seq = 5, .batch = 3, .vocab = 11}), mmr::mesh::parse(spec), 6);
    check_agreement(gpt({.layers = 3,
                         .dropout = 0.1,
                         .microbatches = 2,
                         .updates = optimizer::adamw_clipped,
                         .double_precision = true}),
                    mmr::mesh::parse(spec), 6);
  }
}

TEST_CASE("problem and program agree where results of blocks are kept or made again") {
  for (const auto* spec : {"a=1", "a=2", "a=3", "a=2,b=2"}) {
    check_agreement(gpt({.layers = 1, .heads = 2, .embed = 6, .seq = 5, .batch = 3, .vocab = 11, .recompute = true}),
                    mmr::mesh::parse(spec), 8);
    check_agreement(gpt({.layers = 3,
                         .dropout = 0.1,
                         .microbatches = 2,
                         .updates = optimizer::adamw_clipped,
                         .double_precision = true,
                         .recompute = true}),
                    mmr::mesh::parse(spec), 8);
    check_agreement(skipping(1), mmr::mesh::parse(spec), 20);
    check_agreement(skipping(4, 2), mmr::mesh::parse(spec), 20);
  }
  const auto many = gpt({.layers = 24, .dropout = 0.1, .microbatches = 2, .recompute = true});
  check_agreement(many, mmr::mesh::parse("a=2,b=2"), 15);
  // Layers in classes of 1, 2, 4, 8 and the other 9: within the larger ones the first and the last few are looked at.
  mmr::setting s(many, mmr::mesh::parse("a=2"));
  const auto alike = mmr::formulate(s), classes = mmr::formulate(s, {}, mmr::repeated::again_in_classes);
  CHECK(classes.problem.nodes.size() == alike.problem.nodes.size() + 4 * 11);
  CHECK(classes.problem.steps < s.live.steps() * 3 / 4);
}

TEST_CASE("of many layers the first and the last few are looked at, and the peak is among them") {
  for (const int microbatches : {1, 2}) {
    const auto few = gpt({.layers = 6, .dropout = 0.1, .microbatches = microbatches, .updates = optimizer::adamw_clipped});
    const auto many = gpt({.layers = 12, .dropout = 0.1, .microbatches = microbatches, .updates = optimizer::adamw_clipped});
    check_agreement(many, mmr::mesh::parse("a=2,b=2"), 12);
    mmr::setting small(few, mmr::mesh::parse("a=2,b=2")), large(many, small.m);
    const auto six = mmr::formulate(small), twelve = mmr::formulate(large);
    CHECK(six.problem.steps == twelve.problem.steps);
    CHECK(six.problem.nodes.size() == twelve.problem.nodes.size());
  }
}

TEST_CASE("problem and program agree on what a restriction leaves") {
  const auto g = gpt({.layers = 2, .heads = 3, .embed = 9, .seq = 7, .batch = 5, .vocab = 13});
  for (const auto* spec : {"data=3", "data=2,model=2"}) {
    mmr::setting s(g, mmr::mesh::parse(spec));
    std::mt19937 random(1);
    for (const auto name : mmr::scheme_names) {
      const auto f = mmr::formulate(s, mmr::scheme_restriction(name, g, s.m, gpt_axes()));
      for (int draw = 0; draw < 3; ++draw) {
        const auto pick = any_choice(f.problem, random);
        const auto chosen = f.chosen(pick);
        REQUIRE(mmr::solve::evaluate(f.problem, pick).peak == peak_of(mmr::program(s, chosen, 0).live_bytes()));
      }
    }
  }
}

TEST_CASE("on one rank there is one choice, and nothing is sent") {
  const auto g = gpt({.layers = 2});
  mmr::setting s(g, mmr::mesh::parse("data=1"));
  const auto f = mmr::formulate(s);
  for (const auto& all : f.choices) CHECK(all.size() == 1);
  mmr::plan p;
  p.strategies = f.chosen(std::vector<int>(f.choices.size(), 0));
  mmr::assess(s, p);
  CHECK(p.sent_bytes == 0);
  CHECK(p.per_rank[0].redundant == 0);
  CHECK(p.step_seconds == p.compute_seconds);
}

TEST_CASE("a restriction that leaves an operator nothing names it") {
  const auto g = mlp({});
  mmr::setting s(g, mmr::mesh::parse("data=2"));
  CHECK_THROWS_WITH(
      mmr::formulate(s, [](mmr::op_id, const mmr::op_info& op, const mmr::strategy&) { return op.name != "contract"; }),
      contains("leave operator 'contract' no strategy"));
}
