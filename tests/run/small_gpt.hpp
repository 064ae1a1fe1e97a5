// A small GPT on a little text, trained on threads: what the tests of whole runs share.
#pragma once

#include <cstring>
#include <functional>
#include <mmr/auto_parallel.hpp>
#include <mmr/io/text.hpp>
#include <mmr/model/gpt.hpp>
#include <string>
#include <vector>

namespace mmr_test {

using trainer = mmr::trainer<mmr::thread_communicator>;

inline const mmr::byte_dataset& text() {
  static const mmr::byte_dataset data(
      "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness, "
      "it "
      "was the epoch of belief, it was the epoch of incredulity, it was the season of Light, it was the season of "
      "Darkness, it was the spring of hope, it was the winter of despair, we had everything before us, we had nothing "
      "before us, we were all going direct to Heaven, we were all going direct the other way - in short, the period "
      "was "
      "so far like the present period, that some of its noisiest authorities insisted on its being received, for good "
      "or "
      "for evil, in the superlative degree of comparison only.\n");
  return data;
}

/// Gives each rank its part of the batches. One for each rank: it keeps a buffer.
inline mmr::input_filler feed(const mmr::gpt::config& c) {
  return [c, tokens = std::vector<std::int32_t>(), targets = std::vector<std::int32_t>()](
             const mmr::tensor_info& input, std::span<const mmr::interval> box, const mmr::step_info& step,
             void* to) mutable {
    const auto count = static_cast<std::size_t>(box[0].size * box[1].size);
    if (count == 0) return;  // more ranks than rows
    tokens.resize(count);
    targets.resize(count);
    text().batch(static_cast<std::uint64_t>(step.step * step.microbatches + step.microbatch), {c.batch, c.seq, 3},
                 {box[0].begin, box[0].begin + box[0].size, box[1].begin, box[1].begin + box[1].size}, tokens, targets);
    std::memcpy(to, (input.name == "tokens" ? tokens : targets).data(), count * sizeof(std::int32_t));
  };
}

inline mmr::learning_rate rate() {
  return {.peak = 3e-3, .warmup = 5, .shape = mmr::decay::cosine, .total = 50, .floor = 3e-4};
}

/// A request by name; "NAME+" is the plan NAME that makes all activations of layers again.
inline mmr::plan_request named(const std::string& name, double seconds = 5) {
  mmr::plan_request r;
  r.axes = mmr::gpt::scheme();
  r.seconds = seconds;
  const auto plain = name.substr(0, name.find('+'));
  if (plain != name) r.fixed.recompute();
  if (plain == "time") r.minimise = mmr::goal::time;
  if (plain != "memory" && plain != "time") r.scheme = plain;
  return r;
}

/// Trains `steps` steps on the threads of a mesh and gives the losses. `before` is called on every rank beforehand, and
/// `after` afterwards.
inline std::vector<double> losses(const mmr::gpt::config& c, const mmr::graph& g, const mmr::mesh& m,
                                  const mmr::plan& p, int steps, const std::function<void(trainer&)>& before = {},
                                  const std::function<void(trainer&)>& after = {}) {
  std::vector<double> out;
  mmr::run_ranks(m.rank_count(), [&](mmr::thread_communicator& world) {
    trainer t(g, m, p, world, 17);
    if (before) before(t);
    const auto fill = feed(c);
    for (int i = 0; i < steps; ++i) {
      const double loss = t.step(rate(), fill);
      if (world.rank() == 0) out.push_back(loss);
    }
    if (after) after(t);
  });
  return out;
}

inline mmr::plan make_plan(const mmr::graph& g, const mmr::mesh& m, const std::string& name) {
  return mmr::planner(g, m).make(named(name));
}

}  // namespace mmr_test
