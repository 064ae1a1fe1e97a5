// How a choice of a reduced problem becomes one of the problem it came from: the reductions, undone last to first.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace mmr::solve {

/// A log of what reductions did to nodes, all named by their numbers in the original problem. Each entry costs memory
/// for one node, however many nodes have been merged before.
class way_back {
 public:
  /// Node v has lost strategies: its strategy i was `kept[i]` before.
  void kept(int v, std::vector<int> kept) { log_.push_back({v, -1, -1, 1, std::move(kept), {}, {}}); }

  /// Node v takes partner[s] whenever u takes s.
  void follows(int v, int u, std::vector<int> partner) { log_.push_back({v, u, -1, 1, std::move(partner), {}, {}}); }

  /// Node v takes best[u_class[s] * columns + w_class[t]] when u takes s and w takes t; w may be -1, with one column.
  void answers(int v, int u, std::vector<int> u_class, int w, std::vector<int> w_class, int columns,
               std::vector<int> best) {
    log_.push_back({v, u, w, columns, std::move(best), std::move(u_class), std::move(w_class)});
  }

  /// Node v has one strategy left and is told apart by nothing any more.
  void decided(int v) { log_.push_back({v, v, -1, 1, {0}, {}, {}}); }

  /// Undoes everything in `choice`, which holds the strategies of all original nodes that are left.
  void undo(std::vector<int>& choice) const {
    const auto at = [](int i) { return static_cast<std::size_t>(i); };
    for (auto e = log_.rbegin(); e != log_.rend(); ++e) {
      auto& mine = choice[at(e->node)];
      if (e->u < 0) {
        mine = e->strategy[at(mine)];
      } else if (e->u == e->node) {
        mine = 0;
      } else if (e->u_class.empty()) {
        mine = e->strategy[at(choice[at(e->u)])];
      } else {
        const auto column = e->w < 0 ? 0 : at(e->w_class[at(choice[at(e->w)])]);
        mine = e->strategy[at(e->u_class[at(choice[at(e->u)])]) * at(e->columns) + column];
      }
    }
  }

 private:
  struct entry {
    int node, u, w, columns;
    std::vector<int> strategy, u_class, w_class;
  };
  std::vector<entry> log_;
};

}  // namespace mmr::solve
