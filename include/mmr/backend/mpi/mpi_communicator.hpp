// The communicator over MPI. Data moves point to point, in derived types; sums are taken here, in rank order, so that a
// run over MPI has the same losses, bit for bit, as one on threads (MPI_Allreduce promises no order).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mmr/backend/mpi/mpi_block_type.hpp>
#include <mmr/backend/mpi/mpi_error.hpp>
#include <mmr/run/communicator.hpp>
#include <span>
#include <utility>
#include <vector>

namespace mmr {
namespace detail {

/// Owns an MPI_Comm.
class mpi_handle {
 public:
  mpi_handle() = default;
  explicit mpi_handle(MPI_Comm owned) : comm_(owned) {}
  mpi_handle(mpi_handle&& other) noexcept : comm_(std::exchange(other.comm_, MPI_COMM_NULL)) {}
  mpi_handle& operator=(mpi_handle&& other) noexcept {
    std::swap(comm_, other.comm_);
    return *this;
  }
  ~mpi_handle() {
    int finalized = 0;
    if (comm_ != MPI_COMM_NULL && MPI_Finalized(&finalized) == MPI_SUCCESS && !finalized) MPI_Comm_free(&comm_);
  }
  MPI_Comm get() const { return comm_; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

/// Where reductions receive before they add: made at the first reduction, of a fixed size, shared by a communicator and
/// the groups split from it (a rank runs one collective at a time).
class mpi_staging {
 public:
  static constexpr std::int64_t bytes = std::int64_t{2} << 20;
  std::byte* get() {
    if (!memory_) memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    return memory_.get();
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
};

}  // namespace detail

/// One process' view of a group; the contract is in run/communicator.hpp. Owns a duplicate of the MPI communicator it
/// is made from, so its messages meet no others. Reductions stage at most 2 MiB per process; nothing else is staged by
/// us. Throws mmr::error with MPI's text where MPI reports an error, or where a message has another length than
/// expected. Ranks that call different operations are not told so, unlike on threads: as everywhere in MPI, they may
/// hang. Open MPI spins while it waits: with more ranks than cores, run it with `--mca mpi_yield_when_idle 1` (or set
/// OMPI_MCA_mpi_yield_when_idle=1).
class mpi_communicator {
 public:
  static constexpr bool strided = true;

  /// A duplicate of `parent`, an intracommunicator; all its ranks must call this together. MPI must be initialised.
  explicit mpi_communicator(MPI_Comm parent) : staging_(std::make_shared<detail::mpi_staging>()) {
    MPI_Comm copy = MPI_COMM_NULL;
    detail::mpi_check(MPI_Comm_dup(parent, &copy), "MPI_Comm_dup");
    adopt(copy);
  }

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// Ranks of equal color form a group, ordered by key, then by rank. color >= 0.
  mpi_communicator split(int color, int key) const {
    if (color < 0) fail("split: the color ", color, " must not be negative");
    MPI_Comm part = MPI_COMM_NULL;
    detail::mpi_check(MPI_Comm_split(comm_.get(), color, key, &part), "split");
    return mpi_communicator(part, staging_);
  }

  /// Returns when all ranks have come.
  void barrier() { detail::mpi_check(MPI_Barrier(comm_.get()), "barrier"); }

  /// My dense src (count elements) lands in block from[rank()] of every rank's dst.
  void all_gather(const void* src, std::int64_t count, void* dst, std::span<const block> from, dtype type) {
    detail::check_all_gather(from, count, rank_, size_);
    const block mine = dense_block(0, count);
    exchange(
        "all_gather", type,
        [&](int) {
          return source{src, mine, 0, count};
        },
        [&](int k) {
          return target{dst, from[index(k)], from[index(k)].count()};
        });
    copy_block(src, mine, dst, from[index(rank_)], type);
    count_sent(count * (size_ - 1), type);
  }

  /// Block to[k] of my src lands in block from[rank()] of rank k's dst.
  void all_to_all(const void* src, std::span<const block> to, void* dst, std::span<const block> from, dtype type) {
    detail::check_all_to_all(to, from, rank_, size_);
    exchange(
        "all_to_all", type,
        [&](int k) {
          return source{src, to[index(k)], 0, to[index(k)].count()};
        },
        [&](int k) {
          return target{dst, from[index(k)], from[index(k)].count()};
        });
    copy_block(src, to[index(rank_)], dst, from[index(rank_)], type);
    count_sent(detail::elements_leaving(to, rank_), type);
  }

  /// dst (dense, to[rank()].count() elements) = reduction over the ranks, in their order, of their block to[rank()].
  void reduce_scatter(const void* src, std::span<const block> to, void* dst, dtype type, reduction how) {
    detail::check_blocks("reduce_scatter", "to", to, size_);
    reduce_blocks("reduce_scatter", src, to, dst, type, how);
    count_sent(detail::elements_leaving(to, rank_), type);
  }

  /// dst = reduction over the ranks, in their order, of src; the same bits on all. src may equal dst.
  void all_reduce(const void* src, void* dst, std::int64_t count, dtype type, reduction how) {
    detail::check_all_reduce(src, dst, count, type);
    const auto bytes = static_cast<std::int64_t>(size_of(type));
    if (count <= small && count * bytes * size_ <= detail::mpi_staging::bytes) {
      all_reduce_small(src, dst, count, type, how);
    } else {
      for (int k = 0; k < size_; ++k) shares_[index(k)] = detail::share_of(count, size_, k);
      const block own = shares_[index(rank_)];
      reduce_blocks("all_reduce", src, shares_, static_cast<std::byte*>(dst) + own.offset * bytes, type, how);
      exchange(
          "all_reduce", type,
          [&](int) {
            return source{dst, own, 0, own.count()};
          },
          [&](int k) {
            return target{dst, shares_[index(k)], shares_[index(k)].count()};
          });
    }
    count_sent(detail::all_reduce_elements(count, size_, rank_), type);
  }

  /// The root's data, on all ranks.
  void broadcast(void* data, std::int64_t count, dtype type, int root) {
    detail::check_count("broadcast", count);
    detail::check_root("broadcast", "root", root, size_);
    const detail::mpi_message all = detail::mpi_block(dense_block(0, count), 0, count, type);
    detail::mpi_check(MPI_Bcast(data, all.count, all.type.get(), root, comm_.get()), "broadcast");
    if (rank_ == root) count_sent(count * (size_ - 1), type);
  }

  /// Returns when data may be reused; this may need rank `to` to receive.
  void send(const void* data, std::int64_t count, dtype type, int to, int tag) {
    check_peer("send", count, to, tag);
    const detail::mpi_message all = detail::mpi_block(dense_block(0, count), 0, count, type);
    detail::mpi_check(MPI_Send(data, all.count, all.type.get(), to, tag, comm_.get()), "send");
    count_sent(count, type);
  }

  /// Receives what rank `from` sends with this tag, in the order of sending; counts and types must agree.
  void recv(void* data, std::int64_t count, dtype type, int from, int tag) {
    check_peer("recv", count, from, tag);
    const detail::mpi_message all = detail::mpi_block(dense_block(0, count), 0, count, type);
    MPI_Status status;
    const int code = MPI_Recv(data, all.count, all.type.get(), from, tag, comm_.get(), &status);
    check_received("recv", code, status, from, count, type);
  }

  /// Bytes that this rank gave to others through this object.
  std::int64_t bytes_sent() const { return bytes_sent_; }

 private:
  // Below this many elements, everybody's elements at once cost less than two exchanges.
  static constexpr std::int64_t small = 512;

  /// Elements [first, first + count) of a block, to send.
  struct source {
    const void* data;
    block where;
    std::int64_t first, count;
  };
  /// A block to receive into.
  struct target {
    void* data;
    block where;
    std::int64_t count;
  };

  mpi_communicator(MPI_Comm owned, std::shared_ptr<detail::mpi_staging> staging) : staging_(std::move(staging)) {
    adopt(owned);
  }

  void adopt(MPI_Comm owned) {
    comm_ = detail::mpi_handle(owned);
    detail::mpi_check(MPI_Comm_set_errhandler(owned, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    detail::mpi_check(MPI_Comm_rank(owned, &rank_), "MPI_Comm_rank");
    detail::mpi_check(MPI_Comm_size(owned, &size_), "MPI_Comm_size");
    int* highest = nullptr;
    int found = 0;
    detail::mpi_check(MPI_Comm_get_attr(owned, MPI_TAG_UB, &highest, &found), "MPI_Comm_get_attr");
    collective_tag_ = found ? *highest : 32767;
    shares_.resize(index(size_));
    requests_.reserve(2 * index(size_));
    receiving_.reserve(index(size_));
  }

  static std::size_t index(int k) { return static_cast<std::size_t>(k); }

  void count_sent(std::int64_t elements, dtype type) {
    bytes_sent_ += elements * static_cast<std::int64_t>(size_of(type));
  }

  void check_peer(const char* operation, std::int64_t count, int peer, int tag) const {
    detail::check_peer(operation, count, peer, rank_, size_, tag);
    if (tag >= collective_tag_) fail(operation, ": the tag ", tag, " is too large; it must be below ", collective_tag_);
  }

  /// Sends give(k) to, and receives take(k) from, every other rank k, all at once; empty ones are left out. What a rank
  /// gives itself is left to the caller.
  template <class Give, class Take>
  void exchange(const char* operation, dtype type, Give&& give, Take&& take) {
    requests_.clear();
    receiving_.clear();
    // Types are freed as soon as their transfer has begun, and each rank begins with its neighbour: no one rank is met
    // by all.
    for (int i = 1; i < size_; ++i) {
      const int k = (rank_ - i + size_) % size_;
      const target in = take(k);
      if (in.count == 0) continue;
      const detail::mpi_message m = detail::mpi_block(in.where, 0, in.count, type);
      receiving_.push_back(k);
      detail::mpi_check(MPI_Irecv(static_cast<std::byte*>(in.data) + m.offset_bytes, m.count, m.type.get(), k,
                                  collective_tag_, comm_.get(), &requests_.emplace_back(MPI_REQUEST_NULL)),
                        operation);
    }
    for (int i = 1; i < size_; ++i) {
      const int k = (rank_ + i) % size_;
      const source out = give(k);
      if (out.count == 0) continue;
      const detail::mpi_message m = detail::mpi_block(out.where, out.first, out.count, type);
      detail::mpi_check(MPI_Isend(static_cast<const std::byte*>(out.data) + m.offset_bytes, m.count, m.type.get(), k,
                                  collective_tag_, comm_.get(), &requests_.emplace_back(MPI_REQUEST_NULL)),
                        operation);
    }
    // One by one, and to the end even after an error: the buffers may go when this throws, so all in flight must land
    // first.
    std::exception_ptr problem;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      MPI_Status status;
      const int code = MPI_Wait(&requests_[i], &status);
      try {
        if (i < receiving_.size()) {
          check_received(operation, code, status, receiving_[i], take(receiving_[i]).count, type);
        } else {
          detail::mpi_check(code, operation);
        }
      } catch (...) {
        if (!problem) problem = std::current_exception();
      }
    }
    if (problem) std::rethrow_exception(problem);
  }

  void check_received(const char* operation, int code, const MPI_Status& status, int from, std::int64_t expected,
                      dtype type) const {
    int error_class = MPI_SUCCESS;
    if (code != MPI_SUCCESS) MPI_Error_class(code, &error_class);
    if (error_class == MPI_ERR_TRUNCATE) {
      fail(operation, ": rank ", from, " sent more than the ", expected, ' ', name_of(type), " that rank ", rank_,
           " expects; both must name the same count");
    }
    detail::mpi_check(code, operation);
    MPI_Count received = 0;
    detail::mpi_check(MPI_Get_elements_x(&status, detail::mpi_type_of(type), &received), operation);
    if (received != expected) {
      fail(operation, ": rank ", from, " sent ", static_cast<std::int64_t>(received), ' ', name_of(type), ", but rank ",
           rank_, " expects ", expected, "; both must name the same count");
    }
  }

  /// The reduction over the ranks of their block to[rank()] into dense dst, by tiles that fit the staging memory.
  /// dst may be that block of src.
  void reduce_blocks(const char* operation, const void* src, std::span<const block> to, void* dst, dtype type,
                     reduction how) {
    const auto bytes = static_cast<std::int64_t>(size_of(type));
    const std::int64_t tile = detail::mpi_staging::bytes / (bytes * size_);
    if (tile < 1) fail(operation, ": a group of ", size_, " ranks is too large for the staging memory of reductions");
    std::byte* staging = staging_->get();
    const block& own = to[index(rank_)];
    std::int64_t longest = 0;
    for (const block& b : to) longest = std::max(longest, b.count());
    for (std::int64_t first = 0; first < longest; first += tile) {
      const auto part_of = [&](const block& b) { return std::clamp<std::int64_t>(b.count() - first, 0, tile); };
      const std::int64_t count = part_of(own);
      const auto place = [&](int k) { return staging + k * tile * bytes; };
      exchange(
          operation, type,
          [&](int k) {
            return source{src, to[index(k)], first, part_of(to[index(k)])};
          },
          [&](int k) {
            return target{place(k), dense_block(0, count), count};
          });
      detail::reduce_in_rank_order(
          size_,
          [&](int k) {
            return k == rank_ ? detail::contribution{src, own, first}
                              : detail::contribution{place(k), dense_block(0, count), 0};
          },
          count, static_cast<std::byte*>(dst) + first * bytes, type, how);
    }
  }

  void all_reduce_small(const void* src, void* dst, std::int64_t count, dtype type, reduction how) {
    const auto bytes = static_cast<std::int64_t>(size_of(type));
    std::byte* staging = staging_->get();
    const auto n = static_cast<int>(count);
    detail::mpi_check(
        MPI_Allgather(src, n, detail::mpi_type_of(type), staging, n, detail::mpi_type_of(type), comm_.get()),
        "all_reduce");
    detail::reduce_in_rank_order(
        size_,
        [&](int k) {
          return detail::contribution{staging + k * count * bytes, dense_block(0, count), 0};
        },
        count, dst, type, how);
  }

  detail::mpi_handle comm_;
  int rank_ = 0, size_ = 1;
  int collective_tag_ = 0;
  std::int64_t bytes_sent_ = 0;
  std::shared_ptr<detail::mpi_staging> staging_;
  // Sized once, so that a collective allocates nothing of ours.
  std::vector<block> shares_;
  std::vector<MPI_Request> requests_;
  std::vector<int> receiving_;
};

static_assert(check_communicator<mpi_communicator>());

}  // namespace mmr
