// Two spirals (Lang and Witbrock, 1988): points of two arms that wind around each other, told apart only by a curved
// boundary. Made from a seed, so that every rank has the same points and nothing is downloaded.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>
#include <span>
#include <vector>

struct labelled_points {
  std::vector<float> xy;          // count x 2
  std::vector<std::int32_t> arm;  // count: 0 or 1

  std::int64_t count() const { return static_cast<std::int64_t>(arm.size()); }
};

/// Points spread along two and a half turns of each arm, with noise across that nearly closes the gap between the arms.
inline labelled_points spirals(std::int64_t count, std::uint32_t seed) {
  labelled_points made;
  std::mt19937 random(seed);
  // By hand: the standard leaves the distributions' numbers to the library.
  const auto uniform = [&] { return static_cast<double>(random()) / 4294967296.0; };
  for (std::int64_t i = 0; i < count; ++i) {
    const auto arm = static_cast<std::int32_t>(i % 2);
    const double along = 0.1 + 0.9 * uniform();
    const double turn = 5 * std::numbers::pi * along + std::numbers::pi * arm;
    const double radius = along + 0.11 * (uniform() + uniform() - 1);
    made.xy.push_back(static_cast<float>(radius * std::cos(turn)));
    made.xy.push_back(static_cast<float>(radius * std::sin(turn)));
    made.arm.push_back(arm);
  }
  return made;
}

/// `count` of the points, another choice for every `draw`.
inline labelled_points choose(const labelled_points& from, std::int64_t count, std::uint32_t draw) {
  labelled_points chosen;
  std::mt19937 random(draw);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto p = static_cast<std::size_t>(random() % from.arm.size());
    chosen.xy.insert(chosen.xy.end(), {from.xy[2 * p], from.xy[2 * p + 1]});
    chosen.arm.push_back(from.arm[p]);
  }
  return chosen;
}

/// Share of the points whose larger logit, of count x 2, is that of their arm; and their mean cross-entropy.
struct score {
  double accuracy = 0, loss = 0;
};
inline score rate_logits(std::span<const float> logits, const labelled_points& points) {
  score s;
  for (std::size_t p = 0; p < points.arm.size(); ++p) {
    const auto right = static_cast<std::size_t>(points.arm[p]);
    const double margin = static_cast<double>(logits[2 * p + right]) - static_cast<double>(logits[2 * p + 1 - right]);
    s.accuracy += margin > 0;
    s.loss += std::log1p(std::exp(-std::abs(margin))) + std::max(0.0, -margin);
  }
  const auto n = static_cast<double>(points.count());
  return {s.accuracy / n, s.loss / n};
}
