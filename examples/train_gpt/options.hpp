// The command line of train_gpt.
#pragma once

#include "../common/command_line.hpp"

#include <mmr/auto_parallel.hpp>
#include <mmr/model/gpt.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#ifndef MMR_EXAMPLE_SOURCE_DIR
#define MMR_EXAMPLE_SOURCE_DIR "."
#endif

struct options {
  static constexpr int most_ranks = 1024;
  std::string data = std::string(MMR_EXAMPLE_SOURCE_DIR) + "/include";
  std::string comm = "threads", plan = "memory", precision = "float", decay = "none";
  int ranks = 4;
  std::string mesh, weights, save, save_plan, save_tokens, json, report, budget;
  std::optional<double> slowdown;
  mmr::gpt::config model{.layers = 4, .heads = 4, .embed = 128, .seq = 64, .batch = 8, .vocab = 256, .dropout = 0.0};
  std::int64_t steps = 100, warmup = 0, sample = 200;
  std::optional<std::int64_t> decay_steps;
  double lr = 1e-3, clip = 1.0, weight_decay = 0.01;
  std::uint64_t seed = 1;
  double solve_work = 2e9, solve_seconds = 600;
  bool explain = false, profile = false, no_table = false;

  mmr::adamw optimizer() const { return {.weight_decay = weight_decay, .clip_norm = clip}; }
  mmr::learning_rate rate() const {
    return {lr, warmup, decay == "cosine" ? mmr::decay::cosine : decay == "linear" ? mmr::decay::linear : mmr::decay::none,
            decay_steps.value_or(steps), 0.1 * lr};
  }

  void declare(CLI::App& app) {
    constexpr std::int64_t largest = 1'000'000'000, most_steps = std::int64_t{1} << 40;
    set_manners(app, "train_gpt");
    // Named and not spelled out: help should not depend on where the project lies.
    app.add_option("--data", data, "text file, or a folder of them; its bytes are the tokens")
        ->check(not_empty())
        ->default_str("mmr's headers");
    auto* by_ranks = app.add_option("--ranks", ranks, "ranks, as a mesh of one axis")->check(whole_number(1, most_ranks));
    app.add_option("--mesh", mesh, "mesh, as data=2,model=2")->excludes(by_ranks)->check(not_empty());
    app.add_option("--comm", comm, "how ranks talk")->check(not_empty())->check(CLI::IsMember({"threads", "mpi"}));
    app.add_option("--plan", plan,
                   "memory, time, the file of a saved plan, or one of " + mmr::scheme_list())
        ->check(not_empty());
    app.add_option("--slowdown", slowdown, "memory plan: at most this much slower than the fastest (0.05 is 5%)")
        ->check(within(0.0, 1e5));
    app.add_option("--budget", budget, "peak bytes a rank, as 200MB or 1GiB")->check(not_empty());
    app.add_option("--layers", model.layers, "transformer blocks")->check(whole_number(1, 1000));
    app.add_option("--hidden", model.embed, "size of the hidden state, a multiple of the heads")->check(whole_number(1, largest));
    app.add_option("--heads", model.heads, "attention heads in a block")->check(whole_number(1, largest));
    app.add_option("--seq", model.seq, "tokens in a sequence")->check(whole_number(1, largest));
    app.add_option("--batch", model.batch, "sequences in a microbatch")->check(whole_number(1, largest));
    app.add_option("--accumulate", model.microbatches, "microbatches in a step")->check(whole_number(1, largest));
    app.add_option("--vocab", model.vocab, "words; at least 256 to hold every byte")->check(whole_number(1, largest));
    app.add_flag("--recompute", model.recompute, "let plans make activations of layers again in backward instead of keeping them");
    app.add_option("--dropout", model.dropout, "probability of dropping a value, below 1")->check(within(0.0, 1.0));
    app.add_option("--steps", steps, "steps of this run; a run that resumes does as many more")->check(whole_number(0, most_steps));
    app.add_option("--lr", lr, "learning rate after the warm-up")->check(within(0.0, 1e30));
    app.add_option("--warmup", warmup, "steps of linear warm-up")->check(whole_number(0, most_steps));
    app.add_option("--decay", decay, "how the learning rate falls to a tenth after the warm-up")
        ->check(not_empty())->check(CLI::IsMember({"none", "linear", "cosine"}));
    app.add_option("--decay-steps", decay_steps,
                   "step at which the decay ends, over all runs that resume each other (default: --steps); with it, and the "
                   "other options as before, a resumed run has the losses of an unbroken one")
        ->check(whole_number(0, most_steps));
    app.add_option("--clip", clip, "global gradient norm; 0 for none")->check(within(0.0, 1e30));
    app.add_option("--weight-decay", weight_decay, "decoupled weight decay of AdamW")->check(within(0.0, 1e30));
    app.add_option("--seed", seed, "of first weights, batches, dropout and the sample")->check(within(std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max()));
    app.add_option("--precision", precision, "element type of everything")->check(not_empty())->check(CLI::IsMember({"float", "double"}));
    app.add_option("--weights", weights, "safetensors file to start from; resumes where optimizer state lies beside it")->check(not_empty());
    app.add_option("--save", save, "safetensors file for the trained weights; optimizer state goes beside it")->check(not_empty());
    app.add_option("--save-plan", save_plan, "JSON file for the plan")->check(not_empty());
    app.add_option("--save-tokens", save_tokens, "safetensors file for the tokens of every step")->check(not_empty());
    app.add_option("--json", json, "JSON file for losses, speed and bytes")->check(not_empty());
    app.add_option("--report", report, "HTML file to look at: the plans, and what the run took and learnt")->check(not_empty());
    app.add_option("--sample", sample, "bytes of text to generate at the end")->check(whole_number(0, largest));
    app.add_option("--solve-work", solve_work, "what the solver may spend on a plan, some hundred millions a second; plans depend on it alone")
        ->check(within(1.0, 1e15));
    app.add_option("--solve-seconds", solve_seconds, "unless a plan takes longer than this")->check(within(1e-3, 1e9));
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

  static constexpr std::array<std::string_view, 2> searched = {"memory", "time"};
  /// Whether --plan names a file, whatever its suffix, and not a plan that is to be made.
  bool plan_is_file() const {
    const auto is_plan = [&](std::string_view name) { return name == plan; };
    return std::none_of(mmr::scheme_names.begin(), mmr::scheme_names.end(), is_plan) &&
           std::none_of(searched.begin(), searched.end(), is_plan);
  }

  /// Fails at once where the model cannot be one, where an output could not be written at the end of a long run, or where one
  /// file would overwrite another.
  void check() const {
    model.check();
    named_files files;
    files.take(data);
    if (plan_is_file()) files.take(plan);
    for (const auto* path : {&save, &save_plan, &save_tokens, &json, &report})
      if (files.write(*path, path != &save && path != &save_tokens) && path == &save) files.take(mmr::optimizer_path(save).string());
  }
};
