// Exact ways to close what is left of an attempt: a search of bounded width, and CBC.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "mmr/solve/cbc.hpp"
#include "mmr/solve/diffusion.hpp"
#include "mmr/solve/elimination.hpp"
#include "mmr/solve/pricing.hpp"
#include "mmr/solve/problem.hpp"
#include "mmr/solve/resource.hpp"
#include "mmr/solve/search.hpp"
#include "mmr/solve/split.hpp"

namespace mmr::solve::detail {

/// An attempt that can search, ask CBC, and say where to split what both leave open.
class proving_attempt : public priced_attempt {
 public:
  using priced_attempt::priced_attempt;

 protected:
  static constexpr double turn_of_states = 256;  // a search looks at its meter after so many states

  /// Takes the only choice where one is left.
  bool decided() {
    if (!small_.nodes.empty()) return false;
    offer_small({});
    infeasible_ = true;  // nothing else is left
    return true;
  }

  /// Searches with the bounds of elimination, keeping so many states at a time; what was dropped bounds the rest.
  void probe(std::size_t states) {
    states = std::min(states, spend_.most_states);
    if (decided()) return;
    const auto order = narrow_order(small_);
    for (int tries = 0; tries < 8 && !meter_.over(); ++tries) {
      diffusion messages(small_);
      messages.set(prices());
      for (int i = 0; i < 50; ++i) messages.iterate();
      charge_passes(50);
      elimination bounds(small_, order, static_cast<double>(std::min<std::size_t>(states * 50, 2000000)));
      const auto moved = messages.reparametrised();
      meter_.charge(bounds.reads());
      bounds.fill(moved);
      raise(bound_of(bounds.bound()));
      if (done()) return;
      offer_small(bounds.decode());
      if (done()) return;
      const auto parts = this->parts();
      search_limits limits;
      limits.cutoff = cutoff();
      limits.most_states = states;
      limits.first = for_cost_ ? 0 : 1;
      limits.last = for_cost_ ? 1 : parts.size();
      for (std::size_t r = 0; r < parts.size(); ++r) {
        double limit = r == 0                          ? cost_room()
                       : r_.peak_limit < no_peak_limit ? static_cast<double>(r_.peak_limit)
                                                       : infinity;
        if (r == 0 && for_cost_) limit = std::min(limit, target() - constant_);
        if (r > 0 && !for_cost_) limit = std::min(limit, target());
        const bool is_goal = (r == 0) == for_cost_;
        limits.limit.push_back(limit);
        limits.floor.push_back(is_goal ? (for_cost_ ? 0 : out_.bound) : limit < infinity ? limit : 0);
        if (r == 0 && limit < infinity) limits.limit.back() += 1e-11 * std::abs(limit);
      }
      const auto answer = search(small_, parts, bounds, limits, stop_of_turns(small_, turn_of_states));
      if (answer.choice.empty()) {
        if (answer.complete)
          infeasible_ = true;  // no choice is news
        else
          raise(std::min(target(), bound_of(answer.least_dropped)));
        return;
      }
      const auto rows_before = rows_.size();
      const auto e = offer_small(answer.choice);
      const bool breaks = for_cost_ ? e.peak > r_.peak_limit : static_cast<double>(e.peak) > answer.value;
      if (breaks) add_row(e.peak_step);
      // Whatever the search left out is worse than its answer, or was dropped for want of room.
      const double value = for_cost_
                               ? answer.value + constant_ - (whole_costs_ ? 0 : cost_tolerance * 1e-2 * answer.value)
                               : answer.value;
      raise(std::min({value, bound_of(answer.least_dropped)}));
      if (done()) return;
      if (!breaks || rows_.size() == rows_before) return;
    }
  }

  /// The program of what is left, its memory rows added at the steps that its answers break.
  void prove_by_program() {
    if (!spend_.programs) return;
    request inner = r_;
    inner.cost_limit -= constant_;
    auto rows = rows_;
    while (!done()) {
      if (meter_.over() || meter_.seconds_left() <= 0.01) return;
      if (target() < infinity) {
        if (for_cost_)
          inner.cost_limit = target() - constant_;
        else
          inner.peak_limit = static_cast<std::int64_t>(target());
      }
      const auto answer = solve_program(small_, inner, rows, static_cast<std::int64_t>(unit_), {}, meter_);
      out_.reduced.rows = answer.rows;
      if (answer.infeasible) {
        infeasible_ = true;
        return;
      }
      const double bound = answer.bound + (for_cost_ ? constant_ : 0);
      raise(std::min(target(), bound - 1e-7 * std::abs(bound)));
      if (answer.choice.empty()) return;
      const auto before = best();
      const auto e = offer_small(answer.choice);
      const bool known = e.peak_step < 0 || std::find(rows.begin(), rows.end(), e.peak_step) != rows.end();
      if (!known) rows.push_back(e.peak_step);
      if (known && !(best() < before)) return;
    }
  }

  /// Where to split: between the best choice within the limits and the best beyond them, as far as the prices tell.
  node_split split() const {
    const price_cut *within_limits = nullptr, *beyond = nullptr;
    double within_value = infinity, beyond_value = infinity;
    for (const auto& cut : cuts_) {
      double value = cut.value, change = 0;
      for (std::size_t r = 0; r < prices_.size(); ++r) {
        if (!(for_cost_ && r == 0)) value += prices_[r] * cut.slope[r];
        if (for_cost_ ? r > 0 : r == 0) change += prices_[r] * cut.slope[r];
      }
      auto& least = change > 0 ? beyond_value : within_value;
      if (value < least) {
        least = value;
        (change > 0 ? beyond : within_limits) = &cut;
      }
    }
    const auto parts = this->parts();
    if (within_limits != nullptr && beyond != nullptr) {
      auto between = split_between(small_, parts, dead_, within_limits->choice, beyond->choice);
      if (between.node >= 0) return between;
    }
    return split_by_weight(small_, parts, prices_, dead_);
  }
};

}  // namespace mmr::solve::detail
