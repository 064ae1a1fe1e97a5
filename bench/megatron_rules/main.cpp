// Megatron-LM's published memory rules against plans with its choices pinned, GPTs of 1.3B to 175B parameters in all
// their layers.
//
//     bench_megatron_rules
//
// Exits with 1 where activations of a layer are off by more than one per cent, or model states by a byte.
#include <cmath>
#include <cstdio>
#include <iostream>
#include <mmr/io/format.hpp>
#include <mmr/io/table.hpp>

#include "rules.hpp"

namespace {

std::string percent(double part) {
  char text[48];
  std::snprintf(text, sizeof text, "%.3f%%", 100 * part);
  return text;
}

}  // namespace

int main() {
  using mmr::align;
  bool kept = true;
  try {
    mmr::text_table saved({{"model", align::left},
                           {"rule", align::left},
                           {"saved of a layer", align::right, "bytes"},
                           {"rule", align::right, "bytes"},
                           {"off", align::right},
                           {"off without the rows' mean and deviation", align::right, "bytes"}});
    mmr::text_table held({{"model", align::left},
                          {"rule", align::left},
                          {"states of a rank", align::right, "bytes"},
                          {"rule", align::right, "bytes"},
                          {"off", align::right, "bytes"}});
    for (const auto& s : rules::shapes) {
      const auto in_f32 = rules::model(s), in_bf16 = rules::model(s, mmr::dtype::bf16);
      for (const auto& rule : rules::activation_rules) {
        mmr::planner planner(in_f32, mmr::mesh::parse(rule.mesh));
        const auto p = rules::pinned(planner, rule.scheme);
        const auto found = rules::saved_of_layer(planner.where(), p.strategies, 1), published = rule.bytes(s);
        const double off = static_cast<double>(found) / static_cast<double>(published) - 1;
        saved.add_row({s.name, rule.name, std::to_string(found), std::to_string(published), percent(off),
                       std::to_string(found - published - rules::beside_rule(rule))});
        kept = kept && std::abs(off) < 0.01;
      }
      const auto count = rules::parameters(s);
      for (const auto& rule : rules::state_rules) {
        mmr::planner planner(rule.gradients == mmr::dtype::f32 ? in_f32 : in_bf16, mmr::mesh::parse(rule.mesh));
        const auto found = rules::states(rules::pinned(planner, rule.scheme)),
                   published = rule.bytes(count.split, count.whole);
        held.add_row(
            {s.name, rule.name, std::to_string(found), std::to_string(published), std::to_string(found - published)});
        kept = kept && found == published;
      }
      std::cerr << "." << std::flush;
    }
    std::cerr << "\n";
    std::cout << saved << "\n" << held;
  } catch (const std::exception& problem) {
    std::cerr << "bench_megatron_rules: " << problem.what() << "\n";
    return 1;
  }
  return kept ? 0 : 1;
}
