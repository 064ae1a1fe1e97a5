// Live intervals of tensors in the schedule, and which results take over the buffer of a dying operand. Both depend on the
// graph alone, so that the planner, the arena and the executor agree on them whatever strategies are chosen.
#pragma once

#include <mmr/graph/graph.hpp>

#include <algorithm>
#include <vector>

namespace mmr {

/// Steps [begin, end) of the schedule.
struct lifetime {
  int begin = 0, end = 0;
};

struct liveness {
  std::vector<op_id> schedule;
  std::vector<int> position;            ///< of each operator in the schedule; -1 for sources
  std::vector<lifetime> life;           ///< of each tensor
  std::vector<int> reused_operand;      ///< of each tensor: operand of its producer whose buffer it takes over, or -1
  std::vector<std::vector<bool>> dying; ///< of each operator and operand: its buffer may be overwritten here
  std::vector<lifetime> kept;           ///< of each result of an again-operator: what keeping adds to the first one's life
  std::vector<tensor_id> keeper;        ///< of each tensor: the result of an again-operator that may keep it, or -1

  int steps() const { return static_cast<int>(schedule.size()); }

  explicit liveness(const graph& g) {
    schedule = g.schedule();
    position.assign(static_cast<std::size_t>(g.ops()), -1);
    for (std::size_t i = 0; i < schedule.size(); ++i) at(position, schedule[i]) = static_cast<int>(i);
    std::vector<int> last_use(static_cast<std::size_t>(g.tensors()), -1);
    for (auto o : schedule)
      for (auto t : g.op(o).in) at(last_use, t) = at(position, o);
    keeper.assign(static_cast<std::size_t>(g.tensors()), -1);
    for (auto o = schedule.rbegin(); o != schedule.rend(); ++o)  // what a hold keeps may be kept by the next one only
      for (std::size_t r = 0; r < g.op(*o).keepable.size(); ++r)
        if (const auto t = g.op(*o).out[r]; g.op(*o).keepable[r] && (at(last_use, t) >= 0 || at(keeper, t) >= 0))
          at(keeper, g.op(g.op(*o).again).out[r]) = t;
    dying.resize(static_cast<std::size_t>(g.ops()));
    for (auto o : schedule)
      for (auto t : g.op(o).in) {
        const auto& in = g.op(o).in;
        // An accumulator is free once the updates have read it: the next step begins by overwriting it.
        // What may be kept for backward is not overwritten before, whether it is kept or not.
        // Nor is what may be kept under the result, while the first one or a hold of it is still read.
        bool first_read = false;
        for (auto k = t; g.op(g.tensor_of(k).producer).again >= 0;) {
          const auto& maker = g.op(g.tensor_of(k).producer);
          k = g.op(maker.again).out[static_cast<std::size_t>(g.tensor_of(k).result)];
          first_read = first_read || at(last_use, k) >= at(position, o);
        }
        const bool stays = g.tensor_of(t).persistent || at(keeper, t) >= 0 || first_read ||
                           (g.op(g.tensor_of(t).producer).accumulates && g.op(o).when == phase::microbatch);
        at(dying, o).push_back(!stays && at(last_use, t) == at(position, o) && std::count(in.begin(), in.end(), t) == 1);
      }
    int last_of_microbatch = -1;
    for (auto o : schedule)
      if (g.op(o).when == phase::microbatch) last_of_microbatch = at(position, o);
    life.resize(static_cast<std::size_t>(g.tensors()));
    reused_operand.assign(static_cast<std::size_t>(g.tensors()), -1);
    for (tensor_id t = 0; t < g.tensors(); ++t) {
      const auto& info = g.tensor_of(t);
      const auto& op = g.op(info.producer);
      const int made = at(position, info.producer);
      if (info.persistent && op.when == phase::source) {
        at(life, t) = {0, steps()};
        continue;
      }
      const bool is_state = std::find(op.state.begin(), op.state.end(), t) != op.state.end();
      if (is_state || info.persistent) {
        at(life, t) = {0, steps()};
        continue;
      }
      // The new value of a parameter lives in the parameter's own buffer, or in the copy that the update took of it.
      const int reuse = op.loops.reuse[static_cast<std::size_t>(info.result)];
      const bool takes = reuse >= 0 && (op.writes_back >= 0 || at(dying, info.producer)[static_cast<std::size_t>(reuse)]);
      if (takes) at(reused_operand, t) = reuse;
      const int end = std::max(at(last_use, t), made) + 1;
      // The next microbatch adds to what this one leaves, whoever reads it last.
      at(life, t) = op.accumulates ? lifetime{0, std::max(end, last_of_microbatch + 1)} : lifetime{made + (takes ? 1 : 0), end};
    }
    kept.resize(static_cast<std::size_t>(g.tensors()));
    for (auto o : schedule)
      for (std::size_t r = 0; r < g.op(o).keepable.size(); ++r) {
        const auto& first = g.op(g.op(o).again);
        const auto t = g.op(o).out[r];
        // What a hold keeps it takes from where the hold before it ends.
        const int begin = first.again >= 0 ? at(kept, first.out[r]).end : at(life, first.out[r]).end;
        at(kept, t) = {begin, std::max(begin, at(last_use, t) + 1)};
      }
  }

 private:
  template <class V>
  static auto at(V& v, int i) -> decltype(v[0]) {
    return v[static_cast<std::size_t>(i)];
  }
};

}  // namespace mmr
