// What the threads of one run share beside their data: the first failure, and the way to wake everybody after it.
#pragma once

#include <atomic>
#include <memory>
#include <mmr/run/communicator.hpp>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace mmr::detail {

/// A group of ranks as the world sees it: something in which ranks may be waiting.
class wakeable {
 public:
  virtual ~wakeable() = default;
  /// No collective of the group can begin any more; those that wait for one throw.
  virtual void abort() = 0;
  /// World rank `rank` has returned from its function and enters nothing any more.
  virtual void depart(int rank) = 0;
};

class thread_world {
 public:
  /// A group that is added after a failure starts aborted.
  void add(const std::shared_ptr<wakeable>& group) {
    const std::lock_guard lock(mutex_);
    std::erase_if(groups_, [](const auto& g) { return g.expired(); });
    groups_.push_back(group);
    if (failed_) group->abort();
    for (const int rank : departed_) group->depart(rank);
  }

  /// Records the failure if it is the first, and stops all ranks.
  void stop(int rank, std::string what) {
    const std::lock_guard lock(mutex_);
    if (failed_) return;
    failed_ = true;
    failed_rank_ = rank;
    what_ = std::move(what);
    for (const auto& g : groups_) {
      if (const auto group = g.lock()) group->abort();
    }
  }

  void depart(int rank) {
    const std::lock_guard lock(mutex_);
    departed_.push_back(rank);
    for (const auto& g : groups_) {
      if (const auto group = g.lock()) group->depart(rank);
    }
  }

  [[noreturn]] void throw_aborted(const char* operation) const {
    const std::lock_guard lock(mutex_);
    throw aborted(std::string(operation) + " stopped, because rank " + std::to_string(failed_rank_) +
                  " failed: " + what_);
  }

  /// Throws the first failure; call it after all threads have ended.
  void rethrow() const {
    if (!failed_) return;
    fail("rank ", failed_rank_, ": ", what_);
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<wakeable>> groups_;
  std::vector<int> departed_;
  bool failed_ = false;
  int failed_rank_ = 0;
  std::string what_;
};

}  // namespace mmr::detail
