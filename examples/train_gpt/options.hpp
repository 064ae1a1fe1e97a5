// The command line of train_gpt.
#pragma once

#include <mmr/auto_parallel.hpp>
#include <mmr/model/gpt.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#ifndef MMR_EXAMPLE_SOURCE_DIR
#define MMR_EXAMPLE_SOURCE_DIR "."
#endif

struct options {
  std::string data = std::string(MMR_EXAMPLE_SOURCE_DIR) + "/include";
  std::string comm = "threads", plan = "memory", precision = "float", decay = "none";
  int ranks = 4;
  std::string mesh, weights, save, save_plan, save_tokens, json, budget;
  std::optional<double> slowdown;
  mmr::gpt::config model{.layers = 4, .heads = 4, .embed = 128, .seq = 64, .batch = 8, .vocab = 256, .dropout = 0.0};
  std::int64_t steps = 100, warmup = 0, sample = 200;
  double lr = 1e-3, clip = 1.0, weight_decay = 0.01;
  std::uint64_t seed = 1;
  double solve_seconds = 20;
  bool explain = false, profile = false, no_table = false;

  mmr::adamw optimizer() const { return {.weight_decay = weight_decay, .clip_norm = clip}; }
  mmr::learning_rate rate() const {
    return {lr, warmup, decay == "cosine" ? mmr::decay::cosine : decay == "linear" ? mmr::decay::linear : mmr::decay::none,
            steps, 0.1 * lr};
  }

  void declare(CLI::App& app) {
    app.option_defaults()->always_capture_default()->take_last();
    app.add_option("--data", data, "text file, or a folder of them; its bytes are the tokens");
    auto* by_ranks = app.add_option("--ranks", ranks, "ranks, as a mesh of one axis");
    app.add_option("--mesh", mesh, "mesh, as data=2,model=2")->excludes(by_ranks);
    app.add_option("--comm", comm, "how ranks talk")->check(CLI::IsMember({"threads", "mpi"}));
    app.add_option("--plan", plan,
                   "memory, time, single, ddp, zero1, zero2, zero3, megatron, megatron-sp, or a plan saved as FILE.json");
    app.add_option("--slowdown", slowdown, "memory plan: at most this much slower than the fastest (0.05 is 5%)");
    app.add_option("--budget", budget, "peak bytes a rank, as 200MB or 1GiB");
    app.add_option("--layers", model.layers);
    app.add_option("--hidden", model.embed);
    app.add_option("--heads", model.heads);
    app.add_option("--seq", model.seq);
    app.add_option("--batch", model.batch, "sequences in a microbatch");
    app.add_option("--accumulate", model.microbatches, "microbatches in a step");
    app.add_option("--vocab", model.vocab, "words; at least 256 to hold every byte");
    app.add_option("--dropout", model.dropout);
    app.add_option("--steps", steps)->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40));
    app.add_option("--lr", lr, "learning rate after the warm-up")->check(CLI::NonNegativeNumber);
    app.add_option("--warmup", warmup, "steps of linear warm-up")->check(CLI::NonNegativeNumber);
    app.add_option("--decay", decay)->check(CLI::IsMember({"none", "linear", "cosine"}));
    app.add_option("--clip", clip, "global gradient norm; 0 for none")->check(CLI::NonNegativeNumber);
    app.add_option("--weight-decay", weight_decay)->check(CLI::NonNegativeNumber);
    app.add_option("--seed", seed);
    app.add_option("--precision", precision)->check(CLI::IsMember({"float", "double"}));
    app.add_option("--weights", weights, "safetensors file to start from; resumes where optimizer state lies beside it");
    app.add_option("--save", save, "safetensors file for the trained weights; optimizer state goes beside it");
    app.add_option("--save-plan", save_plan, "JSON file for the plan");
    app.add_option("--save-tokens", save_tokens, "safetensors file for the tokens of every step");
    app.add_option("--json", json, "JSON file for losses, speed and bytes");
    app.add_option("--sample", sample, "bytes of text to generate at the end")->check(CLI::NonNegativeNumber);
    app.add_option("--solve-seconds", solve_seconds, "time limit of the solver, a plan")->check(CLI::PositiveNumber);
    app.add_flag("--explain", explain, "print the plan tensor by tensor");
    app.add_flag("--profile", profile, "print the seconds of each operator on rank 0");
    app.add_flag("--no-table", no_table, "plan only what is run; skip the comparison");
  }

  mmr::mesh device_mesh() const {
    if (!mesh.empty()) return mmr::mesh::parse(mesh);
    if (ranks < 1) mmr::fail("--ranks is ", ranks, "; give at least 1");
    return mmr::mesh::parse("ranks=" + std::to_string(ranks));
  }

  /// Fails at once where numbers are none, where an output could not be written at the end of a long run, or where one
  /// file would overwrite another.
  void check() const {
    model.check();
    for (const auto& [name, value] : {std::pair{"--lr", lr}, std::pair{"--clip", clip}, std::pair{"--weight-decay", weight_decay}})
      if (!std::isfinite(value) || value < 0) mmr::fail(name, " is ", value, "; give a number of 0 or more");
    std::vector<std::filesystem::path> taken;
    const auto take = [&](const std::string& path) {
      std::error_code code;
      auto whole = std::filesystem::weakly_canonical(path, code);
      if (std::find(taken.begin(), taken.end(), whole) != taken.end())
        mmr::fail("the file ", path, " is named twice; give each output a name of its own");
      taken.push_back(std::move(whole));
    };
    take(data);
    if (plan.ends_with(".json")) take(plan);
    for (const auto* path : {&save, &save_plan, &save_tokens, &json}) {
      if (path->empty()) continue;
      const auto folder = std::filesystem::absolute(*path).parent_path();
      std::error_code code;
      if (!std::filesystem::is_directory(folder, code))
        mmr::fail("the folder ", folder, " of the output ", *path, " does not exist; make it first");
      if (std::filesystem::is_directory(*path, code)) mmr::fail("the output ", *path, " is a folder; name a file");
      take(*path);
      if (path == &save) take(mmr::optimizer_path(save).string());
      // Made and thrown away beside the output: says now what would be said after the run.
      if (!std::filesystem::exists(*path, code) || std::filesystem::is_regular_file(*path, code)) mmr::atomic_file probe(*path);
    }
  }
};
