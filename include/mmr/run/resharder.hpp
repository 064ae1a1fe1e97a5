// Runs the steps of a resharding on a communicator: turns boxes of placements into the blocks that collectives move.
#pragma once

#include <mmr/plan/buffers.hpp>
#include <mmr/run/communicator.hpp>

#include <cstring>
#include <vector>

namespace mmr {

/// Sub-groups of a communicator along the mesh axes. A group's rank is the coordinate along its axis.
template <communicator C>
class axis_groups {
 public:
  axis_groups(const mesh& m, C& world) {
    if (world.size() != m.rank_count())
      fail("the mesh ", m.text(), " has ", m.rank_count(), " ranks but ", world.size(), " are running; make them equal");
    for (int a = 0; a < m.count(); ++a) {
      // Ranks of one group agree in all coordinates but this one.
      int color = 0;
      for (int b = 0; b < m.count(); ++b)
        if (b != a) color = color * m.axis(b).size + m.coordinate(world.rank(), b);
      groups_.push_back(world.split(color, m.coordinate(world.rank(), a)));
    }
  }
  C& along(int a) { return groups_[static_cast<std::size_t>(a)]; }
  std::int64_t bytes_sent() const {
    std::int64_t sum = 0;
    for (const auto& g : groups_) sum += g.bytes_sent();
    return sum;
  }

 private:
  std::vector<C> groups_;
};

/// One step, ready to run: everything but the data pointers is worked out beforehand.
struct prepared_step {
  collective kind = collective::slice;
  int axis = 0;
  dtype element = dtype::f32;
  reduction how = reduction::sum;
  std::int64_t source_count = 0, count = 0;  // elements of source and destination
  std::vector<block> to, from;
  bool keep = true;                          // mask: this rank keeps its values
  const char* source = nullptr;
  char* target = nullptr;
};

namespace detail {

/// The part `part` of dimension d of a dense box.
inline block block_of(const std::vector<interval>& box, int d, interval part) {
  std::int64_t outer = 1, inner = 1;
  for (std::size_t i = 0; i < box.size(); ++i) (static_cast<int>(i) < d ? outer : inner) *= static_cast<int>(i) == d ? 1 : box[i].size;
  const auto& whole = box[static_cast<std::size_t>(d)];
  return {(part.begin - whole.begin) * inner, outer, part.size * inner, whole.size * inner};
}

}  // namespace detail

inline prepared_step prepare(const setting& s, tensor_id t, const reshard_step& step, int rank) {
  const auto& extents = s.extents[static_cast<std::size_t>(t)];
  const auto before = local_box(s.m, extents, step.before, rank), after = local_box(s.m, extents, step.after, rank);
  const int n = s.m.axis(step.axis).size, mine = s.m.coordinate(rank, step.axis);
  prepared_step p{.kind = step.kind, .axis = step.axis, .element = s.g.tensor_of(t).type.element,
                  .how = s.g.op(s.g.tensor_of(t).producer).loops.reduce, .to = {}, .from = {}};
  p.source_count = local_count(s.m, extents, step.before, rank);
  p.count = local_count(s.m, extents, step.after, rank);
  // The split along this mesh axis is the innermost of its dimension, so the parts of the group tile one interval.
  const auto part = [&](const std::vector<interval>& box, int d, int k) {
    return detail::block_of(box, d, part_of(box[static_cast<std::size_t>(d)], n, k));
  };
  for (int k = 0; k < n; ++k) {
    if (step.kind == collective::reduce_scatter || step.kind == collective::all_to_all) p.to.push_back(part(before, step.to_dim, k));
    if (step.kind == collective::all_gather || step.kind == collective::all_to_all) p.from.push_back(part(after, step.from_dim, k));
  }
  if (step.kind == collective::slice) p.to = {part(before, step.to_dim, mine)};
  p.keep = mine == 0;
  return p;
}

template <communicator C>
void run(const prepared_step& p, axis_groups<C>& groups) {
  const auto bytes = static_cast<std::int64_t>(size_of(p.element));
  auto& group = groups.along(p.axis);
  switch (p.kind) {
    case collective::all_gather: return group.all_gather(p.source, p.source_count, p.target, p.from, p.element);
    case collective::all_to_all: return group.all_to_all(p.source, p.to, p.target, p.from, p.element);
    case collective::reduce_scatter: return group.reduce_scatter(p.source, p.to, p.target, p.element, p.how);
    case collective::all_reduce: return group.all_reduce(p.source, p.target, p.count, p.element, p.how);
    case collective::slice: {
      const auto& b = p.to[0];
      for (std::int64_t i = 0; i < b.rows; ++i)
        std::memcpy(p.target + i * b.length * bytes, p.source + (b.offset + i * b.stride) * bytes,
                    static_cast<std::size_t>(b.length * bytes));
      return;
    }
    case collective::mask:
      if (!p.keep)
        std::memset(p.target, 0, static_cast<std::size_t>(p.count * bytes));
      else if (p.source != p.target)
        std::memcpy(p.target, p.source, static_cast<std::size_t>(p.count * bytes));
      return;
  }
}

}  // namespace mmr
