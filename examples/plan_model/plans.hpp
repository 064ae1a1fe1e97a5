// Which plans plan_model makes: the one that was asked for, the solver's two ends, one that fits, the schemes, the front.
#pragma once

#include "devices.hpp"

#include <mmr/io/progress.hpp>
#include <mmr/plan/comparison.hpp>
#include <mmr/plan/front.hpp>

#include <chrono>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

struct planned {
  mmr::plan asked;
  std::vector<mmr::plan> table;  ///< all plans side by side, the one asked for first
  std::vector<mmr::plan> front;  ///< from the leanest to the fastest
  double seconds = 0;            ///< of all of them
};

inline std::string asked_name(const options& o) {
  std::ostringstream name;
  name << o.objective;
  if (o.slowdown) name << ", slowdown " << *o.slowdown;
  if (!o.budget.empty()) name << ", budget " << o.budget;
  return name.str();
}

/// The fastest plan whose arena a device holds. A budget bounds what is live, and the arena is a little larger: it is
/// lowered until the arena fits. Nothing where no plan was found that does.
inline std::optional<mmr::plan> fastest_that_fits(mmr::planner& planner, mmr::plan_request r, const mmr::memory_limit& limit) {
  r.minimise = mmr::goal::time;
  r.slowdown.reset();
  r.budget = limit.bytes();
  for (int tries = 0; tries < 3; ++tries) {
    try {
      auto p = planner.make(r);
      if (limit.kept_by(p).value_or(true)) return p;
      const auto over = static_cast<double>(mmr::fullest_rank(p).arena) / static_cast<double>(limit.bytes());
      r.budget = static_cast<std::int64_t>(static_cast<double>(*r.budget) / over * 0.999);
    } catch (const mmr::error&) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

/// A plan that is not proved gives way to one of `others` that is better in the same goal and keeps the same limits.
inline void give_way(mmr::plan& p, std::int64_t most_bytes, double most_seconds, const std::vector<mmr::plan>& others) {
  const auto rank = [&](const mmr::plan& x) {
    const auto bytes = static_cast<double>(mmr::peak_bytes(x));
    return p.minimised == mmr::goal::memory ? std::pair(bytes, x.step_seconds) : std::pair(x.step_seconds, bytes);
  };
  for (const auto& other : others) {
    if (p.proved || mmr::peak_bytes(other) > most_bytes || other.step_seconds > most_seconds || rank(other) >= rank(p)) continue;
    p.least = p.least && rank(other).first >= rank(p).first;
    p.strategies = other.strategies;
    p.per_rank = other.per_rank;
    p.step_seconds = other.step_seconds;
    p.compute_seconds = other.compute_seconds;
    p.sent_bytes = other.sent_bytes;
  }
}

inline planned make_plans(const options& o, mmr::planner& planner, const mmr::scheme_axes& axes, const mmr::memory_limit& limit) {
  using clock = std::chrono::steady_clock;
  const auto begin = clock::now();
  planned out;
  mmr::plan_request r;
  r.axes = axes;
  r.work = o.solve_work;
  r.seconds = o.solve_seconds;
  const auto names = o.schemes();
  mmr::progress bar("planning", static_cast<std::int64_t>(names.size()) + o.points + 4, "plans");
  std::int64_t done = 0;

  auto asked = r;
  asked.minimise = o.objective == "time" ? mmr::goal::time : mmr::goal::memory;
  asked.slowdown = o.slowdown;
  asked.budget = o.budget_bytes();
  const bool bounded = o.slowdown || asked.budget;
  // The ends come first: what is asked for is then no worse than they are, however little work there is for it.
  std::vector<mmr::plan> ends;
  for (const auto goal : {mmr::goal::memory, mmr::goal::time}) {
    r.minimise = goal;
    ends.push_back(planner.make(r));
    bar.update(++done, ends.back().name);
  }
  out.asked = bounded ? planner.make(asked) : asked.minimise == mmr::goal::memory ? ends.front() : ends.back();
  bar.update(++done, asked_name(o));
  std::vector<mmr::plan> others;
  // There are many of them, and any is better than none.
  r.work = o.solve_work / 10;
  const auto before = done;
  out.front = mmr::front_between(planner, r, ends.front(), ends.back(), o.points,
                                 [&](int made) { bar.update(done = before + made, "the front"); });
  r.work = o.solve_work;
  if (limit.bytes() > 0 && !limit.kept_by(ends.back()).value_or(true) && limit.kept_by(ends.front()).value_or(true))
    if (auto p = fastest_that_fits(planner, r, limit)) {
      p->name = "time, fits";
      others.push_back(std::move(*p));
    }
  bar.update(++done, "the fastest that fits");
  for (const auto& name : names) {
    auto q = r;
    q.scheme = name;
    others.push_back(planner.make(q));
    bar.update(++done, name);
  }
  // What was found later, for another question, may be better than what the work of a question came to.
  auto known = others;
  known.insert(known.end(), out.front.begin(), out.front.end());
  known.insert(known.end(), ends.begin(), ends.end());
  known.push_back(out.asked);
  const double most_seconds = o.slowdown ? (1 + *o.slowdown) * ends.back().step_seconds : mmr::solve::infinity;
  give_way(out.asked, asked.budget.value_or(mmr::solve::no_peak_limit), most_seconds, known);
  for (auto& end : ends) give_way(end, mmr::solve::no_peak_limit, mmr::solve::infinity, known);
  out.front = mmr::undominated(std::move(known));

  out.asked.name = asked_name(o);
  out.table.push_back(out.asked);
  for (const auto& end : ends)
    if (bounded || end.minimised != asked.minimise) out.table.push_back(end);
  out.table.insert(out.table.end(), others.begin(), others.end());
  out.seconds = std::chrono::duration<double>(clock::now() - begin).count();
  return out;
}
