// Matrix products against the sum they are defined by, in every storage order.
#include "check.hpp"
#include "mmr/backend/cpu/gemm.hpp"

namespace cpu = mmr::cpu;
using check::int64_t;

namespace {

/// Strides of a row-major matrix with some space after each row, or of a column-major one.
template <class T>
cpu::matrix<T> view(std::vector<T>& data, int64_t rows, int64_t cols, bool column_major, int64_t space) {
  return column_major ? cpu::matrix<T>{data.data(), rows, cols, 1, rows + space}
                      : cpu::matrix<T>{data.data(), rows, cols, cols + space, 1};
}

int64_t room(int64_t rows, int64_t cols, int64_t space) {
  return (rows + space) * (cols + space);
}

template <class T>
cpu::matrix<const T> constant(cpu::matrix<T> m) {
  return {m.data, m.rows, m.cols, m.row_stride, m.col_stride};
}

/// The distance between the product and its definition, and that nothing was allocated, or written beside c.
template <class T>
double error_of(int64_t m, int64_t n, int64_t k, int orders, bool accumulate) {
  const int64_t space = orders % 3;
  auto a = check::random<T>(room(m, k, space), 1), b = check::random<T>(room(k, n, space), 2);
  auto c = check::random<T>(room(m, n, space), 3);
  const auto va = view(a, m, k, orders & 1, space), vb = view(b, k, n, orders & 2, space);
  const auto vc = view(c, m, n, orders & 4, space);
  std::vector<double> expected(c.begin(), c.end());
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l) {
        sum += double(va.data[i * va.row_stride + l * va.col_stride]) *
               double(vb.data[l * vb.row_stride + j * vb.col_stride]);
      }
      double& to = expected[std::size_t(i * vc.row_stride + j * vc.col_stride)];
      to = accumulate ? to + sum : sum;
    }
  }
  const int64_t bytes = cpu::product_workspace<T>(m, n, k);
  std::vector<char> workspace(std::size_t(bytes + 16), 'x');
  const auto before = check::allocations();
  cpu::product(constant(va), constant(vb), vc, accumulate, workspace.data());
  const bool allocated = check::allocations() != before;
  const bool overrun = std::any_of(workspace.end() - 16, workspace.end(), [](char byte) { return byte != 'x'; });
  return allocated || overrun ? INFINITY : check::distance(c, expected);
}

}  // namespace

TEMPLATE_TEST_CASE("a product is the sum over the inner extent, in every storage order", "[backend_cpu]", float,
                   double) {
  double worst = 0;
  int orders = 0;
  for (int64_t m : check::extents) {
    for (int64_t n : check::extents) {
      for (int64_t k : check::extents) {
        orders = (orders + 1) % 8;
        worst = std::max(worst, error_of<TestType>(m, n, k, orders, (m + n + k) % 2));
      }
    }
  }
  for (orders = 0; orders < 8; ++orders) {
    worst = std::max(worst, error_of<TestType>(47, 53, 61, orders, false));
    worst = std::max(worst, error_of<TestType>(7, 64, 33, orders, true));
  }
  CHECK(worst < 100 * check::epsilon<TestType>());
}

TEMPLATE_TEST_CASE("a product larger than one block of depth and columns", "[backend_cpu]", float, double) {
  for (int orders = 0; orders < 8; ++orders) {
    CHECK(error_of<TestType>(19, 1500, 300, orders, false) < 300 * check::epsilon<TestType>());
    CHECK(error_of<TestType>(1400, 21, 530, orders, true) < 500 * check::epsilon<TestType>());
  }
  // Few rows take tiles of eight packs; many columns are read in place or packed.
  for (int64_t m : {1, 2, 9, 300}) {
    CHECK(error_of<TestType>(m, 1072, 270, 0, false) < 300 * check::epsilon<TestType>());
    CHECK(error_of<TestType>(m, 176, 270, 3, true) < 300 * check::epsilon<TestType>());
  }
}

TEST_CASE("the workspace of a product stays below one mebibyte", "[backend_cpu]") {
  CHECK(cpu::product_workspace<float>(100000, 100000, 100000) < 1 << 20);
  CHECK(cpu::product_workspace<double>(100000, 100000, 100000) < 1 << 20);
  CHECK(cpu::product_workspace<float>(0, 0, 0) >= 0);
}

TEST_CASE("the count of allocations sees one", "[backend_cpu]") {
  const auto before = check::allocations();
  // A call by name: a compiler may leave out the allocation of a vector or a new expression.
  ::operator delete(::operator new(8));
  CHECK(check::allocations() == before + 1);
}
