// The shared state of one group of threads: what each rank shows the others on entering a collective, the barrier that
// makes it visible, and the check that all ranks mean the same collective.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mmr/backend/threads/mailbox.hpp>
#include <mmr/backend/threads/thread_barrier.hpp>
#include <mmr/backend/threads/thread_world.hpp>
#include <mmr/run/communicator.hpp>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mmr::detail {

class rank_group;

enum class collective : std::uint8_t { barrier, split, all_gather, all_to_all, reduce_scatter, all_reduce, broadcast };

constexpr const char* name_of(collective c) {
  constexpr const char* names[] = {"barrier",        "split",      "all_gather", "all_to_all",
                                   "reduce_scatter", "all_reduce", "broadcast"};
  return names[static_cast<std::size_t>(c)];
}

/// What one rank calls. Members that an operation does not have keep their defaults, so that calls compare member by
/// member.
struct call {
  collective what = collective::barrier;
  const void* src = nullptr;
  void* dst = nullptr;
  blocks to = {}, from = {};
  std::int64_t count = 0;
  dtype type = dtype::f32;
  reduction how = reduction::sum;
  int root = 0;
  int color = 0, key = 0;
  std::shared_ptr<rank_group> made = nullptr;  // split: the group that the first rank of a color makes for the others
};

class rank_group : public wakeable {
 public:
  rank_group(std::shared_ptr<thread_world> world, std::vector<int> world_ranks)
      : world_(std::move(world)),
        world_ranks_(std::move(world_ranks)),
        barrier_(size()),
        calls_(world_ranks_.size()),
        mailboxes_(world_ranks_.size()) {}

  static std::shared_ptr<rank_group> make(const std::shared_ptr<thread_world>& world, std::vector<int> world_ranks) {
    auto group = std::make_shared<rank_group>(world, std::move(world_ranks));
    world->add(group);
    return group;
  }

  int size() const { return static_cast<int>(world_ranks_.size()); }
  int world_rank(int rank) const { return world_ranks_[static_cast<std::size_t>(rank)]; }
  const std::shared_ptr<thread_world>& world() const { return world_; }

  const call& of(int rank) const { return calls_[static_cast<std::size_t>(rank)].value; }

  /// Runs one collective for rank `me`: shows its call, waits for all, and if all calls agree does work(), in which the
  /// buffers of all ranks may be read; leaves when all have done so. work() must not throw; in it, sync() is a barrier.
  /// Throws mmr::error naming both calls where they differ, mmr::aborted where another rank has failed.
  template <class Work>
  void run(int me, call mine, Work&& work) {
    const char* name = name_of(mine.what);
    call& shown = calls_[static_cast<std::size_t>(me)].value;
    shown = std::move(mine);
    begin(name, me);
    const int odd = first_mismatch();
    if (odd >= 0) {
      // The sentence is made before the others may go on and overwrite their calls.
      const std::string sentence = describe_mismatch(0, odd);
      barrier_.finish();
      throw error(sentence);
    }
    const int peer = count_mismatch(me);
    // Only the receiving end sees this; it leaves with the others all the same, as they may be reading its buffers.
    const std::string sentence = peer < 0 ? std::string() : describe_counts(me, peer);
    if (peer < 0) work();
    barrier_.finish();
    if (peer >= 0) throw error(sentence);
  }

  /// A barrier inside work().
  void sync() { barrier_.finish(); }

  /// Replaces what rank `me` shows, inside work() of a split.
  void show_made(int me, std::shared_ptr<rank_group> made) {
    calls_[static_cast<std::size_t>(me)].value.made = std::move(made);
  }

  void send(int me, const void* data, std::int64_t count, dtype type, int to, int tag) {
    mailbox::parcel parcel{me, tag, data, count, type};
    leave("send", me, to, mailboxes_[static_cast<std::size_t>(to)].put(parcel));
  }

  void recv(int me, void* data, std::int64_t count, dtype type, int from, int tag) {
    leave("recv", me, from, mailboxes_[static_cast<std::size_t>(me)].take(data, count, type, from, tag));
  }

  void abort() override {
    barrier_.stop(thread_barrier::outcome::aborted);
    for (mailbox& m : mailboxes_) m.abort();
  }

  void depart(int gone) override {
    const auto found = std::find(world_ranks_.begin(), world_ranks_.end(), gone);
    if (found == world_ranks_.end()) return;
    const auto rank = static_cast<int>(found - world_ranks_.begin());
    int unset = -1;
    departed_.compare_exchange_strong(unset, gone, std::memory_order_acq_rel);
    barrier_.stop(thread_barrier::outcome::departed);
    for (int k = 0; k < size(); ++k) mailboxes_[static_cast<std::size_t>(k)].depart(rank, k == rank);
  }

 private:
  // Ranks write their calls at the same time: a cache line each.
  struct alignas(64) padded_call {
    call value;
  };

  void begin(const char* name, int me) {
    switch (barrier_.begin()) {
      case thread_barrier::outcome::passed:
        return;
      case thread_barrier::outcome::aborted:
        world_->throw_aborted(name);
      case thread_barrier::outcome::departed:
        fail_departed(name, me, departed_.load(std::memory_order_acquire));
    }
  }

  void leave(const char* name, int me, int peer, mailbox::outcome result) {
    if (result == mailbox::outcome::aborted) world_->throw_aborted(name);
    if (result == mailbox::outcome::departed) fail_departed(name, me, world_rank(peer));
  }

  [[noreturn]] void fail_departed(const char* name, int me, int gone) const {
    fail(name, " on rank ", world_rank(me), " waits for rank ", gone,
         ", which has already returned; all ranks must call the same collectives");
  }

  /// The first rank whose call is not the same as rank 0's, or -1.
  int first_mismatch() const {
    const call& first = of(0);
    for (int k = 1; k < size(); ++k) {
      const call& other = of(k);
      const bool same_count = first.what == collective::all_gather || first.count == other.count;
      if (first.what != other.what || first.type != other.type || first.how != other.how || first.root != other.root ||
          !same_count) {
        return k;
      }
    }
    return -1;
  }

  /// The first rank with which rank `me` disagrees on how many elements it gets from it, or -1.
  int count_mismatch(int me) const {
    const call& mine = of(me);
    const auto own = static_cast<std::size_t>(me);
    for (int k = 0; k < size(); ++k) {
      const auto peer = static_cast<std::size_t>(k);
      const call& theirs = of(k);
      const bool same = mine.what == collective::all_gather       ? theirs.count == mine.from[peer].count()
                        : mine.what == collective::all_to_all     ? theirs.to[own].count() == mine.from[peer].count()
                        : mine.what == collective::reduce_scatter ? theirs.to[own].count() == mine.to[own].count()
                                                                  : true;
      if (!same) return k;
    }
    return -1;
  }

  void describe(std::ostream& out, int rank) const {
    const call& c = of(rank);
    out << name_of(c.what);
    const bool reduces = c.what == collective::all_reduce || c.what == collective::reduce_scatter;
    const bool counted = c.what == collective::all_reduce || c.what == collective::broadcast;
    if (counted) out << " of " << c.count;
    if (c.what != collective::barrier && c.what != collective::split) out << ' ' << mmr::name_of(c.type);
    if (reduces) out << ' ' << mmr::name_of(c.how);
    if (c.what == collective::broadcast) out << " from root " << c.root;
    out << " on rank " << world_rank(rank);
  }

  std::string describe_mismatch(int one, int other) const {
    std::ostringstream out;
    describe(out, one);
    out << " meets ";
    describe(out, other);
    out << "; all ranks of a group must call the same collectives in the same order";
    return out.str();
  }

  std::string describe_counts(int me, int peer) const {
    const call& mine = of(me);
    const call& theirs = of(peer);
    const auto own = static_cast<std::size_t>(me), k = static_cast<std::size_t>(peer);
    const std::int64_t expected = mine.what == collective::reduce_scatter ? mine.to[own].count() : mine.from[k].count();
    const std::int64_t given = mine.what == collective::all_gather ? theirs.count : theirs.to[own].count();
    std::ostringstream out;
    out << name_of(mine.what) << ": rank " << world_rank(peer) << " gives rank " << world_rank(me) << ' ' << given
        << " elements, but rank " << world_rank(me) << " expects " << expected << "; both must name the same count";
    return out.str();
  }

  std::shared_ptr<thread_world> world_;
  std::vector<int> world_ranks_;
  thread_barrier barrier_;
  std::atomic<int> departed_{-1};
  std::vector<padded_call> calls_;
  std::vector<mailbox> mailboxes_;
};

}  // namespace mmr::detail
