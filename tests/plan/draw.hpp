// Random choices for the tests of plans.
#pragma once

#include <algorithm>
#include <mmr/plan/formulate.hpp>
#include <random>

namespace models {

/// Makes a choice fit together where operators run again or not: what a running operator reads is made again where it
/// would not be there, and what is kept is kept as the first run left it. Fails where a restriction allows neither.
inline void settle(const mmr::setting& s, const mmr::formulation& f, std::vector<int>& pick) {
  const auto group = [&](mmr::op_id o) { return static_cast<std::size_t>(f.groups[static_cast<std::size_t>(o)]); };
  const auto taken = [&](mmr::op_id o) -> const mmr::strategy& {
    return f.choices[group(o)][static_cast<std::size_t>(pick[group(o)])];
  };
  const auto take = [&](mmr::op_id o, auto wanted) {
    const auto& all = f.choices[group(o)];
    const auto at = std::find_if(all.begin(), all.end(), wanted);
    if (at == all.end()) mmr::fail("settle: operator '", s.g.op(o).name, "' has no such strategy");
    pick[group(o)] = static_cast<int>(at - all.begin());
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (auto o : s.live.schedule) {
      const auto& op = s.g.op(o);
      if (taken(o).runs())
        for (auto t : op.in) {
          const auto& info = s.g.tensor_of(t);
          const auto& maker = s.g.op(info.producer);
          if (mmr::is_there(maker, static_cast<std::size_t>(info.result), taken(info.producer))) continue;
          const auto wanted = maker.rules ? mmr::presence::run : mmr::presence::keep;
          take(info.producer, [&](const mmr::strategy& c) { return c.kind == wanted; });
          changed = true;
        }
      if (taken(o).kind != mmr::presence::keep) continue;
      if (taken(op.again).kind == mmr::presence::absent) {
        take(op.again, [](const mmr::strategy& c) { return c.kind == mmr::presence::keep; });
        changed = true;
      }
      const auto wanted = mmr::keeping(op, s.m, taken(op.again));
      if (taken(o) == wanted) continue;
      take(o, [&](const mmr::strategy& c) { return c == wanted; });
      changed = true;
    }
  }
}

/// One strategy a node, any of them.
inline std::vector<int> any_choice(const mmr::solve::problem& p, std::mt19937& random) {
  std::vector<int> pick;
  for (const auto& n : p.nodes)
    pick.push_back(std::uniform_int_distribution<int>(0, static_cast<int>(n.cost.size()) - 1)(random));
  return pick;
}

/// The same where operators may run again: every kind of what they may do is as likely, and all of them fit together.
inline std::vector<int> any_choice(const mmr::setting& s, const mmr::formulation& f, std::mt19937& random) {
  auto pick = any_choice(f.problem, random);
  for (std::size_t g = 0; g < pick.size(); ++g) {
    const auto& all = f.choices[g];
    const auto kind = random() % 2 ? mmr::presence::run : all.front().kind;
    while (all[static_cast<std::size_t>(pick[g])].kind != kind &&
           std::any_of(all.begin(), all.end(), [&](const auto& c) { return c.kind == kind; }))
      pick[g] = std::uniform_int_distribution<int>(0, static_cast<int>(all.size()) - 1)(random);
  }
  settle(s, f, pick);
  return pick;
}

}  // namespace models
