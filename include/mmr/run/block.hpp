// Pieces of dense buffers, the one shape in which communicators and resharding name data: a shard of a row-major tensor
// along any axis is a block, so no collective needs to know about tensors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <mmr/tensor/dtype.hpp>
#include <mmr/tensor/error.hpp>

namespace mmr {

/// A piece of a dense local buffer: `rows` runs of `length` elements, run i starts at offset + i*stride (all in
/// elements). Elements are taken in that order, so a piece can move between two blocks of different shape with equal
/// rows*length. Columns 2 and 3 of a 5×8 matrix: {.offset = 2, .rows = 5, .length = 2, .stride = 8}.
struct block {
  std::int64_t offset = 0, rows = 0, length = 0, stride = 0;

  constexpr std::int64_t count() const { return rows * length; }
  /// True when the elements lie side by side: one run of count() elements from offset.
  constexpr bool dense() const { return rows <= 1 || stride == length; }
  constexpr bool operator==(const block&) const = default;
};

/// `count` elements side by side from `offset`.
constexpr block dense_block(std::int64_t offset, std::int64_t count) {
  return {offset, 1, count, count};
}

namespace detail {

/// Calls f with a value of the C++ type of `type`.
template <class F>
void with_type(dtype type, F&& f) {
  switch (type) {
    case dtype::f32:
      return f(float{});
    case dtype::f64:
      return f(double{});
    case dtype::i32:
      return f(std::int32_t{});
    case dtype::u8:
      return f(std::uint8_t{});
    case dtype::bf16:
      break;
  }
  fail("elements of type ", name_of(type), " cannot be moved by CPU ranks; plan with them, and run in float32");
}

inline void check_block(const char* operation, const block& b) {
  if (b.offset < 0 || b.rows < 0 || b.length < 0 || (b.rows > 1 && b.stride < b.length)) {
    fail(operation, ": block {offset ", b.offset, ", rows ", b.rows, ", length ", b.length, ", stride ", b.stride,
         "} must have no negative number, and a stride of at least its length");
  }
}

/// Visits elements [first, first + count) of b as contiguous runs: visit(place in the buffer, elements before it,
/// length).
template <class Visit>
void for_each_run(const block& b, std::int64_t first, std::int64_t count, Visit&& visit) {
  if (count <= 0) return;
  if (b.dense()) return visit(b.offset + first, std::int64_t{0}, count);
  std::int64_t column = first % b.length;
  std::int64_t row_start = b.offset + first / b.length * b.stride;
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t run = std::min(b.length - column, count - done);
    visit(row_start + column, done, run);
    done += run;
    column = 0;
    row_start += b.stride;
  }
}

}  // namespace detail

/// Copies block `from` of src to block `to` of dst; the counts must agree, the shapes need not, the buffers must not
/// overlap.
inline void copy_block(const void* src, const block& from, void* dst, const block& to, dtype type) {
  if (from.count() != to.count()) {
    fail("copy_block: ", from.count(), " elements do not fit a block of ", to.count(), " elements");
  }
  detail::with_type(type, [&]<class T>(T) {
    const T* source = static_cast<const T*>(src);
    T* target = static_cast<T*>(dst);
    detail::for_each_run(to, 0, to.count(), [&](std::int64_t put, std::int64_t before, std::int64_t run) {
      detail::for_each_run(from, before, run, [&](std::int64_t take, std::int64_t done, std::int64_t n) {
        const T* read = source + take;
        T* write = target + put + done;
        // A call of memcpy costs more than moving the few elements of a narrow column.
        if (n >= 8) {
          std::memcpy(write, read, static_cast<std::size_t>(n) * sizeof(T));
        } else {
          for (std::int64_t i = 0; i < n; ++i) write[i] = read[i];
        }
      });
    });
  });
}

}  // namespace mmr
