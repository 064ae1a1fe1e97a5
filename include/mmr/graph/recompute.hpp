// Recomputation as a choice: gives each repetition of a block its forward operators once more, right before its backward
// pass, which reads their results instead. Such an operator either runs again, or stands for the result that was kept.
#pragma once

#include <mmr/graph/graph.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace mmr {

namespace detail {

/// Adds again-operators to a finished training step. An operator of a repetition is cloned if a backward operator of that
/// repetition reads its results, or if a clone does. Clones read clones; parameters, inputs, and whatever backward reads in
/// any case, they read as it is. What only they need of another repetition they read through a hold: a clone without a
/// kernel, which keeps the tensor or is absent.
class recomputation {
 public:
  explicit recomputation(const graph& g) : g_(g), late_readers_(static_cast<std::size_t>(g.tensors())) {
    for (op_id o = 0; o < g.ops(); ++o)
      if (!forward(o))
        for (auto t : g.op(o).in) late_readers_[static_cast<std::size_t>(t)].push_back(o);
  }

  graph run() {
    while (find_copies()) {
    }
    graph made;
    made.microbatches = g_.microbatches;
    made.loss = g_.loss;
    // Tensors keep their numbers: handles of the declaration stay valid.
    for (tensor_id t = 0; t < g_.tensors(); ++t) made.add_tensor(g_.tensor_of(t));
    std::set<repetition> begun;
    for (op_id o = 0; o < g_.ops(); ++o) {
      op_info info = g_.op(o);
      if (backward(o) && copies_.contains(where(o))) {
        if (begun.insert(where(o)).second) add_copies(made, where(o));
        const auto& again = again_[where(o)];
        for (auto& t : info.in)
          if (const auto at = again.find(t); at != again.end()) t = at->second;
      }
      new_id_.push_back(made.add_op(std::move(info)));
    }
    return made;
  }

 private:
  using repetition = std::pair<std::string, int>;
  /// What a repetition gets, by the operator in the graph as it was.
  struct copies {
    std::set<op_id> clones, holds;
  };

  repetition where(op_id o) const { return {g_.op(o).where.block, g_.op(o).where.repetition}; }
  bool forward(op_id o) const {
    const auto& op = g_.op(o);
    return op.when == phase::source || (op.when == phase::microbatch && !op.out.empty() && g_.tensor_of(op.out[0]).forward);
  }
  bool backward(op_id o) const { return !forward(o) && g_.op(o).when == phase::microbatch && !g_.op(o).where.block.empty(); }
  op_id maker(tensor_id t) const { return g_.tensor_of(t).producer; }
  const std::vector<op_id>& late_readers(tensor_id t) const { return late_readers_[static_cast<std::size_t>(t)]; }
  bool read_late(tensor_id t, const repetition& r) const {
    const auto& all = late_readers(t);
    return std::any_of(all.begin(), all.end(), [&](op_id o) { return backward(o) && where(o) == r; });
  }

  /// Results that backward reads elsewhere too stay as they are. So do decisions: computed under other splits, a last bit
  /// could turn them.
  bool clonable(op_id o) const {
    const auto& op = g_.op(o);
    if (op.when != phase::microbatch || op.where.block.empty() || !op.state.empty() || !forward(o) || left_.contains(o)) return false;
    for (auto t : op.out) {
      if (g_.tensor_of(t).type.element == dtype::i32) return false;
      for (auto reader : late_readers(t))
        if (!backward(reader) || where(reader) != where(o)) return false;
    }
    return true;
  }
  bool keepable(op_id o) const {
    const auto& out = g_.op(o).out;
    return std::any_of(out.begin(), out.end(), [&](tensor_id t) { return !late_readers(t).empty(); });
  }

  // True where an operator must be left without a clone after all, so that everything is to be found anew.
  bool find_copies() {
    copies_.clear();
    for (op_id o = 0; o < g_.ops(); ++o)
      if (clonable(o) && keepable(o)) need(o);
    for (const auto& [r, c] : copies_)
      for (op_id held : c.holds)
        // Its own repetition and this one would both keep it, and its bytes would count twice.
        if (clonable(held) && keepable(held)) return left_.insert(held).second;
    return false;
  }

  void need(op_id o) {
    auto& mine = copies_[where(o)];
    if (!mine.clones.insert(o).second) return;
    for (auto t : g_.op(o).in) {
      const auto from = maker(t);
      if (g_.op(from).when == phase::source) continue;
      if (clonable(from) && where(from) == where(o))
        need(from);
      else if (!read_late(t, where(o)))
        mine.holds.insert(from);
    }
  }

  void add_copies(graph& made, const repetition& r) {
    // Clones run in forward order, and nothing that they read comes later.
    for (op_id o : copies_[r].holds) copy(made, r, o, false);
    for (op_id o : copies_[r].clones) copy(made, r, o, true);
  }

  void copy(graph& made, const repetition& r, op_id o, bool runs) {
    op_info info = g_.op(o);
    auto& again = again_[r];
    info.again = new_id_[static_cast<std::size_t>(o)];
    info.name += runs ? ".again" : ".held";
    info.where = {r.first, r.second, (runs ? "again|" : "held|" + info.where.block + '|') + info.where.position};
    if (runs) {
      for (auto& t : info.in)
        if (const auto at = again.find(t); at != again.end()) t = at->second;
    } else {
      // Of several holds each keeps on what the one before it has kept.
      if (const auto before = last_hold_.find(o); before != last_hold_.end()) info.again = before->second;
      info.rules = nullptr;
      info.in.clear();
      std::fill(info.loops.reuse.begin(), info.loops.reuse.end(), -1);
      while (!held_positions_[r].insert(info.where.position).second) info.where.position += '+';
    }
    for (auto& t : info.out) {
      info.keepable.push_back(!runs || !late_readers(t).empty());
      tensor_info result = g_.tensor_of(t);
      result.name += runs ? ".again" : ".held";
      result.forward = false;
      t = again[t] = made.add_tensor(std::move(result));
    }
    const auto id = made.add_op(std::move(info));
    if (!runs) last_hold_[o] = id;
  }

  const graph& g_;
  std::vector<std::vector<op_id>> late_readers_;  // operators of each tensor that run after the forward pass
  std::set<op_id> left_;
  std::map<repetition, copies> copies_;
  // While the new graph is made:
  std::vector<op_id> new_id_;
  std::map<repetition, std::map<tensor_id, tensor_id>> again_;  // from a tensor to the result that stands for it
  std::map<op_id, op_id> last_hold_;
  std::map<repetition, std::set<std::string>> held_positions_;
};

}  // namespace detail

/// The same training step with the choice, for every operator in a repetition of a block whose results backward reads, to
/// keep them or to make them again. Tensors keep their numbers; operators do not.
inline graph with_recomputation(const graph& g) { return detail::recomputation(g).run(); }

}  // namespace mmr
