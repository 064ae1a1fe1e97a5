// What a request may spend and has spent: work, which is the same on every machine, and wall time, which is not.
#pragma once

#include <algorithm>
#include <chrono>

namespace mmr::solve {

/// Work is counted in entries of tables that are looked at, nearly: every part of the solver charges what it reads.
class meter {
 public:
  meter(double seconds, double work) : seconds_(seconds), work_(work) {}

  void charge(double entries) { used_ += entries; }
  double used() const { return used_; }
  double work_left() const { return std::max(0.0, work_ - used_); }

  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  double seconds_left() const { return seconds_ - seconds(); }

  bool over() const { return used_ > work_ || seconds_left() < 0; }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double seconds_, work_, used_ = 0;
};

}  // namespace mmr::solve
