// One request on its way to a proved answer: the problem as it shrinks, the best choice, and the bound so far.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "mmr/solve/cost_descent.hpp"
#include "mmr/solve/descent.hpp"
#include "mmr/solve/evaluate.hpp"
#include "mmr/solve/meter.hpp"
#include "mmr/solve/problem.hpp"
#include "mmr/solve/reduce.hpp"
#include "mmr/solve/result.hpp"

namespace mmr::solve::detail {

/// The greatest number that divides every byte count: peaks come in multiples of it.
inline std::int64_t bytes_unit(const problem& p) {
  std::int64_t unit = 0;
  for (const auto& n : p.nodes)
    for (const auto& use : n.uses)
      for (auto b : use.bytes) unit = std::gcd(unit, b);
  for (const auto& e : p.edges)
    for (const auto& use : e.uses)
      for (auto b : use.bytes) unit = std::gcd(unit, b);
  for (auto b : p.base) unit = std::gcd(unit, b);
  return std::max<std::int64_t>(unit, 1);
}

/// Whether every sum of costs is a whole number that a double holds: then the next better cost is less by one at least.
inline bool has_whole_costs(const problem& p) {
  double most = 0;
  const auto whole = [&](const std::vector<double>& table) {
    double largest = 0;
    for (double c : table) {
      if (!(c < infinity)) continue;
      if (c != std::floor(c)) return false;
      largest = std::max(largest, std::abs(c));
    }
    most += largest;
    return true;
  };
  return std::all_of(p.nodes.begin(), p.nodes.end(), [&](const node& n) { return whole(n.cost); }) &&
         std::all_of(p.edges.begin(), p.edges.end(), [&](const edge& e) { return whole(e.cost); }) && most < most_exact;
}

/// How far to go. A probe on the way of another search stops at its first choice and keeps few states.
struct effort {
  bool first_only = false;
  std::size_t most_states = 200000;
  int most_branches = 1000000000;
  int program_below = 150;  ///< parts with fewer strategies go to CBC instead of being split
  bool neighbourhoods = true;  ///< parts of the best choice are chosen anew
  // Each proves alone; tests switch off the stronger ones to see what the others prove.
  bool tightening = true, messages = true, programs = true;
};

/// The shrinking problem, the best choice and the bound of one request.
class attempt {
 public:
  attempt(const problem& p, const request& r, const effort& spend)
      : original_(p), r_(r), spend_(spend), for_cost_(r.minimise == goal::cost), meter_(r.seconds, r.work),
        original_reads_(evaluation_reads(p)) {
    out_.before = size_of(p);
    whole_costs_ = for_cost_ && has_whole_costs(p);
  }

 protected:
  // What descents read at each turn, in tables of a node.
  static constexpr double turn_of_costs = 2, turn_of_peaks = 8;

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  /// For loops that stop when time or work run out: charges what one turn reads, in multiples of the tables of a node
  /// of `p` and its edges.
  auto stop_of_turns(const problem& p, double tables) {
    const double entries =
        tables * size_of(p).variables / static_cast<double>(std::max<std::size_t>(p.nodes.size(), 1));
    return [this, entries] {
      meter_.charge(entries);
      return meter_.over();
    };
  }
  /// What evaluating a choice reads.
  static double evaluation_reads(const problem& p) {
    auto count = p.nodes.size() + p.edges.size();
    for (const auto& n : p.nodes) count += n.uses.size();
    for (const auto& e : p.edges) count += e.uses.size();
    return static_cast<double>(count);
  }
  /// Charges `passes` over all tables of the small problem.
  void charge_passes(double passes) { meter_.charge(passes * entries_left_); }

  /// Best value so far of the goal; infinity before the first choice.
  double best() const {
    return out_.choice.empty() ? infinity : for_cost_ ? out_.cost : static_cast<double>(out_.peak);
  }

  /// The greatest value of the goal that would still be news.
  double target() const {
    if (for_cost_) {
      const double limit =
          r_.cost_limit < infinity ? r_.cost_limit + cost_tolerance * std::abs(r_.cost_limit) : infinity;
      return out_.choice.empty() ? std::min(limit, ceiling_)
                                 : out_.cost - (whole_costs_ ? 1 : 0.5 * cost_tolerance * out_.cost);
    }
    const double limit = r_.peak_limit < no_peak_limit ? static_cast<double>(r_.peak_limit) : infinity;
    return out_.choice.empty() ? limit : static_cast<double>(out_.peak) - 1;
  }

  bool done() const { return infeasible_ || out_.bound > target() || (spend_.first_only && !out_.choice.empty()); }

  void raise(double bound) {
    if (!for_cost_ && bound < infinity) bound = std::ceil(bound / unit_ - 1e-9) * unit_;
    if (whole_costs_ && bound < infinity) bound = std::ceil(bound - 1e-6);
    out_.bound = std::max(out_.bound, bound);
  }

  result closed() {
    if (infeasible_ || out_.bound > target()) {
      out_.outcome = out_.choice.empty() ? status::infeasible : status::optimal;
      out_.bound = best();
    } else {
      out_.outcome = out_.choice.empty() ? status::nothing_found : status::feasible;
    }
    out_.seconds = meter_.seconds();
    out_.work = meter_.used();
    return out_;
  }

  /// Judges a choice of the original problem.
  void offer(const std::vector<int>& choice) {
    meter_.charge(original_reads_);
    const auto e = evaluate(original_, choice);
    if (!keeps(e, r_) || !((for_cost_ ? e.cost : static_cast<double>(e.peak)) < best())) return;
    out_.choice = choice;
    out_.cost = e.cost;
    out_.peak = e.peak;
    if (!r_.on_better) return;
    auto told = out_;
    told.bound = std::min(told.bound, whole_bound_);
    r_.on_better(told);
  }

  /// Judges a choice of the small problem; gives its evaluation there.
  evaluation offer_small(const std::vector<int>& choice) {
    meter_.charge(small_reads_);
    auto e = evaluate(small_, choice);
    // The way back is long for large problems: only what may be news is taken there.
    const double value = for_cost_ ? e.cost + constant_ : static_cast<double>(e.peak);
    if (e.cost < infinity && value <= best() * (1 + cost_tolerance) && e.peak <= r_.peak_limit) {
      offer(expanded(choice, 0));
    }
    return e;
  }

  /// A choice of the problem as it was after the first `to` reductions, from one after the first `from` (all of them).
  std::vector<int> expanded(std::vector<int> choice, std::size_t to, std::size_t from = ~std::size_t{0}) const {
    for (std::size_t i = std::min(from, chain_.size()); i-- > to;) choice = chain_[i].expand(choice);
    return choice;
  }

  void take(reduction step) {
    infeasible_ = infeasible_ || step.infeasible;
    if (infeasible_) return;
    constant_ += step.constant;
    small_ = std::move(step.small);
    step.small = {};
    for (int& t : step.step_of) t = chain_.empty() ? t : step_of_[static_cast<std::size_t>(t)];
    step_of_ = step.step_of;
    chain_.push_back(std::move(step));
    const auto left = size_of(small_);
    strategies_left_ = left.strategies;
    entries_left_ = left.variables;
    small_reads_ = evaluation_reads(small_);
  }

  void polish() {
    offer(for_cost_ ? cost_descent(original_, r_.peak_limit).run(out_.choice, stop_of_turns(original_, turn_of_costs))
                    : descent(original_, r_).run(out_.choice, 8, stop_of_turns(original_, turn_of_peaks)));
  }

  /// The greatest peak that is still of interest.
  std::int64_t peak_room() const {
    return for_cost_ || !(target() < most_exact) ? r_.peak_limit : static_cast<std::int64_t>(target());
  }

  /// Bytes are summed as doubles on the way, exactly up to 2^53.
  void check_size() const {
    std::vector<double> change(at(small_.steps) + 1, 0.0);
    const auto add = [&](const auto& uses) {
      for (const auto& use : uses) {
        if (use.begin >= use.end) continue;
        const auto most = static_cast<double>(*std::max_element(use.bytes.begin(), use.bytes.end()));
        change[at(use.begin)] += most;
        change[at(use.end)] -= most;
      }
    };
    for (const auto& n : small_.nodes) add(n.uses);
    for (const auto& e : small_.edges) add(e.uses);
    double held = 0, sum = 0;
    for (std::size_t t = 0; t < at(small_.steps); ++t) {
      held += change[t];
      sum = std::max(sum, held + (small_.base.empty() ? 0.0 : static_cast<double>(small_.base[t])));
    }
    if (sum > most_exact)
      fail("the byte counts of this problem add up to ", sum,
           " at a step, beyond the 9e15 that are exact; use larger units");
  }

  /// More than any permitted choice costs.
  double most_cost() const {
    double sum = constant_;
    const auto add = [&](const std::vector<double>& cost) {
      double most = 0;
      for (double c : cost)
        if (c < infinity) most = std::max(most, c);
      sum += most;
    };
    for (const auto& n : small_.nodes) add(n.cost);
    for (const auto& e : small_.edges) add(e.cost);
    return sum * (1 + 1e-6) + 1e-300;
  }

  const problem& original_;
  request r_;
  effort spend_;
  bool for_cost_, whole_costs_ = false;
  meter meter_;
  double original_reads_, small_reads_ = 0;  // of evaluating a choice
  result out_;
  double whole_bound_ = infinity;  // on all choices, while this attempt looks at a part of them
  bool infeasible_ = false;  // nothing is news any more: the best choice so far is optimal, or there is none
  double unit_ = 1, constant_ = 0, ceiling_ = infinity;
  problem small_;
  std::vector<reduction> chain_;
  int strategies_left_ = 0;   // of small_
  double entries_left_ = 0;   // of its tables
  std::vector<int> step_of_;  // of each step of small_, in the original problem
};

}  // namespace mmr::solve::detail
