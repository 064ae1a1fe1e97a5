// Limits as prices: what each step's bytes, and the cost where it is limited, are worth, so that one sum bounds the
// goal and tells which strategies cannot be news.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "mmr/solve/attempt.hpp"
#include "mmr/solve/diffusion.hpp"
#include "mmr/solve/multipliers.hpp"
#include "mmr/solve/resource.hpp"
#include "mmr/solve/tighten.hpp"

namespace mmr::solve::detail {

/// An attempt whose limits have prices.
class priced_attempt : public attempt {
 public:
  using attempt::attempt;

 protected:
  /// What a limit on the peak leaves of the small problem, charged. `known`: what a limit no lower left of it.
  tightened left_by(std::int64_t limit, const tightened* known = nullptr) {
    charge_passes(4);
    return tighten(small_, limit, known);
  }

  void take(reduction step) {
    attempt::take(std::move(step));
    cuts_.clear();
  }

  /// Cost, then the bytes of the priced steps, as tables.
  std::vector<resource> parts() const {
    std::vector<resource> out{cost_resource(small_)};
    for (int t : rows_) out.push_back(step_resource(small_, t));
    return out;
  }

  step_prices prices() const {
    std::vector<double> of_step(static_cast<std::size_t>(small_.steps), 0);
    for (std::size_t r = 0; r < rows_.size(); ++r) of_step[static_cast<std::size_t>(rows_[r])] += prices_[r + 1];
    return {prices_[0], of_step};
  }

  /// Takes out what cannot be within the limit on the peak, and the steps that no longer can exceed it. The goal of the
  /// peak needs these to tell one choice from another, unless any within the limit will do.
  void keep_to_limit() {
    const bool drop_idle = for_cost_ || spend_.first_only;
    if (!spend_.tightening || r_.peak_limit == no_peak_limit) return;
    for (int round = 0; round < 8 && !infeasible_; ++round) {
      const auto left = left_by(r_.peak_limit);
      infeasible_ = left.infeasible;
      const bool idles = drop_idle && std::count(left.idle.begin(), left.idle.end(), 0) < small_.steps;
      if (infeasible_ || (left.dropped == 0 && !idles)) return;
      take(reduce_to(small_, left, drop_idle));
    }
  }

  /// Halves the gap between the bound and the best peak as long as what a limit leaves of the problem says that no
  /// choice is within it.
  void rule_out_peaks() {
    if (!spend_.tightening || !(target() < most_exact)) return;
    const auto unit = static_cast<std::int64_t>(unit_);
    auto high = static_cast<std::int64_t>(target()) / unit * unit, limit = high;  // first: is there anything better?
    tightened wide;  // what the lowest limit leaves that was not ruled out
    while (static_cast<double>(high) >= out_.bound && !meter_.over()) {
      auto left = left_by(limit, wide.dead.empty() ? nullptr : &wide);
      if (left.infeasible) {
        raise(static_cast<double>(limit) + 1);
      } else {
        wide = std::move(left);
        high = limit - unit;
      }
      const auto low = static_cast<std::int64_t>(out_.bound);
      limit = low + (high - low) / unit / 2 * unit;
    }
  }

  double cost_room() const {
    return r_.cost_limit < infinity ? r_.cost_limit + cost_tolerance * std::abs(r_.cost_limit) - constant_ : infinity;
  }

  void add_row(int t) {
    if (t < 0 || std::find(rows_.begin(), rows_.end(), t) != rows_.end()) return;
    rows_.push_back(t);
    prices_.push_back(0);
    cuts_.clear();
  }

  /// The step without a price at which a choice breaks the limit most; for the goal of the peak, the highest that is
  /// above every priced one. -1 where there is none.
  int worst_unpriced(const evaluation& e) const {
    auto most = for_cost_ ? r_.peak_limit : static_cast<std::int64_t>(out_.bound);
    int worst = -1;
    for (std::size_t t = 0; t < e.bytes.size(); ++t)
      if (e.bytes[t] > most && std::find(rows_.begin(), rows_.end(), static_cast<int>(t)) == rows_.end()) {
        most = e.bytes[t];
        worst = static_cast<int>(t);
      }
    return worst;
  }

  void first_prices() {
    prices_ = {for_cost_ ? 1.0 : 0.0};
    if (for_cost_) return;
    // The step at which the least possible bytes are greatest.
    const auto least = least_bytes(small_);
    if (least.empty()) return;
    add_row(static_cast<int>(std::max_element(least.begin(), least.end()) - least.begin()));
    prices_.back() = 1;
  }

  /// Tells the prices, with those of steps as the original problem numbers them.
  void tell_prices(double cost, const std::vector<double>& of_step) {
    out_.cost_price = cost;
    out_.step_price.assign(static_cast<std::size_t>(original_.steps), 0);
    for (std::size_t t = 0; t < of_step.size(); ++t)
      out_.step_price[static_cast<std::size_t>(step_of_[t])] = of_step[t];
  }
  void tell_prices() {
    std::vector<double> of_step(static_cast<std::size_t>(small_.steps), 0);
    for (std::size_t r = 0; r < rows_.size(); ++r) of_step[static_cast<std::size_t>(rows_[r])] += prices_[r + 1];
    tell_prices(prices_[0], of_step);
  }

  /// What the limits give back at the prices: weighted sum - allowance() bounds the goal.
  double allowance() const {
    double sum = for_cost_ ? -constant_ : 0;
    if (for_cost_)
      for (std::size_t r = 1; r < prices_.size(); ++r) sum += prices_[r] * static_cast<double>(r_.peak_limit);
    else if (prices_[0] > 0)
      sum += prices_[0] * cost_room();
    return sum;
  }

  /// Weighted sums above this belong to choices that are no news. Rounding of the sums is allowed for.
  double cutoff() const {
    if (!(target() < infinity)) return infinity;
    double size = std::abs(target()) + std::abs(allowance());
    return target() + allowance() + 1e-11 * size;
  }

  double bound_of(double weighted_bound) const {
    if (std::isnan(weighted_bound)) return -infinity;  // proves nothing
    const double size = std::abs(weighted_bound) + std::abs(allowance());
    return weighted_bound < infinity ? weighted_bound - allowance() - 1e-12 * size : infinity;
  }

  /// Learns what a choice, of finite cost, says about the prices.
  void add_cut(const std::vector<int>& choice, const evaluation& e) {
    price_cut cut;
    cut.value = for_cost_ ? e.cost : 0;
    cut.slope.push_back(for_cost_ || !(cost_room() < infinity) ? 0 : e.cost - cost_room());
    for (int t : rows_)
      cut.slope.push_back(static_cast<double>(e.bytes[static_cast<std::size_t>(t)]) -
                          (for_cost_ ? static_cast<double>(r_.peak_limit) : 0));
    cut.choice = choice;
    cuts_.push_back(std::move(cut));
  }

  /// A price that is worth trying where none is known: the whole goal against the whole of the limit.
  double typical_price(const evaluation& e) const {
    const auto bytes = static_cast<double>(std::max<std::int64_t>(e.peak, 1));
    const auto cost = std::max(e.cost, 1e-300);
    return for_cost_ ? cost / bytes : bytes / cost;
  }

  /// Climbs the bound over prices and messages together, drops strategies that cannot be news, and picks up choices.
  void bound_by_messages(int queries) {
    charge_passes(2);
    diffusion messages(small_);
    dead_ = messages.dead();
    if (!spend_.messages) return;
    auto best_prices_so_far = prices_;
    double best_bound = -infinity, radius = 3;
    evaluation seen;
    bool limited = false;
    for (int q = 0; q < queries && !meter_.over(); ++q) {
      messages.set(prices());
      double last = -infinity;
      const int sweeps = limited ? 6 : 60;
      int worst_row = -1;
      for (int i = 0; i < sweeps; ++i) {
        charge_passes(1);
        messages.iterate(cutoff());
        const double bound = bound_of(messages.bound());
        raise(bound);
        if (done()) break;
        if (messages.chose_all()) {
          if (auto e = offer_small(messages.choice()); e.cost < infinity) {
            seen = std::move(e);
            add_cut(messages.choice(), seen);
            worst_row = worst_unpriced(seen);
            limited = limited || seen.peak > r_.peak_limit || (!for_cost_);
          }
        }
        if (done()) break;
        if (bound < last + 1e-6 * std::abs(last) && (i > 3 || bound < last)) break;
        last = bound;
      }
      const double bound = bound_of(messages.bound());
      if (done()) break;
      if (bound > best_bound) {
        if (q > 0 && bound - best_bound < 1e-7 * std::abs(bound) && q > 8) {
          best_bound = bound;
          best_prices_so_far = prices_;
          break;
        }
        best_bound = bound;
        best_prices_so_far = prices_;
        radius = std::min(3.0, radius * 1.5);
      } else {
        radius *= 0.5;
        if (radius < 0.01) break;
      }
      if (rows_.size() < 12) add_row(worst_row);
      best_prices_so_far.resize(prices_.size(), 0);
      if (rows_.empty() && for_cost_) break;  // nothing to price
      if (cuts_.empty() && messages.chose_all())
        if (const auto e = evaluate(small_, messages.choice()); e.cost < infinity) add_cut(messages.choice(), e);
      if (cuts_.empty()) break;
      std::vector<double> low, high;
      std::vector<char> on_simplex;
      const double typical = typical_price(seen);
      for (std::size_t r = 0; r < prices_.size(); ++r) {
        const double now = best_prices_so_far[r];
        const bool fixed = r == 0 && (for_cost_ || !(cost_room() < infinity));
        const bool simplex = r > 0 && !for_cost_;
        low.push_back(fixed ? now : simplex ? std::max(0.0, now - 0.3 * radius) : now / (1 + radius));
        high.push_back(fixed     ? now
                       : simplex ? std::min(1.0, now + 0.3 * radius)
                                 : now * (1 + radius) + 0.03 * radius * typical);
        if (!fixed && now < 0.01 * typical) low.back() = simplex ? low.back() : 0;
        on_simplex.push_back(simplex);
      }
      auto next = best_prices(cuts_, low, high, on_simplex);
      if (next.empty()) break;
      prices_ = std::move(next);
      if (!for_cost_) {  // exactly on the simplex, so that the bound holds exactly
        double sum = 0;
        for (std::size_t r = 1; r < prices_.size(); ++r) sum += prices_[r];
        for (std::size_t r = 1; r < prices_.size(); ++r) prices_[r] /= sum;
      }
    }
    prices_ = best_prices_so_far;
    prices_.resize(rows_.size() + 1, 0);
    dead_ = messages.dead();
    messages.set(prices());
    for (int i = 0; i < 30 && !done(); ++i) {
      charge_passes(1);
      messages.iterate(cutoff());
    }
    raise(bound_of(messages.bound()));
    dead_ = messages.dead();
  }

  /// Rebuilds the problem without what cannot be news; false where nothing is left.
  bool shrink() {
    charge_passes(4);
    take(reduce_without(small_, dead_));
    if (!infeasible_) confine_to_room();
    return !infeasible_;
  }

  /// Takes out what no choice with news on the peak holds.
  void confine_to_room() {
    if (!spend_.tightening || peak_room() == no_peak_limit) return;
    const auto left = left_by(peak_room());
    infeasible_ = left.infeasible;
    if (infeasible_ || left.dropped == 0) return;
    take(reduce_to(small_, left, false));
  }

  std::vector<int> rows_;       // the steps that have prices
  std::vector<double> prices_;  // of cost, then of rows_
  std::vector<price_cut> cuts_;
  std::vector<std::vector<char>> dead_;
};

}  // namespace mmr::solve::detail
