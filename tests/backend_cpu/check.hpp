// What the kernel tests share: random data, comparison with a tolerance that scales, central finite differences, and a
// count of the heap allocations.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "../catch.hpp"

namespace check {

using std::int64_t;

/// Extents around the widths of packs, tiles and blocks.
inline const std::vector<int64_t> extents{0, 1, 3, 17, 31, 33, 64, 100};

/// Times that operator new has run in this process.
int64_t allocations();

template <class T>
std::vector<T> random(int64_t n, unsigned seed = 1, double low = -1, double high = 1) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> value(low, high);
  std::vector<T> x(static_cast<std::size_t>(n));
  for (T& v : x) v = static_cast<T>(value(engine));
  return x;
}

template <class T>
std::vector<T> zeros(int64_t n, T value = T(0)) {
  return std::vector<T>(static_cast<std::size_t>(n), value);
}

template <class T>
constexpr double epsilon() {
  return std::numeric_limits<T>::epsilon();
}

/// The largest |a - b| / (1 + |b|); infinity where one is NaN and the other not, or the sizes differ.
template <class A, class B>
double distance(const std::vector<A>& a, const std::vector<B>& b) {
  if (a.size() != b.size()) return INFINITY;
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = double(a[i]), y = double(b[i]);
    if (std::isnan(x) || std::isnan(y)) {
      if (std::isnan(x) != std::isnan(y)) return INFINITY;
    } else if (x != y) {
      most = std::max(most, std::abs(x - y) / (1 + std::abs(y)));
    }
  }
  return most;
}

/// Whether a is b up to a relative (below one: absolute) tolerance.
inline bool near(double a, double b, double tolerance) {
  return distance<double, double>({a}, {b}) <= tolerance;
}

inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// d f / d x by central differences; f reads x, which is left as it was.
inline std::vector<double> slopes(std::vector<double>& x, const std::function<double()>& f) {
  constexpr double step = 1e-5;
  std::vector<double> result;
  for (double& value : x) {
    const double here = value;
    value = here + step;
    const double above = f();
    value = here - step;
    const double below = f();
    value = here;
    result.push_back((above - below) / (2 * step));
  }
  return result;
}

}  // namespace check
