// The command line of train_gpt.
#pragma once

#include <mmr/auto_parallel.hpp>
#include <mmr/model/gpt.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

#ifndef MMR_EXAMPLE_SOURCE_DIR
#define MMR_EXAMPLE_SOURCE_DIR "."
#endif

/// Takes numbers of T from `least` to `most`; all else gets one sentence. (CLI11 itself wraps -1 and cuts what is too large.)
template <class T>
CLI::Validator within(T least, T most) {
  std::ostringstream range;
  range << "from " << least << " to " << most;
  const auto check = [=, range = range.str()](const std::string& text) -> std::string {
    T value{};
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code == std::errc{} && end == text.data() + text.size() && value >= least && value <= most) return {};
    return "'" + text + "' is no " + (std::is_integral_v<T> ? "whole " : "") + "number " + range;
  };
  return {check, range.str(), "within"};
}

inline CLI::Validator whole_number(std::int64_t least, std::int64_t most) { return within(least, most); }

struct options {
  static constexpr int most_ranks = 1024;
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
    constexpr std::int64_t largest = 1'000'000'000, most_steps = std::int64_t{1} << 40;
    app.failure_message([](const CLI::App*, const CLI::Error& e) {
      return std::string("train_gpt: ") + e.what() + "; --help lists the options\n";
    });
    app.option_defaults()->always_capture_default()->take_last();
    app.add_option("--data", data, "text file, or a folder of them; its bytes are the tokens");
    auto* by_ranks = app.add_option("--ranks", ranks, "ranks, as a mesh of one axis")->check(whole_number(1, most_ranks));
    app.add_option("--mesh", mesh, "mesh, as data=2,model=2")->excludes(by_ranks);
    app.add_option("--comm", comm, "how ranks talk")->check(CLI::IsMember({"threads", "mpi"}));
    app.add_option("--plan", plan,
                   "memory, time, single, ddp, zero1, zero2, zero3, megatron, megatron-sp, or a plan saved as FILE.json");
    app.add_option("--slowdown", slowdown, "memory plan: at most this much slower than the fastest (0.05 is 5%)");
    app.add_option("--budget", budget, "peak bytes a rank, as 200MB or 1GiB");
    app.add_option("--layers", model.layers)->check(whole_number(1, 1000));
    app.add_option("--hidden", model.embed)->check(whole_number(1, largest));
    app.add_option("--heads", model.heads)->check(whole_number(1, largest));
    app.add_option("--seq", model.seq)->check(whole_number(1, largest));
    app.add_option("--batch", model.batch, "sequences in a microbatch")->check(whole_number(1, largest));
    app.add_option("--accumulate", model.microbatches, "microbatches in a step")->check(whole_number(1, largest));
    app.add_option("--vocab", model.vocab, "words; at least 256 to hold every byte")->check(whole_number(1, largest));
    app.add_option("--dropout", model.dropout)->check(within(0.0, 1.0));
    app.add_option("--steps", steps)->check(whole_number(0, most_steps));
    app.add_option("--lr", lr, "learning rate after the warm-up")->check(within(0.0, 1e30));
    app.add_option("--warmup", warmup, "steps of linear warm-up")->check(whole_number(0, most_steps));
    app.add_option("--decay", decay)->check(CLI::IsMember({"none", "linear", "cosine"}));
    app.add_option("--clip", clip, "global gradient norm; 0 for none")->check(within(0.0, 1e30));
    app.add_option("--weight-decay", weight_decay)->check(within(0.0, 1e30));
    app.add_option("--seed", seed)->check(within(std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max()));
    app.add_option("--precision", precision)->check(CLI::IsMember({"float", "double"}));
    app.add_option("--weights", weights, "safetensors file to start from; resumes where optimizer state lies beside it");
    app.add_option("--save", save, "safetensors file for the trained weights; optimizer state goes beside it");
    app.add_option("--save-plan", save_plan, "JSON file for the plan");
    app.add_option("--save-tokens", save_tokens, "safetensors file for the tokens of every step");
    app.add_option("--json", json, "JSON file for losses, speed and bytes");
    app.add_option("--sample", sample, "bytes of text to generate at the end")->check(whole_number(0, largest));
    app.add_option("--solve-seconds", solve_seconds, "time limit of the solver, a plan")->check(within(1e-3, 1e9));
    app.add_flag("--explain", explain, "print the plan tensor by tensor");
    app.add_flag("--profile", profile, "print the seconds of each operator on rank 0");
    app.add_flag("--no-table", no_table, "plan only what is run; skip the comparison");
  }

  mmr::mesh device_mesh() const {
    auto m = mmr::mesh::parse(mesh.empty() ? "ranks=" + std::to_string(ranks) : mesh);
    if (m.rank_count() > most_ranks)
      mmr::fail("the mesh ", mesh, " has ", m.rank_count(), " ranks, and train_gpt runs at most ", most_ranks, "; give it smaller axes");
    return m;
  }

  /// Fails at once where the model cannot be one, where an output could not be written at the end of a long run, or where one
  /// file would overwrite another.
  void check() const {
    model.check();
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
