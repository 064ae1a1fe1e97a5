// The embedded communicator: ranks are threads of one process and read each other's buffers directly, so a collective
// costs two barriers and one copy, and needs no memory of its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <mmr/backend/threads/rank_group.hpp>
#include <mmr/run/communicator.hpp>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace mmr {

/// One thread's view of a group; the contract is in run/communicator.hpp. Made by run_ranks(), and by split(). Belongs
/// to one thread; ranks sleep while they wait. Collectives allocate nothing. Throws mmr::error where the calls of the
/// ranks do not match (on every rank that sees it), mmr::aborted where another rank has failed, in whichever group.
class thread_communicator {
 public:
  static constexpr bool strided = true;

  thread_communicator(std::shared_ptr<detail::rank_group> group, int rank) : group_(std::move(group)), rank_(rank) {}

  int rank() const { return rank_; }
  int size() const { return group_->size(); }

  /// Ranks of equal color form a group, ordered by key, then by rank. color >= 0.
  thread_communicator split(int color, int key) const {
    if (color < 0) fail("split: the color ", color, " must not be negative");
    detail::call mine{.what = detail::collective::split, .color = color, .key = key};
    std::shared_ptr<detail::rank_group> made;
    int new_rank = 0;
    std::exception_ptr problem;
    group_->run(rank_, std::move(mine), [&] {
      int leader = rank_;
      try {
        std::vector<std::pair<int, int>> members;
        for (int k = 0; k < size(); ++k) {
          if (group_->of(k).color == color) members.emplace_back(group_->of(k).key, k);
        }
        std::sort(members.begin(), members.end());
        leader = members.front().second;
        std::vector<int> world_ranks;
        for (const auto& [unused, k] : members) {
          if (k == rank_) new_rank = static_cast<int>(world_ranks.size());
          world_ranks.push_back(group_->world_rank(k));
        }
        if (leader == rank_)
          group_->show_made(rank_, detail::rank_group::make(group_->world(), std::move(world_ranks)));
      } catch (...) {
        problem = std::current_exception();
      }
      group_->sync();
      made = group_->of(leader).made;
    });
    group_->show_made(rank_, nullptr);
    if (problem) std::rethrow_exception(problem);
    if (!made) fail("split: the first rank of color ", color, " could not make the group");
    return {std::move(made), new_rank};
  }

  /// Returns when all ranks have come.
  void barrier() {
    group_->run(rank_, {.what = detail::collective::barrier}, [] {});
  }

  /// My dense src (count elements) lands in block from[rank()] of every rank's dst.
  void all_gather(const void* src, std::int64_t count, void* dst, std::span<const block> from, dtype type) {
    detail::check_all_gather(from, count, rank_, size());
    group_->run(
        rank_,
        {.what = detail::collective::all_gather, .src = src, .dst = dst, .from = from, .count = count, .type = type},
        [&] {
          for_each_peer([&](int k) {
            copy_block(group_->of(k).src, dense_block(0, group_->of(k).count), dst, from[index(k)], type);
          });
        });
    count_sent(count * (size() - 1), type);
  }

  /// Block to[k] of my src lands in block from[rank()] of rank k's dst.
  void all_to_all(const void* src, std::span<const block> to, void* dst, std::span<const block> from, dtype type) {
    detail::check_all_to_all(to, from, rank_, size());
    group_->run(rank_,
                {.what = detail::collective::all_to_all, .src = src, .dst = dst, .to = to, .from = from, .type = type},
                [&] {
                  for_each_peer([&](int k) {
                    copy_block(group_->of(k).src, group_->of(k).to[index(rank_)], dst, from[index(k)], type);
                  });
                });
    count_sent(detail::elements_leaving(to, rank_), type);
  }

  /// dst (dense, to[rank()].count() elements) = reduction over the ranks, in their order, of their block to[rank()].
  void reduce_scatter(const void* src, std::span<const block> to, void* dst, dtype type, reduction how) {
    detail::check_blocks("reduce_scatter", "to", to, size());
    group_->run(
        rank_, {.what = detail::collective::reduce_scatter, .src = src, .dst = dst, .to = to, .type = type, .how = how},
        [&] {
          detail::reduce_in_rank_order(
              size(),
              [&](int k) {
                return detail::contribution{group_->of(k).src, group_->of(k).to[index(rank_)], 0};
              },
              to[index(rank_)].count(), dst, type, how);
        });
    count_sent(detail::elements_leaving(to, rank_), type);
  }

  /// dst = reduction over the ranks, in their order, of src; the same bits on all. src may equal dst.
  void all_reduce(const void* src, void* dst, std::int64_t count, dtype type, reduction how) {
    detail::check_all_reduce(src, dst, count, type);
    const detail::call mine{
        .what = detail::collective::all_reduce, .src = src, .dst = dst, .count = count, .type = type, .how = how};
    if (count <= small) {
      all_reduce_small(mine);
    } else {
      all_reduce_shares(mine);
    }
    count_sent(detail::all_reduce_elements(count, size(), rank_), type);
  }

  /// The root's data, on all ranks.
  void broadcast(void* data, std::int64_t count, dtype type, int root) {
    detail::check_count("broadcast", count);
    detail::check_root("broadcast", "root", root, size());
    group_->run(
        rank_,
        {.what = detail::collective::broadcast, .src = data, .dst = data, .count = count, .type = type, .root = root},
        [&] {
          if (rank_ == root || count == 0) return;
          std::memcpy(data, group_->of(root).src, static_cast<std::size_t>(count) * size_of(type));
        });
    if (rank_ == root) count_sent(count * (size() - 1), type);
  }

  /// Returns when rank `to` has received.
  void send(const void* data, std::int64_t count, dtype type, int to, int tag) {
    detail::check_peer("send", count, to, rank_, size(), tag);
    group_->send(rank_, data, count, type, to, tag);
    count_sent(count, type);
  }

  /// Receives what rank `from` sends with this tag, in the order of sending; counts and types must agree.
  void recv(void* data, std::int64_t count, dtype type, int from, int tag) {
    detail::check_peer("recv", count, from, rank_, size(), tag);
    group_->recv(rank_, data, count, type, from, tag);
  }

  /// Bytes that this rank gave to others through this object.
  std::int64_t bytes_sent() const { return bytes_sent_; }

 private:
  // Below this many elements, reading all of everybody's costs less than a third barrier.
  static constexpr std::int64_t small = 512;

  static std::size_t index(int k) { return static_cast<std::size_t>(k); }

  void count_sent(std::int64_t elements, dtype type) {
    bytes_sent_ += elements * static_cast<std::int64_t>(size_of(type));
  }

  /// All peers, each rank beginning at itself: not all read from the same memory at once.
  template <class Visit>
  void for_each_peer(Visit&& visit) const {
    for (int i = 0; i < size(); ++i) visit((rank_ + i) % size());
  }

  void all_reduce_small(const detail::call& mine) {
    alignas(8) std::byte result[small * sizeof(double)];
    group_->run(rank_, mine, [&] {
      detail::reduce_in_rank_order(
          size(),
          [&](int k) {
            return detail::contribution{group_->of(k).src, dense_block(0, mine.count), 0};
          },
          mine.count, result, mine.type, mine.how);
    });
    // Only now may src be overwritten, should it be dst.
    if (mine.count > 0) std::memcpy(mine.dst, result, static_cast<std::size_t>(mine.count) * size_of(mine.type));
  }

  /// Every rank reduces its share into its own dst, then all copy the shares of the others. In place too: a share of
  /// dst is written only when all have read it.
  void all_reduce_shares(const detail::call& mine) {
    const auto share = [&](int k) { return detail::share_of(mine.count, size(), k); };
    group_->run(rank_, mine, [&] {
      const block own = share(rank_);
      detail::reduce_in_rank_order(
          size(),
          [&](int k) {
            return detail::contribution{group_->of(k).src, own, 0};
          },
          own.count(), static_cast<std::byte*>(mine.dst) + own.offset * static_cast<std::int64_t>(size_of(mine.type)),
          mine.type, mine.how);
      group_->sync();
      for_each_peer([&](int k) {
        if (k != rank_) copy_block(group_->of(k).dst, share(k), mine.dst, share(k), mine.type);
      });
    });
  }

  std::shared_ptr<detail::rank_group> group_;
  int rank_ = 0;
  std::int64_t bytes_sent_ = 0;
};

static_assert(check_communicator<thread_communicator>());

}  // namespace mmr
