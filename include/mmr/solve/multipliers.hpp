// Where to look next for the prices of limits: a cutting-plane model of what each price proves.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "mmr/solve/cbc.hpp"

namespace mmr::solve {

/// Concave model of the bound as a function of the prices: for every choice seen so far, the bound is at most
/// `value + sum price_r * slope[r]`. Choices from inexact oracles make the model optimistic, never the bound wrong.
struct price_cut {
  double value = 0;
  std::vector<double> slope;
  std::vector<int> choice;
};

/// The prices in [low, high] at which the model is greatest; where `on_simplex[r]` is set they sum to 1. Empty where
/// the model gives none: every price given is a finite number.
inline std::vector<double> best_prices(const std::vector<price_cut>& cuts, const std::vector<double>& low,
                                       const std::vector<double>& high, const std::vector<char>& on_simplex) {
  detail::program master;
  double scale = 1e-300;
  for (const auto& cut : cuts) {
    scale = std::max(scale, std::abs(cut.value));
    for (std::size_t r = 0; r < low.size(); ++r) scale = std::max(scale, std::abs(cut.slope[r]) * high[r]);
  }
  // Each column counts in units of its upper end, so that all numbers are about 1.
  std::vector<int> column;
  std::vector<double> unit;
  for (std::size_t r = 0; r < low.size(); ++r) {
    unit.push_back(on_simplex[r] || high[r] <= 0 ? 1 : high[r]);
    column.push_back(master.add_column(low[r] / unit[r], high[r] / unit[r], 0, false));
  }
  const int top = master.add_column(-10, 10, -1, false);
  if (std::any_of(on_simplex.begin(), on_simplex.end(), [](char c) { return c != 0; })) {
    const int row = master.add_row(1, 1);
    for (std::size_t r = 0; r < low.size(); ++r)
      if (on_simplex[r]) master.add(row, column[r], 1);
  }
  for (const auto& cut : cuts) {
    const int row = master.add_row(-infinity, cut.value / scale);
    master.add(row, top, 1);
    for (std::size_t r = 0; r < low.size(); ++r) master.add(row, column[r], -cut.slope[r] * unit[r] / scale);
  }
  meter enough(60, infinity);  // a few columns: never a matter of time
  const auto solved = master.minimise(enough, {});
  if (solved.values.empty()) return {};
  std::vector<double> out;
  for (std::size_t r = 0; r < low.size(); ++r) {
    out.push_back(std::clamp(solved.values[r] * unit[r], low[r], high[r]));
    if (!std::isfinite(out.back())) return {};
  }
  return out;
}

}  // namespace mmr::solve
