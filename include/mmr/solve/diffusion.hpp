// A lower bound that costs a few passes over the edge tables: sequential tree-reweighted message passing (TRW-S,
// Kolmogorov 2006) in its reparametrised form. It also gives good choices, and tells which strategies cannot be in one
// that is better than a known value.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "mmr/solve/problem.hpp"
#include "mmr/solve/resource.hpp"

namespace mmr::solve {

/// Moves cost between edges and nodes so that the sum of all minima, a lower bound on a priced sum, grows. Strategies
/// of infinite cost count as taken out; `iterate` takes out more. The sweeps follow the numbers of the nodes. All
/// tables lie in a few arrays, each edge's twice: rows of either end, so that every pass runs along a row.
class diffusion {
 public:
  /// `p` must outlive this object.
  explicit diffusion(const problem& p) : p_(p), links_(p.nodes.size()), least_(p.nodes.size(), 0) {
    for (std::size_t v = 0; v < p.nodes.size(); ++v) {
      first_.push_back(node_.size());
      node_.resize(node_.size() + p.nodes[v].cost.size());
      dead_.emplace_back(p.nodes[v].cost.size(), 0);
    }
    for (const auto& e : p.edges) {
      const auto rows = at(e.u_classes), columns = at(e.v_classes);
      const auto u_message = message_.size(), v_message = u_message + rows;
      const auto of_v = table_.size(), of_u = of_v + rows * columns;
      message_.resize(v_message + columns, 0);
      table_.resize(of_u + rows * columns);
      tables_.push_back({of_v, of_u, u_message, v_message});
      // A self edge would be its own neighbour; reductions fold them before any bound is asked for.
      links_[at(e.u)].push_back(
          {at(e.v), of_u, u_message, v_message, rows, columns, &e.u_class, &e.v_class, e.v < e.u});
      links_[at(e.v)].push_back(
          {at(e.u), of_v, v_message, u_message, columns, rows, &e.v_class, &e.u_class, e.u < e.v});
    }
    closed_.assign(message_.size(), 0);
    for (const auto& around : links_) {
      const auto earlier = static_cast<std::size_t>(
          std::count_if(around.begin(), around.end(), [](const link& l) { return l.earlier; }));
      share_.push_back(1.0 / static_cast<double>(std::max<std::size_t>({earlier, around.size() - earlier, 1})));
    }
  }

  /// Works on these prices from here on; messages are kept, so prices near the last ones start well.
  void set(const step_prices& prices) {
    base_ = prices.base(p_);
    for (std::size_t v = 0; v < dead_.size(); ++v) {
      prices.of(p_.nodes[v].cost, p_.nodes[v].uses, node_.data() + first_[v]);
      for (std::size_t s = 0; s < dead_[v].size(); ++s)
        if (dead_[v][s]) node_[first_[v] + s] = infinity;
    }
    bool tables_change = false;
    for (std::size_t i = 0; i < p_.edges.size(); ++i) {
      const auto& e = p_.edges[i];
      const auto& t = tables_[i];
      if (filled_ && e.uses.empty() && prices.cost() == last_cost_price_) continue;
      tables_change = true;
      prices.of(e.cost, e.uses, table_.data() + t.of_v);
      const auto columns = at(e.v_classes), rows = at(e.u_classes);
      for (std::size_t a = 0; a < rows; ++a)
        for (std::size_t b = 0; b < columns; ++b) {
          auto& entry = table_[t.of_v + a * columns + b];
          if (closed_[t.u_message + a] || closed_[t.v_message + b]) entry = infinity;
          table_[t.of_u + b * rows + a] = entry;
        }
    }
    last_cost_price_ = prices.cost();
    filled_ = true;
    close_classes();
    // The bound is the sum of node minima only while no edge's entry is below 0: one sweep back restores that.
    if (tables_change) return sweep(false, infinity);
    for (std::size_t v = 0; v < links_.size(); ++v) least_[v] = least_of(v);
  }

  /// One pass along the order and one back. Strategies that cannot be in a choice below `cutoff` are taken out.
  void iterate(double cutoff = infinity) {
    sweep(true, cutoff);
    sweep(false, cutoff);
  }

  /// Infinity once some node has no strategy left: no choice is below the cutoffs given.
  double bound() const {
    double sum = base_;
    for (double least : least_) sum += least;
    return sum;
  }

  /// What the last pass would choose, node by node; -1 from where it found that nothing is left.
  const std::vector<int>& choice() const { return choice_; }
  bool chose_all() const { return std::find(choice_.begin(), choice_.end(), -1) == choice_.end(); }
  /// dead()[v][s] is set for strategies taken out.
  const std::vector<std::vector<char>>& dead() const { return dead_; }

  /// A choice made node by node along the order, as the last pass back prepared it, with what the nodes before have
  /// really chosen and what the messages say of those behind: at each node the strategies are offered to `accept(node,
  /// strategy)`, best first, until one is taken. Empty where a node finds none.
  template <class Accept>
  std::vector<int> choose(Accept accept) const {
    const auto n = links_.size();
    std::vector<int> choice(n, -1);
    std::vector<double> given;
    std::vector<int> ranked;
    for (std::size_t v = 0; v < n; ++v) {
      const auto k = dead_[v].size();
      given.assign(node_.begin() + static_cast<std::ptrdiff_t>(first_[v]),
                   node_.begin() + static_cast<std::ptrdiff_t>(first_[v] + k));
      for (const auto& l : links_[v]) {
        const double* row = l.earlier
                                ? table_.data() + l.table + at((*l.other_class)[at(choice[l.other])]) * l.my_classes
                                : message_.data() + l.mine;
        for (std::size_t s = 0; s < k; ++s) given[s] += row[at((*l.my_class)[s])];
      }
      ranked.clear();
      for (std::size_t s = 0; s < k; ++s)
        if (given[s] < infinity) ranked.push_back(static_cast<int>(s));
      std::sort(ranked.begin(), ranked.end(),
                [&](int a, int b) { return std::pair(given[at(a)], a) < std::pair(given[at(b)], b); });
      for (int s : ranked)
        if (accept(v, s)) {
          choice[v] = s;
          break;
        }
      if (choice[v] < 0) return {};
    }
    return choice;
  }

  /// A node's part of the bound.
  double least(std::size_t v) const { return least_[v]; }
  /// What an edge's messages add to its ends, by class. The edge's entries less both messages are at least 0.
  std::span<const double> message_to_u(std::size_t edge) const {
    return {message_.data() + tables_[edge].u_message, at(p_.edges[edge].u_classes)};
  }
  std::span<const double> message_to_v(std::size_t edge) const {
    return {message_.data() + tables_[edge].v_message, at(p_.edges[edge].v_classes)};
  }

  /// The priced sum with its costs where the messages moved them: every choice has the same total.
  resource reparametrised() const {
    resource out;
    out.base = base_;
    for (std::size_t v = 0; v < dead_.size(); ++v) {
      const auto begin = node_.begin() + static_cast<std::ptrdiff_t>(first_[v]);
      out.node.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(dead_[v].size()));
      for (const auto& l : links_[v])
        for (std::size_t s = 0; s < dead_[v].size(); ++s) out.node[v][s] += message_[l.mine + at((*l.my_class)[s])];
    }
    for (std::size_t i = 0; i < p_.edges.size(); ++i) {
      const auto& t = tables_[i];
      const auto columns = at(p_.edges[i].v_classes), rows = at(p_.edges[i].u_classes);
      std::vector<double> table(rows * columns);
      for (std::size_t a = 0; a < rows; ++a)
        for (std::size_t b = 0; b < columns; ++b)
          table[a * columns + b] =
              table_[t.of_v + a * columns + b] - message_[t.u_message + a] - message_[t.v_message + b];
      out.edge.push_back(std::move(table));
    }
    return out;
  }

 private:
  /// An edge seen from one of its nodes: `table` has a row for each class of the other end.
  struct link {
    std::size_t other, table, mine, theirs;  // node; offsets of the table and of both messages
    std::size_t my_classes, other_classes;
    const std::vector<int>*my_class, *other_class;
    bool earlier;  // the other end comes earlier in the order
  };
  struct edge_place {
    std::size_t of_v, of_u, u_message, v_message;
  };

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  /// Forbids the pairs of classes that have no strategy left.
  void close_classes() {
    for (std::size_t v = 0; v < links_.size(); ++v)
      for (const auto& l : links_[v]) {
        open_.assign(l.my_classes, 0);
        for (std::size_t s = 0; s < dead_[v].size(); ++s)
          if (node_[first_[v] + s] < infinity) open_[at((*l.my_class)[s])] = 1;
        for (std::size_t c = 0; c < l.my_classes; ++c) {
          if (open_[c] || closed_[l.mine + c]) continue;
          closed_[l.mine + c] = 1;
          const auto& around = links_[l.other];
          const auto& seen =
              *std::find_if(around.begin(), around.end(), [&](const link& o) { return o.mine == l.theirs; });
          for (std::size_t o = 0; o < l.other_classes; ++o) {
            table_[l.table + o * l.my_classes + c] = infinity;
            table_[seen.table + c * l.other_classes + o] = infinity;
          }
        }
      }
  }

  /// Sets this node's message of an edge to the least that the edge adds for each of its classes.
  void collect(const link& l) {
    double* mine = message_.data() + l.mine;
    const double* theirs = message_.data() + l.theirs;
    std::fill(mine, mine + l.my_classes, infinity);
    for (std::size_t o = 0; o < l.other_classes; ++o) {
      const double* row = table_.data() + l.table + o * l.my_classes;
      const double given = theirs[o];
      for (std::size_t c = 0; c < l.my_classes; ++c) {
        const double sum = row[c] - given;
        mine[c] = sum < mine[c] ? sum : mine[c];
      }
    }
  }

  void sweep(bool forward, double cutoff) {
    const auto n = links_.size();
    choice_.assign(n, -1);
    bool closes = false;
    double bound_now = bound();
    for (std::size_t i = 0; i < n; ++i) {
      const auto v = forward ? i : n - 1 - i;
      double* own = node_.data() + first_[v];
      const auto k = dead_[v].size();
      total_.assign(own, own + k);  // with all messages: cost as seen from here
      given_.assign(own, own + k);  // with what the nodes already passed have really chosen
      for (const auto& l : links_[v]) {
        const bool passed = l.earlier == forward;
        if (passed) collect(l);
        const double* mine = message_.data() + l.mine;
        const int* my_class = l.my_class->data();
        const double* row =
            passed ? table_.data() + l.table + at((*l.other_class)[at(choice_[l.other])]) * l.my_classes : mine;
        for (std::size_t s = 0; s < k; ++s) {
          total_[s] += mine[my_class[s]];
          given_[s] += row[my_class[s]];
        }
      }
      const double least = *std::min_element(total_.begin(), total_.end());
      bound_now += least - least_[v];
      least_[v] = least;
      if (!(least < infinity)) return;
      // Forbidden pairs may leave no strategy that suits the choices before; then the bound's favourite stands.
      const auto best = std::min_element(given_.begin(), given_.end());
      choice_[v] = static_cast<int>(*best < infinity ? best - given_.begin()
                                                     : std::min_element(total_.begin(), total_.end()) - total_.begin());
      const double others = bound_now - least;
      bool alive = false;
      for (std::size_t s = 0; s < k; ++s) {
        if (dead_[v][s]) continue;
        if (total_[s] + others <= cutoff) {
          alive = alive || total_[s] < infinity;
          continue;
        }
        dead_[v][s] = 1;
        own[s] = total_[s] = infinity;
        closes = true;
      }
      // A cutoff below the bound leaves nothing.
      if (!alive) {
        least_[v] = infinity;
        return;
      }
      for (const auto& l : links_[v]) {
        double* mine = message_.data() + l.mine;
        const int* my_class = l.my_class->data();
        if (l.earlier == forward) {
          for (std::size_t c = 0; c < l.my_classes; ++c)
            if (!(mine[c] < infinity)) mine[c] = 0;
          continue;
        }
        spread_.assign(l.my_classes, infinity);
        for (std::size_t s = 0; s < k; ++s) {
          auto& s_least = spread_[at(my_class[s])];
          s_least = total_[s] < s_least ? total_[s] : s_least;
        }
        for (double& s_least : spread_) s_least = s_least < infinity ? share_[v] * (s_least - least) : 0;
        for (std::size_t c = 0; c < l.my_classes; ++c) mine[c] -= spread_[c];
      }
      const double left = least_of(v);
      bound_now += left - least_[v];
      least_[v] = left;
    }
    if (closes) close_classes();
  }

  /// The least that node v costs with its messages.
  double least_of(std::size_t v) {
    const double* own = node_.data() + first_[v];
    given_.assign(own, own + dead_[v].size());
    for (const auto& l : links_[v]) {
      const double* mine = message_.data() + l.mine;
      for (std::size_t s = 0; s < given_.size(); ++s) given_[s] += mine[(*l.my_class)[s]];
    }
    return *std::min_element(given_.begin(), given_.end());
  }

  const problem& p_;
  std::vector<std::vector<link>> links_;
  std::vector<double> least_, share_;
  std::vector<std::size_t> first_;  // of each node in node_
  std::vector<double> node_, table_, message_;
  std::vector<edge_place> tables_;
  std::vector<char> closed_;  // by class, beside message_: no strategy is left
  std::vector<std::vector<char>> dead_;
  std::vector<int> choice_;
  std::vector<double> total_, given_, spread_;
  std::vector<char> open_;
  double base_ = 0, last_cost_price_ = 0;
  bool filled_ = false;
};

}  // namespace mmr::solve
