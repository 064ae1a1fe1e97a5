// One request on its way to a proved answer: what the steps of minimise() share, in the order in which they are tried.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "mmr/solve/cbc.hpp"
#include "mmr/solve/diffusion.hpp"
#include "mmr/solve/elimination.hpp"
#include "mmr/solve/evaluate.hpp"
#include "mmr/solve/multipliers.hpp"
#include "mmr/solve/problem.hpp"
#include "mmr/solve/reduce.hpp"
#include "mmr/solve/resource.hpp"
#include "mmr/solve/result.hpp"
#include "mmr/solve/search.hpp"

namespace mmr::solve::detail {

class stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

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

/// How far to go. A probe on the way of another search stops at its first choice and keeps few states.
struct effort {
  bool first_only = false;
  std::size_t most_states = 200000;
  int most_branches = 1000000000;
  int program_below = 150;  ///< parts with fewer strategies go to CBC instead of being split
  // Each proves alone; tests switch off the stronger ones to see what the others prove.
  bool tightening = true, messages = true, programs = true;
};

/// One request on its way: the shrinking problem, the best choice and the bound so far.
class minimiser {
 public:
  minimiser(const problem& p, const request& r, effort spend = {})
      : original_(p), r_(r), spend_(spend), for_cost_(r.minimise == goal::cost) {
    out_.before = size_of(p);
  }

  result run(const std::vector<int>& start) {
    if (!start.empty()) offer(start);
    const bool looks_at_cost = for_cost_ || r_.cost_limit < infinity;
    const bool looks_at_bytes = !for_cost_ || r_.peak_limit < no_peak_limit;
    take(reduce(original_, {looks_at_cost, looks_at_bytes}));
    if (infeasible_) return closed();
    check_size();
    unit_ = static_cast<double>(bytes_unit(small_));
    ceiling_ = for_cost_ ? most_cost() : infinity;
    raise(for_cost_ ? 0 : static_cast<double>(least_peak(small_)));
    infeasible_ = least_peak(small_) > r_.peak_limit;
    if (infeasible_) return closed();
    keep_to_limit();
    if (infeasible_) return closed();
    first_prices();
    for (int round = 0; round < 6; ++round) {
      if (done()) return closed();
      const auto before = size_of(small_).strategies;
      bound_by_messages(round == 0 ? 40 : 20);
      if (done()) return closed();
      if (!shrink() || done()) return closed();
      if (!for_cost_ && round == 0) {
        rule_out_peaks();
        if (done()) return closed();
        if (r_.cost_limit < infinity) probe(400);
        if (!done()) guess_peaks();
      }
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
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  bool out_of_time() const { return watch_.seconds() > r_.seconds; }

  /// Best value so far of the goal; infinity before the first choice.
  double best() const {
    return out_.choice.empty() ? infinity : for_cost_ ? out_.cost : static_cast<double>(out_.peak);
  }

  /// The greatest value of the goal that would still be news.
  double target() const {
    if (for_cost_) {
      const double limit =
          r_.cost_limit < infinity ? r_.cost_limit + cost_tolerance * std::abs(r_.cost_limit) : infinity;
      return out_.choice.empty() ? std::min(limit, ceiling_) : out_.cost - 0.5 * cost_tolerance * out_.cost;
    }
    const double limit = r_.peak_limit < no_peak_limit ? static_cast<double>(r_.peak_limit) : infinity;
    return out_.choice.empty() ? limit : static_cast<double>(out_.peak) - 1;
  }

  /// Bytes are summed as doubles on the way, exactly up to 2^53.
  void check_size() const {
    double sum = 0;
    const auto add = [&](const auto& uses) {
      for (const auto& use : uses) sum += static_cast<double>(*std::max_element(use.bytes.begin(), use.bytes.end()));
    };
    for (const auto& n : small_.nodes) add(n.uses);
    for (const auto& e : small_.edges) add(e.uses);
    if (!small_.base.empty()) sum += static_cast<double>(*std::max_element(small_.base.begin(), small_.base.end()));
    if (sum > 9e15)
      fail("the byte counts of this problem add up to ", sum, ", beyond the 9e15 that are exact; use larger units");
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

  bool done() const { return infeasible_ || out_.bound > target() || (spend_.first_only && !out_.choice.empty()); }

  void raise(double bound) {
    if (!for_cost_ && bound < infinity) bound = std::ceil(bound / unit_ - 1e-9) * unit_;
    out_.bound = std::max(out_.bound, bound);
  }

  result closed() {
    if (infeasible_ || out_.bound > target()) {
      out_.outcome = out_.choice.empty() ? status::infeasible : status::optimal;
      out_.bound = best();
    } else {
      out_.outcome = out_.choice.empty() ? status::nothing_found : status::feasible;
    }
    out_.seconds = watch_.seconds();
    return out_;
  }

  /// Judges a choice of the original problem.
  void offer(const std::vector<int>& choice) {
    const auto e = evaluate(original_, choice);
    if (!keeps(e, r_) || !((for_cost_ ? e.cost : static_cast<double>(e.peak)) < best())) return;
    out_.choice = choice;
    out_.cost = e.cost;
    out_.peak = e.peak;
  }

  /// Judges a choice of the small problem; gives its evaluation there.
  evaluation offer_small(const std::vector<int>& choice) {
    auto e = evaluate(small_, choice);
    if (e.cost < infinity) {
      auto full = choice;
      for (auto way = chain_.rbegin(); way != chain_.rend(); ++way) full = way->expand(full);
      offer(full);
    }
    return e;
  }

  void take(reduction step) {
    infeasible_ = infeasible_ || step.infeasible;
    if (infeasible_) return;
    constant_ += step.constant;
    small_ = std::move(step.small);
    step.small = {};
    chain_.push_back(std::move(step));
    out_.after = size_of(small_);
    parts_ = {cost_resource(small_)};
    for (int t : rows_) parts_.push_back(step_resource(small_, t));
    order_ = narrow_order(small_);
  }

  // --- limits on bytes
  // --------------------------------------------------------------------------------------------------

  /// The greatest peak that is still of interest.
  std::int64_t peak_room() const {
    return for_cost_ || !(target() < 9e15) ? r_.peak_limit : static_cast<std::int64_t>(target());
  }

  /// Takes out what cannot be within the limit on the peak, and the steps that no longer can exceed it. The goal of the
  /// peak needs these to tell one choice from another, unless any within the limit will do.
  void keep_to_limit() {
    const bool drop_idle = for_cost_ || spend_.first_only;
    if (!spend_.tightening || r_.peak_limit == no_peak_limit) return;
    for (int round = 0; round < 8 && !infeasible_; ++round) {
      const auto left = tighten(small_, r_.peak_limit);
      infeasible_ = left.infeasible;
      const bool idles = drop_idle && std::count(left.idle.begin(), left.idle.end(), 0) < small_.steps;
      if (infeasible_ || (left.dropped == 0 && !idles)) return;
      take(reduce_to(small_, left, drop_idle));
    }
  }

  /// Halves the gap between the bound and the best peak as long as what a limit leaves of the problem says that no
  /// choice is within it.
  void rule_out_peaks() {
    if (!spend_.tightening || !(target() < 9e15)) return;
    const auto unit = static_cast<std::int64_t>(unit_);
    auto high = static_cast<std::int64_t>(target()) / unit * unit, limit = high;  // first: is there anything better?
    while (static_cast<double>(high) >= out_.bound && !out_of_time()) {
      if (tighten(small_, limit).infeasible)
        raise(static_cast<double>(limit) + 1);
      else
        high = limit - unit;
      const auto low = static_cast<std::int64_t>(out_.bound);
      limit = low + (high - low) / unit / 2 * unit;
    }
  }

  // --- prices
  // -----------------------------------------------------------------------------------------------------------

  double cost_room() const {
    return r_.cost_limit < infinity ? r_.cost_limit + cost_tolerance * std::abs(r_.cost_limit) - constant_ : infinity;
  }

  void add_row(int t) {
    if (t < 0 || std::find(rows_.begin(), rows_.end(), t) != rows_.end()) return;
    rows_.push_back(t);
    parts_.push_back(step_resource(small_, t));
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
    auto least = small_;
    for (auto& n : least.nodes)
      for (auto& use : n.uses)
        use.bytes.assign(use.bytes.size(), *std::min_element(use.bytes.begin(), use.bytes.end()));
    for (auto& e : least.edges)
      for (auto& use : e.uses)
        use.bytes.assign(use.bytes.size(), *std::min_element(use.bytes.begin(), use.bytes.end()));
    add_row(evaluate(least, std::vector<int>(least.nodes.size(), 0)).peak_step);
    if (rows_.empty()) return;
    prices_.back() = 1;
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
    const double size = std::abs(weighted_bound) + std::abs(allowance());
    return weighted_bound < infinity ? weighted_bound - allowance() - 1e-12 * size : infinity;
  }

  void add_cut(const std::vector<int>& choice) {
    price_cut cut;
    cut.value = for_cost_ ? parts_[0].of(small_, choice) : 0;
    if (!(parts_[0].of(small_, choice) < infinity)) return;
    cut.slope.push_back(for_cost_ || !(cost_room() < infinity) ? 0 : parts_[0].of(small_, choice) - cost_room());
    for (std::size_t r = 1; r < parts_.size(); ++r)
      cut.slope.push_back(parts_[r].of(small_, choice) - (for_cost_ ? static_cast<double>(r_.peak_limit) : 0));
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
    diffusion messages(small_, order_);
    dead_ = messages.dead();
    if (!spend_.messages) return;
    auto best_prices_so_far = prices_;
    double best_bound = -infinity, radius = 3;
    evaluation seen;
    bool limited = false;
    for (int q = 0; q < queries && !out_of_time(); ++q) {
      messages.set(weighted(parts_, prices_));
      double last = -infinity;
      const int sweeps = limited ? 6 : 60;
      int worst_row = -1;
      for (int i = 0; i < sweeps; ++i) {
        messages.iterate(cutoff());
        const double bound = bound_of(messages.bound());
        raise(bound);
        if (done()) break;
        if (std::find(messages.choice().begin(), messages.choice().end(), -1) == messages.choice().end()) {
          seen = offer_small(messages.choice());
          if (seen.cost < infinity) {
            add_cut(messages.choice());
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
      if (parts_.size() == 1) break;  // nothing to price
      if (cuts_.empty()) {
        if (std::find(messages.choice().begin(), messages.choice().end(), -1) == messages.choice().end())
          add_cut(messages.choice());
        if (cuts_.empty()) break;
      }
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
    prices_.resize(parts_.size(), 0);
    dead_ = messages.dead();
    messages.set(weighted(parts_, prices_));
    for (int i = 0; i < 30 && !done(); ++i) messages.iterate(cutoff());
    raise(bound_of(messages.bound()));
    dead_ = messages.dead();
  }

  /// Rebuilds the problem without what cannot be news; false where nothing is left.
  bool shrink() {
    cuts_.clear();
    take(reduce_without(small_, dead_));
    if (infeasible_ || !spend_.tightening || peak_room() == no_peak_limit) return !infeasible_;
    const auto left = tighten(small_, peak_room());
    infeasible_ = left.infeasible;
    if (!infeasible_ && left.dropped > 0) take(reduce_to(small_, left, false));
    return !infeasible_;
  }

  // --- search
  // -----------------------------------------------------------------------------------------------------------

  void probe(std::size_t states) {
    states = std::min(states, spend_.most_states);
    if (small_.nodes.empty()) {
      offer_small({});
      infeasible_ = true;  // nothing else is left
      return;
    }
    for (int attempt = 0; attempt < 8 && !out_of_time(); ++attempt) {
      diffusion messages(small_, order_);
      messages.set(weighted(parts_, prices_));
      for (int i = 0; i < 50; ++i) messages.iterate();
      elimination bounds(small_, order_, static_cast<double>(std::min<std::size_t>(states * 50, 2000000)));
      const auto moved = messages.reparametrised();
      bounds.fill(moved);
      raise(bound_of(bounds.bound()));
      if (done()) return;
      offer_small(bounds.decode());
      if (done()) return;
      search_limits limits;
      limits.cutoff = cutoff();
      limits.most_states = states;
      limits.first = for_cost_ ? 0 : 1;
      limits.last = for_cost_ ? 1 : parts_.size();
      for (std::size_t r = 0; r < parts_.size(); ++r) {
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
      const auto answer = search(small_, parts_, bounds, limits, [&] { return out_of_time(); });
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
      const double value = for_cost_ ? answer.value + constant_ - cost_tolerance * 1e-2 * answer.value : answer.value;
      raise(std::min({value, bound_of(answer.least_dropped)}));
      if (done()) return;
      if (!breaks || rows_.size() == rows_before) return;
    }
  }

  /// Tries to reach peaks near the bound. Costs tell choices apart that peaks leave equal, so the least cost under a
  /// peak is often easier to search than the peak itself.
  void guess_peaks() {
    double low = out_.bound, guess = low;
    while (!done() && !out_of_time()) {
      const double high = std::min(target(), 1.25 * out_.bound);
      if (low > high) return;
      guess = std::floor(std::clamp(guess, low, high));
      request sub{goal::cost, r_.cost_limit, static_cast<std::int64_t>(guess), r_.seconds - watch_.seconds(), r_.seed};
      auto little = spend_;
      little.first_only = true;
      little.most_states = std::min<std::size_t>(little.most_states, 2000);
      little.most_branches = std::min(little.most_branches, 30);
      const auto answer = minimiser(original_, sub, little).run({});
      if (answer.outcome == status::infeasible) raise(guess + 1);
      // Without a proof the guess is merely left behind.
      if (!answer.choice.empty())
        offer(answer.choice);
      else
        low = guess + 1;
      // Halving goes down fast where peaks lie dense; asking for any better peak ends it where few are left.
      low = std::max(low, out_.bound);
      guess = answer.choice.empty() && best() < 1.005 * low ? target() : (low + std::min(best(), 1.25 * low)) / 2;
    }
  }

  // --- branch and bound
  // -------------------------------------------------------------------------------------------------

  /// Bounds, shrinks and searches this part of the space; what stays open is split. Afterwards the bound is that of the
  /// worse half, and this part is done unless the time ran out.
  void settle(int depth) {
    for (int round = 0; round < 3; ++round) {
      const auto before = size_of(small_).strategies;
      bound_by_messages(12);
      if (done() || !shrink() || done() || out_of_time()) return;
      if (size_of(small_).strategies > before * 8 / 10) break;
    }
    if (depth % 4 == 3 || out_.after.strategies < 200) probe(400);
    if (done() || out_of_time()) return;
    branch(depth);
  }

  void branch(int depth) {
    if (out_of_time() || spend_.most_branches-- <= 0) return;
    if (out_.after.strategies < spend_.program_below) {
      probe(16000);
      if (!done()) prove_by_program();
      if (done() || out_of_time()) return;
    }
    cuts_.clear();
    bound_by_messages(6);
    if (done()) return;
    const auto [v, low_side] = split();
    double worst = infinity;
    for (const bool side : {true, false}) {
      auto part = *this;
      for (std::size_t s = 0; s < low_side.size(); ++s)
        if ((low_side[s] != 0) != side) part.dead_[at(v)][s] = 1;
      if (part.shrink() && !part.done()) part.settle(depth + 1);
      spend_.most_branches = part.spend_.most_branches;
      if (part.best() < best()) {
        out_.choice = part.out_.choice;
        out_.cost = part.out_.cost;
        out_.peak = part.out_.peak;
      }
      out_.after.variables = std::max(out_.after.variables, part.out_.after.variables);
      out_.after.rows = std::max(out_.after.rows, part.out_.after.rows);
      worst = std::min(worst, part.infeasible_ ? infinity : part.out_.bound);
      if (spend_.first_only && !out_.choice.empty()) return;
    }
    // What is left is no better than the worse half, nor than the best choice met.
    if (worst > target())
      infeasible_ = true;
    else
      raise(worst);
  }

  /// The node to split, and which of its strategies go together: where two choices, one within the limits and one
  /// beyond, tie at the prices, the node that makes most of the difference between them; else the node that weighs
  /// most.
  std::pair<int, std::vector<char>> split() const {
    const auto weight = [&](std::size_t v, std::size_t s) {
      double sum = 0;
      for (std::size_t r = 1; r < parts_.size(); ++r) sum += prices_[r] * parts_[r].node[v][s];
      return sum;
    };
    const price_cut *within_limits = nullptr, *beyond = nullptr;
    double within_value = infinity, beyond_value = infinity;
    for (const auto& cut : cuts_) {
      double change = 0;
      for (std::size_t r = 0; r < prices_.size(); ++r)
        if (for_cost_ ? r > 0 : r == 0) change += prices_[r] * cut.slope[r];
      double value = cut.value;
      for (std::size_t r = 0; r < prices_.size(); ++r)
        if (!(for_cost_ && r == 0)) value += prices_[r] * cut.slope[r];
      auto& best_value = change > 0 ? beyond_value : within_value;
      if (value < best_value) {
        best_value = value;
        (change > 0 ? beyond : within_limits) = &cut;
      }
    }
    int node = -1;
    double most = -1, threshold = 0;
    for (std::size_t v = 0; v < small_.nodes.size(); ++v) {
      const auto& dead = dead_[v];
      const auto alive = std::count(dead.begin(), dead.end(), 0);
      if (alive < 2) continue;
      double low = infinity, high = -infinity;
      if (within_limits != nullptr && beyond != nullptr) {
        low = weight(v, at(within_limits->choice[v]));
        high = weight(v, at(beyond->choice[v]));
        if (dead[at(within_limits->choice[v])] || dead[at(beyond->choice[v])]) continue;
      } else {
        for (std::size_t s = 0; s < dead.size(); ++s)
          if (!dead[s]) {
            low = std::min(low, weight(v, s));
            high = std::max(high, weight(v, s));
          }
      }
      if (std::abs(high - low) > most) {
        most = std::abs(high - low);
        threshold = (high + low) / 2;
        node = static_cast<int>(v);
      }
    }
    if (node < 0)
      for (std::size_t v = 0; v < small_.nodes.size() && node < 0; ++v)
        if (std::count(dead_[v].begin(), dead_[v].end(), 0) > 1) node = static_cast<int>(v);
    if (node < 0) return {0, std::vector<char>(small_.nodes[0].cost.size(), 1)};
    const auto& dead = dead_[at(node)];
    std::vector<char> side(dead.size(), 0);
    for (std::size_t s = 0; s < side.size(); ++s) side[s] = weight(at(node), s) <= threshold;
    std::size_t ones = 0, alive = 0, first = dead.size();
    for (std::size_t s = 0; s < side.size(); ++s)
      if (!dead[s]) {
        first = std::min(first, s);
        ++alive;
        ones += side[s] != 0;
      }
    if (ones == 0 || ones == alive) {
      side.assign(side.size(), 0);
      side[first] = 1;
    }
    return {node, side};
  }

  // --- CBC
  // --------------------------------------------------------------------------------------------------------------

  void prove_by_program() {
    if (!spend_.programs) return;
    request inner = r_;
    inner.cost_limit -= constant_;
    auto rows = rows_;
    while (!done()) {
      const double left = r_.seconds - watch_.seconds();
      if (left <= 0.01) return;
      if (target() < infinity) {
        if (for_cost_)
          inner.cost_limit = target() - constant_;
        else
          inner.peak_limit = static_cast<std::int64_t>(target());
      }
      const auto answer = solve_program(small_, inner, rows, static_cast<std::int64_t>(unit_), {}, left);
      out_.after.variables = answer.variables;
      out_.after.rows = answer.rows;
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

  const problem& original_;
  request r_;
  effort spend_;
  bool for_cost_;
  stopwatch watch_;
  result out_;
  bool infeasible_ = false;  // nothing is news any more: the best choice so far is optimal, or there is none
  double unit_ = 1, constant_ = 0, ceiling_ = infinity;
  problem small_;
  std::vector<reduction> chain_;
  std::vector<int> order_, rows_;
  std::vector<resource> parts_;  // cost, then the bytes of rows_
  std::vector<double> prices_;   // one a part
  std::vector<price_cut> cuts_;
  std::vector<std::vector<char>> dead_;
};

}  // namespace mmr::solve::detail
