// The order in which a proof is tried: reduce, bound, guess, search, split, and at last CBC.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <future>
#include <utility>
#include <vector>

#include "mmr/solve/ascent.hpp"
#include "mmr/solve/cost_descent.hpp"
#include "mmr/solve/evaluate.hpp"
#include "mmr/solve/neighbourhood.hpp"
#include "mmr/solve/problem.hpp"
#include "mmr/solve/proving.hpp"
#include "mmr/solve/reduce.hpp"
#include "mmr/solve/result.hpp"

namespace mmr::solve::detail {

/// An attempt from its beginning to its answer.
class minimiser : public proving_attempt {
 public:
  minimiser(const problem& p, const request& r, const effort& spend = {}) : proving_attempt(p, r, spend) {}

  result run(const std::vector<int>& start) {
    if (!start.empty()) offer(start);
    if (!out_.choice.empty()) polish();
    // Costs are kept where only the peak counts: guesses at the peak are told apart by them.
    take(reduce(original_, !for_cost_ || r_.peak_limit < no_peak_limit));
    if (infeasible_) return closed();
    check_size();
    unit_ = static_cast<double>(bytes_unit(small_));
    ceiling_ = for_cost_ ? most_cost() : infinity;
    raise(for_cost_ ? 0 : static_cast<double>(least_peak(small_)));
    infeasible_ = least_peak(small_) > r_.peak_limit;
    if (infeasible_) return closed();
    keep_to_limit();
    if (infeasible_) return closed();
    out_.reduced = size_of(small_);
    first_prices();
    tell_prices();
    if (for_cost_ && limits_both(r_) && strategies_left_ > many_strategies)
      climb();
    else if (out_.choice.empty() && limits_both(r_) && !spend_.first_only)
      begin();
    if (done() || meter_.over()) return closed();
    for (int round = 0; round < 6; ++round) {
      if (done()) return closed();
      const auto before = size_of(small_).strategies;
      bound_by_messages(round == 0 ? 40 : 20);
      if (round == 0) tell_prices();
      if (done()) return closed();
      if (!shrink() || done()) return closed();
      if (!for_cost_ && round == 0) {
        rule_out_peaks();
        if (done()) return closed();
        if (!out_.choice.empty()) polish();
        if (r_.cost_limit < infinity) probe(400);
        if (!done()) guess_peaks();
      }
      if (round == 0 && spend_.neighbourhoods && !spend_.first_only && limits_both(r_)) choose_parts_anew();
      if (done()) return closed();
      // Where hardly anything could be dropped a probe is a shot in the dark: splitting tells more for less.
      const auto left = size_of(small_).strategies;
      if (left < 200 || (round == 0 && for_cost_ && !spend_.first_only) || left < before / 2) probe(400);
      if (done()) return closed();
      if (left > before * 9 / 10) break;
    }
    branch(0);
    if (!done() && !spend_.first_only) prove_by_program();
    return closed();
  }

 private:
  /// Beyond this many, exact searches and splits come too dear: prices of all steps, roundings and neighbourhoods go
  /// first, until what is left is small.
  static constexpr int many_strategies = 20000;
  static constexpr std::size_t freed_nodes = 700;  // of a neighbourhood: chosen anew in about a second

  // --- a first choice

  /// Some choice within both limits, for problems that climb() leaves alone: what comes later improves on one more often
  /// than it finds one. Costs are rounded from prices of all steps, with bytes in mind; peaks begin at the least cost.
  void begin() {
    constexpr int most_passes = 60, passes_a_rounding = 5;
    const auto limit = for_cost_ ? r_.peak_limit : no_peak_limit;
    price_ascent ascent(small_, limit, {});
    cost_descent descent(small_, limit);
    const double above = most_cost() - constant_;
    for (int i = 1; i <= most_passes && out_.choice.empty() && !meter_.over(); ++i) {
      charge_passes(1);
      if (!ascent.iterate(above, infinity)) return;
      if (i > 1 && i % passes_a_rounding != 0) continue;
      const auto choice = ascent.rounded();
      if (!choice.empty()) offer_small(descent.run(choice, stop_of_turns(small_, turn_of_costs)));
    }
    if (!out_.choice.empty()) polish();
  }

  // --- prices of all steps

  /// Bounds and rounds by prices of all steps and drops what cannot be news; beside that, on a second core, parts of
  /// the best choice are chosen anew. Both meet after fixed amounts of work, so that the answer does not depend on
  /// speed.
  void climb() {
    // What is dropped later may be part of the best choice: its parts are chosen anew in the problem as it is now.
    const problem wide = small_;
    const auto depth = chain_.size();
    std::vector<int> best_of_wide;
    std::vector<double> prices;
    std::future<parts_anew> parts;
    std::uint64_t batch = 0;
    const auto collect = [&] {
      if (!parts.valid()) return;
      auto [choice, work] = parts.get();
      meter_.charge(work);
      offer(expanded(choice, 0, depth));
      if (evaluate(wide, choice).cost < evaluate(wide, best_of_wide).cost) best_of_wide = std::move(choice);
    };
    while (!meter_.over() && strategies_left_ > many_strategies) {
      price_ascent ascent(small_, r_.peak_limit, prices);
      cost_descent descent(small_, r_.peak_limit);
      for (int i = 1; !meter_.over(); ++i) {
        charge_passes(1);
        if (!ascent.iterate(best() - constant_, target() - constant_)) {
          infeasible_ = true;
          break;
        }
        raise(ascent.bound() + constant_);
        if (done()) break;
        if (i <= 3 || i % 25 == 0) {
          auto choice = ascent.rounded();
          if (!choice.empty()) {
            choice = descent.run(choice, stop_of_turns(small_, turn_of_costs));
            const double before = best();
            offer_small(choice);
            if (best() < before) best_of_wide = expanded(choice, depth);
          }
          if (done()) break;
        }
        if (i % 100 != 0) continue;
        collect();
        if (done()) break;
        if (!best_of_wide.empty() && out_.bound > 0.8 * best()) {
          const auto seed = r_.seed + 1000003 * ++batch;
          parts = std::async(std::launch::async, [&wide, choice = best_of_wide, seed,
                                                  left = meter(meter_.seconds_left(), meter_.work_left()),
                                                  this] {
            return with_parts_anew(wide, choice, infinity, freed_nodes, seed, 4, left);
          });
        }
        std::size_t dead = 0;
        for (const auto& node : ascent.messages().dead())
          dead += static_cast<std::size_t>(std::count(node.begin(), node.end(), 1));
        if (dead * 10 > static_cast<std::size_t>(strategies_left_)) break;
      }
      prices = ascent.prices();
      tell_prices(1, prices);
      if (done() || meter_.over()) break;
      dead_ = ascent.messages().dead();
      if (!shrink() || done()) break;
    }
    collect();
  }

  // --- parts of the best choice, chosen anew

  /// Prices alone seldom hit upon choices close to two limits at once: parts of the best choice are chosen anew as long
  /// as that helps, for a fifth of the work at most. Within a hundredth of the bound a proof is nearer.
  void choose_parts_anew() {
    constexpr int most_in_vain = 3;
    if (out_.bound > 0.99 * best()) return;
    const auto most = std::clamp<std::size_t>(original_.nodes.size() / 3, 8, freed_nodes);
    const double until = meter_.used() + 0.2 * meter_.work_left();
    std::uint64_t batch = 0;
    for (int in_vain = 0; in_vain < most_in_vain && !out_.choice.empty() && !done() && !meter_.over();) {
      if (meter_.used() > until) return;
      const double before = best();
      const meter left(meter_.seconds_left(), std::min(meter_.work_left(), until - meter_.used()));
      const auto seed = r_.seed + 1000003 * ++batch;
      const auto anew = with_parts_anew(original_, out_.choice, r_.cost_limit, most, seed, 2, left);
      meter_.charge(anew.work);
      offer(anew.choice);
      in_vain = best() < before ? 0 : in_vain + 1;
    }
  }

  parts_anew with_parts_anew(const problem& p, std::vector<int> choice, double cost_limit, std::size_t most,
                             std::uint64_t seed, int count, const meter& left) const {
    request question = r_;
    question.cost_limit = cost_limit;
    question.on_better = {};
    return solve::with_parts_anew(p, std::move(choice), question, most, seed, count, left,
                                  [](const problem& part, const request& sub, const std::vector<int>& start) {
                                    effort little;
                                    little.most_branches = 8;
                                    little.programs = little.neighbourhoods = false;
                                    return minimiser(part, sub, little).run(start);
                                  });
  }

  // --- guesses

  /// Tries to reach peaks near the bound. Costs tell choices apart that peaks leave equal, so the least cost under a
  /// peak is often easier to search than the peak itself.
  void guess_peaks() {
    double low = out_.bound, guess = low;
    while (!done() && !meter_.over()) {
      const double high = std::min(target(), 1.25 * out_.bound);
      if (low > high) return;
      guess = std::floor(std::clamp(guess, low, high));
      confine_to_room();
      if (done() || decided()) return;
      request sub{.minimise = goal::cost,
                  .cost_limit = r_.cost_limit - constant_,
                  .peak_limit = static_cast<std::int64_t>(guess),
                  .seconds = meter_.seconds_left(),
                  .work = meter_.work_left(),
                  .seed = r_.seed};
      auto little = spend_;
      little.first_only = true;
      little.most_states = std::min<std::size_t>(little.most_states, 2000);
      little.most_branches = std::min(little.most_branches, 30);
      const auto answer = minimiser(small_, sub, little).run({});
      meter_.charge(answer.work);
      if (answer.outcome == status::infeasible) raise(guess + 1);
      // Without a proof the guess is merely left behind.
      if (!answer.choice.empty()) {
        offer_small(answer.choice);
        polish();
      } else {
        low = guess + 1;
      }
      // Halving goes down fast where peaks lie dense; asking for any better peak ends it where few are left.
      low = std::max(low, out_.bound);
      guess = answer.choice.empty() && best() < 1.005 * low ? target() : (low + std::min(best(), 1.25 * low)) / 2;
    }
  }

  // --- branch and bound

  /// Bounds, shrinks and searches this part of the space; what stays open is split. Afterwards the bound is that of the
  /// worse half, and this part is done unless the time ran out.
  void settle(int depth) {
    for (int round = 0; round < 3; ++round) {
      const auto before = size_of(small_).strategies;
      bound_by_messages(12);
      if (done() || !shrink() || done() || meter_.over()) return;
      if (size_of(small_).strategies > before * 8 / 10) break;
    }
    if (depth % 4 == 3 || strategies_left_ < 200) probe(400);
    if (done() || meter_.over()) return;
    branch(depth);
  }

  void branch(int depth) {
    if (meter_.over() || spend_.most_branches-- <= 0) return;
    if (strategies_left_ < spend_.program_below) {
      probe(16000);
      if (!done()) prove_by_program();
      if (done() || meter_.over()) return;
    }
    cuts_.clear();
    bound_by_messages(6);
    if (done()) return;
    const auto halves = split();
    const double whole = std::min(whole_bound_, out_.bound);
    double worst = infinity;
    for (const bool side : {true, false}) {
      charge_passes(1);
      auto part = *this;
      part.whole_bound_ = whole;
      for (std::size_t s = 0; s < halves.first.size(); ++s)
        if ((halves.first[s] != 0) != side) part.dead_[at(halves.node)][s] = 1;
      if (part.shrink() && !part.done()) part.settle(depth + 1);
      spend_.most_branches = part.spend_.most_branches;
      meter_ = part.meter_;
      if (part.best() < best()) {
        out_.choice = part.out_.choice;
        out_.cost = part.out_.cost;
        out_.peak = part.out_.peak;
      }
      out_.reduced.rows = std::max(out_.reduced.rows, part.out_.reduced.rows);
      worst = std::min(worst, part.infeasible_ ? infinity : part.out_.bound);
      if (spend_.first_only && !out_.choice.empty()) return;
    }
    // What is left is no better than the worse half, nor than the best choice met.
    if (worst > target())
      infeasible_ = true;
    else
      raise(worst);
  }
};

}  // namespace mmr::solve::detail
