// Binds general contraction to the matrix product. Loops that lie side by side in every tensor that has them merge into
// one, so that the contractions of a transformer, forward and backward, are single large products; what does not merge
// is walked by outer loops around the largest product that the orders of the dimensions allow.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <mmr/backend/cpu/gemm.hpp>
#include <mmr/op/contract.hpp>
#include <span>
#include <utility>

namespace mmr {

namespace cpu {

/// One term of a contraction over local shards, as nested loops of which up to three are a matrix product.
class contraction_walk {
 public:
  /// Loops that any one term may walk.
  static constexpr std::size_t most_loops = 16;

  contraction_walk(const signature& shape, const op::contract::term& t, std::span<const loop_range> loops) {
    const access* of[] = {&shape.in[static_cast<std::size_t>(t.lhs)], &shape.in[static_cast<std::size_t>(t.rhs)],
                          &shape.out[static_cast<std::size_t>(t.result)]};
    for (std::size_t l = 0; l < loops.size(); ++l) {
      walked one{loops[l].size, {}};
      for (std::size_t o = 0; o < 3; ++o) one.stride[o] = stride(*of[o], static_cast<int>(l), loops);
      add(one, loops[l]);
    }
    while (merge_two()) {
    }
    choose_product();
  }

  /// Sizes of the matrix product in the innermost place: result[rows, cols] of sums over depth.
  std::int64_t rows() const { return size_of(product_[0]); }
  std::int64_t cols() const { return size_of(product_[1]); }
  std::int64_t depth() const { return size_of(product_[2]); }
  /// How often that product runs.
  std::int64_t products() const {
    std::int64_t n = 1;
    for (std::size_t l = 0; l < count_; ++l)
      if (is_outer(l)) n *= loops_[l].size;
    return n;
  }

  /// c = the contraction of a and b, or c += it when `accumulate`. The workspace is that of the product.
  template <class T>
  void run(const T* a, const T* b, T* c, bool accumulate, void* workspace) const {
    if (result_elements_ == 0) return;
    if (empty_sum_) {
      if (!accumulate) std::fill_n(c, result_elements_, T(0));
      return;
    }
    std::array<std::int64_t, most_loops> index{};
    for (;;) {
      std::array<std::int64_t, 3> at{};
      // The first visit to a part of the result overwrites it: the one where no outer summation has advanced.
      bool visited = accumulate;
      for (std::size_t l = 0; l < count_; ++l) {
        for (std::size_t o = 0; o < 3; ++o) at[o] += index[l] * loops_[l].stride[o];
        visited = visited || (index[l] > 0 && loops_[l].stride[result] == 0);
      }
      multiply(a + at[lhs], b + at[rhs], c + at[result], visited, workspace);
      std::size_t l = 0;
      for (; l < count_; ++l) {
        if (!is_outer(l)) continue;
        if (++index[l] < loops_[l].size) break;
        index[l] = 0;
      }
      if (l == count_) return;
    }
  }

 private:
  enum operand : std::size_t { lhs, rhs, result };
  /// Which operands a loop of the product walks: row, column, and depth.
  static constexpr std::array<std::array<bool, 3>, 3> product_loops = {
      {{true, false, true}, {false, true, true}, {true, true, false}}};

  /// A stride of zero says that the operand lacks the loop.
  struct walked {
    std::int64_t size = 1;
    std::array<std::int64_t, 3> stride{};

    bool walks(const std::array<bool, 3>& which) const {
      return (stride[lhs] != 0) == which[lhs] && (stride[rhs] != 0) == which[rhs] &&
             (stride[result] != 0) == which[result];
    }
  };

  /// Elements between neighbours along loop l; zero where the operand lacks it.
  static std::int64_t stride(const access& of, int l, std::span<const loop_range> loops) {
    std::int64_t step = 1;
    for (auto d = of.loops.rbegin(); d != of.loops.rend(); ++d) {
      if (*d == l) return step;
      // An empty dimension must not make the others look absent.
      step *= std::max<std::int64_t>(1, loops[static_cast<std::size_t>(*d)].size);
    }
    return 0;
  }

  void add(const walked& one, const loop_range& range) {
    if (one.walks({false, false, false})) {
      // A loop of other terms only: where it is split, its first part does the work of this term.
      empty_sum_ = empty_sum_ || range.begin > 0 || (range.size == 0 && range.extent > 0);
      return;
    }
    if (one.stride[result] != 0)
      result_elements_ *= range.size;
    else
      empty_sum_ = empty_sum_ || range.size == 0;
    if (range.size == 1) return;
    if (count_ == most_loops) fail("contract: more than ", most_loops, " axes in one term; merge some of them");
    loops_[count_++] = one;
  }

  /// Joins two loops where one step of the outer is all steps of the inner, in every operand.
  bool merge_two() {
    for (std::size_t outer = 0; outer < count_; ++outer)
      for (std::size_t inner = 0; inner < count_; ++inner) {
        bool joins = outer != inner;
        for (std::size_t o = 0; o < 3; ++o)
          joins = joins && loops_[outer].stride[o] == loops_[inner].stride[o] * loops_[inner].size;
        if (!joins) continue;
        loops_[inner].size *= loops_[outer].size;
        loops_[outer] = loops_[--count_];
        return true;
      }
    return false;
  }

  /// Takes the rows, columns and depth (each perhaps none, number -1) that give the largest product whose matrices are
  /// row-major or column-major.
  void choose_product() {
    const int n = static_cast<int>(count_);
    std::int64_t best = 0;
    for (int i = -1; i < n; ++i)
      for (int j = -1; j < n; ++j)
        for (int k = -1; k < n; ++k) {
          if (!fits(i, 0) || !fits(j, 1) || !fits(k, 2)) continue;
          if (!is_matrix(i, k, lhs) || !is_matrix(k, j, rhs) || !is_matrix(i, j, result)) continue;
          const std::int64_t work = size_of(i) * size_of(j) * size_of(k);
          if (work <= best) continue;
          best = work;
          product_ = {i, j, k};
        }
  }
  bool fits(int l, std::size_t role) const {
    return l < 0 || loops_[static_cast<std::size_t>(l)].walks(product_loops[role]);
  }
  bool is_matrix(int row, int col, operand o) const {
    return row < 0 || col < 0 || stride_of(row, o) == 1 || stride_of(col, o) == 1;
  }

  std::int64_t size_of(int l) const { return l < 0 ? 1 : loops_[static_cast<std::size_t>(l)].size; }
  std::int64_t stride_of(int l, operand o) const { return l < 0 ? 1 : loops_[static_cast<std::size_t>(l)].stride[o]; }
  bool is_outer(std::size_t l) const {
    return std::find(product_.begin(), product_.end(), static_cast<int>(l)) == product_.end();
  }

  template <class T>
  matrix<T> matrix_of(T* data, int row, int col, operand o) const {
    return {data, size_of(row), size_of(col), stride_of(row, o), stride_of(col, o)};
  }
  template <class T>
  void multiply(const T* a, const T* b, T* c, bool accumulate, void* workspace) const {
    const auto [i, j, k] = product_;
    if (i < 0 && j < 0 && k < 0) {
      *c = accumulate ? *c + *a * *b : *a * *b;
      return;
    }
    product<T>(matrix_of(a, i, k, lhs), matrix_of(b, k, j, rhs), matrix_of(c, i, j, result), accumulate, workspace);
  }

  std::array<walked, most_loops> loops_{};
  std::size_t count_ = 0;
  std::array<int, 3> product_ = {-1, -1, -1};  // row, column and depth among loops_
  std::int64_t result_elements_ = 1;
  bool empty_sum_ = false;
};

}  // namespace cpu

template <>
struct kernel<cpu_device, op::contract> {
  template <class T>
  static void run(const op::contract& op, const kernel_args& args) {
    for (auto t = op.terms.begin(); t != op.terms.end(); ++t) {
      const auto operand = [](int i) { return static_cast<std::size_t>(i); };
      const bool later = std::any_of(op.terms.begin(), t, [&](const auto& u) { return u.result == t->result; });
      cpu::contraction_walk(*args.shape, *t, args.loops)
          .run(args.input<T>(operand(t->lhs)), args.input<T>(operand(t->rhs)), args.output<T>(operand(t->result)),
               later, args.workspace);
    }
  }
  template <class T>
  static std::int64_t workspace(const op::contract& op, const signature& shape, std::span<const loop_range> loops) {
    std::int64_t most = 0;
    for (const auto& t : op.terms) {
      const cpu::contraction_walk walk(shape, t, loops);
      most = std::max(most, cpu::product_workspace<T>(walk.rows(), walk.cols(), walk.depth()));
    }
    return most;
  }
};

}  // namespace mmr
