// Times work that all ranks do at once, so that what they take from each other (cores, memory, links) is in the figure.
#pragma once

#include <mmr/run/communicator.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

namespace mmr {

template <communicator C>
class group_stopwatch {
 public:
  /// `rounds` medians are taken of; a round repeats the work until it lasts `least_seconds`.
  group_stopwatch(C& world, int rounds, double least_seconds)
      : world_(world), rounds_(std::max(rounds, 1)), least_(least_seconds) {}

  /// Seconds of one work(), the same on all ranks, which call this together. All start together, and the last to end counts:
  /// where ranks are more than cores, they wait for each other here as they do in a training step.
  template <class Work>
  double seconds(Work work) {
    work();  // touches memory, fills caches
    std::int64_t repeats = 1;
    // Every rank sees the same time, and so repeats as often.
    for (double t = round(work, repeats); t < least_ && repeats < most_repeats; t = round(work, repeats))
      repeats *= static_cast<std::int64_t>(std::clamp(1.2 * least_ / t, 2.0, 64.0));
    std::vector<double> times;
    for (int i = 0; i < rounds_; ++i) times.push_back(round(work, repeats));
    std::nth_element(times.begin(), times.begin() + rounds_ / 2, times.end());
    return times[static_cast<std::size_t>(rounds_ / 2)] / static_cast<double>(repeats);
  }

 private:
  static constexpr std::int64_t most_repeats = 1 << 18;

  /// Seconds from when all are there to when all are done, as the slowest rank sees it.
  template <class Work>
  double round(Work& work, std::int64_t repeats) {
    using clock = std::chrono::steady_clock;
    world_.barrier();
    const auto start = clock::now();
    for (std::int64_t i = 0; i < repeats; ++i) work();
    world_.barrier();
    const double mine = std::max(std::chrono::duration<double>(clock::now() - start).count(), 1e-9);
    double slowest = mine;
    world_.all_reduce(&mine, &slowest, 1, dtype::f64, reduction::max);
    return slowest;
  }

  C& world_;
  int rounds_;
  double least_;
};

}  // namespace mmr
