// The ends of a training step: embedding lookup, cross-entropy over a split vocabulary, and the updates.
#include "check.hpp"
#include "mmr/backend/cpu/cross_entropy.hpp"
#include "mmr/backend/cpu/embedding.hpp"
#include "mmr/backend/cpu/optimizer.hpp"

namespace cpu = mmr::cpu;
using check::int64_t;

namespace {

std::vector<std::int32_t> words(int64_t count, int64_t vocabulary) {
  std::vector<std::int32_t> tokens;
  for (int64_t i = 0; i < count; ++i) tokens.push_back(static_cast<std::int32_t>(i * i * 7 % vocabulary));
  return tokens;
}

/// The columns begin .. end of x[rows, n].
std::vector<double> columns(const std::vector<double>& x, int64_t n, int64_t begin, int64_t end) {
  std::vector<double> part;
  for (int64_t row = 0; row < int64_t(x.size()); row += n)
    part.insert(part.end(), x.begin() + row + begin, x.begin() + row + end);
  return part;
}

double loss_of(const std::vector<double>& logits, const std::vector<std::int32_t>& targets, int64_t v, double factor) {
  const auto rows = int64_t(targets.size());
  auto max = check::zeros<double>(rows), s = max, picked = max;
  cpu::row_max(logits.data(), max.data(), rows, v);
  cpu::sum_exp(logits.data(), max.data(), s.data(), rows, v);
  cpu::pick(logits.data(), targets.data(), picked.data(), rows, v, 0);
  return cpu::negative_log_likelihood(max.data(), s.data(), picked.data(), rows, factor);
}

}  // namespace

TEMPLATE_TEST_CASE("an embedding split by words adds up to the whole, and so does its gradient", "[backend_cpu]", float,
                   double) {
  using T = TestType;
  const int64_t count = 50, vocabulary = 23;
  const auto tokens = words(count, vocabulary);
  for (int64_t n : check::extents) {
    const auto table = check::random<T>(vocabulary * n, 1), dout = check::random<T>(count * n, 2);
    auto out = check::zeros<T>(count * n), dtable = check::zeros<T>(vocabulary * n, T(9));
    std::vector<double> expected = check::zeros<double>(vocabulary * n);
    for (std::size_t i = 0; i < std::size_t(count * n); ++i) {
      expected[std::size_t(tokens[i / std::size_t(n)]) * std::size_t(n) + i % std::size_t(n)] += double(dout[i]);
    }
    cpu::embedding_backward(dout.data(), tokens.data(), dtable.data(), count, n, 0, vocabulary);
    CHECK(check::distance(dtable, expected) < 20 * check::epsilon<T>());
    for (const auto& [begin, size] : std::vector<std::pair<int64_t, int64_t>>{{0, 9}, {9, 14}, {23, 0}}) {
      auto part = check::zeros<T>(count * n, T(9)), dpart = check::zeros<T>(size * n, T(9));
      cpu::embedding_forward(table.data() + begin * n, tokens.data(), part.data(), count, n, begin, size);
      cpu::embedding_backward(dout.data(), tokens.data(), dpart.data(), count, n, begin, size);
      cpu::add(out.data(), part.data(), out.data(), count * n);
      CHECK(dpart == std::vector<T>(dtable.begin() + begin * n, dtable.begin() + (begin + size) * n));
    }
    bool same = true;
    for (int64_t i = 0; i < count * n; ++i) {
      same = same && out[std::size_t(i)] == table[std::size_t(tokens[std::size_t(i / n)] * n + i % n)];
    }
    CHECK(same);
  }
}

TEST_CASE("cross-entropy equals its definition, also for large logits", "[backend_cpu]") {
  const int64_t rows = 7;
  for (int64_t v : {1, 3, 17, 31, 33, 64, 100}) {
    const auto logits = check::random<double>(rows * v, 1, 900, 910);
    const auto targets = words(rows, v);
    double expected = 0;
    for (int64_t i = 0; i < rows; ++i) {
      double sum = 0;
      const double at = logits[std::size_t(i * v + targets[std::size_t(i)])];
      for (int64_t j = 0; j < v; ++j) sum += std::exp(logits[std::size_t(i * v + j)] - at);
      expected += std::log(sum) / double(rows);
    }
    CHECK(check::near(loss_of(logits, targets, v, 1.0 / double(rows)), expected, 1e-12));
  }
}

TEST_CASE("gradients of cross-entropy equal central differences", "[backend_cpu]") {
  const int64_t rows = 6, v = 21;
  auto logits = check::random<double>(rows * v, 1, -2, 2);
  const auto targets = words(rows, v);
  auto max = check::zeros<double>(rows), s = max;
  cpu::row_max(logits.data(), max.data(), rows, v);
  cpu::sum_exp(logits.data(), max.data(), s.data(), rows, v);
  auto slopes = logits;
  cpu::cross_entropy_backward(slopes.data(), max.data(), s.data(), targets.data(), slopes.data(), rows, v, 0, 0.25);
  CHECK(check::distance(slopes, check::slopes(logits, [&] { return loss_of(logits, targets, v, 0.25); })) < 1e-6);
}

TEST_CASE("a split vocabulary gives the loss and the gradient of the whole", "[backend_cpu]") {
  const int64_t rows = 9, v = 50;
  const auto logits = check::random<double>(rows * v, 1, -5, 5);
  const auto targets = words(rows, v);
  auto max = check::zeros<double>(rows, -INFINITY), s = check::zeros<double>(rows), picked = s, whole_max = s,
       whole_s = s;
  const std::vector<std::pair<int64_t, int64_t>> shards{{0, 17}, {17, 34}, {34, 50}, {50, 50}};
  for (const auto& [begin, end] : shards) {
    auto part_max = max;
    cpu::row_max(columns(logits, v, begin, end).data(), part_max.data(), rows, end - begin);
    for (std::size_t i = 0; i < max.size(); ++i) max[i] = std::max(max[i], part_max[i]);
  }
  for (const auto& [begin, end] : shards) {
    auto part_s = s, part_picked = s;
    const auto part = columns(logits, v, begin, end);
    cpu::sum_exp(part.data(), max.data(), part_s.data(), rows, end - begin);
    cpu::pick(part.data(), targets.data(), part_picked.data(), rows, end - begin, begin);
    cpu::add(s.data(), part_s.data(), s.data(), rows);
    cpu::add(picked.data(), part_picked.data(), picked.data(), rows);
  }
  CHECK(check::near(cpu::negative_log_likelihood(max.data(), s.data(), picked.data(), rows, 0.5),
                    loss_of(logits, targets, v, 0.5), 1e-13));
  cpu::row_max(logits.data(), whole_max.data(), rows, v);
  cpu::sum_exp(logits.data(), whole_max.data(), whole_s.data(), rows, v);
  auto whole = logits;
  cpu::cross_entropy_backward(logits.data(), whole_max.data(), whole_s.data(), targets.data(), whole.data(), rows, v, 0,
                              0.5);
  for (const auto& [begin, end] : shards) {
    auto part = columns(logits, v, begin, end);
    cpu::cross_entropy_backward(part.data(), max.data(), s.data(), targets.data(), part.data(), rows, end - begin,
                                begin, 0.5);
    CHECK(check::distance(part, columns(whole, v, begin, end)) < 1e-14);
  }
}

TEMPLATE_TEST_CASE("AdamW follows its formula over steps", "[backend_cpu]", float, double) {
  using T = TestType;
  for (int64_t n : check::extents) {
    auto p = check::random<T>(n, 1), m = check::zeros<T>(n), v = m;
    std::vector<double> rp(p.begin(), p.end()), rm(std::size_t(n), 0.0), rv = rm;
    for (int64_t step = 1; step <= 5; ++step) {
      const auto g = check::random<T>(n, unsigned(10 + step));
      cpu::adamw(p.data(), g.data(), m.data(), v.data(), n, {1e-2, 0.9, 0.95, 1e-8, 0.1, step, 0.5});
      for (std::size_t i = 0; i < rp.size(); ++i) {
        const double gradient = 0.5 * double(g[i]);
        rp[i] *= 1 - 1e-2 * 0.1;
        rm[i] = 0.9 * rm[i] + 0.1 * gradient;
        rv[i] = 0.95 * rv[i] + 0.05 * gradient * gradient;
        rp[i] -= 1e-2 * (rm[i] / (1 - std::pow(0.9, step))) / (std::sqrt(rv[i] / (1 - std::pow(0.95, step))) + 1e-8);
      }
    }
    CHECK(check::distance(p, rp) < 20 * check::epsilon<T>());
    CHECK(check::distance(m, rm) < 20 * check::epsilon<T>());
    CHECK(check::distance(v, rv) < 20 * check::epsilon<T>());
  }
}

TEMPLATE_TEST_CASE("SGD with and without momentum", "[backend_cpu]", float, double) {
  using T = TestType;
  for (int64_t n : check::extents) {
    auto p = check::random<T>(n, 1), v = check::zeros<T>(n), plain = p;
    const auto g = check::random<T>(n, 2);
    std::vector<double> rp(p.begin(), p.end()), rv(std::size_t(n), 0.0), rplain = rp;
    for (int step = 0; step < 3; ++step) {
      cpu::sgd(p.data(), g.data(), v.data(), n, 0.1, 0.9, 0.01, 2.0);
      cpu::sgd(plain.data(), g.data(), static_cast<T*>(nullptr), n, 0.1, 0.0, 0.0, 1.0);
      for (std::size_t i = 0; i < rp.size(); ++i) {
        rv[i] = 0.9 * rv[i] + 2 * double(g[i]) + 0.01 * rp[i];
        rp[i] -= 0.1 * rv[i];
        rplain[i] -= 0.1 * double(g[i]);
      }
    }
    CHECK(check::distance(p, rp) < 20 * check::epsilon<T>());
    CHECK(check::distance(plain, rplain) < 20 * check::epsilon<T>());
  }
}

TEMPLATE_TEST_CASE("the sum of squares is summed in double", "[backend_cpu]", float, double) {
  using T = TestType;
  for (int64_t n : {0, 1, 3, 17, 31, 33, 64, 100, 100000}) {
    const auto x = check::random<T>(n, 1);
    long double expected = 0;
    for (T value : x) expected += static_cast<long double>(value) * static_cast<long double>(value);
    CHECK(check::near(cpu::sum_squares(x.data(), n), double(expected), 1e-13));
  }
}
