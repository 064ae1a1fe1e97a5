// Blocks as MPI derived types: strided data moves without being packed first, and one message may hold more elements
// than MPI's int counts.
#pragma once

#include <algorithm>
#include <climits>
#include <cstdint>
#include <mmr/backend/mpi/mpi_error.hpp>
#include <mmr/run/block.hpp>
#include <utility>

namespace mmr::detail {

/// An MPI datatype, freed with this object if it was derived. MPI keeps what transfers in flight still need.
class mpi_type {
 public:
  mpi_type() = default;
  /// A type of MPI's own, which is not freed.
  explicit mpi_type(MPI_Datatype given) : type_(given) {}
  mpi_type(mpi_type&& other) noexcept
      : type_(std::exchange(other.type_, MPI_DATATYPE_NULL)), derived_(std::exchange(other.derived_, false)) {}
  mpi_type& operator=(mpi_type&& other) noexcept {
    std::swap(type_, other.type_);
    std::swap(derived_, other.derived_);
    return *this;
  }
  ~mpi_type() {
    if (derived_) MPI_Type_free(&type_);
  }

  MPI_Datatype get() const { return type_; }

  /// make(&new_type) is one of the MPI_Type_ functions and returns its code.
  template <class Make>
  static mpi_type derive(Make&& make) {
    mpi_type result;
    mpi_check(make(&result.type_), "making an MPI datatype");
    result.derived_ = true;
    return result;
  }

  void commit() {
    if (derived_) mpi_check(MPI_Type_commit(&type_), "making an MPI datatype");
  }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  bool derived_ = false;
};

/// Elements [first, first + count) of a block, as arguments of an MPI call: data + offset bytes, `count` × `type`.
struct mpi_message {
  std::int64_t offset_bytes = 0;
  int count = 0;
  mpi_type type;
};

/// `count` elements side by side. `limit` is the most that one MPI count may say; tests lower it.
inline mpi_message mpi_run(std::int64_t count, dtype type, std::int64_t limit = INT_MAX) {
  const MPI_Datatype element = mpi_type_of(type);
  if (count <= limit) return {0, static_cast<int>(count), mpi_type(element)};
  const std::int64_t chunks = count / limit, rest = count % limit;
  if (chunks > limit)
    fail("an MPI message of ", count, " elements is too long; at most ", limit, " times ", limit, " fit");
  const mpi_type chunk =
      mpi_type::derive([&](MPI_Datatype* made) { return MPI_Type_contiguous(static_cast<int>(limit), element, made); });
  const int lengths[] = {static_cast<int>(chunks), static_cast<int>(rest)};
  const MPI_Aint places[] = {0, static_cast<MPI_Aint>(chunks * limit) * static_cast<MPI_Aint>(size_of(type))};
  const MPI_Datatype types[] = {chunk.get(), element};
  return {0, 1, mpi_type::derive([&](MPI_Datatype* made) {
            return MPI_Type_create_struct(2, lengths, places, types, made);
          })};
}

/// Elements [first, first + count) of b: part of a row, whole rows, and part of a row; each may be missing.
inline mpi_message mpi_block(const block& b, std::int64_t first, std::int64_t count, dtype type,
                             std::int64_t limit = INT_MAX) {
  const auto bytes = static_cast<std::int64_t>(size_of(type));
  const auto finished = [&](mpi_message message, std::int64_t offset) {
    message.offset_bytes = offset * bytes;
    message.type.commit();
    return message;
  };
  const std::int64_t column = b.dense() ? 0 : first % b.length, row = b.dense() ? 0 : first / b.length;
  if (b.dense() || column + count <= b.length) {
    const std::int64_t offset = b.dense() ? b.offset + first : b.offset + row * b.stride + column;
    return finished(mpi_run(count, type, limit), offset);
  }

  const std::int64_t head = column == 0 ? 0 : b.length - column;
  const std::int64_t rows = (count - head) / b.length, tail = (count - head) % b.length;
  if (rows > limit) fail("an MPI message of ", rows, " rows is too long; at most ", limit, " fit");
  const std::int64_t body_row = row + (head > 0 ? 1 : 0);
  const mpi_message head_run = mpi_run(head, type, limit), tail_run = mpi_run(tail, type, limit);
  const mpi_message one_row = mpi_run(b.length, type, limit);
  const mpi_type body = mpi_type::derive([&](MPI_Datatype* made) {
    return MPI_Type_create_hvector(static_cast<int>(rows), one_row.count, static_cast<MPI_Aint>(b.stride * bytes),
                                   one_row.type.get(), made);
  });
  const std::int64_t origin = row * b.stride + column;
  const int lengths[] = {head_run.count, rows > 0 ? 1 : 0, tail_run.count};
  const MPI_Aint places[] = {0, static_cast<MPI_Aint>((body_row * b.stride - origin) * bytes),
                             static_cast<MPI_Aint>(((body_row + rows) * b.stride - origin) * bytes)};
  const MPI_Datatype types[] = {head_run.type.get(), body.get(), tail_run.type.get()};
  return finished({0, 1, mpi_type::derive([&](MPI_Datatype* made) {
                     return MPI_Type_create_struct(3, lengths, places, types, made);
                   })},
                  b.offset + origin);
}

}  // namespace mmr::detail
