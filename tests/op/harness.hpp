// Runs one operator on whole tensors or on shards cut from them, as its signature says, so that a test names only the
// operator, its operands and what it must give.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <mmr/backend/cpu/kernels.hpp>
#include <mmr/graph/emit.hpp>
#include <random>
#include <string>
#include <vector>

#include "catch.hpp"

namespace mmr_test {

using mmr::dtype;
using mmr::loop_range;
using mmr::signature;
using ranges = std::vector<loop_range>;
using coordinates = std::vector<std::int64_t>;

/// A dense tensor; values of every element type are held as doubles, which hold them exactly.
struct array {
  dtype element = dtype::f64;
  coordinates sizes;
  std::vector<double> values;
};
using arrays = std::vector<array>;

inline std::int64_t count(const coordinates& sizes) {
  std::int64_t n = 1;
  for (auto s : sizes) n *= s;
  return n;
}

/// Calls f with every index of a box, the last one fastest.
template <class F>
void for_each_index(const coordinates& sizes, F&& f) {
  if (count(sizes) == 0) return;
  coordinates at(sizes.size(), 0);
  for (;;) {
    f(at);
    std::size_t d = sizes.size();
    while (d > 0 && ++at[d - 1] == sizes[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

inline std::size_t offset(const coordinates& sizes, const coordinates& at) {
  std::int64_t o = 0;
  for (std::size_t d = 0; d < sizes.size(); ++d) o = o * sizes[d] + at[d];
  return static_cast<std::size_t>(o);
}

inline coordinates sizes_of(const mmr::access& a, const ranges& loops) {
  coordinates sizes;
  for (int l : a.loops) sizes.push_back(loops[static_cast<std::size_t>(l)].size);
  return sizes;
}

/// Place in the whole tensor of an element of its shard.
inline coordinates global(const mmr::access& a, const ranges& loops, coordinates at) {
  for (std::size_t d = 0; d < at.size(); ++d) at[d] += loops[static_cast<std::size_t>(a.loops[d])].begin;
  return at;
}

inline array cut(const array& whole, const mmr::access& a, const ranges& loops) {
  array part{whole.element, sizes_of(a, loops), {}};
  for_each_index(part.sizes, [&](const coordinates& at) {
    part.values.push_back(whole.values[offset(whole.sizes, global(a, loops, at))]);
  });
  return part;
}

inline ranges whole_ranges(const signature& s) {
  ranges r;
  for (const auto& l : s.loops) r.push_back({0, l.extent, l.extent});
  return r;
}

/// Elements in the type that kernels see, between guards that a kernel must leave alone.
class buffer {
 public:
  buffer(dtype element, std::int64_t n) : element_(element), n_(n) {
    words_.assign(static_cast<std::size_t>(n * width() + 2 * guard) / sizeof(double) + 2, 0);
    std::fill(bytes() - guard, bytes() + n * width() + guard, std::byte{0xff});  // 0xff...: NaN
  }
  explicit buffer(const array& a) : buffer(a.element, count(a.sizes)) {
    for (std::int64_t i = 0; i < n_; ++i) {
      const double v = a.values[static_cast<std::size_t>(i)];
      if (element_ == dtype::f64) static_cast<double*>(data())[i] = v;
      if (element_ == dtype::f32) static_cast<float*>(data())[i] = static_cast<float>(v);
      if (element_ == dtype::i32) static_cast<std::int32_t*>(data())[i] = static_cast<std::int32_t>(v);
      if (element_ == dtype::u8) static_cast<std::uint8_t*>(data())[i] = static_cast<std::uint8_t>(v);
    }
  }
  void* data() { return bytes(); }
  array read(const coordinates& sizes) {
    array a{element_, sizes, {}};
    for (std::int64_t i = 0; i < n_; ++i) {
      if (element_ == dtype::f64) a.values.push_back(static_cast<double*>(data())[i]);
      if (element_ == dtype::f32) a.values.push_back(static_cast<double>(static_cast<float*>(data())[i]));
      if (element_ == dtype::i32) a.values.push_back(static_cast<std::int32_t*>(data())[i]);
      if (element_ == dtype::u8) a.values.push_back(static_cast<std::uint8_t*>(data())[i]);
    }
    return a;
  }
  bool guards_intact() {
    const auto intact = [](std::byte b) { return b == std::byte{0xff}; };
    return std::all_of(bytes() - guard, bytes(), intact) &&
           std::all_of(bytes() + n_ * width(), bytes() + n_ * width() + guard, intact);
  }

 private:
  static constexpr std::int64_t guard = 64;
  std::int64_t width() const { return static_cast<std::int64_t>(mmr::size_of(element_)); }
  std::byte* bytes() { return reinterpret_cast<std::byte*>(words_.data()) + guard; }

  dtype element_;
  std::int64_t n_;
  std::vector<double> words_;
};

/// An operator as the graph keeps it, with its signature for given operands.
struct bound_operator {
  std::shared_ptr<const mmr::op_rules> rules;
  signature shape;
  dtype element = dtype::f64;

  bound_operator() = default;
  template <class Op>
  bound_operator(const Op& op, const std::vector<mmr::tensor_type>& operands)
      : rules(std::make_shared<mmr::op_model<Op>>(op)), shape(op.sign(operands)) {
    shape.reuse.resize(shape.out.size(), -1);
    if (!shape.out.empty()) element = shape.out[0].element;
  }
};

struct outcome {
  arrays out, state;
};

/// Runs the operator over the given ranges on local operands. `in_place` lets results take over the buffers of operands
/// as the signature allows.
inline outcome run(const bound_operator& op, const ranges& loops, const arrays& in, const arrays& state,
                   const mmr::step_info& step, bool in_place) {
  std::vector<buffer> operands(in.begin(), in.end()), states(state.begin(), state.end()), results;
  std::vector<coordinates> sizes;
  for (const auto& a : op.shape.out) {
    sizes.push_back(sizes_of(a, loops));
    results.emplace_back(a.element, count(sizes.back()));
  }
  std::vector<mmr::tensor_view> in_views, out_views, state_views;
  for (std::size_t i = 0; i < in.size(); ++i) in_views.push_back({operands[i].data(), in[i].element, in[i].sizes});
  for (std::size_t i = 0; i < state.size(); ++i)
    state_views.push_back({states[i].data(), state[i].element, state[i].sizes});
  const auto taken = [&](std::size_t r) { return in_place ? op.shape.reuse[r] : -1; };
  const auto result = [&](std::size_t r) -> buffer& {
    return taken(r) < 0 ? results[r] : operands[static_cast<std::size_t>(taken(r))];
  };
  for (std::size_t r = 0; r < results.size(); ++r)
    out_views.push_back({result(r).data(), op.shape.out[r].element, sizes[r]});
  // In units of the wider type: kernels may expect alignment to it.
  const std::int64_t bytes = op.rules->workspace(op.element, op.shape, loops);
  buffer workspace(op.element, bytes / static_cast<std::int64_t>(mmr::size_of(op.element)));
  mmr::kernel_args args;
  args.loops = loops;
  args.in = in_views;
  args.out = out_views;
  args.state = state_views;
  args.workspace = workspace.data();
  args.step = &step;
  args.shape = &op.shape;
  op.rules->run(op.element, args);

  outcome made;
  for (std::size_t r = 0; r < results.size(); ++r) made.out.push_back(result(r).read(sizes[r]));
  for (std::size_t i = 0; i < state.size(); ++i) made.state.push_back(states[i].read(state[i].sizes));
  for (auto* group : {&operands, &states, &results})
    for (auto& b : *group) CHECK(b.guards_intact());
  CHECK(workspace.guards_intact());
  for (std::size_t i = 0; i < in.size(); ++i) {
    bool overwritten = false;
    for (std::size_t r = 0; r < results.size(); ++r) overwritten = overwritten || taken(r) == static_cast<int>(i);
    // The operand that was not to be overwritten must be as it was, bit by bit.
    if (!overwritten) {
      buffer before(in[i]);
      CHECK(std::memcmp(before.data(), operands[i].data(),
                        static_cast<std::size_t>(count(in[i].sizes)) * mmr::size_of(in[i].element)) == 0);
    }
  }
  return made;
}

/// Cuts each loop that may be split into one to three parts, some of them empty.
inline std::vector<std::vector<loop_range>> random_splits(const signature& s, std::mt19937& random) {
  std::vector<std::vector<loop_range>> parts;
  for (const auto& l : s.loops) {
    const int n = l.splittable ? std::uniform_int_distribution<>(1, 3)(random) : 1;
    coordinates cuts{0, l.extent};
    for (int i = 1; i < n; ++i) cuts.push_back(std::uniform_int_distribution<std::int64_t>(0, l.extent)(random));
    std::sort(cuts.begin(), cuts.end());
    parts.emplace_back();
    for (int i = 0; i < n; ++i)
      parts.back().push_back({cuts[static_cast<std::size_t>(i)],
                              cuts[static_cast<std::size_t>(i) + 1] - cuts[static_cast<std::size_t>(i)], l.extent});
  }
  return parts;
}

/// Runs all parts and combines their results: side by side along loops that a result has, reduced over those it lacks.
inline outcome run_in_parts(const bound_operator& op, const std::vector<std::vector<loop_range>>& parts,
                            const arrays& in, const arrays& state, const mmr::step_info& step, bool in_place) {
  const auto all = whole_ranges(op.shape);
  const bool sums = op.shape.reduce == mmr::reduction::sum;
  outcome joined;
  for (const auto& a : op.shape.out) {
    array whole{a.element, sizes_of(a, all), {}};
    whole.values.assign(static_cast<std::size_t>(count(whole.sizes)),
                        sums ? 0 : -std::numeric_limits<double>::infinity());
    joined.out.push_back(whole);
  }
  joined.state = state;
  coordinates numbers;
  for (const auto& p : parts) numbers.push_back(static_cast<std::int64_t>(p.size()));
  for_each_index(numbers, [&](const coordinates& which) {
    ranges mine;
    for (std::size_t l = 0; l < parts.size(); ++l) mine.push_back(parts[l][static_cast<std::size_t>(which[l])]);
    arrays local_in, local_state;
    for (std::size_t i = 0; i < in.size(); ++i) local_in.push_back(cut(in[i], op.shape.in[i], mine));
    for (std::size_t i = 0; i < state.size(); ++i) local_state.push_back(cut(state[i], op.shape.state[i], mine));
    const auto made = run(op, mine, local_in, local_state, step, in_place);
    for (std::size_t r = 0; r < made.out.size(); ++r) {
      std::size_t i = 0;
      for_each_index(made.out[r].sizes, [&](const coordinates& at) {
        auto& to = joined.out[r].values[offset(joined.out[r].sizes, global(op.shape.out[r], mine, at))];
        const double v = made.out[r].values[i++];
        to = sums ? to + v : std::max(to, v);
      });
    }
    for (std::size_t s = 0; s < state.size(); ++s) {
      std::size_t i = 0;
      for_each_index(made.state[s].sizes, [&](const coordinates& at) {
        joined.state[s].values[offset(state[s].sizes, global(op.shape.state[s], mine, at))] = made.state[s].values[i++];
      });
    }
  });
  return joined;
}

inline void check_equal(const arrays& got, const arrays& want, double tolerance) {
  REQUIRE(got.size() == want.size());
  for (std::size_t r = 0; r < got.size(); ++r) {
    REQUIRE(got[r].sizes == want[r].sizes);
    REQUIRE(got[r].values.size() == want[r].values.size());
    double most = 1, worst = 0;
    for (std::size_t i = 0; i < got[r].values.size(); ++i) {
      const double g = got[r].values[i], w = want[r].values[i];
      most = std::max(most, std::abs(w));
      // Written so that NaN counts as wrong.
      if (!(std::abs(g - w) <= worst))
        worst = std::isnan(g - w) ? std::numeric_limits<double>::infinity() : std::abs(g - w);
    }
    INFO("result " << r);
    CHECK(worst <= tolerance * most);
  }
}

/// What one operator must do: `results` (and `states`) from whole operands, written as plain loops.
using oracle = std::function<outcome(const signature&, const arrays& in, const arrays& state)>;

/// Random values of an operand: normal, or of the given law.
using law = std::function<double(std::mt19937&)>;
inline double normal(std::mt19937& random) {
  return std::normal_distribution<>()(random);
}
inline double positive(std::mt19937& random) {
  return std::uniform_real_distribution<>(0.5, 4)(random);
}
inline law below(std::int64_t n) {
  return [n](std::mt19937& random) {
    return static_cast<double>(std::uniform_int_distribution<std::int64_t>(0, n - 1)(random));
  };
}

inline array random_array(const mmr::tensor_type& t, const law& value, std::mt19937& random) {
  array a{t.element, {}, {}};
  for (const auto& d : t.dims) a.sizes.push_back(d.extent);
  for (std::int64_t i = 0; i < count(a.sizes); ++i) {
    double v = value(random);
    if (t.element == dtype::f32) v = static_cast<double>(static_cast<float>(v));
    a.values.push_back(v);
  }
  return a;
}

/// Checks the operator against the oracle, whole and in random parts, in place and not; and that it is linear where its
/// signature says so.
inline void check(const bound_operator& op, const std::vector<mmr::tensor_type>& operands, const oracle& expected,
                  const std::vector<law>& laws = {}, int splits = 12, const mmr::step_info& step = {11, 3, 1, 2, 0.1}) {
  std::mt19937 random(5);
  arrays in, state;
  for (std::size_t i = 0; i < operands.size(); ++i)
    in.push_back(random_array(operands[i], i < laws.size() && laws[i] ? laws[i] : law(normal), random));
  for (const auto& a : op.shape.state) state.push_back(random_array(op.shape.type_of(a), positive, random));
  const double tolerance = op.element == dtype::f64 ? 1e-11 : 3e-5;
  const auto all = whole_ranges(op.shape);
  const auto want = expected(op.shape, in, state);
  const bool reuses = std::any_of(op.shape.reuse.begin(), op.shape.reuse.end(), [](int r) { return r >= 0; });
  for (bool in_place : {false, true}) {
    if (in_place && !reuses) continue;
    INFO(op.rules->name() << (in_place ? ", in place" : "") << (op.element == dtype::f64 ? ", double" : ", float"));
    const auto got = run(op, all, in, state, step, in_place);
    check_equal(got.out, want.out, tolerance);
    check_equal(got.state, want.state, tolerance);
    for (int i = 0; i < splits; ++i) {
      const auto parts = random_splits(op.shape, random);
      INFO("in parts, draw " << i);
      const auto joined = run_in_parts(op, parts, in, state, step, in_place);
      check_equal(joined.out, want.out, tolerance);
      check_equal(joined.state, want.state, tolerance);
    }
  }
  if (!op.shape.linear) return;
  INFO(op.rules->name() << " of a sum");
  arrays one = in, other = in;
  for (std::size_t i = 0; i < in.size(); ++i)
    for (std::size_t e = 0; e < in[i].values.size(); ++e) {
      if (!mmr::is_floating(in[i].element)) continue;
      one[i].values[e] = static_cast<double>(static_cast<float>(normal(random)));
      other[i].values[e] = in[i].values[e] - one[i].values[e];
    }
  auto sum = run(op, all, one, state, step, false).out;
  const auto rest = run(op, all, other, state, step, false).out;
  for (std::size_t r = 0; r < sum.size(); ++r)
    for (std::size_t e = 0; e < sum[r].values.size(); ++e) sum[r].values[e] += rest[r].values[e];
  check_equal(sum, want.out, tolerance);
}

// ---- oracles as loop nests ------------------------------------------------------------------------------------------

/// One point of an operator's loop nest.
struct point {
  const signature& shape;
  const arrays& operands;
  arrays& results;
  coordinates at;

  double in(std::size_t i) const { return operands[i].values[place(shape.in[i], operands[i])]; }
  double& out(std::size_t r) const { return results[r].values[place(shape.out[r], results[r])]; }
  std::int64_t loop(std::size_t l) const { return at[l]; }
  /// Index in the whole operand.
  std::size_t place(const mmr::access& a, const array& t) const {
    coordinates i;
    for (int l : a.loops) i.push_back(at[static_cast<std::size_t>(l)]);
    return offset(t.sizes, i);
  }
};

/// Results that are zero before, and what `step` makes of them at each point of the nest, the last loop fastest.
inline oracle nest(std::function<void(const point&)> step, double before = 0) {
  return [=](const signature& s, const arrays& in, const arrays& state) {
    const auto all = whole_ranges(s);
    outcome made{{}, state};
    for (const auto& a : s.out) {
      array whole{a.element, sizes_of(a, all), {}};
      whole.values.assign(static_cast<std::size_t>(count(whole.sizes)), before);
      made.out.push_back(whole);
    }
    coordinates extents;
    for (const auto& l : s.loops) extents.push_back(l.extent);
    for_each_index(extents, [&](const coordinates& at) { step(point{s, in, made.out, at}); });
    return made;
  };
}

}  // namespace mmr_test
