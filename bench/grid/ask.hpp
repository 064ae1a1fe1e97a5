// One combination of model, mesh, precision and objective: asked twice from scratch, and held against every fixed
// scheme. The bench asks a thousand, the tests in tests/grid a few.
#pragma once

#include <cstdio>
#include <mmr/plan/json.hpp>
#include <mmr/plan/planner.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace grid {

/// A plan, or the sentence that says why there is none.
struct answer {
  std::optional<mmr::plan> plan;
  std::string refusal;

  std::int64_t peak() const { return mmr::peak_bytes(*plan); }
  double step() const { return plan->step_seconds; }
};

struct question {
  std::string objective;
  mmr::plan_request request;
};

/// What is planned: all questions of one graph on one mesh.
struct place {
  const mmr::graph& g;
  mmr::mesh m;
};

/// Asks a planner that knows nothing yet.
inline answer ask_afresh(const place& at, const mmr::plan_request& r) {
  try {
    return {mmr::planner(at.g, at.m).make(r), ""};
  } catch (const mmr::error& e) {
    return {std::nullopt, e.what()};
  }
}

/// Everything that must be the same whenever the question is asked: strategies, figures, bound and proof, or the
/// sentence.
inline std::string text_of(const place& at, const answer& a) {
  return a.plan ? mmr::to_json(*a.plan, at.g, at.m).dump() : a.refusal;
}

inline bool is_proved(const answer& a) {
  return a.plan ? a.plan->proved : a.refusal.find("the least that would do") != std::string::npos;
}

/// The plans of the fixed schemes, each at its quickest.
inline std::vector<mmr::plan> scheme_plans(const place& at, mmr::plan_request r) {
  std::vector<mmr::plan> all;
  mmr::planner planner(at.g, at.m);
  r.minimise = mmr::goal::time;
  r.budget.reset();
  r.slowdown.reset();
  for (const auto name : mmr::scheme_names) {
    r.scheme = std::string(name);
    all.push_back(planner.make(r));
  }
  return all;
}

/// Seconds are sums of doubles, taken in an order that depends on the search.
inline bool less(double a, double b) {
  return a < b * (1 - 1e-9);
}

/// What a question promises and an answer breaks, in a sentence; empty where all holds. `quickest`: seconds that no
/// plan goes below, for bounds on slowdown.
inline std::string broken_promise(const question& q, const answer& a, const std::vector<mmr::plan>& schemes,
                                  double quickest) {
  const auto& r = q.request;
  const auto limit = r.slowdown ? (1 + *r.slowdown) * quickest : mmr::solve::infinity;
  const auto bytes = [](std::int64_t n) { return std::to_string(n) + " bytes"; };
  if (!a.plan && !r.budget) return "is refused without a budget that could not be met: " + a.refusal;
  if (!a.plan && a.refusal.rfind("no plan", 0) != 0)
    return "is refused for another reason than its limits: " + a.refusal;
  if (a.plan && r.budget && a.peak() > *r.budget)
    return "takes " + bytes(a.peak()) + " of a budget of " + bytes(*r.budget);
  for (const auto& s : schemes) {
    const auto peak = mmr::peak_bytes(s);
    if (r.budget && peak > *r.budget) continue;
    if (less(limit, s.step_seconds)) continue;
    if (!a.plan) return "is refused, and " + s.name + " keeps its limits with " + bytes(peak) + ": " + a.refusal;
    if (r.minimise == mmr::goal::memory && a.peak() > peak)
      return "takes " + bytes(a.peak()) + " and " + s.name + " " + bytes(peak);
    if (r.minimise == mmr::goal::time && less(s.step_seconds, a.step()))
      return "takes " + std::to_string(a.step()) + " s and " + s.name + " " + std::to_string(s.step_seconds) + " s";
  }
  return "";
}

/// The questions that follow from the leanest and the fastest plan: limits that can be kept easily, just, and not at
/// all.
inline std::vector<question> questions_within(const mmr::plan_request& base, std::int64_t least_peak, double factor,
                                              bool narrowly) {
  auto within = base, budget = base, none = base, both = base;
  within.minimise = both.minimise = mmr::goal::memory;
  budget.minimise = none.minimise = mmr::goal::time;
  within.slowdown = both.slowdown = 0.05;
  budget.budget = both.budget = static_cast<std::int64_t>(static_cast<double>(least_peak) * factor);
  none.budget = narrowly ? least_peak - 1 : least_peak / 2;
  char text[32];
  std::snprintf(text, sizeof text, "%.2f x least", factor);
  return {{"memory within 5%", within},
          {"time, " + std::string(text), budget},
          {narrowly ? "time, a byte too few" : "time, half of least", none},
          {"memory within 5%, " + std::string(text), both}};
}

/// Whether the work ended before any plan within the limits was found, and the refusal says so.
inline bool not_found(const answer& a) {
  return !a.plan && a.refusal.find(" was found in ") != std::string::npos;
}

/// Whether what is said to be impossible is known to be possible. `least_peak` was found by another plan.
inline std::string contradiction(const question& q, const answer& a, std::int64_t least_peak, bool least_is_proved) {
  if (q.request.slowdown || !q.request.budget || not_found(a)) return "";
  if (!a.plan && *q.request.budget >= least_peak)
    return "is refused though a plan of " + std::to_string(least_peak) + " bytes is known: " + a.refusal;
  if (a.plan && least_is_proved && a.peak() < least_peak) return "takes less than was proved to be the least";
  return "";
}

}  // namespace grid
