// Prices of all steps at once, where a few do not do: a subgradient ascent (Held, Wolfe and Crowder 1974, its direction
// smoothed as in the volume algorithm of Barahona and Anbil 2000) that goes hand in hand with the messages, and choices
// rounded from both.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "mmr/solve/diffusion.hpp"
#include "mmr/solve/evaluate.hpp"
#include "mmr/solve/held_bytes.hpp"
#include "mmr/solve/problem.hpp"
#include "mmr/solve/resource.hpp"

namespace mmr::solve {

/// Bounds the cost of `p` under a limit on its peak from below. Deterministic.
class price_ascent {
 public:
  /// `p` must outlive this object. `prices`: one a step, where to begin.
  price_ascent(const problem& p, std::int64_t limit, std::vector<double> prices)
      : p_(p),
        limit_(limit),
        messages_(p),
        price_(std::move(prices)),
        direction_(price_.size(), 0),
        best_price_(price_) {
    price_.resize(static_cast<std::size_t>(p.steps), 0);
    direction_.resize(price_.size(), 0);
    best_price_ = price_;
    messages_.set({1, price_});
  }

  /// One pass of messages and one move of the prices. `upper`: a cost thought to be reachable, which sets the length of
  /// the move. Strategies of no choice that costs at most `cutoff` are taken out. False once nothing is left.
  bool iterate(double upper, double cutoff) {
    const double allowance = this->allowance();
    messages_.iterate(cutoff < infinity ? cutoff + allowance + 1e-11 * (std::abs(cutoff) + std::abs(allowance))
                                        : infinity);
    const double now = bound();
    if (!(now < infinity)) return false;
    if (now > best_bound_) {
      stale_ = now > best_bound_ + 1e-6 * std::abs(best_bound_) ? 0 : stale_ + 1;
      best_bound_ = now;
      best_price_ = price_;
    } else {
      ++stale_;
    }
    if (stale_ > 12) {
      stale_ = 0;
      length_ = std::max(length_ * 0.7, 1e-3);
      price_ = best_price_;
    }
    if (!messages_.chose_all()) return true;
    const auto held = evaluate(p_, messages_.choice());
    double square = 0;
    for (std::size_t t = 0; t < price_.size(); ++t) {
      const auto beyond = static_cast<double>(held.bytes[t] - limit_);
      direction_[t] += 0.3 * (beyond - direction_[t]);
      if (price_[t] > 0 || direction_[t] > 0) square += direction_[t] * direction_[t];
    }
    if (square > 0) {
      // A cost far above what the bound makes likely would send the prices astray.
      const double aim = std::min(upper, std::max(best_bound_, 0.0) * 1.05 + 1e-300);
      const double step = length_ * std::max(aim - now, 1e-4 * std::abs(now)) / square;
      for (std::size_t t = 0; t < price_.size(); ++t) price_[t] = std::max(0.0, price_[t] + step * direction_[t]);
    }
    messages_.set({1, price_});
    return true;
  }

  /// Lower bound on the cost of every choice within the limit that has no strategy taken out.
  double bound() const {
    const double sum = messages_.bound(), given = allowance();
    if (std::isnan(sum)) return -infinity;
    return sum < infinity ? sum - given - 1e-12 * (std::abs(sum) + std::abs(given)) : infinity;
  }

  const diffusion& messages() const { return messages_; }
  const std::vector<double>& prices() const { return best_price_; }

  /// A choice within the limit that follows the messages; empty where the way leads to none.
  std::vector<int> rounded() const {
    held_bytes held(least_bytes(p_));  // what is not chosen yet counts with the least it can hold
    return messages_.choose([&](std::size_t v, int s) {
      const auto hold = [&](std::int64_t sign) {
        for (const auto& use : p_.nodes[v].uses)
          held.add(
              use.begin, use.end,
              sign * (use.bytes[static_cast<std::size_t>(s)] - *std::min_element(use.bytes.begin(), use.bytes.end())));
      };
      hold(1);
      if (held.peak() <= limit_) return true;
      hold(-1);
      return false;
    });
  }

 private:
  double allowance() const {
    double sum = 0;
    for (double price : price_) sum += price * static_cast<double>(limit_);
    return sum;
  }

  const problem& p_;
  std::int64_t limit_;
  diffusion messages_;
  std::vector<double> price_, direction_, best_price_;
  double best_bound_ = -infinity, length_ = 0.5;
  int stale_ = 0;
};

}  // namespace mmr::solve
