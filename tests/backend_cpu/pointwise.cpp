// Elementwise kernels, activations, normalisation and softmax against their definitions in double.
#include <numeric>

#include "check.hpp"
#include "mmr/backend/cpu/bias.hpp"
#include "mmr/backend/cpu/elementwise.hpp"
#include "mmr/backend/cpu/gelu.hpp"
#include "mmr/backend/cpu/layer_norm.hpp"
#include "mmr/backend/cpu/rms_norm.hpp"
#include "mmr/backend/cpu/silu.hpp"
#include "mmr/backend/cpu/softmax.hpp"

namespace cpu = mmr::cpu;
using check::int64_t;

namespace {

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

/// f(row, column) for each element of rows x n.
template <class F>
std::vector<double> each(int64_t rows, int64_t n, F f) {
  std::vector<double> values;
  for (int64_t i = 0; i < rows * n; ++i) values.push_back(f(std::size_t(i / n), std::size_t(i % n)));
  return values;
}

}  // namespace

TEMPLATE_TEST_CASE("exp is right to about one unit in the last place", "[backend_cpu]", float, double) {
  using T = TestType;
  const double end = sizeof(T) == 4 ? 86 : 700;
  double worst = 0;
  const auto x = check::random<T>(16384, 1, -end, end);
  auto y = x;
  cpu::map_packs(
      16384, y.data(), [](cpu::pack<T> v) { return cpu::exp<T>(v); }, x.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double right = std::exp(static_cast<long double>(x[i]));
    worst = std::max(worst, double(std::abs((static_cast<long double>(y[i]) - right) / right)));
  }
  CHECK(worst < 1.2 * check::epsilon<T>());
}

TEMPLATE_TEST_CASE("exp at the ends of its range", "[backend_cpu]", float, double) {
  using T = TestType;
  const std::vector<T> x{T(0), -INFINITY, INFINITY, NAN, T(-1e30), T(1e30), T(sizeof(T) == 4 ? 88.7 : 709.7)};
  auto y = x;
  cpu::map_packs(
      int64_t(x.size()), y.data(), [](cpu::pack<T> v) { return cpu::exp<T>(v); }, x.data());
  CHECK(check::distance(y, std::vector<T>{1, 0, INFINITY, NAN, 0, INFINITY, std::exp(x[6])}) < 2 * check::epsilon<T>());
}

TEMPLATE_TEST_CASE("arithmetic by element, in place too", "[backend_cpu]", float, double) {
  using T = TestType;
  for (int64_t n : check::extents) {
    const auto a = check::random<T>(n, 1), b = check::random<T>(n, 2);
    auto sum = a, product = b, scaled = a, moved = b, mapped = a, copied = b;
    cpu::add(a.data(), b.data(), sum.data(), n);
    cpu::multiply(a.data(), product.data(), product.data(), n);
    cpu::scale(T(3), scaled.data(), scaled.data(), n);
    cpu::axpy(T(2), a.data(), moved.data(), n);
    cpu::map(
        n, mapped.data(), [](T x, T y) { return x - y; }, a.data(), b.data());
    cpu::copy(a.data(), copied.data(), n);
    for (std::size_t i = 0; i < std::size_t(n); ++i) {
      CHECK(sum[i] == a[i] + b[i]);
      CHECK(product[i] == a[i] * b[i]);
      CHECK(scaled[i] == 3 * a[i]);
      CHECK(check::near(double(moved[i]), 2 * double(a[i]) + double(b[i]), check::epsilon<T>()));
      CHECK(mapped[i] == a[i] - b[i]);
    }
    CHECK(copied == a);
    cpu::fill(T(7), copied.data(), n);
    CHECK(copied == check::zeros<T>(n, T(7)));
  }
}

TEMPLATE_TEST_CASE("bias rows and column sums", "[backend_cpu]", float, double) {
  using T = TestType;
  for (int64_t rows : check::extents) {
    for (int64_t n : check::extents) {
      const auto x = check::random<T>(rows * n, 1), b = check::random<T>(n, 2);
      auto y = x;
      cpu::add_bias(y.data(), b.data(), y.data(), rows, n);
      CHECK(check::distance(y, each(rows, n, [&](auto i, auto j) {
                              return double(x[i * std::size_t(n) + j]) + double(b[j]);
                            })) < check::epsilon<T>());
      auto sums = check::zeros<T>(n, T(9));
      cpu::column_sums(x.data(), sums.data(), rows, n);
      std::vector<double> expected = check::zeros<double>(n);
      for (std::size_t i = 0; i < x.size(); ++i) expected[i % std::size_t(n)] += double(x[i]);
      CHECK(check::distance(sums, expected) < 20 * check::epsilon<T>());
    }
  }
}

TEMPLATE_TEST_CASE("GeLU with its bias, from minus to plus infinity", "[backend_cpu]", float, double) {
  using T = TestType;
  for (int64_t n : check::extents) {
    const int64_t rows = 11;
    const auto x = check::random<T>(rows * n, 1, -6, 6), b = check::random<T>(n, 2), zero = check::zeros<T>(n);
    auto y = x, plain = x;
    cpu::bias_gelu_forward(x.data(), b.data(), y.data(), rows, n);
    cpu::gelu_forward(x.data(), plain.data(), rows * n);
    CHECK(check::distance(y, each(rows, n, [&](auto i, auto j) {
                            return gelu(double(x[i * std::size_t(n) + j]) + double(b[j]));
                          })) < 8 * check::epsilon<T>());
    CHECK(check::distance(plain, each(rows, n, [&](auto i, auto j) {
                            return gelu(double(x[i * std::size_t(n) + j]));
                          })) < 8 * check::epsilon<T>());
  }
  const std::vector<T> x{T(-1e30), T(1e30), -INFINITY, INFINITY, NAN, T(-12), T(0)}, one = check::zeros<T>(7, 1);
  auto y = x, slope = x;
  cpu::gelu_forward(x.data(), y.data(), 7);
  cpu::gelu_backward(one.data(), x.data(), slope.data(), 7);
  CHECK(check::distance(y, std::vector<T>{0, T(1e30), 0, INFINITY, NAN, 0, 0}) < 1e-6);
  CHECK(check::distance(slope, std::vector<T>{0, 1, 0, 1, NAN, 0, T(0.5)}) < 1e-6);
}

TEST_CASE("gradients of GeLU equal central differences", "[backend_cpu]") {
  const int64_t rows = 19, n = 13;
  auto x = check::random<double>(rows * n, 1, -4, 4), b = check::random<double>(n, 2);
  const auto dy = check::random<double>(rows * n, 3);
  const auto loss = [&] {
    auto y = check::zeros<double>(rows * n);
    cpu::bias_gelu_forward(x.data(), b.data(), y.data(), rows, n);
    return check::dot(y, dy);
  };
  auto dx = dy, db = check::zeros<double>(n, 9);
  cpu::bias_gelu_backward(dx.data(), x.data(), b.data(), dx.data(), db.data(), rows, n);
  CHECK(check::distance(dx, check::slopes(x, loss)) < 1e-6);
  CHECK(check::distance(db, check::slopes(b, loss)) < 1e-6);
  const auto plain_loss = [&] {
    auto y = x;
    cpu::gelu_forward(x.data(), y.data(), rows * n);
    return check::dot(y, dy);
  };
  cpu::gelu_backward(dy.data(), x.data(), dx.data(), rows * n);
  CHECK(check::distance(dx, check::slopes(x, plain_loss)) < 1e-6);
}

TEMPLATE_TEST_CASE("SiLU and SwiGLU, from minus to plus infinity", "[backend_cpu]", float, double) {
  using T = TestType;
  const auto silu = [](double x) { return x / (1 + std::exp(-x)); };
  for (int64_t n : check::extents) {
    const auto x = check::random<T>(n, 1, -20, 20), up = check::random<T>(n, 2);
    auto y = x, gated = up;
    cpu::silu_forward(y.data(), y.data(), n);
    cpu::swiglu_forward(x.data(), gated.data(), gated.data(), n);
    CHECK(check::distance(y, each(1, n, [&](auto, auto j) { return silu(double(x[j])); })) < 8 * check::epsilon<T>());
    CHECK(check::distance(gated, each(1, n, [&](auto, auto j) { return silu(double(x[j])) * double(up[j]); })) <
          8 * check::epsilon<T>());
  }
  const std::vector<T> x{T(-1e30), T(1e30), -INFINITY, INFINITY, NAN, T(-2000), T(0)}, one = check::zeros<T>(7, 1);
  auto y = x, slope = x;
  cpu::silu_forward(x.data(), y.data(), 7);
  cpu::silu_backward(one.data(), x.data(), slope.data(), 7);
  CHECK(check::distance(y, std::vector<T>{0, T(1e30), 0, INFINITY, NAN, 0, 0}) < 1e-6);
  CHECK(check::distance(slope, std::vector<T>{0, 1, 0, 1, NAN, 0, T(0.5)}) < 1e-6);
}

TEST_CASE("gradients of SwiGLU equal central differences, over any operand", "[backend_cpu]") {
  const int64_t n = 37;
  auto gate = check::random<double>(n, 1, -4, 4), up = check::random<double>(n, 2);
  const auto dy = check::random<double>(n, 3);
  const auto loss = [&] {
    auto y = dy;
    cpu::swiglu_forward(gate.data(), up.data(), y.data(), n);
    return check::dot(y, dy);
  };
  const auto dgate = check::slopes(gate, loss), dup = check::slopes(up, loss);
  auto over_dy = dy, apart = dy;
  cpu::swiglu_backward(over_dy.data(), gate.data(), up.data(), over_dy.data(), apart.data(), n);
  CHECK(check::distance(over_dy, dgate) < 1e-6);
  CHECK(check::distance(apart, dup) < 1e-6);
  cpu::swiglu_backward(dy.data(), gate.data(), up.data(), gate.data(), up.data(), n);
  CHECK(check::distance(gate, dgate) < 1e-6);
  CHECK(check::distance(up, dup) < 1e-6);
}

TEST_CASE("gradients of RMS norm equal central differences", "[backend_cpu]") {
  const int64_t rows = 19, n = 21;
  auto x = check::random<double>(rows * n, 1), gain = check::random<double>(n, 2);
  const auto dy = check::random<double>(rows * n, 3);
  auto y = x, rstd = check::zeros<double>(rows);
  const auto loss = [&] {
    cpu::rms_norm_forward(x.data(), gain.data(), y.data(), rstd.data(), rows, n, 1e-5);
    return check::dot(y, dy);
  };
  const auto dx_expected = check::slopes(x, loss), dgain_expected = check::slopes(gain, loss);
  loss();
  auto dx = dy, dgain = gain;
  cpu::rms_norm_backward(dx.data(), x.data(), gain.data(), rstd.data(), dx.data(), dgain.data(), rows, n);
  CHECK(check::distance(dx, dx_expected) < 1e-6);
  CHECK(check::distance(dgain, dgain_expected) < 1e-6);
}

TEMPLATE_TEST_CASE("softmax rows, also of large scores", "[backend_cpu]", float, double) {
  using T = TestType;
  for (int64_t n : check::extents) {
    const int64_t rows = 5;
    const auto x = check::random<T>(rows * n, 1, 990, 1010);
    auto y = x;
    cpu::softmax_forward(y.data(), y.data(), rows, n);
    CHECK(check::distance(y, each(rows, n, [&](auto i, auto j) {
                            double sum = 0;
                            for (std::size_t k = 0; k < std::size_t(n); ++k) {
                              sum += std::exp(double(x[i * std::size_t(n) + k]) - double(x[i * std::size_t(n) + j]));
                            }
                            return 1 / sum;
                          })) < 10 * check::epsilon<T>());
  }
}

TEST_CASE("gradients of softmax equal central differences", "[backend_cpu]") {
  const int64_t rows = 3, n = 17;
  auto x = check::random<double>(rows * n, 1, -2, 2);
  const auto dy = check::random<double>(rows * n, 2);
  auto y = x;
  const auto loss = [&] {
    cpu::softmax_forward(x.data(), y.data(), rows, n);
    return check::dot(y, dy);
  };
  loss();
  auto dx = dy;
  cpu::softmax_backward(dx.data(), y.data(), dx.data(), rows, n);
  CHECK(check::distance(dx, check::slopes(x, loss)) < 1e-6);
}

TEMPLATE_TEST_CASE("layer norm by its definition", "[backend_cpu]", float, double) {
  using T = TestType;
  for (int64_t n : check::extents) {
    const int64_t rows = 9;
    // A mean far from zero: the variance must not be a difference of large squares.
    const auto x = check::random<T>(rows * n, 1, 99, 101), gamma = check::random<T>(n, 2),
               beta = check::random<T>(n, 3);
    auto y = x, mean = check::zeros<T>(rows), rstd = mean;
    cpu::layer_norm_forward(x.data(), gamma.data(), beta.data(), y.data(), mean.data(), rstd.data(), rows, n, T(1e-5));
    std::vector<double> m, s;
    for (int64_t i = 0; i < rows && n > 0; ++i) {
      const std::vector<double> row(x.begin() + i * n, x.begin() + (i + 1) * n);
      m.push_back(std::accumulate(row.begin(), row.end(), 0.0) / double(n));
      double squares = 0;
      for (double v : row) squares += (v - m.back()) * (v - m.back());
      s.push_back(1 / std::sqrt(squares / double(n) + 1e-5));
    }
    if (n == 0) continue;
    // One row's mean carries the rounding of values near 100, and rstd of a single element is 316.
    const double limit = 3e4 * check::epsilon<T>();
    CHECK(check::distance(mean, m) < limit);
    CHECK(check::distance(rstd, s) < limit);
    CHECK(check::distance(y, each(rows, n, [&](auto i, auto j) {
                            return (double(x[i * std::size_t(n) + j]) - m[i]) * s[i] * double(gamma[j]) +
                                   double(beta[j]);
                          })) < limit);
  }
}

TEST_CASE("gradients of layer norm equal central differences, each half alone too", "[backend_cpu]") {
  const int64_t rows = 19, n = 21;
  auto x = check::random<double>(rows * n, 1), gamma = check::random<double>(n, 2), beta = check::random<double>(n, 3);
  const auto dy = check::random<double>(rows * n, 4);
  auto y = x, mean = check::zeros<double>(rows), rstd = mean;
  const auto loss = [&] {
    cpu::layer_norm_forward(x.data(), gamma.data(), beta.data(), y.data(), mean.data(), rstd.data(), rows, n, 1e-5);
    return check::dot(y, dy);
  };
  const auto dx_expected = check::slopes(x, loss), dgamma_expected = check::slopes(gamma, loss),
             dbeta_expected = check::slopes(beta, loss);
  loss();
  auto dx = dy, dgamma = gamma, dbeta = beta;
  cpu::layer_norm_backward(dx.data(), x.data(), gamma.data(), mean.data(), rstd.data(), dx.data(), dgamma.data(),
                           dbeta.data(), rows, n);
  CHECK(check::distance(dx, dx_expected) < 1e-6);
  CHECK(check::distance(dgamma, dgamma_expected) < 1e-6);
  CHECK(check::distance(dbeta, dbeta_expected) < 1e-6);
  std::vector<double> dx_alone = dy, dgamma_alone = gamma, dbeta_alone = beta;
  double* const none = nullptr;
  cpu::layer_norm_backward(dy.data(), x.data(), gamma.data(), mean.data(), rstd.data(), dx_alone.data(), none, none,
                           rows, n);
  cpu::layer_norm_backward(dy.data(), x.data(), gamma.data(), mean.data(), rstd.data(), none, dgamma_alone.data(),
                           dbeta_alone.data(), rows, n);
  CHECK(dx_alone == dx);
  CHECK(dgamma_alone == dgamma);
  CHECK(dbeta_alone == dbeta);
}
