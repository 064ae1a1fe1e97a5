// Lower bounds by eliminating nodes one after another (bucket elimination): exact where the graph is narrow, and still
// a bound (mini-buckets, Dechter and Rish 2003) where a table would grow beyond its limit.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "mmr/solve/problem.hpp"
#include "mmr/solve/resource.hpp"

namespace mmr::solve {

/// An order of the nodes in which each one, met after its predecessors, touches few of them: the reverse of a greedy
/// elimination order (least weight of the table made), laid out depth first so that what hangs together comes together.
inline std::vector<int> narrow_order(const problem& p) {
  const auto n = p.nodes.size();
  std::vector<std::set<int>> neighbours(n);
  for (const auto& e : p.edges) {
    neighbours[static_cast<std::size_t>(e.u)].insert(e.v);
    neighbours[static_cast<std::size_t>(e.v)].insert(e.u);
  }
  std::vector<double> weight(n);
  for (std::size_t v = 0; v < n; ++v) weight[v] = std::log(static_cast<double>(p.nodes[v].cost.size()) + 0.5);
  std::vector<int> when(n, -1), parent(n, -1), eliminated;
  std::vector<std::vector<int>> separator(n);
  std::vector<double> table(n);
  const auto weigh = [&](std::size_t v) {
    table[v] = weight[v];
    for (int u : neighbours[v]) table[v] += weight[static_cast<std::size_t>(u)];
  };
  for (std::size_t v = 0; v < n; ++v) weigh(v);
  for (std::size_t step = 0; step < n; ++step) {
    std::size_t best = n;
    for (std::size_t v = 0; v < n; ++v)
      if (when[v] < 0 && (best == n || table[v] < table[best])) best = v;
    when[best] = static_cast<int>(step);
    eliminated.push_back(static_cast<int>(best));
    separator[best].assign(neighbours[best].begin(), neighbours[best].end());
    // So wide a table is cut into mini-buckets whatever the order: joining what is around would only take long.
    constexpr std::size_t widest = 100;
    const bool joins = separator[best].size() <= widest;
    for (int u : separator[best]) {
      auto& around = neighbours[static_cast<std::size_t>(u)];
      if (joins) around.insert(separator[best].begin(), separator[best].end());
      around.erase(u);
      around.erase(static_cast<int>(best));
    }
    for (int u : separator[best]) weigh(static_cast<std::size_t>(u));
  }
  std::vector<std::vector<int>> children(n);
  std::vector<int> below(n, 1), roots;
  for (int v : eliminated) {
    const auto i = static_cast<std::size_t>(v);
    for (int u : separator[i])
      if (parent[i] < 0 || when[static_cast<std::size_t>(u)] < when[static_cast<std::size_t>(parent[i])]) parent[i] = u;
    if (parent[i] < 0) {
      roots.push_back(v);
    } else {
      children[static_cast<std::size_t>(parent[i])].push_back(v);
      below[static_cast<std::size_t>(parent[i])] += below[i];
    }
  }
  const auto smaller_first = [&](int a, int b) {
    return std::pair(below[static_cast<std::size_t>(a)], a) < std::pair(below[static_cast<std::size_t>(b)], b);
  };
  std::vector<int> order, stack;
  std::sort(roots.begin(), roots.end(), smaller_first);
  stack.assign(roots.rbegin(), roots.rend());
  while (!stack.empty()) {
    const int v = stack.back();
    stack.pop_back();
    order.push_back(v);
    auto& c = children[static_cast<std::size_t>(v)];
    std::sort(c.begin(), c.end(), smaller_first);
    stack.insert(stack.end(), c.rbegin(), c.rend());
  }
  return order;
}

/// Tables that bound what the nodes not yet chosen will add, for choices made along an order. `bound()` is a lower
/// bound on the resource of every choice; `step(...)` updates it as nodes are chosen, never downwards, and ends at the
/// exact value.
class elimination {
 public:
  /// Lays the tables out; none has more than `most_entries` entries (edge tables aside). `p` must outlive this object.
  elimination(const problem& p, std::vector<int> order, double most_entries)
      : p_(p), order_(std::move(order)), position_(p.nodes.size()), buckets_(p.nodes.size()) {
    for (std::size_t i = 0; i < order_.size(); ++i) position_[at(order_[i])] = i;
    for (std::size_t e = 0; e < p.edges.size(); ++e) {
      const auto& x = p.edges[e];
      factor f;
      f.edge = static_cast<int>(e);
      f.dims = {{x.u, x.u_class, x.u_classes, 0}, {x.v, x.v_class, x.v_classes, 0}};
      place(std::move(f));
    }
    for (std::size_t i = order_.size(); i-- > 0;) {
      auto inputs = buckets_[i].inputs;
      std::stable_sort(inputs.begin(), inputs.end(),
                       [&](std::size_t a, std::size_t b) { return factors_[a].entries() > factors_[b].entries(); });
      auto& parts = buckets_[i].parts;
      parts.push_back({});
      for (std::size_t f : inputs) {
        bool placed = false;
        for (auto& part : parts) {
          auto joined = part.inputs;
          joined.push_back(f);
          double entries = 1;
          for (const auto& d : message_dims(i, joined)) entries *= d.count;
          if (entries > most_entries && !part.inputs.empty()) continue;
          part.inputs = std::move(joined);
          placed = true;
          break;
        }
        if (!placed) parts.push_back({{f}, 0, false});
      }
      exact_ = exact_ && parts.size() == 1;
      for (auto& part : parts) {
        factor message;
        message.dims = message_dims(i, part.inputs);
        part.constant = message.dims.empty();
        if (part.constant) {
          factors_.push_back(std::move(message));
          factors_.back().table.resize(1);
          part.output = factors_.size() - 1;
        } else {
          part.output = place(std::move(message));
        }
      }
    }
  }

  const std::vector<int>& order() const { return order_; }
  bool exact() const { return exact_; }
  double entries() const {
    double sum = 0;
    for (const auto& f : factors_) sum += f.entries();
    return sum;
  }

  /// Entries that filling reads.
  double reads() const {
    double sum = 0;
    for (std::size_t i = 0; i < order_.size(); ++i)
      for (const auto& part : buckets_[i].parts)
        sum += factors_[part.output].entries() *
               static_cast<double>(part.inputs.size() * p_.nodes[at(order_[i])].cost.size());
    return sum;
  }

  /// Fills the tables for `r`; afterwards `bound()` is its lower bound.
  void fill(const resource& r) {
    unary_ = &r.node;
    bound_ = r.base;
    for (auto& f : factors_) {
      if (f.edge < 0) continue;
      const auto& e = p_.edges[at(f.edge)];
      const auto& table = r.edge[at(f.edge)];
      const bool swapped = f.dims[0].node != e.u;
      for (std::size_t i = 0; i < at(e.u_classes); ++i)
        for (std::size_t j = 0; j < at(e.v_classes); ++j)
          f.table[swapped ? j * at(e.u_classes) + i : i * at(e.v_classes) + j] = table[i * at(e.v_classes) + j];
    }
    for (std::size_t i = order_.size(); i-- > 0;)
      for (std::size_t part = 0; part < buckets_[i].parts.size(); ++part) {
        send(i, part);
        const auto& done = buckets_[i].parts[part];
        if (done.constant) bound_ += factors_[done.output].table[0];
      }
  }

  double bound() const { return bound_; }

  /// How the bound changes when the node at place i of the order takes strategy s, the nodes before it having taken
  /// `choice` (by node): `change[s]` for every strategy.
  void step(std::size_t i, const std::vector<int>& choice, std::vector<double>& change) const {
    const int v = order_[i];
    const auto& own = (*unary_)[at(v)];
    change.assign(own.begin(), own.end());
    double promised = 0;
    for (const auto& part : buckets_[i].parts) {
      const auto& message = factors_[part.output];
      std::size_t offset = 0;
      for (const auto& d : message.dims) offset += at(d.index[at(choice[at(d.node)])]) * d.stride;
      promised += message.table[offset];
      for (std::size_t f : part.inputs) {
        const auto& in = factors_[f];
        std::size_t base = 0;
        const dimension* mine = nullptr;
        for (const auto& d : in.dims)
          if (d.node == v)
            mine = &d;
          else
            base += at(d.index[at(choice[at(d.node)])]) * d.stride;
        for (std::size_t s = 0; s < change.size(); ++s) change[s] += in.table[base + at(mine->index[s]) * mine->stride];
      }
    }
    for (double& c : change) c -= promised;
  }

  /// The choice that follows the bound greedily; where `exact()`, a minimum of the resource.
  std::vector<int> decode() const {
    std::vector<int> choice(order_.size(), 0);
    std::vector<double> change;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      step(i, choice, change);
      choice[at(order_[i])] = static_cast<int>(std::min_element(change.begin(), change.end()) - change.begin());
    }
    return choice;
  }

 private:
  struct dimension {
    int node = 0;
    std::vector<int> index;  // strategy of the node -> index along this dimension
    int count = 0;
    std::size_t stride = 0;
  };
  struct factor {
    int edge = -1;
    std::vector<dimension> dims;  // in the order's order: the last node is the fastest
    std::vector<double> table;
    double entries() const {
      double n = 1;
      for (const auto& d : dims) n *= d.count;
      return n;
    }
  };
  struct mini_bucket {
    std::vector<std::size_t> inputs;
    std::size_t output = 0;
    bool constant = false;
  };
  struct bucket {
    std::vector<std::size_t> inputs;
    std::vector<mini_bucket> parts;
  };

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  /// Stores a factor in the bucket of its last node.
  std::size_t place(factor f) {
    std::sort(f.dims.begin(), f.dims.end(),
              [&](const auto& a, const auto& b) { return position_[at(a.node)] < position_[at(b.node)]; });
    std::size_t stride = 1;
    for (std::size_t d = f.dims.size(); d-- > 0;) {
      f.dims[d].stride = stride;
      stride *= at(f.dims[d].count);
    }
    f.table.resize(stride);
    buckets_[position_[at(f.dims.back().node)]].inputs.push_back(factors_.size());
    factors_.push_back(std::move(f));
    return factors_.size() - 1;
  }

  /// The dimensions left when the node at place i is minimised out of these factors: for each other node, strategies
  /// that all of them take alike share an index.
  std::vector<dimension> message_dims(std::size_t i, const std::vector<std::size_t>& inputs) const {
    std::map<std::size_t, dimension> dims;
    for (std::size_t f : inputs)
      for (const auto& d : factors_[f].dims) {
        if (d.node == order_[i]) continue;
        const auto [found, fresh] = dims.try_emplace(position_[at(d.node)], d);
        if (fresh) continue;
        std::map<std::pair<int, int>, int> number;
        auto& mine = found->second;
        for (std::size_t s = 0; s < mine.index.size(); ++s)
          mine.index[s] =
              number.try_emplace({mine.index[s], d.index[s]}, static_cast<int>(number.size())).first->second;
        mine.count = static_cast<int>(number.size());
      }
    std::vector<dimension> out;
    for (auto& [position, d] : dims) out.push_back(std::move(d));
    return out;
  }

  void send(std::size_t i, std::size_t which) {
    const auto& part = buckets_[i].parts[which];
    auto& message = factors_[part.output];
    const int v = order_[i];
    const auto k = p_.nodes[at(v)].cost.size();
    const auto dims = message.dims.size();
    // jump[f][d][r]: how far input f moves when dimension d of the message has index r; own[f][s]: with strategy s of
    // v.
    struct reader {
      const double* table;
      std::vector<std::vector<std::size_t>> jump;
      std::vector<std::size_t> own;
      std::size_t offset = 0;
    };
    std::vector<reader> readers;
    for (std::size_t f : part.inputs) {
      reader r{factors_[f].table.data(), std::vector<std::vector<std::size_t>>(dims), {}, 0};
      for (std::size_t d = 0; d < dims; ++d) r.jump[d].assign(at(message.dims[d].count), 0);
      for (const auto& d : factors_[f].dims) {
        if (d.node == v) {
          for (std::size_t s = 0; s < k; ++s) r.own.push_back(at(d.index[s]) * d.stride);
          continue;
        }
        for (std::size_t m = 0; m < dims; ++m) {
          if (message.dims[m].node != d.node) continue;
          for (std::size_t s = 0; s < d.index.size(); ++s)
            r.jump[m][at(message.dims[m].index[s])] = at(d.index[s]) * d.stride;
        }
      }
      for (std::size_t d = 0; d < dims; ++d) r.offset += r.jump[d][0];
      readers.push_back(std::move(r));
    }
    std::vector<double> own(k, 0.0), sum(k);
    if (which == 0) own = (*unary_)[at(v)];
    std::vector<int> index(dims, 0);
    for (double& entry : message.table) {
      sum = own;
      for (const auto& r : readers) {
        const double* table = r.table + r.offset;
        for (std::size_t s = 0; s < k; ++s) sum[s] += table[r.own[s]];
      }
      entry = *std::min_element(sum.begin(), sum.end());
      for (std::size_t d = dims; d-- > 0;) {
        const auto old = at(index[d]);
        const auto next = old + 1 == at(message.dims[d].count) ? 0 : old + 1;
        for (auto& r : readers) r.offset = r.offset - r.jump[d][old] + r.jump[d][next];
        index[d] = static_cast<int>(next);
        if (next != 0) break;
      }
    }
  }

  const problem& p_;
  std::vector<int> order_;
  std::vector<std::size_t> position_;
  std::vector<factor> factors_;
  std::vector<bucket> buckets_;
  const std::vector<std::vector<double>>* unary_ = nullptr;
  double bound_ = 0;
  bool exact_ = true;
};

}  // namespace mmr::solve
