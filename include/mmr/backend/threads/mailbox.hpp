// Point-to-point transfers between threads: the sender shows where its data lies and waits; the receiver copies it.
// Nothing is staged, so nothing is allocated that the plan did not count.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mmr/run/communicator.hpp>
#include <mmr/tensor/dtype.hpp>
#include <mutex>
#include <vector>

namespace mmr::detail {

/// What is sent to one rank and not yet received, in order of sending. The parcels live on the senders' stacks.
class mailbox {
 public:
  struct parcel {
    int from, tag;
    const void* data;
    std::int64_t count;
    dtype type;
    enum class stage : std::uint8_t { waiting, taken, received } state = stage::waiting;
    parcel* next = nullptr;
  };

  enum class outcome : std::uint8_t { done, aborted, departed };

  /// Returns once the data is received, or says why it never will be.
  outcome put(parcel& mine) {
    std::unique_lock lock(mutex_);
    parcel** end = &first_;
    while (*end) end = &(*end)->next;
    *end = &mine;
    changed_.notify_all();
    // A parcel that is being copied is waited for even after an abort: the receiver still reads the sender's buffer.
    changed_.wait(lock, [&] {
      return mine.state == parcel::stage::received ||
             (mine.state == parcel::stage::waiting && (aborted_ || owner_departed_));
    });
    if (mine.state == parcel::stage::received) return outcome::done;
    take_out(&mine);
    return aborted_ ? outcome::aborted : outcome::departed;
  }

  /// Receives the oldest parcel of `from` with `tag`. Throws mmr::error where its size or type is another.
  outcome take(void* data, std::int64_t count, dtype type, int from, int tag) {
    std::unique_lock lock(mutex_);
    parcel* found = nullptr;
    changed_.wait(lock, [&] { return (found = find(from, tag)) || aborted_ || has_departed(from); });
    if (aborted_) return outcome::aborted;
    if (!found) return outcome::departed;
    take_out(found);
    found->state = parcel::stage::taken;
    const std::int64_t sent = found->count;
    const dtype sent_type = found->type;
    const bool fits = sent == count && sent_type == type;
    lock.unlock();
    if (fits && count > 0) std::memcpy(data, found->data, static_cast<std::size_t>(count) * size_of(type));
    lock.lock();
    found->state = parcel::stage::received;
    changed_.notify_all();
    lock.unlock();
    if (!fits) {
      fail("recv: rank ", from, " sent ", sent, " ", name_of(sent_type), " with tag ", tag, ", but ", count, " ",
           name_of(type), " are expected; both ends must agree");
    }
    return outcome::done;
  }

  void abort() {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
    changed_.notify_all();
  }

  /// Rank `rank` of the group sends nothing more; `owner` if this is its own mailbox.
  void depart(int rank, bool owner) {
    const std::lock_guard lock(mutex_);
    departed_.push_back(rank);
    owner_departed_ = owner_departed_ || owner;
    changed_.notify_all();
  }

 private:
  parcel* find(int from, int tag) {
    for (parcel* p = first_; p; p = p->next) {
      if (p->from == from && p->tag == tag) return p;
    }
    return nullptr;
  }

  void take_out(parcel* gone) {
    for (parcel** p = &first_; *p; p = &(*p)->next) {
      if (*p == gone) {
        *p = gone->next;
        return;
      }
    }
  }

  bool has_departed(int rank) const {
    for (const int gone : departed_) {
      if (gone == rank) return true;
    }
    return false;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  parcel* first_ = nullptr;
  std::vector<int> departed_;
  bool aborted_ = false, owner_departed_ = false;
};

}  // namespace mmr::detail
