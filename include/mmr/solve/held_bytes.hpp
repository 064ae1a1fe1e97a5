// The bytes of every step under a choice that changes a little at a time: a tree over the steps, so that a change of an
// interval and the greatest of all steps cost a few operations however long the schedule is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mmr::solve {

class held_bytes {
 public:
  /// `bytes[t]` is what is held in step t at first.
  explicit held_bytes(const std::vector<std::int64_t>& bytes) : steps_(bytes.size()) {
    while (leaves_ < steps_) leaves_ *= 2;
    // A leaf beyond the last step never is the greatest.
    nodes_.assign(2 * leaves_, {});
    for (std::size_t t = 0; t < leaves_; ++t) nodes_[leaves_ + t].most = t < steps_ ? bytes[t] : std::int64_t{-1} << 60;
    for (std::size_t n = leaves_ - 1; n > 0; --n) pull(n);
  }

  /// Adds `bytes` to the steps [begin, end).
  void add(int begin, int end, std::int64_t bytes) {
    if (begin >= end || bytes == 0) return;
    auto low = leaves_ + static_cast<std::size_t>(begin), high = leaves_ + static_cast<std::size_t>(end);
    const auto first = low, last = high - 1;
    for (; low < high; low /= 2, high /= 2) {
      if (low % 2 == 1) shift(low++, bytes);
      if (high % 2 == 1) shift(--high, bytes);
    }
    for (auto n = first / 2; n > 0; n /= 2) pull(n);
    for (auto n = last / 2; n > 0; n /= 2) pull(n);
  }

  /// The greatest bytes of any step; 0 without steps.
  std::int64_t peak() const { return steps_ == 0 ? 0 : nodes_[1].most; }

  /// How many steps hold `peak()`.
  std::int64_t at_peak() const { return steps_ == 0 ? 0 : nodes_[1].count; }

  /// The first step that holds `peak()`; -1 without steps.
  int peak_step() const {
    if (steps_ == 0) return -1;
    std::size_t n = 1;
    while (n < leaves_) n = 2 * n + (nodes_[2 * n].most >= nodes_[2 * n + 1].most ? 0 : 1);
    return static_cast<int>(n - leaves_);
  }

 private:
  struct summary {
    std::int64_t most = 0, added = 0, count = 1;
  };

  void shift(std::size_t n, std::int64_t bytes) {
    nodes_[n].most += bytes;
    nodes_[n].added += bytes;
  }

  void pull(std::size_t n) {
    const auto &a = nodes_[2 * n], &b = nodes_[2 * n + 1];
    nodes_[n].most = std::max(a.most, b.most) + nodes_[n].added;
    nodes_[n].count = (a.most >= b.most ? a.count : 0) + (b.most >= a.most ? b.count : 0);
  }

  std::size_t steps_, leaves_ = 1;
  std::vector<summary> nodes_;
};

}  // namespace mmr::solve
