// Random choices for the tests of plans.
#pragma once

#include <mmr/plan/formulate.hpp>
#include <random>

namespace models {

/// One strategy a node, any of them.
inline std::vector<int> any_choice(const mmr::solve::problem& p, std::mt19937& random) {
  std::vector<int> pick;
  for (const auto& n : p.nodes)
    pick.push_back(std::uniform_int_distribution<int>(0, static_cast<int>(n.cost.size()) - 1)(random));
  return pick;
}

}  // namespace models
