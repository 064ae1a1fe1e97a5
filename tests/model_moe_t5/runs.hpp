// What the tests of these models share: a model trained for a few steps under a plan, against one rank alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mmr/auto_parallel.hpp>
#include <string>
#include <vector>

#include "catch.hpp"

namespace mmr_test {

/// Words that depend on the input's name, the step and the place in the whole tensor alone, below `words`; something of
/// them can be learnt: a word is mostly a function of its place.
inline mmr::input_filler words_below(std::int64_t words) {
  return
      [words](const mmr::tensor_info& input, std::span<const mmr::interval> box, const mmr::step_info& now, void* to) {
        std::vector<std::int64_t> extents;
        for (const auto& d : input.type.dims) extents.push_back(d.extent);
        const auto batch = static_cast<std::uint64_t>(now.step * now.microbatches + now.microbatch);
        mmr::detail::for_each_in_box(box, extents, [&](std::int64_t n, std::int64_t global) {
          const auto noise = mmr::detail::mixed(batch * 1000003 + static_cast<std::uint64_t>(global)) % 4;
          const auto place = static_cast<std::uint64_t>(global % extents.back()) + input.name.size();
          static_cast<std::int32_t*>(to)[n] =
              static_cast<std::int32_t>((place * 7 + noise) % static_cast<std::uint64_t>(words));
        });
      };
}

struct trained {
  std::vector<double> losses;
  std::vector<std::int64_t> arenas;  ///< of each rank
};

inline trained train(const mmr::graph& g, const mmr::mesh& m, const mmr::plan& p, std::int64_t words, int steps) {
  trained out;
  out.arenas.resize(static_cast<std::size_t>(m.rank_count()));
  mmr::run_ranks(m.rank_count(), [&](mmr::thread_communicator& world) {
    mmr::trainer<mmr::thread_communicator> t(g, m, p, world, 17);
    out.arenas[static_cast<std::size_t>(world.rank())] = t.run().arena_bytes();
    const auto fill = words_below(words);
    for (int i = 0; i < steps; ++i) {
      const double loss = t.step({.peak = 3e-3}, fill);
      if (world.rank() == 0) out.losses.push_back(loss);
    }
  });
  return out;
}

inline mmr::plan_request asked(const std::string& name, const mmr::scheme_axes& axes, double seconds = 10) {
  mmr::plan_request r;
  r.axes = axes;
  r.seconds = seconds;
  if (name == "time") r.minimise = mmr::goal::time;
  if (name != "memory" && name != "time") r.scheme = name;
  return r;
}

/// The largest relative difference of losses.
inline double worst_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = a.size() == b.size() ? 0 : 1e300;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double d = std::abs(a[i] - b[i]) / std::abs(b[i]);
    if (!(d <= worst)) worst = std::isnan(d) ? 1e300 : d;
  }
  return worst;
}

/// Trains under plans on a mesh: losses as those of one rank, and arenas as predicted.
inline void same_as_one_rank(const mmr::graph& g, const mmr::scheme_axes& axes, std::int64_t words,
                             const std::string& spec, const std::vector<std::string>& plans, int steps = 6) {
  const auto one = mmr::mesh::parse("one=1");
  const auto want = train(g, one, mmr::planner(g, one).make(asked("single", axes)), words, steps);
  CHECK(want.losses.back() < want.losses.front());
  const auto m = mmr::mesh::parse(spec);
  mmr::planner planner(g, m);
  for (const auto& name : plans) {
    INFO(name << " on " << spec);
    const auto p = planner.make(asked(name, axes));
    const auto got = train(g, m, p, words, steps);
    CHECK(worst_difference(got.losses, want.losses) <= 1e-10);
    for (std::size_t r = 0; r < got.arenas.size(); ++r) CHECK(got.arenas[r] == p.per_rank[r].arena);
  }
}

/// A plan that makes all activations of layers again has the losses of one rank that keeps them.
template <class Config>
void same_made_again(Config c, const mmr::scheme_axes& axes, std::int64_t words, const std::string& spec,
                     const std::string& name) {
  const mmr::adamw optimizer{.weight_decay = 0.1};
  const auto kept = training_graph<double>(c, optimizer);
  c.recompute = true;
  const auto again = training_graph<double>(c, optimizer);
  CHECK(again.ordered());
  const auto one = mmr::mesh::parse("one=1"), m = mmr::mesh::parse(spec);
  mmr::planner alone(kept, one), planner(again, m);
  auto r = asked(name, axes);
  r.fixed.recompute();
  const auto p = planner.make(r);
  int run_again = 0, layers = 0;
  for (mmr::op_id o = 0; o < again.ops(); ++o) {
    run_again += again.op(o).again >= 0 && p.strategies[static_cast<std::size_t>(o)].runs();
    layers = std::max(layers, again.op(o).where.repetition + 1);
  }
  CHECK(run_again >= 10 * layers);
  const auto want = train(kept, one, alone.make(asked("single", axes)), words, 6), got = train(again, m, p, words, 6);
  CHECK(want.losses.back() < want.losses.front());
  CHECK(worst_difference(got.losses, want.losses) <= 1e-10);
  for (std::size_t i = 0; i < got.arenas.size(); ++i) CHECK(got.arenas[i] == p.per_rank[i].arena);
}

}  // namespace mmr_test
