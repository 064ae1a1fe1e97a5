// What the tests of ready models share: a few steps on made-up data under a plan, against one rank alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <mmr/auto_parallel.hpp>
#include <mmr/io/safetensors.hpp>
#include <string>
#include <vector>

#include "catch.hpp"
#include "io/scratch.hpp"

namespace mmr_test {

inline constexpr mmr::adamw optimizer{.weight_decay = 0.1};

/// Values of an input that depend on its name, the microbatch and the place in the whole tensor alone. Something of
/// them can be learnt: they are mostly a function of the place. Integers lie below `words`, of "segments" below 2;
/// where `masked`, two targets of three do not count.
inline mmr::input_filler made_up(std::int64_t words, bool masked = false) {
  return [=](const mmr::tensor_info& input, std::span<const mmr::interval> box, const mmr::step_info& now, void* to) {
    std::vector<std::int64_t> extents;
    for (const auto& d : input.type.dims) extents.push_back(d.extent);
    const auto batch = static_cast<std::uint64_t>(now.step * now.microbatches + now.microbatch);
    const auto below = static_cast<std::uint64_t>(input.name == "segments" ? 2 : words);
    mmr::detail::for_each_in_box(box, extents, [&](std::int64_t n, std::int64_t global) {
      const auto draw = mmr::detail::mixed(batch * 1000003 + static_cast<std::uint64_t>(global));
      const auto place = static_cast<std::uint64_t>(global % extents.back()) + input.name.size();
      if (input.type.element == mmr::dtype::f64) {
        static_cast<double*>(to)[n] = std::sin(static_cast<double>(place)) + static_cast<double>(draw % 1000) / 1000;
        return;
      }
      const bool counts = !masked || input.name != "targets" || draw / 16 % 3 == 0;
      static_cast<std::int32_t*>(to)[n] = counts ? static_cast<std::int32_t>((place * 7 + draw % 4) % below) : -1;
    });
  };
}

/// Losses of some steps, and the arena of each rank.
struct trained {
  std::vector<double> losses;
  std::vector<std::int64_t> arenas;
};

inline trained train(const mmr::graph& g, const mmr::mesh& m, const mmr::plan& p, const mmr::input_filler& data,
                     int steps) {
  trained out;
  out.arenas.resize(static_cast<std::size_t>(m.rank_count()));
  mmr::run_ranks(m.rank_count(), [&](mmr::thread_communicator& world) {
    mmr::trainer<mmr::thread_communicator> t(g, m, p, world, 17);
    out.arenas[static_cast<std::size_t>(world.rank())] = t.run().arena_bytes();
    for (int i = 0; i < steps; ++i) {
      const double loss = t.step({.peak = 3e-3}, data);
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

/// Trains under plans on meshes: losses as those of one rank, and arenas as predicted.
inline void same_as_one_rank(const mmr::graph& g, const mmr::scheme_axes& axes, const mmr::input_filler& data,
                             const std::vector<std::string>& meshes, const std::vector<std::string>& plans,
                             int steps = 6) {
  CHECK(g.ordered());
  const auto one = mmr::mesh::parse("one=1");
  mmr::planner alone(g, one);
  const auto want = train(g, one, alone.make(asked("single", axes)), data, steps);
  CHECK(want.losses.back() < want.losses.front() - 0.02);
  for (const auto& spec : meshes) {
    const auto m = mmr::mesh::parse(spec);
    mmr::planner planner(g, m);
    for (const auto& name : plans) {
      INFO(name << " on " << spec);
      const auto p = planner.make(asked(name, axes));
      const auto got = train(g, m, p, data, steps);
      CHECK(worst_difference(got.losses, want.losses) <= 1e-10);
      for (std::size_t r = 0; r < got.arenas.size(); ++r) CHECK(got.arenas[r] == p.per_rank[r].arena);
    }
  }
}

/// A plan that makes all activations of layers again has the losses of one rank that keeps them.
template <class Config>
void same_made_again(Config c, const mmr::scheme_axes& axes, const mmr::input_filler& data, const std::string& spec,
                     const std::string& name) {
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
  const auto want = train(kept, one, alone.make(asked("single", axes)), data, 6), got = train(again, m, p, data, 6);
  CHECK(want.losses.back() < want.losses.front());
  CHECK(worst_difference(got.losses, want.losses) <= 1e-10);
  for (std::size_t i = 0; i < got.arenas.size(); ++i) CHECK(got.arenas[i] == p.per_rank[i].arena);
}

/// The shape under which a parameter is found in a checkpoint, empty where the graph has none of this name.
inline std::vector<std::int64_t> stored_shape(const mmr::graph& g, const std::string& name) {
  for (mmr::tensor_id t = 0; t < g.tensors(); ++t) {
    const auto& info = g.tensor_of(t);
    if (info.kind != mmr::tensor_class::parameter || g.op(info.producer).when != mmr::phase::source) continue;
    if (info.stored.name != name) continue;
    std::vector<std::int64_t> shape;
    if (info.stored.rows < 0)
      for (const auto& d : info.type.dims) shape.push_back(d.extent);
    if (info.stored.rows > 0) shape.push_back(1);
    if (info.stored.rows >= 0) shape.push_back(info.stored.parts);
    for (std::size_t d = 0; info.stored.rows >= 0 && d < info.type.dims.size(); ++d)
      (static_cast<int>(d) < info.stored.rows ? shape.front() : shape.back()) *= info.type.dims[d].extent;
    return shape;
  }
  return {};
}

/// Four losses of SGD at rate 0.1 on four ranks, from weights and data that a formula gives, so that another program
/// can start from the same: element i of the parameter that a checkpoint calls N is 0.3 sin(0.7 i + length of N), and
/// one more in the gain of a norm; word i of an input is (7 i + i^2 mod 11) mod words, 5 further on in targets, and
/// number i of a floating input is sin(0.1 i). Segments change every three words. Where `masked`, but every third
/// target counts.
inline std::vector<double> losses_by_formula(const mmr::graph& g, std::int64_t words, bool masked) {
  const scratch dir;
  const auto path = dir / "weights.safetensors";
  mmr::safetensors_writer file(path);
  std::vector<const mmr::tensor_info*> all;
  for (mmr::tensor_id t = 0; t < g.tensors(); ++t)
    if (const auto& info = g.tensor_of(t);
        info.kind == mmr::tensor_class::parameter && g.op(info.producer).when == mmr::phase::source)
      all.push_back(&info);
  for (const auto* info : all) file.add(info->stored.name, info->type.element, stored_shape(g, info->stored.name));
  for (const auto* info : all) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < info->type.count(); ++i)
      values.push_back((info->start.kind == mmr::initial::law::one ? 1 : 0) +
                       0.3 * std::sin(0.7 * static_cast<double>(i) + static_cast<double>(info->stored.name.size())));
    file.write<double>(info->stored.name, values);
  }
  file.commit();

  const auto m = mmr::mesh::parse("data=2,model=2");
  mmr::planner planner(g, m);
  const auto p = planner.make(asked("memory", {}));
  const auto data = [=](const mmr::tensor_info& input, std::span<const mmr::interval> box, const mmr::step_info&,
                        void* to) {
    std::vector<std::int64_t> extents;
    for (const auto& d : input.type.dims) extents.push_back(d.extent);
    mmr::detail::for_each_in_box(box, extents, [&](std::int64_t n, std::int64_t i) {
      if (input.type.element == mmr::dtype::f64) {
        static_cast<double*>(to)[n] = std::sin(0.1 * static_cast<double>(i));
        return;
      }
      auto word = (7 * i + i * i % 11 + (input.name == "targets" ? 5 : 0)) % words;
      if (input.name == "segments") word = i / 3 % 2;
      if (input.name == "targets" && masked && i % 3 != 0) word = -1;
      static_cast<std::int32_t*>(to)[n] = static_cast<std::int32_t>(word);
    });
  };
  std::vector<double> out;
  mmr::run_ranks(m.rank_count(), [&](mmr::thread_communicator& world) {
    mmr::trainer<mmr::thread_communicator> t(g, m, p, world, 17);
    t.load(path);
    for (int i = 0; i < 4; ++i) {
      const double loss = t.step(0.1, data);
      if (world.rank() == 0) out.push_back(loss);
    }
  });
  return out;
}

/// Elements of all parameters of a model.
inline std::int64_t parameters(const mmr::graph& g) {
  std::int64_t n = 0;
  for (mmr::tensor_id t = 0; t < g.tensors(); ++t) {
    const auto& info = g.tensor_of(t);
    if (info.kind == mmr::tensor_class::parameter && g.op(info.producer).when == mmr::phase::source)
      n += info.type.count();
  }
  return n;
}

}  // namespace mmr_test
