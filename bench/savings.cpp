// Memory of plans against Megatron-LM's strategies: GPTs of 350M to 175B parameters on 8 and 64 devices, every split into
// tensor (t) and data (d) parallelism, with and without sequence parallelism, with and without the optimizer sharded over d.
//
//     bench_savings [DEVICES ...]      8 and 64 where none are given
//
// All plans are of one space: Megatron-LM's are the choices pinned. Bytes are the peak live bytes of a device, the floor is
// what is stored divided evenly over all devices, seconds are those of the model for A100-80G nodes of 8.
#include <mmr/auto_parallel.hpp>
#include <mmr/io/format.hpp>
#include <mmr/io/table.hpp>
#include <mmr/model/gpt.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>

namespace {

struct shape {
  const char* name;
  std::int64_t layers, embed, heads;
};
// Brown et al., arXiv 2005.14165, table 2.1; 22B: Korthikanti et al., arXiv 2205.05198, table 3.
constexpr shape shapes[] = {{"350M", 24, 1024, 16}, {"1.3B", 24, 2048, 16},  {"6.7B", 32, 4096, 32},
                            {"22B", 48, 6144, 64},  {"175B", 96, 12288, 96}};
constexpr std::int64_t sequences = 64;  // in a step; each of 2048 words
constexpr double solve_work = 5e8;

std::string gib(std::int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", static_cast<double>(bytes) / (1 << 30));
  return text;
}
std::string percent(double part) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f%%", 100 * part);
  return text;
}

void compare(const shape& s, int devices, double& greatest, std::string& where) {
  const auto g = mmr::gpt::training_graph<mmr::bf16>(
      {.layers = s.layers, .heads = s.heads, .embed = s.embed, .seq = 2048, .batch = sequences, .vocab = 51200, .dropout = 0.1},
      mmr::adamw{.clip_norm = 1});
  using mmr::align;
  mmr::text_table table({{"t x d", align::left}, {"Megatron-LM", align::left}, {"peak", align::right, "GiB"}, {"step", align::right, "s"},
                         {"mmr, same mesh", align::right, "GiB"}, {"step", align::right, "s"}, {"saved", align::right},
                         {"within 5%", align::right, "GiB"}, {"saved", align::right}, {"gap", align::right}});
  const int per_node = std::min(devices, 8);
  for (int t = 1; t <= std::min(devices, 8); t *= 2) {
    const int d = devices / t;
    auto m = mmr::mesh::parse("data=" + std::to_string(d) + ",model=" + std::to_string(t));
    m = mmr::cluster{mmr::device_preset("a100-80g"), devices / per_node, per_node}.lay(m);
    mmr::planner plans(g, m);
    const mmr::plan_request ask{.axes = mmr::gpt::scheme(), .work = solve_work};
    auto request = ask;
    const auto least = plans.make(request);
    request.slowdown = 0.05;
    const auto quick = plans.make(request);
    const double gap = static_cast<double>(mmr::peak_bytes(least)) / least.lower_bound - 1;
    for (const char* scheme : {"megatron", "megatron-zero1", "megatron-sp", "megatron-sp-zero1"}) {
      if (t == 1 && std::string(scheme).find("-sp") != std::string::npos) continue;  // nothing to split the sequence over
      request = ask;
      request.scheme = scheme;
      const auto fixed = plans.make(request);
      const auto saved = [&](const mmr::plan& p) {
        return 1 - static_cast<double>(mmr::peak_bytes(p)) / static_cast<double>(mmr::peak_bytes(fixed));
      };
      if (saved(least) > greatest) {
        greatest = saved(least);
        where = std::string(s.name) + " on " + std::to_string(devices) + " devices, " + std::to_string(t) + " x " +
                std::to_string(d) + " against " + scheme;
      }
      table.add_row({std::to_string(t) + " x " + std::to_string(d), scheme, gib(mmr::peak_bytes(fixed)),
                     mmr::format_seconds(fixed.step_seconds), gib(mmr::peak_bytes(least)), mmr::format_seconds(least.step_seconds),
                     percent(saved(least)), gib(mmr::peak_bytes(quick)), percent(saved(quick)), percent(gap)});
    }
  }
  // Parameters 2, gradients 4 and Adam's state 12 bytes: what no plan goes below without recomputing or waiting.
  double parameters = 0;
  for (mmr::tensor_id i = 0; i < g.tensors(); ++i)
    if (g.tensor_of(i).kind == mmr::tensor_class::parameter && g.op(g.tensor_of(i).producer).when == mmr::phase::source)
      parameters += static_cast<double>(g.tensor_of(i).type.count());
  std::cout << "\nGPT " << s.name << ", " << devices << " devices, " << sequences << " x 2048 words; model states evenly over all: "
            << gib(static_cast<std::int64_t>(18 * parameters / devices)) << " GiB a device\n"
            << table << std::flush;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> counts;
  for (int i = 1; i < argc; ++i) counts.push_back(std::atoi(argv[i]));
  if (counts.empty()) counts = {8, 64};
  double greatest = 0;
  std::string where;
  try {
    for (int devices : counts) {
      if (devices < 1 || (devices > 8 && devices % 8 != 0)) mmr::fail("'", devices, "' devices are not 1 to 8, nor whole nodes of 8");
      for (const auto& s : shapes) compare(s, devices, greatest, where);
    }
  } catch (const std::exception& problem) {
    std::cerr << "bench_savings: " << problem.what() << "\n";
    return 1;
  }
  std::cout << "\nmost saved: " << percent(greatest) << ", " << where << "\n";
}
