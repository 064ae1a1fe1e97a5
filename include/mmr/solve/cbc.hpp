// The integer program of a problem, handed to COIN-OR CBC: the engine that proves what cheaper bounds leave open. The
// only header of the library that includes Coin's.
#pragma once

#include <coin/Cbc_C_Interface.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "mmr/solve/evaluate.hpp"
#include "mmr/solve/meter.hpp"
#include "mmr/solve/problem.hpp"
#include "mmr/solve/result.hpp"

namespace mmr::solve {

/// What CBC says of one program. `bound` is proved for the goal over the rows it was given; `choice` may be empty and
/// keeps those rows only within CBC's tolerances, so check it.
struct program_answer {
  bool infeasible = false, proved = false;
  std::vector<int> choice;
  double bound = 0;
  int variables = 0, rows = 0;
};

namespace detail {

/// A row-wise program under construction, in units that make its numbers about 1.
class program {
 public:
  int add_column(double low, double high, double objective, bool integer) {
    low_.push_back(low);
    high_.push_back(high);
    objective_.push_back(objective);
    integer_.push_back(integer);
    entries_.emplace_back();
    return static_cast<int>(low_.size()) - 1;
  }

  int add_row(double low, double high) {
    row_low_.push_back(low);
    row_high_.push_back(high);
    return static_cast<int>(row_low_.size()) - 1;
  }

  void add(int row, int column, double value) {
    if (value != 0) entries_[static_cast<std::size_t>(column)].push_back({row, value});
  }

  int columns() const { return static_cast<int>(low_.size()); }
  int rows() const { return static_cast<int>(row_low_.size()); }

  struct answer {
    bool infeasible = false, proved = false;
    std::vector<double> values;
    double bound = -infinity;
  };

  /// Minimises within what is left; `start` (empty or one value a column) is offered as a first solution.
  answer minimise(meter& left, const std::vector<double>& start) const {
    std::vector<CoinBigIndex> starts{0};
    std::vector<int> index;
    std::vector<double> value;
    for (const auto& column : entries_) {
      for (const auto& [row, coefficient] : column) {
        index.push_back(row);
        value.push_back(coefficient);
      }
      starts.push_back(static_cast<CoinBigIndex>(index.size()));
    }
    const std::unique_ptr<Cbc_Model, void (*)(Cbc_Model*)> model(Cbc_newModel(), Cbc_deleteModel);
    Cbc_setLogLevel(model.get(), 0);
    Cbc_setParameter(model.get(), "log", "0");
    Cbc_loadProblem(model.get(), columns(), rows(), starts.data(), index.data(), value.data(), low_.data(),
                    high_.data(), objective_.data(), row_low_.data(), row_high_.data());
    for (std::size_t i = 0; i < integer_.size(); ++i)
      if (integer_[i]) Cbc_setInteger(model.get(), static_cast<int>(i));
    Cbc_setParameter(model.get(), "ratioGap", "0");
    Cbc_setParameter(model.get(), "allowableGap", "1e-9");
    Cbc_setParameter(model.get(), "threads", "0");
    Cbc_setParameter(model.get(), "timeMode", "elapsed");
    Cbc_setMaximumSeconds(model.get(), std::max(0.01, left.seconds_left()));
    // Each node of the search takes some tens of pivots, each of which reads every column.
    const double pivot = static_cast<double>(columns());
    Cbc_setMaximumNodes(model.get(), static_cast<int>(std::clamp(left.work_left() / (30 * pivot), 1.0, 2e9)));
    if (!start.empty()) {
      std::vector<int> columns_set(start.size());
      std::iota(columns_set.begin(), columns_set.end(), 0);
      Cbc_setMIPStartI(model.get(), static_cast<int>(start.size()), columns_set.data(), start.data());
    }
    Cbc_solve(model.get());
    left.charge(pivot * Cbc_getIterationCount(model.get()));
    answer out;
    // Preprocessing may find infeasibility without setting that flag: the search then ended with no solution.
    const bool ended = Cbc_status(model.get()) == 0 && Cbc_secondaryStatus(model.get()) <= 1;
    out.infeasible = Cbc_isProvenInfeasible(model.get()) != 0 ||
                     Cbc_isInitialSolveProvenPrimalInfeasible(model.get()) != 0 ||
                     (ended && Cbc_bestSolution(model.get()) == nullptr && Cbc_getNumIntegers(model.get()) > 0);
    out.proved = Cbc_isProvenOptimal(model.get()) != 0;
    if (out.infeasible) return out;
    const bool linear = std::none_of(integer_.begin(), integer_.end(), [](char i) { return i != 0; });
    const double* best = linear ? Cbc_getColSolution(model.get()) : Cbc_bestSolution(model.get());
    if (best != nullptr) out.values.assign(best, best + columns());
    out.bound = out.proved ? Cbc_getObjValue(model.get()) : Cbc_getBestPossibleObjValue(model.get());
    if (std::abs(out.bound) > 1e40) out.bound = -infinity;
    return out;
  }

 private:
  std::vector<double> low_, high_, objective_, row_low_, row_high_;
  std::vector<char> integer_;
  std::vector<std::vector<std::pair<int, double>>> entries_;
};

}  // namespace detail

/// Solves `p` to optimality with memory rows for `steps` only. `peak_unit` divides every byte count (1 always does):
/// limits are relaxed by half of it, so that CBC's tolerance cannot turn a solution that fits into one that does not.
/// `start` is a choice, or empty; `left` is what may be spent, and is charged.
inline program_answer solve_program(const problem& p, const request& r, const std::vector<int>& steps,
                                    std::int64_t peak_unit, const std::vector<int>& start, meter& left) {
  const auto index = [](int i) { return static_cast<std::size_t>(i); };
  double cost_scale = 0, bytes_scale = 1;
  for (const auto& n : p.nodes)
    for (double c : n.cost) cost_scale = std::max(cost_scale, c < infinity ? c : 0);
  for (const auto& e : p.edges)
    for (double c : e.cost) cost_scale = std::max(cost_scale, c < infinity ? c : 0);
  if (cost_scale <= 0) cost_scale = 1;
  for (const auto& n : p.nodes)
    for (const auto& use : n.uses)
      for (auto b : use.bytes) bytes_scale = std::max(bytes_scale, static_cast<double>(b));
  for (const auto& e : p.edges)
    for (const auto& use : e.uses)
      for (auto b : use.bytes) bytes_scale = std::max(bytes_scale, static_cast<double>(b));
  const bool for_cost = r.minimise == goal::cost;

  detail::program program;
  std::vector<std::vector<int>> x(p.nodes.size()), pair(p.edges.size());
  std::vector<double> values;
  const auto column = [&](double objective, bool integer, bool chosen) {
    values.push_back(chosen ? 1 : 0);
    return program.add_column(0, 1, objective, integer);
  };
  for (std::size_t v = 0; v < p.nodes.size(); ++v) {
    const int row = program.add_row(1, 1);
    for (std::size_t s = 0; s < p.nodes[v].cost.size(); ++s) {
      x[v].push_back(column(for_cost ? p.nodes[v].cost[s] / cost_scale : 0, true,
                            !start.empty() && start[v] == static_cast<int>(s)));
      program.add(row, x[v].back(), 1);
    }
  }
  for (std::size_t i = 0; i < p.edges.size(); ++i) {
    const auto& e = p.edges[i];
    std::vector<int> u_row, v_row;
    for (int a = 0; a < e.u_classes; ++a) u_row.push_back(program.add_row(0, 0));
    for (int b = 0; b < e.v_classes; ++b) v_row.push_back(program.add_row(0, 0));
    for (std::size_t s = 0; s < e.u_class.size(); ++s) program.add(u_row[index(e.u_class[s])], x[index(e.u)][s], -1);
    for (std::size_t s = 0; s < e.v_class.size(); ++s) program.add(v_row[index(e.v_class[s])], x[index(e.v)][s], -1);
    const auto chosen = start.empty() ? e.cost.size() : chosen_pair(e, start);
    for (std::size_t k = 0; k < e.cost.size(); ++k) {
      pair[i].push_back(-1);
      if (!(e.cost[k] < infinity)) continue;
      const int c = column(for_cost ? e.cost[k] / cost_scale : 0, false, k == chosen);
      pair[i].back() = c;
      program.add(u_row[k / index(e.v_classes)], c, 1);
      program.add(v_row[k % index(e.v_classes)], c, 1);
    }
  }
  if (r.cost_limit < infinity) {
    const double slack = cost_tolerance * std::abs(r.cost_limit);
    const int row = program.add_row(-infinity, (r.cost_limit + slack) / cost_scale);
    for (std::size_t v = 0; v < p.nodes.size(); ++v)
      for (std::size_t s = 0; s < x[v].size(); ++s) program.add(row, x[v][s], p.nodes[v].cost[s] / cost_scale);
    for (std::size_t i = 0; i < p.edges.size(); ++i)
      for (std::size_t k = 0; k < pair[i].size(); ++k)
        if (pair[i][k] >= 0) program.add(row, pair[i][k], p.edges[i].cost[k] / cost_scale);
  }
  int most = -1;
  if (!for_cost) {
    most = program.add_column(0, infinity, 1, false);
    values.push_back(start.empty() ? 0 : static_cast<double>(evaluate(p, start).peak) / bytes_scale);
  }
  for (int t : steps) {
    const auto base = p.base.empty() ? 0 : p.base[index(t)];
    const auto live = [&](const auto& use) { return use.begin <= t && t < use.end; };
    const auto fill = [&](int row) {
      for (std::size_t v = 0; v < p.nodes.size(); ++v)
        for (std::size_t s = 0; s < x[v].size(); ++s) {
          std::int64_t bytes = 0;
          for (const auto& use : p.nodes[v].uses) bytes += live(use) ? use.bytes[s] : 0;
          program.add(row, x[v][s], static_cast<double>(bytes) / bytes_scale);
        }
      for (std::size_t i = 0; i < p.edges.size(); ++i)
        for (std::size_t k = 0; k < pair[i].size(); ++k) {
          std::int64_t bytes = 0;
          if (pair[i][k] < 0) continue;
          for (const auto& use : p.edges[i].uses) bytes += live(use) ? use.bytes[k] : 0;
          program.add(row, pair[i][k], static_cast<double>(bytes) / bytes_scale);
        }
    };
    if (r.peak_limit < no_peak_limit) {
      auto room = r.peak_limit - base;
      room -= ((room % peak_unit) + peak_unit) % peak_unit;
      fill(
          program.add_row(-infinity, (static_cast<double>(room) + 0.5 * static_cast<double>(peak_unit)) / bytes_scale));
    }
    if (!for_cost) {
      const int row = program.add_row(-infinity, -static_cast<double>(base) / bytes_scale);
      fill(row);
      program.add(row, most, -1);
    }
  }

  const auto solved = program.minimise(left, start.empty() ? std::vector<double>{} : values);
  program_answer out;
  out.infeasible = solved.infeasible;
  out.proved = solved.proved;
  out.variables = program.columns();
  out.rows = program.rows();
  out.bound = std::max(0.0, solved.bound * (for_cost ? cost_scale : bytes_scale));
  if (!solved.values.empty())
    for (const auto& columns : x) {
      std::size_t best = 0;
      for (std::size_t s = 1; s < columns.size(); ++s)
        if (solved.values[index(columns[s])] > solved.values[index(columns[best])]) best = s;
      out.choice.push_back(static_cast<int>(best));
    }
  return out;
}

}  // namespace mmr::solve
