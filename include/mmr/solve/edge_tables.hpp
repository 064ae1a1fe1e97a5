// What reductions do to the table of a single edge.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "mmr/solve/problem.hpp"
#include "mmr/solve/tie.hpp"

namespace mmr::solve::detail {

inline std::size_t index(int i) {
  return static_cast<std::size_t>(i);
}

/// Numbers the distinct pairs (a[s], b[s]); `firsts` receives one pair for each number.
inline std::vector<int> common_refinement(const std::vector<int>& a, const std::vector<int>& b,
                                          std::vector<std::pair<int, int>>& firsts) {
  std::map<std::pair<int, int>, int> number;
  std::vector<int> out;
  for (std::size_t s = 0; s < a.size(); ++s) {
    const auto [at, fresh] = number.try_emplace({a[s], b[s]}, static_cast<int>(firsts.size()));
    if (fresh) firsts.push_back({a[s], b[s]});
    out.push_back(at->second);
  }
  return out;
}

/// Two edges between the same nodes as one.
inline edge sum_of(const edge& a, const edge& b) {
  std::vector<std::pair<int, int>> rows, columns;
  edge out;
  out.u = a.u;
  out.v = a.v;
  out.u_class = common_refinement(a.u_class, b.u_class, rows);
  out.v_class = common_refinement(a.v_class, b.v_class, columns);
  out.u_classes = static_cast<int>(rows.size());
  out.v_classes = static_cast<int>(columns.size());
  std::vector<std::size_t> in_a, in_b;
  for (const auto& [ia, ib] : rows)
    for (const auto& [ja, jb] : columns) {
      in_a.push_back(index(ia * a.v_classes + ja));
      in_b.push_back(index(ib * b.v_classes + jb));
      out.cost.push_back(a.cost[in_a.back()] + b.cost[in_b.back()]);
    }
  const auto take = [&](const edge& from, const std::vector<std::size_t>& at) {
    for (const auto& u : from.uses) {
      edge_use extra{u.begin, u.end, {}};
      for (std::size_t i : at) extra.bytes.push_back(u.bytes[i]);
      add_use(out.uses, extra);
    }
  };
  take(a, in_a);
  take(b, in_b);
  return out;
}

/// Leaves out classes that no strategy has, and joins classes whose rows (then columns) are equal.
inline void tighten_classes(edge& e) {
  const auto join_rows = [](const edge& from) {
    std::map<std::vector<double>, int> number;
    std::vector<int> renumbered(index(from.u_classes), -1), firsts;
    for (int c : from.u_class) {
      if (renumbered[index(c)] >= 0) continue;
      std::vector<double> row;
      const auto append = [&](const auto& table) {
        for (int j = 0; j < from.v_classes; ++j)
          row.push_back(static_cast<double>(table[index(c * from.v_classes + j)]));
      };
      append(from.cost);
      for (const auto& u : from.uses) append(u.bytes);
      const auto [at, fresh] = number.try_emplace(std::move(row), static_cast<int>(firsts.size()));
      if (fresh) firsts.push_back(c);
      renumbered[index(c)] = at->second;
    }
    edge out{from.u, from.v, from.u_class, from.v_class, static_cast<int>(firsts.size()), from.v_classes, {}, {}};
    for (int& c : out.u_class) c = renumbered[index(c)];
    const auto pick = [&](const auto& table, auto& to) {
      for (int c : firsts)
        to.insert(to.end(), table.begin() + c * from.v_classes, table.begin() + (c + 1) * from.v_classes);
    };
    pick(from.cost, out.cost);
    for (const auto& u : from.uses) {
      out.uses.push_back({u.begin, u.end, {}});
      pick(u.bytes, out.uses.back().bytes);
    }
    return out;
  };
  // An unused class of v would keep rows of u apart, so v's side is tightened on both sides of u's.
  e = transposed(join_rows(transposed(e)));
  e = join_rows(e);
  e = transposed(join_rows(transposed(e)));
  std::erase_if(e.uses, [](const edge_use& u) {
    return std::all_of(u.bytes.begin(), u.bytes.end(), [](auto b) { return b == 0; });
  });
}

/// For each class of u its only permitted strategy of v; empty where some class permits several.
inline std::vector<int> partner_of_classes(const edge& e) {
  std::vector<int> strategy_of_class(index(e.v_classes), -1);
  for (std::size_t s = 0; s < e.v_class.size(); ++s) {
    auto& only = strategy_of_class[index(e.v_class[s])];
    only = only == -1 ? static_cast<int>(s) : -2;
  }
  std::vector<int> out(index(e.u_classes), -1);
  for (int a = 0; a < e.u_classes; ++a)
    for (int b = 0; b < e.v_classes; ++b) {
      if (!(e.cost[index(a * e.v_classes + b)] < infinity)) continue;
      if (out[index(a)] >= 0 || strategy_of_class[index(b)] < 0) return {};
      out[index(a)] = strategy_of_class[index(b)];
    }
  return out;
}

/// The least entries that strategies s and t of one end could be told apart by: true where s is nowhere worse than t.
inline bool no_worse(const edge& e, bool first, std::size_t s, std::size_t t) {
  const auto& classes = first ? e.u_class : e.v_class;
  if (classes[s] == classes[t]) return true;
  const auto columns = index(e.v_classes), others = first ? columns : index(e.u_classes);
  const auto stride = first ? std::size_t{1} : columns;
  const auto a = index(classes[s]) * (first ? columns : 1), b = index(classes[t]) * (first ? columns : 1);
  const auto covers = [&](const auto& table) {
    for (std::size_t o = 0; o < others; ++o)
      if (table[a + o * stride] > table[b + o * stride]) return false;
    return true;
  };
  if (!covers(e.cost)) return false;
  for (const auto& use : e.uses)
    if (!covers(use.bytes)) return false;
  return true;
}

}  // namespace mmr::solve::detail
