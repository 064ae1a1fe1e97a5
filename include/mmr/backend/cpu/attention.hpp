// Multi-head attention that never stores the matrix of scores: blocks of keys are packed once per head, strips of
// queries stream past them, and the log-sum-exp saved by forward lets backward recompute the weights (Dao et al.,
// FlashAttention, arXiv 2205.14135). Blocks that the causal mask hides are never touched.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "mmr/backend/cpu/elementwise.hpp"
#include "mmr/backend/cpu/gemm.hpp"
#include "mmr/backend/cpu/rows.hpp"

namespace mmr::cpu {

/// q, out and their gradients are [batch, queries, heads, group, head_size]; k, v are [batch, keys, heads, head_size]:
/// the queries of a group share the keys and values of their head.
/// Query row i stands at position query_begin + i of the sequence whose first position is key 0; with `causal` it sees
/// the keys up to its own position. Scores are multiplied by `scale` > 0.
struct attention_shape {
  int64_t batch, queries, keys, heads, head_size, query_begin;
  bool causal;
  double scale;
  int64_t group = 1;

  /// Elements between neighbouring positions of the queries, and of the keys.
  int64_t query_row() const { return heads * group * head_size; }
  int64_t key_row() const { return heads * head_size; }
};

namespace detail {

/// Keys that are packed at a time, and the queries whose weights backward holds at a time.
inline constexpr int64_t key_block = 256, query_block = 64;
/// Room between rows of weights: off a power of two, so that a column of them does not fall into few cache sets.
inline constexpr int64_t weights_row = key_block + 16;

template <class T>
inline int64_t panel_elements(int64_t depth, int64_t cols) {
  return depth * round_up(cols, tile_cols<T>);
}

/// Panels of b: in place where its rows can be read in whole packs, else packed at `to`.
template <class T>
inline panels<T> rows_as_panels(matrix<const T> b, T* to) {
  if (b.cols % width<T> == 0) return {b.data, b.row_stride, tile_cols<T>};
  return pack_panels(b, to);
}

/// Where block and rows of the mask meet: how many of the block's keys a query row sees.
struct visible_keys {
  int64_t keys, offset;
  bool causal;

  visible_keys(const attention_shape& s, int64_t first_key)
      : keys(std::min(key_block, s.keys - first_key)), offset(s.query_begin - first_key + 1), causal(s.causal) {}

  int64_t of_row(int64_t row) const { return causal ? std::min(keys, row + offset) : keys; }
  /// The first query row that sees the key at this place in the block.
  int64_t first_row(int64_t key) const { return causal ? std::max<int64_t>(0, key + 1 - offset) : 0; }
};

/// w[n] = exp((w - max) * scale), zero up to `cols`; returns max * scale and the sum. Reads w to whole packs.
template <class T>
inline std::pair<T, T> weigh_row(T* w, int64_t n, int64_t cols, T scale) {
  const int64_t whole = round_up(n, width<T>);
  T* last = w + whole - width<T>;
  store<T>(last, keep_lanes<T>(load<T>(last), n - (whole - width<T>), -std::numeric_limits<T>::infinity()));
  const T max = max_of<T>(whole, w);
  const T sum = exp_row<T>(whole, w, max, scale, w);
  for (int64_t j = whole; j < cols; j += width<T>) store<T>(w + j, pack<T>{});
  return {max * scale, sum};
}

}  // namespace detail

/// Bytes of workspace of `attention_forward`: bounded whatever the sequence length.
template <class T>
int64_t attention_forward_workspace(const attention_shape& s) {
  const int64_t keys = std::min(detail::key_block, s.keys);
  return static_cast<int64_t>(sizeof(T)) *
         (detail::panel_elements<T>(s.head_size, keys) + detail::panel_elements<T>(keys, s.head_size) +
          detail::tile_rows * (detail::weights_row + s.head_size));
}

/// out = softmax(scale * q k^T, masked) v per query head, lse[batch, queries, heads, group] = log of the sum of exp of
/// the scores. With no keys, out is zero and lse minus infinity.
template <class T>
void attention_forward(const T* q, const T* k, const T* v, T* out, T* lse, const attention_shape& s, void* workspace) {
  const int64_t d = s.head_size, row = s.query_row(), key_row = s.key_row(), rows_of_lse = s.heads * s.group;
  if (s.keys == 0) {
    fill(T(0), out, s.batch * s.queries * row);
    return fill(-std::numeric_limits<T>::infinity(), lse, s.batch * s.queries * rows_of_lse);
  }
  T* const weights = static_cast<T*>(workspace);
  T* const partial = weights + detail::tile_rows * detail::weights_row;
  T* const key_room = partial + detail::tile_rows * d;
  T* const value_room = key_room + detail::panel_elements<T>(d, std::min(detail::key_block, s.keys));
  for (int64_t bh = 0; bh < s.batch * s.heads; ++bh) {
    const int64_t b = bh / s.heads, h = bh % s.heads;
    for (int64_t first = 0; first < s.keys; first += detail::key_block) {
      const detail::visible_keys visible(s, first);
      const int64_t at = (b * s.keys + first) * key_row + h * d;
      if (visible.first_row(0) >= s.queries) break;
      const auto keys = detail::pack_panels<T>({k + at, d, visible.keys, 1, key_row}, key_room);
      const auto values = detail::rows_as_panels<T>({v + at, visible.keys, d, key_row, 1}, value_room);
      for (int64_t g = h * s.group; g < (h + 1) * s.group; ++g) {
        const T* query = q + b * s.queries * row + g * d;
        T* result = out + b * s.queries * row + g * d;
        T* total = lse + b * s.queries * rows_of_lse + g;
        for (int64_t i = visible.first_row(0); i < s.queries; i += detail::tile_rows) {
          const int64_t rows = std::min<int64_t>(detail::tile_rows, s.queries - i), cols = visible.of_row(i + rows - 1);
          detail::multiply_strip<T>(rows, cols, d, query + i * row, row, 1, keys, weights, detail::weights_row, false);
          T max[detail::tile_rows], sum[detail::tile_rows];
          for (int64_t r = 0; r < rows; ++r) {
            std::tie(max[r], sum[r]) =
                detail::weigh_row<T>(weights + r * detail::weights_row, visible.of_row(i + r), cols, T(s.scale));
          }
          T* to = first == 0 ? result + i * row : partial;
          const int64_t to_row = first == 0 ? row : d;
          detail::multiply_strip<T>(rows, d, cols, weights, detail::weights_row, 1, values, to, to_row, false);
          for (int64_t r = 0; r < rows; ++r) {
            T& before = total[(i + r) * rows_of_lse];
            const T here = max[r] + std::log(sum[r]);
            if (first == 0) {
              scale<T>(T(1) / sum[r], to + r * to_row, to + r * to_row, d);
              before = here;
            } else {
              // Two softmaxes over parts of the keys join by their shares of the whole sum.
              const T both = std::max(before, here) + std::log1p(std::exp(-std::abs(before - here)));
              const T old_share = std::exp(before - both), new_share = std::exp(here - both) / sum[r];
              T* joined = result + (i + r) * row;
              map_packs(
                  d, joined, [=](auto o, auto n) { return o * old_share + n * new_share; },
                  static_cast<const T*>(joined), static_cast<const T*>(to + r * d));
              before = both;
            }
          }
        }
      }
    }
  }
}

/// Bytes of workspace of `attention_backward`: bounded whatever the sequence length.
template <class T>
int64_t attention_backward_workspace(const attention_shape& s) {
  const int64_t keys = std::min(detail::key_block, s.keys), queries = std::min(detail::query_block, s.queries);
  return static_cast<int64_t>(sizeof(T)) *
         (2 * detail::panel_elements<T>(s.head_size, keys) + detail::panel_elements<T>(keys, s.head_size) +
          2 * detail::panel_elements<T>(queries, s.head_size) + 2 * detail::query_block * detail::weights_row);
}

/// dq, dk, dv from dout and what forward read and wrote; each is overwritten.
template <class T>
void attention_backward(const T* dout, const T* q, const T* k, const T* v, const T* out, const T* lse, T* dq, T* dk,
                        T* dv, const attention_shape& s, void* workspace) {
  const int64_t d = s.head_size, row = s.query_row(), key_row = s.key_row(), rows_of_lse = s.heads * s.group;
  const int64_t most_keys = std::min(detail::key_block, s.keys),
                most_queries = std::min(detail::query_block, s.queries);
  fill(T(0), dk, s.batch * s.keys * key_row);
  fill(T(0), dv, s.batch * s.keys * key_row);
  if (s.keys == 0) return fill(T(0), dq, s.batch * s.queries * row);
  T* const weights = static_cast<T*>(workspace);
  T* const slopes = weights + detail::query_block * detail::weights_row;
  T* const key_columns = slopes + detail::query_block * detail::weights_row;
  T* const value_columns = key_columns + detail::panel_elements<T>(d, most_keys);
  T* const key_rows = value_columns + detail::panel_elements<T>(d, most_keys);
  T* const query_rows = key_rows + detail::panel_elements<T>(most_keys, d);
  T* const dout_rows = query_rows + detail::panel_elements<T>(most_queries, d);
  const T factor = T(s.scale);
  for (int64_t bh = 0; bh < s.batch * s.heads; ++bh) {
    const int64_t b = bh / s.heads, h = bh % s.heads;
    for (int64_t first = 0; first < s.keys; first += detail::key_block) {
      const detail::visible_keys visible(s, first);
      const int64_t key_at = (b * s.keys + first) * key_row + h * d;
      if (visible.first_row(0) >= s.queries) break;
      const auto key_t = detail::pack_panels<T>({k + key_at, d, visible.keys, 1, key_row}, key_columns);
      const auto value_t = detail::pack_panels<T>({v + key_at, d, visible.keys, 1, key_row}, value_columns);
      const auto key = detail::rows_as_panels<T>({k + key_at, visible.keys, d, key_row, 1}, key_rows);
      for (int64_t g = h * s.group; g < (h + 1) * s.group; ++g) {
        for (int64_t i = visible.first_row(0); i < s.queries; i += detail::query_block) {
          const int64_t rows = std::min(detail::query_block, s.queries - i), cols = visible.of_row(i + rows - 1);
          const int64_t query_at = (b * s.queries + i) * row + g * d;
          const auto query = detail::rows_as_panels<T>({q + query_at, rows, d, row, 1}, query_rows);
          const auto slope = detail::rows_as_panels<T>({dout + query_at, rows, d, row, 1}, dout_rows);
          for (int64_t r = 0; r < rows; r += detail::tile_rows) {
            const int64_t strip = std::min<int64_t>(detail::tile_rows, rows - r);
            const int64_t strip_cols = visible.of_row(i + r + strip - 1);
            T* const w = weights + r * detail::weights_row;
            T* const dw = slopes + r * detail::weights_row;
            detail::multiply_strip<T>(strip, strip_cols, d, q + query_at + r * row, row, 1, key_t, w,
                                      detail::weights_row, false);
            detail::multiply_strip<T>(strip, strip_cols, d, dout + query_at + r * row, row, 1, value_t, dw,
                                      detail::weights_row, false);
            for (int64_t t = 0; t < strip; ++t) {
              const int64_t at = query_at + (r + t) * row, n = visible.of_row(i + r + t);
              const T dot = detail::sum_of<T>(
                  d, [](pack<T> x, pack<T> y) { return x * y; }, dout + at, out + at);
              const T total = lse[(b * s.queries + i + r + t) * rows_of_lse + g];
              T* const w_row = w + t * detail::weights_row;
              T* const dw_row = dw + t * detail::weights_row;
              int64_t j = 0;
              for (; j < n; j += width<T>) {
                pack<T> p = exp<T>(load<T>(w_row + j) * factor - total);
                pack<T> dp = p * (load<T>(dw_row + j) - dot) * factor;
                if (j + width < T >> n) {
                  p = keep_lanes<T>(p, n - j, T(0));
                  dp = keep_lanes<T>(dp, n - j, T(0));
                }
                store<T>(w_row + j, p);
                store<T>(dw_row + j, dp);
              }
              for (; j < cols; j += width<T>) {
                store<T>(w_row + j, pack<T>{});
                store<T>(dw_row + j, pack<T>{});
              }
            }
            detail::multiply_strip<T>(strip, d, strip_cols, dw, detail::weights_row, 1, key, dq + query_at + r * row,
                                      row, first > 0);
          }
          for (int64_t j = 0; j < cols; j += detail::tile_rows) {
            const int64_t strip = std::min<int64_t>(detail::tile_rows, cols - j);
            const int64_t skip = std::max<int64_t>(0, visible.first_row(j) - i);
            const auto below = [skip](detail::panels<T> p) {
              return detail::panels<T>{p.data + skip * p.row, p.row, p.panel};
            };
            detail::multiply_strip<T>(strip, d, rows - skip, weights + skip * detail::weights_row + j, 1,
                                      detail::weights_row, below(slope), dv + key_at + j * key_row, key_row, true);
            detail::multiply_strip<T>(strip, d, rows - skip, slopes + skip * detail::weights_row + j, 1,
                                      detail::weights_row, below(query), dk + key_at + j * key_row, key_row, true);
          }
        }
      }
    }
  }
}

}  // namespace mmr::cpu
