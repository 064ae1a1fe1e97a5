// Which ranks of a mesh hold parts of equal sizes under a plan: of a thousand ranks a few stand for all.
#pragma once

#include <mmr/plan/buffers.hpp>

#include <iterator>
#include <set>
#include <utility>
#include <vector>

namespace mmr {

namespace detail {

/// Collects how sizes are split along the mesh axes. An axis of n ranks that does not divide a size x gives its first
/// x mod n ranks one more: coordinates differ only where one lies below such a remainder and the other does not.
class uneven_splits {
 public:
  explicit uneven_splits(const mesh& m) : m_(m), begins_(static_cast<std::size_t>(m.count()), {0}) {}

  /// Along mesh axis a, choice(a) says what is split: an index into `sizes`, or something negative.
  template <class Choice>
  void see(std::span<const std::int64_t> sizes, Choice choice) {
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      unsigned axes = 0;
      for (int a = 0; a < m_.count(); ++a)
        if (choice(a) == static_cast<int>(d)) axes |= 1U << a;
      if (axes != 0 && seen_.insert({sizes[d], axes}).second) split(sizes[d], axes);
    }
  }

  /// For each rank the first one that is alike.
  std::vector<int> alike() const {
    std::vector<int> out;
    for (int r = 0; r < m_.rank_count(); ++r) {
      int first = 0;
      for (int a = 0; a < m_.count(); ++a) {
        const auto& begins = begins_[static_cast<std::size_t>(a)];
        first = first * m_.axis(a).size + static_cast<int>(*std::prev(begins.upper_bound(m_.coordinate(r, a))));
      }
      out.push_back(first);
    }
    return out;
  }

 private:
  void split(std::int64_t size, unsigned axes) {
    std::set<std::int64_t> parts{size};  // what the axes before leave
    for (int a = 0; a < m_.count(); ++a) {
      if ((axes >> a & 1U) == 0) continue;
      const std::int64_t n = m_.axis(a).size;
      std::set<std::int64_t> left;
      for (const auto x : parts) {
        begins_[static_cast<std::size_t>(a)].insert(x % n);
        left.insert(x / n);
        if (x % n != 0) left.insert(x / n + 1);
      }
      parts = std::move(left);
    }
  }

  const mesh& m_;
  std::set<std::pair<std::int64_t, unsigned>> seen_;
  std::vector<std::set<std::int64_t>> begins_;  // of each mesh axis: coordinates where another part size may begin
};

}  // namespace detail

/// For each rank the first rank that is alike under these strategies: every part of a tensor or loop is as large on both.
/// `run` is the program of any rank.
inline std::vector<int> alike_ranks(const setting& s, const std::vector<strategy>& chosen, const program& run) {
  detail::uneven_splits uneven(s.m);
  for (op_id o = 0; o < s.g.ops(); ++o) {
    std::vector<std::int64_t> sizes;
    for (const auto& l : s.g.op(o).loops.loops) sizes.push_back(l.extent);
    uneven.see(sizes, [&](int a) { return int{chosen[static_cast<std::size_t>(o)][a]}; });
  }
  // Resharding may pass through placements that no operator has.
  const auto pass = [&](const transfer& t) {
    if (!t.path) return;
    for (const auto& step : t.path->steps)
      uneven.see(s.extents[static_cast<std::size_t>(t.tensor)], [&](int a) { return int{step.after[a]}; });
  };
  for (const auto& x : run.instructions) {
    for (const auto& t : x.operands) pass(t);
    pass(x.write_back);
  }
  return uneven.alike();
}

}  // namespace mmr
