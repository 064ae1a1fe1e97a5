// What a plan is asked for, and what the answer may choose from.
#pragma once

#include <mmr/plan/pin.hpp>
#include <mmr/plan/plan.hpp>

#include <optional>
#include <string>

namespace mmr {

struct plan_request {
  goal minimise = goal::memory;
  std::optional<double> slowdown{};      ///< memory: at most (1 + slowdown) x the time of the fastest plan
  std::optional<std::int64_t> budget{};  ///< peak live bytes a rank; the arena that is allocated adds alignment and gaps
  std::string scheme{};                  ///< a fixed scheme instead of the whole space; least time within it
  scheme_axes axes{};                    ///< of the model, for the schemes
  pins fixed{};
  /// What the solver may spend on all questions that the plan takes, in entries of tables that it looks at: some hundred
  /// millions a second. The plan depends on it and on nothing else,
  double work = 2e9;
  double seconds = 600;                  ///< unless it takes longer than this, which guards against a slow machine
};

/// What the scheme and the pins of a request leave.
inline restriction allowed_by(const plan_request& r, const setting& s) {
  restriction scheme, pinned;
  if (!r.scheme.empty()) scheme = scheme_restriction(r.scheme, s.g, s.m, r.axes, r.fixed.recomputes());
  if (!r.fixed.empty()) pinned = r.fixed.as_restriction(s.g, s.m);
  if (!scheme) return pinned;
  if (!pinned) return scheme;
  return [=](op_id o, const op_info& op, const strategy& c) { return scheme(o, op, c) && pinned(o, op, c); };
}

/// The problem of a request.
inline formulation formulated(setting& s, const plan_request& r, repeated repetitions) {
  return formulate(s, allowed_by(r, s), repetitions, r.fixed.singled_out(s.g));
}

}  // namespace mmr
