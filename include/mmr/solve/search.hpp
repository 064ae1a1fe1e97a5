// Search along an order of the nodes that keeps, for each choice at the frontier, only what nothing else beats in every
// resource, and drops what a lower bound says cannot end below the cutoff. Complete: it proves. Cut short: a beam
// search.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "mmr/solve/elimination.hpp"
#include "mmr/solve/problem.hpp"
#include "mmr/solve/resource.hpp"

namespace mmr::solve {

/// Limits of a search. `limit[r]` bounds resource r; `cutoff` bounds the weighted sum that the elimination was filled
/// with; below `floor[r]` resource r no longer matters at the end. The goal is the greatest of resources first..last-1.
/// Resources from `first_step` on share one limit and one role: only the greatest of them matters.
struct search_limits {
  std::vector<double> limit, floor;
  double cutoff = infinity;
  std::size_t first = 0, last = 1, first_step = 1;
  std::size_t most_states = 1000;
};

/// `complete`: no state was dropped for want of room, so `choice` is best within the limits, and where it is empty none
/// keeps them. `least_dropped`: lower bound on the weighted sum of what was dropped for want of room.
struct search_answer {
  bool complete = true;
  std::vector<int> choice;
  double value = infinity;
  double least_dropped = infinity;
};

template <class Stop>
search_answer search(const problem& p, const std::vector<resource>& parts, const elimination& bounds,
                     const search_limits& limits, Stop stop) {
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  const auto& order = bounds.order();
  const auto n = order.size(), width = parts.size();
  std::vector<std::size_t> position(n);
  for (std::size_t i = 0; i < n; ++i) position[at(order[i])] = i;
  struct backward_edge {
    std::size_t edge;
    int other;
    bool v_is_u;
  };
  std::vector<std::vector<backward_edge>> backward(n);
  std::vector<std::size_t> last_use(n);
  for (std::size_t i = 0; i < n; ++i) last_use[i] = i;
  for (std::size_t e = 0; e < p.edges.size(); ++e) {
    const auto& x = p.edges[e];
    const bool v_is_u = position[at(x.u)] > position[at(x.v)];
    const auto later = position[at(v_is_u ? x.u : x.v)], earlier = position[at(v_is_u ? x.v : x.u)];
    backward[later].push_back({e, v_is_u ? x.v : x.u, v_is_u});
    last_use[earlier] = std::max(last_use[earlier], later);
  }
  // What is still to come in each resource, at least and at most, after each place.
  std::vector<std::vector<double>> least(n + 1, std::vector<double>(width, 0.0)), most = least;
  for (std::size_t i = n; i-- > 0;)
    for (std::size_t r = 0; r < width; ++r) {
      const auto add = [&](const std::vector<double>& table) {
        double low = infinity, high = 0;
        for (double c : table)
          if (c < infinity) {
            low = std::min(low, c);
            high = std::max(high, c);
          }
        least[i][r] += low < infinity ? low : 0;
        most[i][r] += high;
      };
      least[i][r] = least[i + 1][r];
      most[i][r] = most[i + 1][r];
      add(parts[r].node[at(order[i])]);
      for (const auto& b : backward[i]) add(parts[r].edge[b.edge]);
    }

  // ahead[i][r * width + q]: how much more resource q than resource r is still to come after place i, at least.
  std::vector<std::vector<double>> ahead(n + 1, std::vector<double>(width * width, 0.0));
  for (std::size_t i = n; i-- > 0;) {
    ahead[i] = ahead[i + 1];
    for (std::size_t r = limits.first_step; r < width; ++r)
      for (std::size_t q = limits.first_step; q < width; ++q) {
        if (q == r) continue;
        const auto add = [&](const std::vector<double>& mine, const std::vector<double>& other) {
          double low = infinity;
          for (std::size_t k = 0; k < mine.size(); ++k)
            if (mine[k] < infinity) low = std::min(low, other[k] - mine[k]);
          ahead[i][r * width + q] += low < infinity ? low : 0;
        };
        add(parts[r].node[at(order[i])], parts[q].node[at(order[i])]);
        for (const auto& b : backward[i]) add(parts[r].edge[b.edge], parts[q].edge[b.edge]);
      }
  }

  struct layer {
    std::vector<std::uint32_t> parent;
    std::vector<int> strategy;
  };
  std::vector<layer> layers(n);
  std::vector<int> frontier;  // nodes chosen that a later node looks at
  std::vector<int> states{};  // strategies of the frontier, state after state
  std::vector<double> taken(width), bound{bounds.bound()};
  for (std::size_t r = 0; r < width; ++r) taken[r] = parts[r].base;
  std::size_t count = 1;
  search_answer out;
  std::vector<int> choice(n, 0);
  std::vector<double> change;

  for (std::size_t i = 0; i < n; ++i) {
    const int v = order[i];
    std::vector<int> next_frontier;
    std::vector<std::size_t> kept_places;
    for (std::size_t f = 0; f < frontier.size(); ++f)
      if (last_use[position[at(frontier[f])]] > i) {
        next_frontier.push_back(frontier[f]);
        kept_places.push_back(f);
      }
    const bool v_stays = last_use[i] > i;
    if (v_stays) next_frontier.push_back(v);
    // Strategies that all later edges take alike make the same state.
    std::vector<std::vector<std::uint64_t>> code(next_frontier.size());
    std::uint64_t radix = 1;
    bool fits = true;
    for (std::size_t f = 0; f < next_frontier.size(); ++f) {
      const int u = next_frontier[f];
      std::vector<std::vector<int>> seen(p.nodes[at(u)].cost.size());
      for (std::size_t j = i + 1; j < n; ++j)
        for (const auto& b : backward[j])
          if (b.other == u) {
            const auto& e = p.edges[b.edge];
            for (std::size_t s = 0; s < seen.size(); ++s) seen[s].push_back(b.v_is_u ? e.v_class[s] : e.u_class[s]);
          }
      std::map<std::vector<int>, std::uint64_t> number;
      for (const auto& s : seen) code[f].push_back(number.try_emplace(s, number.size()).first->second * radix);
      fits = fits && radix < (std::uint64_t{1} << 62) / std::max<std::uint64_t>(number.size(), 1);
      radix *= number.size();
    }
    if (!fits) {  // too wide a frontier to tell its states apart by one number
      out.complete = false;
      out.least_dropped = std::min(out.least_dropped, *std::min_element(bound.begin(), bound.end()));
      return out;
    }

    struct candidate {
      std::uint64_t key;
      double bound;
      std::uint32_t parent;
      int strategy;
    };
    std::vector<candidate> candidates;
    std::vector<double> resources;  // of candidates, width each
    std::vector<double> total(width);
    for (std::size_t state = 0; state < count; ++state) {
      if ((state % 256 == 0 && stop()) || candidates.size() > 6000000) {
        out.complete = false;
        out.least_dropped = std::min(out.least_dropped, *std::min_element(bound.begin(), bound.end()));
        return out;
      }
      for (std::size_t f = 0; f < frontier.size(); ++f) choice[at(frontier[f])] = states[state * frontier.size() + f];
      bounds.step(i, choice, change);
      std::uint64_t key = 0;
      for (std::size_t f = 0; f < kept_places.size(); ++f) key += code[f][at(choice[at(next_frontier[f])])];
      for (std::size_t s = 0; s < change.size(); ++s) {
        const double b = bound[state] + change[s];
        if (!(b <= limits.cutoff)) continue;
        bool fine = true;
        for (std::size_t r = 0; fine && r < width; ++r) {
          double sum = taken[state * width + r] + parts[r].node[at(v)][s];
          for (const auto& x : backward[i]) {
            const auto& e = p.edges[x.edge];
            const auto o = at(choice[at(x.other)]);
            const auto pair = x.v_is_u ? at(e.u_class[s]) * at(e.v_classes) + at(e.v_class[o])
                                       : at(e.u_class[o]) * at(e.v_classes) + at(e.v_class[s]);
            sum += parts[r].edge[x.edge][pair];
          }
          fine = sum + least[i + 1][r] <= limits.limit[r];
          total[r] = std::max(sum, limits.floor[r] - most[i + 1][r]);
        }
        if (!fine) continue;
        // A resource that another is sure to exceed by the end may as well be as great as that still allows.
        for (std::size_t r = limits.first_step; r < width; ++r)
          for (std::size_t q = limits.first_step; q < width; ++q)
            if (q != r) total[r] = std::max(total[r], total[q] + ahead[i + 1][r * width + q]);
        candidates.push_back(
            {key + (v_stays ? code.back()[s] : 0), b, static_cast<std::uint32_t>(state), static_cast<int>(s)});
        resources.insert(resources.end(), total.begin(), total.end());
      }
    }
    std::vector<std::uint32_t> sorted(candidates.size());
    for (std::size_t c = 0; c < sorted.size(); ++c) sorted[c] = static_cast<std::uint32_t>(c);
    std::sort(sorted.begin(), sorted.end(), [&](auto a, auto b) {
      const auto &x = candidates[a], &y = candidates[b];
      if (x.key != y.key) return x.key < y.key;
      if (x.bound != y.bound) return x.bound < y.bound;
      return a < b;
    });
    std::vector<std::uint32_t> kept;
    std::size_t group = 0, looked_at = 0;
    for (auto c : sorted) {
      if (++looked_at % 1024 == 0 && stop()) {
        out.complete = false;
        out.least_dropped = std::min(out.least_dropped, *std::min_element(bound.begin(), bound.end()));
        return out;
      }
      if (kept.empty() || candidates[kept.back()].key != candidates[c].key) group = kept.size();
      bool beaten = false;
      for (std::size_t k = group; k < kept.size() && !beaten; ++k) {
        beaten = true;
        for (std::size_t r = 0; beaten && r < width; ++r)
          beaten = resources[kept[k] * width + r] <= resources[c * width + r];
      }
      if (!beaten) kept.push_back(c);
    }
    if (kept.size() > limits.most_states) {
      std::stable_sort(kept.begin(), kept.end(),
                       [&](auto a, auto b) { return candidates[a].bound < candidates[b].bound; });
      out.complete = false;
      out.least_dropped = std::min(out.least_dropped, candidates[kept[limits.most_states]].bound);
      kept.resize(limits.most_states);
    }
    std::vector<int> next_states;
    std::vector<double> next_taken, next_bound;
    for (auto c : kept) {
      const auto& x = candidates[c];
      layers[i].parent.push_back(x.parent);
      layers[i].strategy.push_back(x.strategy);
      for (std::size_t f : kept_places) next_states.push_back(states[x.parent * frontier.size() + f]);
      if (v_stays) next_states.push_back(x.strategy);
      next_taken.insert(next_taken.end(), resources.begin() + static_cast<std::ptrdiff_t>(c * width),
                        resources.begin() + static_cast<std::ptrdiff_t>((c + 1) * width));
      next_bound.push_back(x.bound);
    }
    frontier = std::move(next_frontier);
    states = std::move(next_states);
    taken = std::move(next_taken);
    bound = std::move(next_bound);
    count = kept.size();
    if (count == 0) return out;
  }
  std::size_t best = 0;
  for (std::size_t state = 0; state < count; ++state) {
    double value = 0;
    for (std::size_t r = limits.first; r < limits.last; ++r) value = std::max(value, taken[state * width + r]);
    if (state == 0 || value < out.value) {
      best = state;
      out.value = value;
    }
  }
  out.choice.resize(n);
  for (std::size_t i = n; i-- > 0;) {
    out.choice[at(order[i])] = layers[i].strategy[best];
    best = layers[i].parent[best];
  }
  return out;
}

}  // namespace mmr::solve
