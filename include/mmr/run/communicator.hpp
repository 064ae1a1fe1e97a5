// The one door between the executor and whatever moves data between ranks. Threads and MPI stand behind it today; the
// executor, the plan and the graph know only what is written here.
//
// How to add a communicator
// -------------------------
// Write a class C with the members below, in your own file, and put `static_assert(mmr::check_communicator<C>());`
// beside it: the compiler then names each member that is missing. tests/backend_threads/collectives.hpp checks any
// communicator against a serial reference; call `check_collectives(comm)` on every rank.
//
//   static constexpr bool strided;            blocks with stride move without being packed first
//   int rank() const; int size() const;       0 <= rank() < size()
//   C split(int color, int key) const;        ranks of equal color (>= 0) form a group, ordered by key, then by rank
//   void barrier();
//   void all_gather(src, count, dst, from, type);      my dense src -> block from[me] of every rank's dst
//   void all_to_all(src, to, dst, from, type);         block to[k] of my src -> block from[me] of rank k's dst
//   void reduce_scatter(src, to, dst, type, how);      dense dst = reduction over the ranks of their block to[me]
//   void all_reduce(src, dst, count, type, how);       src may equal dst
//   void broadcast(data, count, type, root);
//   void send(data, count, type, to, tag);  void recv(data, count, type, from, tag);
//   std::int64_t bytes_sent() const;          what this rank gave to others through this object, see below
//
// Shapes. `from` and `to` hold size() blocks; counts may differ from rank to rank and may be zero, but both ends of a
// transfer must agree on theirs. Blocks of a destination do not overlap, and src and dst do not overlap, except that
// all_reduce takes src == dst.
//
// Order and completion. All ranks of a group call the same collectives in the same order. A call returns when what
// follows it *on the same stream of work* may use dst and overwrite src. The host is its own stream: threads and MPI
// return when the data is there. An implementation on a device (NCCL) is made with a stream, enqueues, and returns at
// once; the executor gives the kernels that follow the same stream (or an event of it), and never lets the host look at
// a buffer before the device's own synchronise. Pointers are to memory of the device that the executor computes on; the
// host may be unable to read them, so nothing outside an implementation dereferences them. Block lists are read before
// the call returns and need not outlive it.
//
// Grouping. Where many small calls should start together (ncclGroupStart), give the class group_begin() and
// group_end(); `mmr::grouped(comm, calls)` uses them where they exist and is a plain call where they do not. No buffer
// of a group may be used before group_end(). A library without strided types (NCCL) says `strided = false`: the planner
// then charges the packing buffers, and the executor passes dense blocks only.
//
// Sums add rank 0, 1, 2, ... in that order wherever the implementation can, and all ranks always get the same bits.
//
// Errors. Bad arguments and failed transfers throw mmr::error. When one rank fails, no other rank may hang: it throws
// mmr::aborted, or its process ends. A send may wait for its recv (as in MPI): two ranks must not both send first.
//
// bytes_sent, n ranks, B bytes of the full tensor: all-gather and reduce-scatter B·(n−1)/n, all-reduce 2B·(n−1)/n,
// all-to-all what leaves the rank (B·(n−1)/n² for even shards), broadcast B·(n−1) at the root, send B. Uneven shares
// are counted exactly; the mean over the ranks is the formula (Thakur, Rabenseifner, Gropp 2005).
#pragma once

#include <concepts>
#include <cstdint>
#include <mmr/run/block.hpp>
#include <mmr/run/reduce.hpp>
#include <mmr/tensor/dtype.hpp>
#include <mmr/tensor/error.hpp>
#include <span>

namespace mmr {

/// Thrown on the ranks that did nothing wrong, when another rank has failed: the run is over, its first error is
/// elsewhere.
class aborted : public error {
 public:
  using error::error;
};

namespace detail {

using blocks = std::span<const block>;

template <class C>
concept has_strided = requires {
  requires std::same_as<decltype(C::strided), const bool>;
};
template <class C>
concept has_rank = requires(const C& c) {
  { c.rank() } -> std::same_as<int>;
};
template <class C>
concept has_size = requires(const C& c) {
  { c.size() } -> std::same_as<int>;
};
template <class C>
concept has_split = requires(const C& c, int color, int key) {
  { c.split(color, key) } -> std::same_as<C>;
};
template <class C>
concept has_barrier = requires(C& c) {
  c.barrier();
};
template <class C>
concept has_all_gather = requires(C& c, const void* src, void* dst, std::int64_t count, blocks b, dtype t) {
  c.all_gather(src, count, dst, b, t);
};
template <class C>
concept has_all_to_all = requires(C& c, const void* src, void* dst, blocks b, dtype t) {
  c.all_to_all(src, b, dst, b, t);
};
template <class C>
concept has_reduce_scatter = requires(C& c, const void* src, void* dst, blocks b, dtype t, reduction r) {
  c.reduce_scatter(src, b, dst, t, r);
};
template <class C>
concept has_all_reduce = requires(C& c, const void* src, void* dst, std::int64_t count, dtype t, reduction r) {
  c.all_reduce(src, dst, count, t, r);
};
template <class C>
concept has_broadcast = requires(C& c, void* data, std::int64_t count, dtype t, int root) {
  c.broadcast(data, count, t, root);
};
template <class C>
concept has_send = requires(C& c, const void* data, std::int64_t count, dtype t, int to, int tag) {
  c.send(data, count, t, to, tag);
};
template <class C>
concept has_recv = requires(C& c, void* data, std::int64_t count, dtype t, int from, int tag) {
  c.recv(data, count, t, from, tag);
};
template <class C>
concept has_bytes_sent = requires(const C& c) {
  { c.bytes_sent() } -> std::same_as<std::int64_t>;
};

}  // namespace detail

/// A group of ranks that exchange data; the contract is at the top of this file.
template <class C>
concept communicator = std::movable<C> && detail::has_strided<C> && detail::has_rank<C> && detail::has_size<C> &&
    detail::has_split<C> && detail::has_barrier<C> && detail::has_all_gather<C> && detail::has_all_to_all<C> &&
    detail::has_reduce_scatter<C> && detail::has_all_reduce<C> && detail::has_broadcast<C> && detail::has_send<C> &&
    detail::has_recv<C> && detail::has_bytes_sent<C>;

/// True for a communicator; does not compile otherwise, and says which member is missing.
template <class C>
constexpr bool check_communicator() {
  static_assert(std::movable<C>, "a communicator can be moved, as split() returns one by value");
  static_assert(detail::has_strided<C>, "a communicator has: static constexpr bool strided");
  static_assert(detail::has_rank<C>, "a communicator has: int rank() const");
  static_assert(detail::has_size<C>, "a communicator has: int size() const");
  static_assert(detail::has_split<C>, "a communicator C has: C split(int color, int key) const");
  static_assert(detail::has_barrier<C>, "a communicator has: void barrier()");
  static_assert(detail::has_all_gather<C>,
                "a communicator has: void all_gather(const void* src, std::int64_t count, void* dst, "
                "std::span<const block> from, dtype)");
  static_assert(detail::has_all_to_all<C>,
                "a communicator has: void all_to_all(const void* src, std::span<const block> to, void* dst, "
                "std::span<const block> from, dtype)");
  static_assert(detail::has_reduce_scatter<C>,
                "a communicator has: void reduce_scatter(const void* src, std::span<const block> to, void* dst, dtype, "
                "reduction)");
  static_assert(
      detail::has_all_reduce<C>,
      "a communicator has: void all_reduce(const void* src, void* dst, std::int64_t count, dtype, reduction)");
  static_assert(detail::has_broadcast<C>,
                "a communicator has: void broadcast(void* data, std::int64_t count, dtype, int root)");
  static_assert(detail::has_send<C>,
                "a communicator has: void send(const void* data, std::int64_t count, dtype, int to, int tag)");
  static_assert(detail::has_recv<C>,
                "a communicator has: void recv(void* data, std::int64_t count, dtype, int from, int tag)");
  static_assert(detail::has_bytes_sent<C>, "a communicator has: std::int64_t bytes_sent() const");
  return communicator<C>;
}

/// Runs calls(), between comm.group_begin() and comm.group_end() where the communicator has them.
template <communicator C, class Calls>
void grouped(C& comm, Calls&& calls) {
  if constexpr (requires {
                  comm.group_begin();
                  comm.group_end();
                }) {
    comm.group_begin();
    calls();
    comm.group_end();
  } else {
    calls();
  }
}

namespace detail {

inline void check_root(const char* operation, const char* role, int rank, int size) {
  if (rank < 0 || rank >= size) {
    fail(operation, ": ", role, " ", rank, " is not a rank of this group; it has ranks 0 to ", size - 1);
  }
}

inline void check_count(const char* operation, std::int64_t count) {
  if (count < 0) fail(operation, ": the count ", count, " must not be negative");
}

inline void check_blocks(const char* operation, const char* name, blocks b, int size) {
  if (b.size() != static_cast<std::size_t>(size)) {
    fail(operation, ": `", name, "` has ", b.size(), " blocks, but the group has ", size, " ranks, and each needs one");
  }
  for (const block& one : b) check_block(operation, one);
}

inline void check_all_gather(blocks from, std::int64_t count, int me, int size) {
  check_count("all_gather", count);
  check_blocks("all_gather", "from", from, size);
  if (from[static_cast<std::size_t>(me)].count() != count) {
    fail("all_gather: rank ", me, " gives ", count, " elements, but its own block from[", me, "] has ",
         from[static_cast<std::size_t>(me)].count());
  }
}

inline void check_all_to_all(blocks to, blocks from, int me, int size) {
  check_blocks("all_to_all", "to", to, size);
  check_blocks("all_to_all", "from", from, size);
  const auto own = static_cast<std::size_t>(me);
  if (to[own].count() != from[own].count()) {
    fail("all_to_all: rank ", me, " gives itself ", to[own].count(), " elements in to[", me, "], but from[", me,
         "] has ", from[own].count());
  }
}

inline void check_all_reduce(const void* src, const void* dst, std::int64_t count, dtype type) {
  check_count("all_reduce", count);
  const auto a = reinterpret_cast<std::uintptr_t>(src), b = reinterpret_cast<std::uintptr_t>(dst);
  if (a != b && (a < b ? b - a : a - b) < static_cast<std::uint64_t>(count) * size_of(type)) {
    fail("all_reduce: src and dst overlap without being equal; give the same buffer twice, or two buffers");
  }
}

inline void check_peer(const char* operation, std::int64_t count, int peer, int me, int size, int tag) {
  check_count(operation, count);
  check_root(operation, "peer", peer, size);
  if (peer == me) fail(operation, ": rank ", me, " names itself; copy instead, as a send may wait for its recv");
  if (tag < 0) fail(operation, ": the tag ", tag, " must not be negative");
}

/// Elements that leave rank `me` when block to[k] goes to rank k.
inline std::int64_t elements_leaving(blocks to, int me) {
  std::int64_t sum = 0;
  for (std::size_t k = 0; k < to.size(); ++k) sum += k == static_cast<std::size_t>(me) ? 0 : to[k].count();
  return sum;
}

/// Elements that rank `me` sends in an all-reduce made of a reduce-scatter and an all-gather of the shares.
constexpr std::int64_t all_reduce_elements(std::int64_t count, int n, int me) {
  const std::int64_t share = share_of(count, n, me).count();
  return count - share + share * (n - 1);
}

}  // namespace detail
}  // namespace mmr
