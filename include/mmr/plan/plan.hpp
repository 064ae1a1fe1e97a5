// A plan: the strategy of every operator, as a value that can be printed, saved, loaded and run; and what it costs.
#pragma once

#include <mmr/plan/alike_ranks.hpp>
#include <mmr/plan/memory.hpp>
#include <mmr/plan/scheme.hpp>

#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace mmr {

enum class goal { memory, time };

struct plan {
  std::string name;
  std::string objective;                 ///< what was asked, in words
  std::vector<strategy> strategies;      ///< of each operator of the graph
  goal minimised = goal::memory;
  /// Proved: no plan of the space does better, whether it places repeated layers alike or not; in the unit of what is
  /// minimised.
  double lower_bound = 0;
  bool least = false;                    ///< proved: no plan that places repeated layers (or classes of them) alike does better
  bool proved = false;                   ///< and among those that do as well, it is proved best in what was asked next
  double solve_seconds = 0;              ///< of all that planning took
  double solve_work = 0;                 ///< of the solver, in entries of tables that it looked at
  /// The problem with a node for every operator; with one for all repetitions of one; without what could be seen to lose.
  solve::sizes unfolded, folded, reduced;
  std::vector<rank_memory> per_rank;
  double step_seconds = 0;               ///< modelled
  double compute_seconds = 0;            ///< modelled, of which this is operators
  std::int64_t sent_bytes = 0;           ///< that a rank sends in a step
};

/// Modelled seconds of a step, and the bytes that a rank sends in it. `run` is the program of rank 0.
inline void price(setting& s, plan& p, const program& run) {
  p.compute_seconds = 0;
  p.sent_bytes = 0;
  double moving = 0;
  for (const auto& x : run.instructions) {
    const auto times = repetitions(s.g, x.op);
    p.compute_seconds += times * op_seconds(s, x.op, p.strategies[static_cast<std::size_t>(x.op)]);
    auto add = [&](const transfer& t) {
      if (!t.path) return;
      moving += times * t.path->seconds;
      for (const auto& step : t.path->steps) p.sent_bytes += times * step.sent;
    };
    for (const auto& t : x.operands) add(t);
    add(x.write_back);
  }
  p.step_seconds = p.compute_seconds + moving;
}
inline void price(setting& s, plan& p) { price(s, p, program(s, p.strategies, 0)); }

/// Fills in what a plan's strategies cost.
inline void assess(setting& s, plan& p) {
  const program first(s, p.strategies, 0);
  price(s, p, first);
  // Ranks whose parts are of equal sizes need equal memory, which is known without a look at their buffers; but a CPU
  // kernel's workspace may depend on where its part lies.
  const auto alike = alike_ranks(s, p.strategies, first);
  // So do ranks whose buffers are equal in size: most do.
  std::vector<std::vector<std::int64_t>> known;
  std::vector<rank_memory> figures;
  p.per_rank.clear();
  for (int r = 0; r < s.m.rank_count(); ++r) {
    const auto like = alike[static_cast<std::size_t>(r)];
    if (like < r && !s.m.device.cpu) {
      p.per_rank.push_back(rank_memory(p.per_rank[static_cast<std::size_t>(like)]));
      continue;
    }
    const program run = r == 0 ? first : program(s, p.strategies, r);
    std::vector<std::int64_t> sizes;
    for (const auto& b : run.buffers) sizes.push_back(b.bytes);
    const auto at = static_cast<std::size_t>(std::find(known.begin(), known.end(), sizes) - known.begin());
    if (at == known.size()) {
      figures.push_back(measure(s, p.strategies, r, run));
      known.push_back(std::move(sizes));
    }
    p.per_rank.push_back(figures[at]);
  }
}

/// What the lower bound of a plan counts.
constexpr std::string_view unit_of(goal minimised) { return minimised == goal::memory ? "bytes" : "seconds"; }

/// How much of what was asked is proved, in words.
constexpr std::string_view proof_of(const plan& p) {
  if (p.proved) return "proved";
  if (!p.least) return "not proved best";
  return p.minimised == goal::memory ? "least peak memory proved, least time not" : "least time proved, least memory not";
}

/// How far a plan is proved, for a column of a table.
inline std::string proof_word(const plan& p) {
  if (p.proved) return "yes";
  if (!p.least) return "no";
  return p.minimised == goal::memory ? "peak only" : "time only";
}

/// Bytes of the rank with the greatest peak (the first of them), of a plan that was assessed.
inline const rank_memory& fullest_rank(const plan& p) {
  return *std::max_element(p.per_rank.begin(), p.per_rank.end(), [](auto& a, auto& b) { return a.peak_live < b.peak_live; });
}
/// The greatest peak of any rank.
inline std::int64_t peak_bytes(const plan& p) { return p.per_rank.empty() ? 0 : fullest_rank(p).peak_live; }

}  // namespace mmr
