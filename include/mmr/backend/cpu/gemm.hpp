// Matrix products of dense shards. The loops are those of Goto and van de Geijn (ACM TOMS 34, 2008): panels of the
// right operand are packed once, strips of the left operand stream past them, and a register tile does the arithmetic.
// Nothing is allocated: the packed panels live in the workspace that the caller hands in. Attention uses the same tile.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "mmr/backend/cpu/pack.hpp"

namespace mmr::cpu {

/// A dense matrix in memory: element (i, j) is data[i * row_stride + j * col_stride]; one of the strides is 1.
template <class T>
struct matrix {
  T* data;
  int64_t rows, cols, row_stride, col_stride;

  matrix transposed() const { return {data, cols, rows, col_stride, row_stride}; }
};

namespace detail {

/// Rows of the register tile: with two packs each, its sums, one row of b and a factor of a fit the registers.
#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr int tile_rows = 8;
#else
inline constexpr int tile_rows = 6;
#endif
/// Columns of the register tile: two packs.
template <class T>
inline constexpr int64_t tile_cols = 2 * width<T>;

/// The right operand in panels of `tile_cols` columns: element (k, j) is
/// data[(j / tile_cols) * panel + k * row + j % tile_cols]. Rows are readable in whole packs.
template <class T>
struct panels {
  const T* data;
  int64_t row, panel;
};

/// c[Rows, cols] (+)= a[Rows, depth] * b[depth, cols], cols <= Packs * width; b is readable to whole packs.
template <class T, int Rows, int Packs>
inline void multiply_tile(int64_t depth, const T* a, int64_t a_row, int64_t a_col, const T* b, int64_t b_row, T* c,
                          int64_t c_row, int64_t cols, bool accumulate) {
  pack<T> sum[Rows][Packs];
  for (int i = 0; i < Rows; ++i) {
    for (int j = 0; j < Packs; ++j) sum[i][j] = pack<T>{};
  }
  for (int64_t k = 0; k < depth; ++k) {
    pack<T> right[Packs];
    for (int j = 0; j < Packs; ++j) right[j] = load<T>(b + j * width<T>);
    for (int i = 0; i < Rows; ++i) {
      const pack<T> left = broadcast<T>(a[i * a_row]);
      for (int j = 0; j < Packs; ++j) sum[i][j] += left * right[j];
    }
    a += a_col;
    b += b_row;
  }
  const int64_t last = cols - (Packs - 1) * width<T>;
  for (int i = 0; i < Rows; ++i) {
    for (int j = 0; j < Packs; ++j) {
      T* to = c + i * c_row + j * width<T>;
      if (j + 1 < Packs || last == width<T>) {
        store<T>(to, accumulate ? load<T>(to) + sum[i][j] : sum[i][j]);
      } else {
        store_part<T>(to, accumulate ? load_part<T>(to, last) + sum[i][j] : sum[i][j], last);
      }
    }
  }
}

/// c[rows, cols] (+)= a[rows, depth] * b[depth, cols] with rows <= tile_rows: one strip past all panels.
template <class T, int Rows = tile_rows>
inline void multiply_strip(int64_t rows, int64_t cols, int64_t depth, const T* a, int64_t a_row, int64_t a_col,
                           panels<T> b, T* c, int64_t c_row, bool accumulate) {
  if constexpr (Rows > 1) {
    if (rows < Rows) {
      return multiply_strip<T, Rows - 1>(rows, cols, depth, a, a_row, a_col, b, c, c_row, accumulate);
    }
  }
  int64_t j = 0;
  if constexpr (Rows <= 2) {
    // Two packs a row are too few sums to hide the latency of one or two rows.
    constexpr int64_t wide = 8 * width<T>;
    if (b.panel == tile_cols<T>) {
      for (; j + wide <= cols; j += wide, b.data += wide) {
        multiply_tile<T, Rows, 8>(depth, a, a_row, a_col, b.data, b.row, c + j, c_row, wide, accumulate);
      }
    }
  }
  for (; j + width<T> < cols; j += tile_cols<T>) {
    multiply_tile<T, Rows, 2>(depth, a, a_row, a_col, b.data, b.row, c + j, c_row, std::min(tile_cols<T>, cols - j),
                              accumulate);
    b.data += b.panel;
  }
  if (j < cols) multiply_tile<T, Rows, 1>(depth, a, a_row, a_col, b.data, b.row, c + j, c_row, cols - j, accumulate);
}

/// Rows of the square that `transpose` turns in registers.
#if defined(__AVX512F__)
inline constexpr int square_side = 8;
#else
inline constexpr int square_side = 4;
#endif

template <class T>
inline void transpose_square(const T* from, int64_t from_row, T* to, int64_t step) {
  constexpr int side = square_side;
  using line = typename lanes_of<T, side>::type;
  line x[side], y[side];
  for (int r = 0; r < side; ++r) std::memcpy(&x[r], from + r * from_row, sizeof(line));
  // Each round interleaves the upper half of the lines with the lower: log2(side) rounds make rows of columns.
  for (int round = 1; round < side; round *= 2) {
    for (int r = 0; r < side / 2; ++r)
      interleave(x[r], x[r + side / 2], y[2 * r], y[2 * r + 1], std::make_integer_sequence<int, side>{});
    for (int r = 0; r < side; ++r) x[r] = y[r];
  }
  for (int r = 0; r < side; ++r) std::memcpy(to + r * step, &x[r], sizeof(line));
}

/// to[k * step + i] = from[i * from_row + k] for i < rows, k < cols.
template <class T>
inline void transpose(const T* from, int64_t from_row, int64_t rows, int64_t cols, T* to, int64_t step) {
  int64_t i = 0;
  for (; i + square_side <= rows; i += square_side) {
    int64_t k = 0;
    for (; k + square_side <= cols; k += square_side) {
      transpose_square(from + i * from_row + k, from_row, to + k * step + i, step);
    }
    for (; k < cols; ++k) {
      for (int r = 0; r < square_side; ++r) to[k * step + i + r] = from[(i + r) * from_row + k];
    }
  }
  for (; i < rows; ++i) {
    for (int64_t k = 0; k < cols; ++k) to[k * step + i] = from[i * from_row + k];
  }
}

/// Packs b[depth, cols] (either order) into panels at `to`, the last one padded with zeros to whole packs.
template <class T>
inline panels<T> pack_panels(matrix<const T> b, T* to) {
  const int64_t depth = b.rows, panel = tile_cols<T> * depth;
  for (int64_t j = 0; j < b.cols; j += tile_cols<T>, to += panel) {
    const int64_t cols = std::min(tile_cols<T>, b.cols - j);
    const T* from = b.data + j * b.col_stride;
    if (cols < tile_cols<T>) std::fill(to, to + panel, T(0));
    if (b.row_stride == 1) {
      transpose(from, b.col_stride, cols, depth, to, tile_cols<T>);
    } else if (cols == tile_cols<T>) {
      for (int64_t k = 0; k < depth; ++k) {
        std::memcpy(to + k * tile_cols<T>, from + k * b.row_stride, sizeof(T) * static_cast<std::size_t>(tile_cols<T>));
      }
    } else {
      for (int64_t k = 0; k < depth; ++k) std::copy_n(from + k * b.row_stride, cols, to + k * tile_cols<T>);
    }
  }
  return {to - panel * ((b.cols + tile_cols<T> - 1) / tile_cols<T>), tile_cols<T>, panel};
}

/// Packs a[rows <= tile_rows, depth] as to[k * rows + i].
template <class T>
inline void pack_strip(matrix<const T> a, T* to) {
  if (a.col_stride == 1) {
    transpose(a.data, a.row_stride, a.rows, a.cols, to, a.rows);
  } else if (a.rows == tile_rows) {
    for (int64_t k = 0; k < a.cols; ++k) {
      std::memcpy(to + k * tile_rows, a.data + k * a.col_stride, sizeof(T) * tile_rows);
    }
  } else {
    for (int64_t k = 0; k < a.cols; ++k) std::copy_n(a.data + k * a.col_stride, a.rows, to + k * a.rows);
  }
}

/// Depth of a packed block, and its columns: about 0.6 MiB, which stays in a second-level cache.
inline constexpr int64_t block_depth = 256;
template <class T>
inline constexpr int64_t block_cols = 2560 / static_cast<int64_t>(sizeof(T));

inline int64_t round_up(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// The smallest even split of `extent` into parts of at most `limit`, a multiple of `unit` each.
inline int64_t even_part(int64_t extent, int64_t limit, int64_t unit) {
  const int64_t parts = std::max<int64_t>(1, (extent + limit - 1) / limit);
  return std::max<int64_t>(unit, round_up((extent + parts - 1) / parts, unit));
}

}  // namespace detail

/// Bytes of workspace that `product` needs for c[m, n] = a[m, k] b[k, n] in any orders: at most about 0.7 MiB.
template <class T>
int64_t product_workspace(int64_t m, int64_t n, int64_t k) {
  const int64_t depth = std::min(k, detail::block_depth);
  const int64_t cols = std::min(detail::round_up(std::max(m, n), detail::tile_cols<T>), detail::block_cols<T>);
  return static_cast<int64_t>(sizeof(T)) * depth * (cols + detail::tile_rows);
}

/// c = a b, or c += a b when `accumulate`; a[m, k], b[k, n], c[m, n], each row- or column-major, none overlapping c.
/// `workspace` holds product_workspace<T>(m, n, k) bytes and is best aligned to 64.
template <class T>
void product(std::type_identity_t<matrix<const T>> a, std::type_identity_t<matrix<const T>> b, matrix<T> c,
             bool accumulate, void* workspace) {
  if (c.col_stride != 1 || (c.cols == 1 && c.rows > 1 && c.row_stride == 1)) {
    return product<T>(b.transposed(), a.transposed(), c.transposed(), accumulate, workspace);
  }
  const int64_t m = c.rows, n = c.cols, k = a.cols;
  if (m == 0 || n == 0) return;
  if (k == 0) {
    if (!accumulate) {
      for (int64_t i = 0; i < m; ++i) std::fill_n(c.data + i * c.row_stride, n, T(0));
    }
    return;
  }
  const int64_t depth_step = detail::even_part(k, detail::block_depth, 1);
  const int64_t col_step = detail::even_part(n, detail::block_cols<T>, detail::tile_cols<T>);
  T* strip = static_cast<T*>(workspace);
  T* block = strip + depth_step * detail::tile_rows;
  // Rows of b that packs fit can be read in place. Packing pays where each row lies in pages of its own, unless there
  // are so few rows of a that a packed panel would hardly be read again.
  const bool in_place = b.col_stride == 1 && n % width<T> == 0 &&
                        (m <= 2 * detail::tile_rows ||
                         (m <= 32 * detail::tile_rows && b.row_stride * static_cast<int64_t>(sizeof(T)) < 4096));
  for (int64_t j = 0; j < n; j += col_step) {
    const int64_t cols = std::min(col_step, n - j);
    for (int64_t l = 0; l < k; l += depth_step) {
      const int64_t depth = std::min(depth_step, k - l);
      const T* right = b.data + l * b.row_stride + j * b.col_stride;
      const detail::panels<T> packed =
          in_place ? detail::panels<T>{right, b.row_stride, detail::tile_cols<T>}
                   : detail::pack_panels<T>({right, depth, cols, b.row_stride, b.col_stride}, block);
      for (int64_t i = 0; i < m; i += detail::tile_rows) {
        const int64_t rows = std::min<int64_t>(detail::tile_rows, m - i);
        detail::pack_strip<T>({a.data + i * a.row_stride + l * a.col_stride, rows, depth, a.row_stride, a.col_stride},
                              strip);
        detail::multiply_strip<T>(rows, cols, depth, strip, 1, rows, packed, c.data + i * c.row_stride + j,
                                  c.row_stride, accumulate || l > 0);
      }
    }
  }
}

}  // namespace mmr::cpu
