// Trains: holds an executor, counts steps, schedules the learning rate, saves and resumes.
#pragma once

#include <mmr/run/checkpoint.hpp>
#include <mmr/run/initial.hpp>

#include <numbers>

namespace mmr {

enum class decay : std::uint8_t { none, linear, cosine };

/// Learning rate: linear warm-up over `warmup` steps to `peak`, then decay to `floor` at step `total`.
struct learning_rate {
  double peak = 1e-3;
  std::int64_t warmup = 0;
  decay shape = decay::none;
  std::int64_t total = 0;
  double floor = 0;

  /// The rate of a step, counted from 0.
  double at(std::int64_t step) const {
    if (step < warmup) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup);
    if (shape == decay::none || total <= warmup) return peak;
    const double done = std::min(1.0, static_cast<double>(step - warmup) / static_cast<double>(total - warmup));
    const double left = shape == decay::linear ? 1 - done : 0.5 * (1 + std::cos(std::numbers::pi * done));
    return floor + (peak - floor) * left;
  }
};

template <communicator C>
class trainer {
 public:
  /// All ranks construct it together; parameters get their first values from the seed.
  trainer(const graph& g, const mesh& m, const plan& p, C& world, std::uint64_t seed) : run_(g, m, p, world), seed_(seed) {
    for (auto t : detail::kept_tensors(g, tensor_class::parameter))
      detail::with_element(g.tensor_of(t).type.element, [&](auto element) {
        fill_initial(g.tensor_of(t), run_.box(t), seed, static_cast<decltype(element)*>(run_.data(t)));
      });
  }

  executor<C>& run() { return run_; }
  std::int64_t steps_done() const { return done_; }

  /// One optimizer step; returns its mean loss, the same on every rank. `fill` gives each rank its part of the inputs.
  double step(double rate, const input_filler& fill) {
    step_info info;
    info.seed = seed_;
    info.step = done_;
    info.learning_rate = rate;
    const double loss = run_.step(info, fill);
    ++done_;
    return loss;
  }
  /// The same at the rate of a schedule.
  double step(const learning_rate& rate, const input_filler& fill) { return step(rate.at(done_), fill); }

  /// Fails where the last step left parameters or moments that are not finite; `remedy` says what is not done with them.
  void expect_finite(const std::string& remedy) { detail::hash_of_finite(run_, done_, remedy); }
  void save(const std::filesystem::path& weights) { save_checkpoint(run_, weights, done_); }
  void load(const std::filesystem::path& weights) { done_ = load_checkpoint(run_, weights); }

 private:
  executor<C> run_;
  std::uint64_t seed_;
  std::int64_t done_ = 0;
};

}  // namespace mmr
