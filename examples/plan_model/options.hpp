// The command line of plan_model.
#pragma once

#include "../common/command_line.hpp"
#include "../common/graphs/graphs.hpp"

#include <mmr/io/format.hpp>
#include <mmr/model/config_json.hpp>
#include <mmr/plan/scheme.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <variant>
#include <vector>

struct options {
  std::string model, mesh = "data=8", device = "a100-80g", calibration, precision_name = "bf16", objective = "memory";
  std::string budget, compare = "all", json, report, save_plan, diff;
  std::optional<std::int64_t> seq, batch;
  std::optional<double> slowdown;
  int microbatches = 1, points = 6;
  std::optional<int> nodes, devices_per_node;
  double solve_work = 2e9, solve_seconds = 600, clip = 1;
  bool explain = false, recompute = false;

  static constexpr std::int64_t largest = 1'000'000'000;

  void declare(CLI::App& app) {
    set_manners(app, "plan_model");
    app.add_option("--model", model, "a published model, or a JSON file as {\"family\": \"gpt\", \"layers\": 24, ...}; a name that is none lists the models")
        ->check(not_empty())->required();
    app.add_option("--seq", seq, "tokens in a sequence (default: the model's); T5: of encoder and decoder")->check(whole_number(1, largest));
    app.add_option("--batch", batch, "sequences in a microbatch, of all devices together (default: 8)")->check(whole_number(1, largest));
    app.add_option("--microbatches", microbatches, "microbatches in a step, whose gradients add up")->check(whole_number(1, 1'000'000));
    app.add_option("--clip", clip, "global gradient norm; 0 for none, which frees gradients early")->check(within(0.0, 1e30));
    app.add_option("--precision", precision_name, "bf16 with float32 gradients and optimizer, or fp32")
        ->check(not_empty())->check(CLI::IsMember({"bf16", "fp32"}));
    app.add_option("--mesh", mesh, "mesh of devices, as data=8,model=8; the last axis lies within a node")->check(not_empty());
    auto* by_device = app.add_option("--device", device, "the devices: v100-16g, v100-32g, a100-40g, a100-80g, h100, h200, cpu-rank")->check(not_empty());
    auto* by_nodes = app.add_option("--nodes", nodes, "nodes (default: as many as the mesh fills)")->check(whole_number(1, 1 << 20));
    auto* by_count = app.add_option("--devices-per-node", devices_per_node, "devices in a node (default: 8)")->check(whole_number(1, 1 << 20));
    app.add_option("--calibration", calibration, "JSON file of a mesh whose constants were measured; instead of --mesh and --device")
        ->check(not_empty())->excludes(by_device)->excludes(by_nodes)->excludes(by_count);
    app.add_option("--objective", objective, "least memory, or least time")->check(not_empty())->check(CLI::IsMember({"memory", "time"}));
    app.add_option("--slowdown", slowdown, "least memory: at most this much slower than the fastest plan (0.05 is 5%)")->check(within(0.0, 1e5));
    app.add_option("--budget", budget, "most bytes live on a device, as 80GiB")->check(not_empty());
    app.add_option("--compare", compare, "all, none, or schemes as ddp,zero3: of " + mmr::scheme_list())->check(not_empty());
    app.add_option("--front", points, "plans between the ends of the Pareto front of memory against time")->check(whole_number(0, 100));
    app.add_option("--solve-work", solve_work, "what the solver may spend on a plan, some hundred millions a second; plans depend on it alone")
        ->check(within(1.0, 1e15));
    app.add_option("--solve-seconds", solve_seconds, "unless a plan takes longer than this")->check(within(1e-3, 1e9));
    app.add_option("--json", json, "JSON file for all that is printed")->check(not_empty());
    app.add_option("--report", report, "HTML file to look at, with nothing else needed")->check(not_empty());
    app.add_option("--save-plan", save_plan, "JSON file for the plan that was asked for")->check(not_empty());
    app.add_option("--diff", diff, "file of a saved plan: says what the plan asked for changes")->check(not_empty());
    app.add_flag("--recompute", recompute, "let plans make activations of layers again in backward instead of keeping them");
    app.add_flag("--explain", explain, "print the plan that was asked for tensor by tensor");
  }

  /// Fails where options contradict each other, or an output could not be written.
  void check() const {
    if (slowdown && objective == "time") mmr::fail("--slowdown bounds the least memory; leave it out with --objective time");
    if (slowdown && !budget.empty() && objective == "memory" && *slowdown == 0)
      mmr::fail("--slowdown 0 leaves the fastest plan only; ask for it with --objective time --budget ", budget);
    static_cast<void>(schemes());
    named_files files;
    if (names_file()) files.take(model);
    if (!calibration.empty()) files.take(calibration);
    if (!diff.empty()) files.take(diff);
    for (const auto* path : {&json, &report, &save_plan}) files.write(*path, true);
  }

  mmr::adamw optimizer() const { return {.clip_norm = clip}; }
  std::optional<std::int64_t> budget_bytes() const {
    if (budget.empty()) return std::nullopt;
    return static_cast<std::int64_t>(mmr::parse_bytes(budget));
  }

  bool names_file() const {
    std::error_code code;
    return !mmr::model::in_catalog(model) &&
           (model.find('/') != std::string::npos || model.ends_with(".json") || std::filesystem::is_regular_file(model, code));
  }

  /// The model with the sizes that the command line gives it.
  mmr::model::any_config config() const {
    auto any = names_file() ? mmr::model::load_config(model) : mmr::model::find_model(model);
    std::visit([&](auto& c) { apply_to(c); }, any);
    return any;
  }

  /// The schemes to compare with.
  std::vector<std::string> schemes() const {
    if (compare == "none") return {};
    if (compare == "all") return {mmr::scheme_names.begin(), mmr::scheme_names.end()};
    std::vector<std::string> names;
    for (std::size_t at = 0; at <= compare.size();) {
      const auto comma = std::min(compare.find(',', at), compare.size());
      auto name = compare.substr(at, comma - at);
      if (std::find(mmr::scheme_names.begin(), mmr::scheme_names.end(), name) == mmr::scheme_names.end())
        mmr::fail("--compare: '", name, "' is no scheme; give all or none alone, or some of ", mmr::scheme_list(), ", with commas between");
      if (std::find(names.begin(), names.end(), name) != names.end()) mmr::fail("--compare names ", name, " twice");
      names.push_back(std::move(name));
      at = comma + 1;
    }
    return names;
  }

 private:
  template <class Config>
  void apply_to(Config& c) const {
    if (batch) c.batch = *batch;
    c.microbatches = microbatches;
    if (seq) {
      if constexpr (requires { c.seq; })
        c.seq = *seq;
      else
        mmr::fail("--seq is of models that read sequences; '", model, "' reads the patches of an image");
      if constexpr (requires { c.source; }) c.source = *seq;
    }
    if (recompute) c.recompute = true;
    c.check();
  }
};
