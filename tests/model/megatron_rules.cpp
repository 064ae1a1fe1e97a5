// Megatron-LM's and ZeRO's published bytes, from plans with their choices pinned, at the published shapes.
#include "catch.hpp"
#include "megatron_rules/rules.hpp"

TEST_CASE("a layer with stored scores and masks saves the published bytes") {
  for (const auto& s : rules::shapes) {
    const auto g = rules::model(s);
    for (const auto& rule : rules::activation_rules) {
      mmr::planner planner(g, mmr::mesh::parse(rule.mesh));
      const auto p = rules::pinned(planner, rule.scheme);
      std::map<std::string, std::int64_t> items;
      const auto found = rules::saved_of_layer(planner.where(), p.strategies, 1, &items);
      INFO(s.name << ", " << rule.name);
      for (const auto& [name, n] : items)
        UNSCOPED_INFO(name << " " << static_cast<double>(n) / static_cast<double>(rules::words * s.embed) << " sbh");
      CHECK(static_cast<double>(found) == Approx(static_cast<double>(rule.bytes(s))).epsilon(0.01));
      CHECK(found == rule.bytes(s) + rules::beside_rule(rule));
    }
  }
}

TEST_CASE("ranks hold the published bytes of model states") {
  for (const auto& s : rules::shapes) {
    const auto count = rules::parameters(s);
    for (const auto gradients : {mmr::dtype::f32, mmr::dtype::bf16}) {
      const auto g = rules::model(s, gradients);
      for (const auto& rule : rules::state_rules) {
        if (rule.gradients != gradients) continue;
        INFO(s.name << ", " << rule.name);
        mmr::planner planner(g, mmr::mesh::parse(rule.mesh));
        CHECK(rules::states(rules::pinned(planner, rule.scheme)) == rule.bytes(count.split, count.whole));
      }
    }
  }
}
