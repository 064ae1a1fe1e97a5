// Every buffer of a training step under given strategies: tensors, the copies that resharding makes, workspaces. This one
// list is what the program charges, what the arena lays out and what the executor uses.
#pragma once

#include <mmr/graph/liveness.hpp>
#include <mmr/mesh/reshard.hpp>
#include <mmr/plan/strategy.hpp>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

namespace mmr {

inline std::vector<std::int64_t> extents_of(const tensor_type& t) {
  std::vector<std::int64_t> n;
  for (const auto& d : t.dims) n.push_back(d.extent);
  return n;
}
inline std::vector<std::string> axes_of(const tensor_type& t) {
  std::vector<std::string> n;
  for (const auto& d : t.dims) n.push_back(d.axis);
  return n;
}

/// Graph, mesh and what follows from them alone; shared by all that plans or runs.
struct setting {
  setting(const graph& graph_, const mesh& mesh_) : g(graph_), m(mesh_), live(graph_), routes(m) {
    m.check();
    for (tensor_id t = 0; t < g.tensors(); ++t) extents.push_back(extents_of(g.tensor_of(t).type));
  }
  setting(const setting&) = delete;

  const graph& g;
  const mesh m;
  const liveness live;
  router_table routes;
  std::vector<std::vector<std::int64_t>> extents;  ///< of each tensor

  std::int64_t element_bytes(tensor_id t) const { return static_cast<std::int64_t>(size_of(g.tensor_of(t).type.element)); }
  std::int64_t bytes(tensor_id t, const placement& p, int rank) const {
    return element_bytes(t) * local_count(m, extents[static_cast<std::size_t>(t)], p, rank);
  }
  /// Bytes of workspace of an operator's kernel.
  std::int64_t workspace(const op_info& op, const strategy& s, int rank) const {
    const bool known = op.rules && s.runs() && m.device.cpu && op.element != dtype::bf16;
    return known ? op.rules->workspace(op.element, op.loops, local_ranges(op, m, s, rank)) : 0;
  }
  /// The resharding of tensor t from one placement to another.
  const resharding& find_route(tensor_id t, const placement& from, const placement& to) {
    return router_of(t).find(from, to);
  }
  router& router_of(tensor_id t) { return routes.get(extents[static_cast<std::size_t>(t)], element_bytes(t)); }
  /// Placement of a tensor that operator `o` makes under strategy `s`.
  placement made_placement(tensor_id t, const strategy& s) const {
    const auto& info = g.tensor_of(t);
    const auto& op = g.op(info.producer);
    const auto r = static_cast<std::size_t>(info.result);
    const bool is_state = r < op.state.size() && op.state[r] == t;
    return is_state ? state_placement(op, r, s) : result_placement(op, r, s);
  }
};

/// Sums what is live at each step.
class live_sum {
 public:
  explicit live_sum(int steps) : change_(static_cast<std::size_t>(steps) + 1, 0) {}
  void add(lifetime life, std::int64_t bytes) {
    if (life.begin >= life.end) return;
    change_[static_cast<std::size_t>(life.begin)] += bytes;
    change_[static_cast<std::size_t>(life.end)] -= bytes;
  }
  /// The sum of each step.
  std::vector<std::int64_t> at_steps() const {
    std::vector<std::int64_t> sum(change_.size() - 1);
    std::partial_sum(change_.begin(), change_.end() - 1, sum.begin());
    return sum;
  }
  std::int64_t most() const {
    std::int64_t now = 0, most = 0;
    for (auto change : change_) most = std::max(most, now += change);
    return most;
  }

 private:
  std::vector<std::int64_t> change_;  // from the step before
};

/// One piece of the arena.
struct buffer {
  std::int64_t bytes = 0;
  lifetime life;
  tensor_class kind = tensor_class::activation;
  tensor_id tensor = -1;      ///< the tensor (or the tensor it is a copy of); -1: workspace
  op_id op = -1;              ///< operator that makes or needs it
  bool transient = false;     ///< copy made by resharding, or workspace
};

/// A resharding to run: step i reads `source` (i == 0) or fill[i-1], and writes fill[i].
struct transfer {
  tensor_id tensor = -1;
  const resharding* path = nullptr;
  int source = -1;            ///< buffer
  std::vector<int> fill;      ///< buffer of each step
  int result() const { return fill.empty() ? source : fill.back(); }
};

/// An operator to run: reshard its operands, call its kernel, write a new parameter back. An again-operator that does not
/// run has results only.
struct instruction {
  op_id op = -1;
  bool runs = true;
  std::vector<transfer> operands;
  std::vector<int> out, state;  ///< buffers
  int workspace = -1;
  transfer write_back;          ///< path is null unless it updates a parameter
};

/// Why strategies do not fit together, where again-operators do not run; empty where they do.
inline std::string contradiction(const setting& s, const std::vector<strategy>& chosen) {
  const auto of = [&](op_id o) -> const strategy& { return chosen[static_cast<std::size_t>(o)]; };
  for (auto o : s.live.schedule) {
    const auto& op = s.g.op(o);
    if (of(o).runs())
      for (auto t : op.in) {
        const auto& info = s.g.tensor_of(t);
        if (!is_there(s.g.op(info.producer), static_cast<std::size_t>(info.result), of(info.producer)))
          return "operator '" + op.name + "' reads '" + info.name + "', which is neither kept nor made again";
      }
    if (of(o).kind == presence::keep &&
        (op.again < 0 || of(op.again).kind == presence::absent || kept_placements(op, of(o)) != kept_placements(op, of(op.again))))
      return "operator '" + op.name + "' keeps what is not there in this placement";
  }
  return "";
}

/// What one rank holds and does in a step under the strategies `chosen` (one an operator).
struct program {
  std::vector<buffer> buffers;
  std::vector<int> buffer_of;              ///< of each tensor
  std::vector<instruction> instructions;   ///< one a step of the schedule
  int steps = 0;

  /// Fails where an operator reads what its maker neither keeps nor makes.
  program(setting& s, const std::vector<strategy>& chosen, int rank) : steps(s.live.steps()) {
    if (const auto why = contradiction(s, chosen); !why.empty()) fail(why);
    buffer_of.assign(static_cast<std::size_t>(s.g.tensors()), -1);
    // Tensors that are there before the step, accumulators, and optimizer state.
    for (tensor_id t = 0; t < s.g.tensors(); ++t) {
      const auto& info = s.g.tensor_of(t);
      if (info.persistent || s.g.op(info.producer).accumulates) own(s, t, chosen, rank);
    }
    for (int step = 0; step < steps; ++step) instructions.push_back(build(s, chosen, rank, step));
  }

  /// Bytes live at each step.
  std::vector<std::int64_t> live_bytes() const {
    live_sum sum(steps);
    for (const auto& b : buffers) sum.add(b.life, b.bytes);
    return sum.at_steps();
  }

 private:
  int add(buffer b) {
    buffers.push_back(b);
    return static_cast<int>(buffers.size()) - 1;
  }
  void own(setting& s, tensor_id t, const std::vector<strategy>& chosen, int rank) {
    const auto& info = s.g.tensor_of(t);
    const auto place = s.made_placement(t, chosen[static_cast<std::size_t>(info.producer)]);
    buffer_of[static_cast<std::size_t>(t)] =
        add({s.bytes(t, place, rank), s.live.life[static_cast<std::size_t>(t)], info.kind, t, info.producer, false});
  }

  transfer move(setting& s, tensor_id t, const resharding& path, int source, bool dying, int step, op_id op, int rank, int last) {
    transfer x{t, &path, source, {}};
    for (std::size_t i = 0; i < path.steps.size(); ++i) {
      const auto& st = path.steps[i];
      if (i + 1 == path.steps.size() && last >= 0)
        x.fill.push_back(last);
      else if (i == 0 && dying && resharding::in_place(st))
        x.fill.push_back(source);
      else
        x.fill.push_back(add({s.bytes(t, st.after, rank), {step, step + 1}, s.g.tensor_of(t).kind, t, op, true}));
    }
    return x;
  }

  instruction build(setting& s, const std::vector<strategy>& chosen, int rank, int step) {
    const auto id = s.live.schedule[static_cast<std::size_t>(step)];
    const auto& op = s.g.op(id);
    const auto& mine = chosen[static_cast<std::size_t>(id)];
    instruction x;
    x.op = id;
    x.runs = mine.runs();
    if (mine.kind == presence::keep) keep(s, op);
    if (!x.runs) return x;
    for (std::size_t i = 0; i < op.in.size(); ++i) {
      const auto t = op.in[i];
      const auto from = s.made_placement(t, chosen[static_cast<std::size_t>(s.g.tensor_of(t).producer)]);
      const auto& path = s.find_route(t, from, operand_placement(op, i, mine));
      x.operands.push_back(move(s, t, path, buffer_of[static_cast<std::size_t>(t)],
                                s.live.dying[static_cast<std::size_t>(id)][i], step, id, rank, -1));
    }
    const auto bytes = s.workspace(op, mine, rank);
    if (bytes > 0) x.workspace = add({bytes, {step, step + 1}, tensor_class::activation, -1, id, true});
    for (auto t : op.out) {
      auto& mine_buffer = buffer_of[static_cast<std::size_t>(t)];
      const int reused = s.live.reused_operand[static_cast<std::size_t>(t)];
      if (reused >= 0) {
        mine_buffer = x.operands[static_cast<std::size_t>(reused)].result();
        if (op.writes_back < 0) take_over(s, mine_buffer, t, id);
      } else if (mine_buffer < 0) {
        own(s, t, chosen, rank);
      }
      x.out.push_back(mine_buffer);
    }
    for (auto t : op.state) x.state.push_back(buffer_of[static_cast<std::size_t>(t)]);
    if (op.writes_back >= 0) {
      const auto t = op.writes_back;
      const auto to = s.made_placement(t, chosen[static_cast<std::size_t>(s.g.tensor_of(t).producer)]);
      const auto& path = s.find_route(t, result_placement(op, 0, mine), to);
      x.write_back = move(s, t, path, x.out[0], false, step, id, rank, buffer_of[static_cast<std::size_t>(t)]);
    }
    return x;
  }

  // Results of the first run stay in their buffers until the last that reads them as results of this operator.
  void keep(setting& s, const op_info& op) {
    for (std::size_t r = 0; r < op.out.size(); ++r) {
      if (!op.keepable[r]) continue;
      const auto b = buffer_of[static_cast<std::size_t>(s.g.op(op.again).out[r])];
      buffer_of[static_cast<std::size_t>(op.out[r])] = b;
      const auto& more = s.live.kept[static_cast<std::size_t>(op.out[r])];
      auto& end = buffers[static_cast<std::size_t>(b)].life.end;
      if (more.begin < more.end) end = std::max(end, more.end);
    }
  }

  // The result goes on living in the buffer of its operand (or of the copy that resharding made of it).
  void take_over(setting& s, int b, tensor_id t, op_id op) {
    auto& taken = buffers[static_cast<std::size_t>(b)];
    const auto& life = s.live.life[static_cast<std::size_t>(t)];
    taken.life.end = std::max(taken.life.end, life.end);
    taken.transient = false;
    heirs.push_back({b, t, op});
  }

 public:
  /// Results that took over a buffer: from the step of `op` on, the buffer is tensor `t`.
  struct heir {
    int buffer;
    tensor_id tensor;
    op_id op;
  };
  std::vector<heir> heirs;
};

}  // namespace mmr
