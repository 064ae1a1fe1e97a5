// Planned, then run: models on meshes of CPU ranks whose speeds and links are measured first. For every plan, the bytes that
// were allocated against those predicted and the losses against one rank's; for every two plans whose modelled step times
// differ by a fifth or more, whether the measured ones lie in the same order.
//
//     bench_order [ROUNDS]     rounds of two steps that each plan runs, by turns; 5 where it is not given
#include <mmr/auto_parallel.hpp>
#include <mmr/io/format.hpp>
#include <mmr/io/table.hpp>
#include <mmr/model/bert.hpp>
#include <mmr/model/gpt.hpp>
#include <mmr/model/llama.hpp>
#include <mmr/model/moe.hpp>
#include <mmr/model/t5.hpp>
#include <mmr/model/vit.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>

namespace {

constexpr std::uint64_t seed = 7;
constexpr int checked_steps = 4;

struct model {
  std::string name;
  mmr::graph g;
  mmr::scheme_axes axes;
  std::int64_t words;  // integers of the inputs lie below
};

template <class Config>
mmr::graph graph_of(const Config& c, mmr::graph (*make)(const Config&, const mmr::adamw&)) {
  return make(c, mmr::adamw{.clip_norm = 1});
}

std::map<std::string, model> models() {
  std::map<std::string, model> all;
  const auto add = [&](std::string name, mmr::graph g, mmr::scheme_axes axes, std::int64_t words) {
    all.emplace(name, model{name, std::move(g), std::move(axes), words});
  };
  add("gpt", graph_of(mmr::gpt::config{.layers = 4, .heads = 8, .embed = 256, .seq = 128, .batch = 8, .vocab = 2048, .dropout = 0.1},
                      &mmr::gpt::training_graph<float, mmr::adamw>),
      mmr::gpt::scheme(), 2048);
  add("gpt, wide", graph_of(mmr::gpt::config{.layers = 2, .heads = 8, .embed = 640, .seq = 32, .batch = 4, .vocab = 512, .dropout = 0},
                            &mmr::gpt::training_graph<float, mmr::adamw>),
      mmr::gpt::scheme(), 512);
  add("llama", graph_of(mmr::llama::config{.layers = 4, .heads = 8, .kv_heads = 4, .embed = 256, .hidden = 688, .seq = 128, .batch = 8, .vocab = 2048},
                        &mmr::llama::training_graph<float, mmr::adamw>),
      mmr::llama::scheme(), 2048);
  {
    mmr::bert::config c;
    c.layers = 4, c.heads = 8, c.embed = 256, c.hidden = 1024, c.seq = 128, c.batch = 8, c.vocab = 2048;
    add("bert", graph_of(c, &mmr::bert::training_graph<float, mmr::adamw>), mmr::bert::scheme(), 2048);
  }
  {
    mmr::vit::config c;
    c.layers = 4, c.heads = 8, c.embed = 256, c.hidden = 1024, c.patches = 64, c.batch = 16;
    add("vit", graph_of(c, &mmr::vit::training_graph<float, mmr::adamw>), mmr::vit::scheme(), 10);
  }
  {
    mmr::moe::config c;
    c.layers = 2, c.heads = 8, c.embed = 256, c.seq = 128, c.batch = 8, c.vocab = 2048;
    add("moe", graph_of(c, &mmr::moe::training_graph<float, mmr::adamw>), mmr::moe::scheme(), 2048);
  }
  {
    mmr::t5::config c;
    c.layers = 2, c.decoder_layers = 2, c.heads = 8, c.embed = 256, c.hidden = 512, c.source = 96, c.seq = 64, c.batch = 8, c.vocab = 2048;
    add("t5", graph_of(c, &mmr::t5::training_graph<float, mmr::adamw>), mmr::t5::scheme(), 2048);
  }
  return all;
}

/// Made-up inputs that depend on the place in the whole tensor and the step alone.
mmr::input_filler made_up(std::int64_t words) {
  return [=](const mmr::tensor_info& input, std::span<const mmr::interval> box, const mmr::step_info& now, void* to) {
    std::vector<std::int64_t> extents;
    for (const auto& d : input.type.dims) extents.push_back(d.extent);
    const auto below = static_cast<std::uint64_t>(input.name == "segments" ? 2 : words);
    mmr::detail::for_each_in_box(box, extents, [&](std::int64_t n, std::int64_t global) {
      const auto draw = mmr::detail::mixed(static_cast<std::uint64_t>(now.step * 1000003 + now.microbatch * 7919 + global));
      if (input.type.element == mmr::dtype::f32)
        static_cast<float*>(to)[n] = static_cast<float>(draw % 1000) / 500 - 1;
      else
        static_cast<std::int32_t*>(to)[n] = static_cast<std::int32_t>(draw % below);
    });
  };
}

struct ran {
  std::vector<double> losses, seconds;
  bool as_predicted = true;
};

/// A round: `steps` steps from the start, of which the first, which touches the memory, is not timed. A step takes from when
/// all ranks are there to when all are done: ranks of a plan that does not communicate would drift apart, and one of them may
/// have a core for itself while others wait.
void run(const model& m, const mmr::mesh& mesh, const mmr::plan& p, int steps, ran& out) {
  using clock = std::chrono::steady_clock;
  std::vector<double> losses, seconds;
  std::vector<char> equal(static_cast<std::size_t>(mesh.rank_count()), 1);
  mmr::run_ranks(mesh.rank_count(), [&](mmr::thread_communicator& world) {
    mmr::trainer<mmr::thread_communicator> t(m.g, mesh, p, world, seed);
    const auto rank = static_cast<std::size_t>(world.rank());
    equal[rank] = t.run().arena_bytes() == p.per_rank[rank].arena;
    const auto fill = made_up(m.words);
    for (int i = 0; i < steps; ++i) {
      world.barrier();
      const auto begin = clock::now();
      const double loss = t.step(1e-3, fill);
      world.barrier();
      const std::chrono::duration<double> took = clock::now() - begin;
      if (rank == 0) losses.push_back(loss);
      if (rank == 0 && i > 0) seconds.push_back(took.count());
    }
  });
  if (out.losses.size() < losses.size()) out.losses = losses;
  out.seconds.insert(out.seconds.end(), seconds.begin(), seconds.end());
  out.as_predicted = out.as_predicted && std::count(equal.begin(), equal.end(), 0) == 0;
}

double median(std::vector<double> x) {
  std::nth_element(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2), x.end());
  return x[x.size() / 2];
}

struct tally {
  int plans = 0, as_predicted = 0, compared = 0, in_order = 0;
  double worst_loss = 0;
};

void compare(const model& m, const std::string& spec, int rounds, tally& sum) {
  const auto one = mmr::mesh::parse("one=1");
  mmr::planner alone(m.g, one);
  ran want;
  run(m, one, alone.make({.scheme = "single", .axes = m.axes}), checked_steps, want);

  mmr::mesh mesh;
  mmr::run_ranks(mmr::mesh::parse(spec).rank_count(), [&](mmr::thread_communicator& world) {
    const auto measured = mmr::calibrate(world, mmr::mesh::parse(spec));
    if (world.rank() == 0) mesh = measured;
  });
  mmr::planner planner(m.g, mesh);
  std::vector<mmr::plan> plans;
  for (const char* name : {"memory", "time", "single", "ddp", "zero3", "megatron", "megatron-sp"}) {
    mmr::plan_request r{.axes = m.axes, .work = 3e8};
    if (std::string(name) == "time")
      r.minimise = mmr::goal::time;
    else if (std::string(name) != "memory")
      r.scheme = name;
    plans.push_back(planner.make(r));
  }
  std::vector<ran> results(plans.size());
  for (std::size_t i = 0; i < plans.size(); ++i) run(m, mesh, plans[i], checked_steps, results[i]);
  for (auto& r : results) r.seconds.clear();
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < plans.size(); ++i) run(m, mesh, plans[i], 3, results[i]);

  using mmr::align;
  mmr::text_table table({{"plan", align::left}, {"modelled", align::right, "ms"}, {"measured", align::right, "ms"}, {"ratio", align::right},
                         {"arena", align::left}, {"losses", align::right, "off by"}});
  for (std::size_t i = 0; i < plans.size(); ++i) {
    double off = 0;
    for (std::size_t k = 0; k < want.losses.size(); ++k)
      off = std::max(off, std::abs(results[i].losses[k] - want.losses[k]) / std::abs(want.losses[k]));
    sum.worst_loss = std::max(sum.worst_loss, off);
    sum.as_predicted += results[i].as_predicted;
    ++sum.plans;
    const double seconds = median(results[i].seconds);
    char modelled[32], measured[32], ratio[32], losses[32];
    std::snprintf(modelled, sizeof modelled, "%.1f", 1e3 * plans[i].step_seconds);
    std::snprintf(measured, sizeof measured, "%.1f", 1e3 * seconds);
    std::snprintf(ratio, sizeof ratio, "%.2f", seconds / plans[i].step_seconds);
    std::snprintf(losses, sizeof losses, "%.1e", off);
    table.add_row({plans[i].name, modelled, measured, ratio, results[i].as_predicted ? "as predicted" : "NOT as predicted", losses});
  }
  std::cout << "\n" << m.name << " on " << spec << "\n" << table;
  for (std::size_t i = 0; i < plans.size(); ++i)
    for (std::size_t k = 0; k < plans.size(); ++k) {
      if (plans[k].step_seconds < 1.2 * plans[i].step_seconds) continue;
      ++sum.compared;
      if (median(results[i].seconds) < median(results[k].seconds))
        ++sum.in_order;
      else
        std::cout << "not in order: " << plans[i].name << " is modelled the faster of " << plans[i].name << " and " << plans[k].name << "\n";
    }
  std::cout << std::flush;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
  try {
    const auto all = models();
    tally sum;
    const std::pair<const char*, const char*> pairs[] = {{"gpt", "data=2"},         {"gpt", "data=2,model=2"}, {"gpt, wide", "data=4"},
                                                         {"gpt, wide", "model=2"},  {"llama", "data=2"},       {"llama", "data=2,model=2"},
                                                         {"bert", "data=3"},        {"vit", "data=2,model=2"}, {"moe", "data=2"},
                                                         {"t5", "data=2"}};
    for (const auto& [name, spec] : pairs) compare(all.at(name), spec, rounds, sum);
    std::cout << "\n" << sum.as_predicted << " of " << sum.plans << " arenas as predicted; losses within "
              << sum.worst_loss << " of one rank's; " << sum.in_order << " of " << sum.compared
              << " pairs of plans that the model says differ by a fifth or more are in that order\n";
    return sum.as_predicted == sum.plans && sum.in_order == sum.compared ? 0 : 1;
  } catch (const std::exception& problem) {
    std::cerr << "bench_order: " << problem.what() << "\n";
    return 1;
  }
}
