// An operator as a loop nest over named axes: the one description from which placements, costs and shards follow.
#pragma once

#include <mmr/tensor/dtype.hpp>
#include <mmr/tensor/error.hpp>
#include <mmr/tensor/reduction.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace mmr {

/// One dimension of a tensor.
struct dimension {
  std::string axis;
  std::int64_t extent = 0;
  bool splittable = true;
  friend bool operator==(const dimension&, const dimension&) = default;
};

/// Element type and dimensions (slowest first) of a tensor.
struct tensor_type {
  dtype element = dtype::f32;
  std::vector<dimension> dims;

  std::int64_t count() const {
    std::int64_t n = 1;
    for (const auto& d : dims) n *= d.extent;
    return n;
  }
  friend bool operator==(const tensor_type&, const tensor_type&) = default;
};

/// One loop of an operator. A loop that a result lacks is reduced: splitting it leaves that result Partial.
using loop = dimension;

/// Which loop walks each dimension of an operand or result.
struct access {
  dtype element = dtype::f32;
  std::vector<int> loops;
};

/// The loop nest of an operator with given operands.
struct signature {
  std::vector<loop> loops;
  std::vector<access> in;
  std::vector<access> out;
  std::vector<access> state;      ///< persistent tensors that the operator owns (optimizer moments)
  reduction reduce = reduction::sum;
  bool linear = false;            ///< linear in all floating operands together: Partial in gives Partial out
  std::vector<int> reuse;         ///< reuse[r]: operand whose buffer result r may take over when it dies there, or -1

  int add_loop(const dimension& d, bool splittable = true) {
    loops.push_back({d.axis, d.extent, d.splittable && splittable});
    return static_cast<int>(loops.size()) - 1;
  }
  /// The loop over an axis, or -1.
  int find_loop(const std::string& axis) const {
    for (std::size_t i = 0; i < loops.size(); ++i)
      if (loops[i].axis == axis) return static_cast<int>(i);
    return -1;
  }
  tensor_type type_of(const access& a) const {
    tensor_type t{a.element, {}};
    for (int l : a.loops) t.dims.push_back(loops[static_cast<std::size_t>(l)]);
    return t;
  }
};

/// Adds a loop for each dimension of `t` that has none yet and returns the access of `t`. Fails where extents disagree.
inline access loops_over(signature& s, const tensor_type& t, const char* op) {
  access a{t.element, {}};
  for (const auto& d : t.dims) {
    int l = s.find_loop(d.axis);
    if (l < 0) l = s.add_loop(d);
    const auto& known = s.loops[static_cast<std::size_t>(l)];
    if (known.extent != d.extent)
      fail(op, ": axis '", d.axis, "' has extent ", known.extent, " in one operand and ", d.extent,
           " in another; give both the same extent");
    a.loops.push_back(l);
  }
  return a;
}

/// The signature of an operator whose operands all have the axes of the first one, or some of them, and whose results
/// all look like the first operand.
inline signature elementwise(const std::vector<tensor_type>& in, const char* op, int results = 1) {
  signature s;
  for (const auto& t : in) s.in.push_back(loops_over(s, t, op));
  s.out.assign(static_cast<std::size_t>(results), s.in.front());
  s.reuse.assign(static_cast<std::size_t>(results), -1);
  return s;
}

}  // namespace mmr
