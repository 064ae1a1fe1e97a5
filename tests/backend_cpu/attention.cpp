// Attention against the plain softmax of all scores, its gradients against finite differences, and its shards against
// the whole.
#include "mmr/backend/cpu/attention.hpp"

#include "check.hpp"

namespace cpu = mmr::cpu;
using check::int64_t;

namespace {

template <class T>
struct result {
  std::vector<T> out, lse;
};

template <class T>
result<T> forward(const cpu::attention_shape& s, const std::vector<T>& q, const std::vector<T>& k,
                  const std::vector<T>& v) {
  std::vector<char> workspace(std::size_t(cpu::attention_forward_workspace<T>(s) + 16), 'x');
  result<T> r{check::zeros<T>(s.batch * s.queries * s.query_row(), T(9)),
              check::zeros<T>(s.batch * s.queries * s.heads * s.group, T(9))};
  const auto before = check::allocations();
  cpu::attention_forward(q.data(), k.data(), v.data(), r.out.data(), r.lse.data(), s, workspace.data());
  if (check::allocations() != before) FAIL("attention allocated");
  if (workspace[workspace.size() - 16] != 'x') FAIL("attention wrote past its workspace");
  return r;
}

template <class T>
struct gradients {
  std::vector<T> dq, dk, dv;
};

template <class T>
gradients<T> backward(const cpu::attention_shape& s, const std::vector<T>& dout, const std::vector<T>& q,
                      const std::vector<T>& k, const std::vector<T>& v, const result<T>& r) {
  std::vector<char> workspace(std::size_t(cpu::attention_backward_workspace<T>(s) + 16), 'x');
  gradients<T> g{check::zeros<T>(s.batch * s.queries * s.query_row(), T(9)),
                 check::zeros<T>(s.batch * s.keys * s.key_row(), T(9)),
                 check::zeros<T>(s.batch * s.keys * s.key_row(), T(9))};
  const auto before = check::allocations();
  cpu::attention_backward(dout.data(), q.data(), k.data(), v.data(), r.out.data(), r.lse.data(), g.dq.data(),
                          g.dk.data(), g.dv.data(), s, workspace.data());
  if (check::allocations() != before) FAIL("attention allocated");
  if (workspace[workspace.size() - 16] != 'x') FAIL("attention wrote past its workspace");
  return g;
}

/// Everything by definition, in double: out, lse and the gradients.
template <class T>
std::pair<result<double>, gradients<double>> plain(const cpu::attention_shape& s, const std::vector<T>& dout,
                                                   const std::vector<T>& q, const std::vector<T>& k,
                                                   const std::vector<T>& v) {
  const auto d = s.head_size, row = s.query_row(), key_row = s.key_row(), heads = s.heads * s.group;
  result<double> r{check::zeros<double>(s.batch * s.queries * row), check::zeros<double>(s.batch * s.queries * heads)};
  gradients<double> g{check::zeros<double>(s.batch * s.queries * row), check::zeros<double>(s.batch * s.keys * key_row),
                      check::zeros<double>(s.batch * s.keys * key_row)};
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t i = 0; i < s.queries; ++i) {
        const int64_t n = s.causal ? std::min(s.keys, s.query_begin + i + 1) : s.keys;
        const auto query = std::size_t((b * s.queries + i) * row + h * d);
        const auto key = [&](int64_t j) { return std::size_t((b * s.keys + j) * key_row + h / s.group * d); };
        std::vector<double> p(static_cast<std::size_t>(n)), dp(p);
        double sum = 0, mean = 0;
        for (int64_t j = 0; j < n; ++j) {
          double score = 0;
          for (std::size_t e = 0; e < std::size_t(d); ++e) score += double(q[query + e]) * double(k[key(j) + e]);
          sum += p[std::size_t(j)] = std::exp(score * s.scale);
        }
        r.lse[std::size_t((b * s.queries + i) * heads + h)] = std::log(sum);
        for (int64_t j = 0; j < n; ++j) {
          p[std::size_t(j)] /= sum;
          for (std::size_t e = 0; e < std::size_t(d); ++e) {
            r.out[query + e] += p[std::size_t(j)] * double(v[key(j) + e]);
            g.dv[key(j) + e] += p[std::size_t(j)] * double(dout[query + e]);
            dp[std::size_t(j)] += double(dout[query + e]) * double(v[key(j) + e]);
          }
          mean += p[std::size_t(j)] * dp[std::size_t(j)];
        }
        for (int64_t j = 0; j < n; ++j) {
          const double slope = p[std::size_t(j)] * (dp[std::size_t(j)] - mean) * s.scale;
          for (std::size_t e = 0; e < std::size_t(d); ++e) {
            g.dq[query + e] += slope * double(k[key(j) + e]);
            g.dk[key(j) + e] += slope * double(q[query + e]);
          }
        }
      }
    }
  }
  return {r, g};
}

}  // namespace

TEMPLATE_TEST_CASE("attention equals the softmax of all its scores, forward and backward", "[backend_cpu]", float,
                   double) {
  using T = TestType;
  const std::vector<cpu::attention_shape> shapes{
      {1, 1, 1, 1, 1, 0, true, 1},           {2, 17, 17, 3, 5, 0, true, 0.4},    {1, 64, 64, 2, 32, 0, true, 0.2},
      {1, 33, 100, 2, 31, 67, true, 0.2},    {1, 31, 100, 1, 64, 13, true, 3},   {2, 100, 33, 1, 17, 0, false, 0.3},
      {1, 100, 33, 1, 16, 0, true, 0.3},     {1, 700, 700, 1, 8, 0, true, 0.5},  {1, 70, 600, 1, 20, 300, true, 0.5},
      {1, 70, 600, 1, 24, 0, false, 0.5},    {0, 5, 5, 2, 4, 0, true, 1},        {1, 0, 5, 2, 4, 0, true, 1},
      {1, 5, 5, 0, 4, 0, true, 1},           {2, 17, 17, 2, 5, 0, true, 0.4, 3}, {1, 70, 600, 2, 16, 300, true, 0.5, 2},
      {1, 100, 33, 3, 17, 0, false, 0.3, 2}, {1, 5, 5, 2, 4, 0, true, 1, 0}};
  for (const auto& s : shapes) {
    CAPTURE(s.batch, s.queries, s.keys, s.heads, s.group, s.head_size, s.query_begin, s.causal);
    const auto q = check::random<T>(s.batch * s.queries * s.query_row(), 1, -2, 2),
               k = check::random<T>(s.batch * s.keys * s.key_row(), 2),
               v = check::random<T>(s.batch * s.keys * s.key_row(), 3),
               dout = check::random<T>(s.batch * s.queries * s.query_row(), 4);
    const auto [expected, expected_gradients] = plain(s, dout, q, k, v);
    const auto r = forward(s, q, k, v);
    const auto g = backward(s, dout, q, k, v, r);
    const double limit = 200 * check::epsilon<T>();
    CHECK(check::distance(r.out, expected.out) < limit);
    CHECK(check::distance(r.lse, expected.lse) < limit);
    CHECK(check::distance(g.dq, expected_gradients.dq) < limit);
    CHECK(check::distance(g.dk, expected_gradients.dk) < limit);
    CHECK(check::distance(g.dv, expected_gradients.dv) < limit);
  }
}

TEST_CASE("attention without keys gives zero, and its gradients too", "[backend_cpu]") {
  const cpu::attention_shape s{1, 3, 0, 2, 4, 0, true, 1};
  const auto q = check::random<float>(24);
  const auto r = forward<float>(s, q, {}, {});
  CHECK(r.out == check::zeros<float>(24));
  CHECK(r.lse == check::zeros<float>(6, -INFINITY));
  CHECK(backward<float>(s, q, q, {}, {}, r).dq == check::zeros<float>(24));
}

TEST_CASE("large scores neither overflow nor vanish", "[backend_cpu]") {
  const cpu::attention_shape s{1, 40, 40, 1, 8, 0, true, 50};
  const auto q = check::random<float>(320, 1, -10, 10), k = check::random<float>(320, 2, -10, 10),
             v = check::random<float>(320, 3);
  for (float value : forward(s, q, k, v).out) CHECK(std::abs(value) <= 1);
}

TEST_CASE("gradients of attention equal central differences", "[backend_cpu]") {
  const cpu::attention_shape s{2, 7, 11, 2, 3, 4, true, 0.7};
  auto q = check::random<double>(84, 1), k = check::random<double>(132, 2), v = check::random<double>(132, 3);
  const auto dout = check::random<double>(84, 4);
  const auto loss = [&] { return check::dot(forward(s, q, k, v).out, dout); };
  const auto g = backward(s, dout, q, k, v, forward(s, q, k, v));
  CHECK(check::distance(g.dq, check::slopes(q, loss)) < 1e-6);
  CHECK(check::distance(g.dk, check::slopes(k, loss)) < 1e-6);
  CHECK(check::distance(g.dv, check::slopes(v, loss)) < 1e-6);
}

TEST_CASE("query rows on several ranks give the whole, and their key gradients add up", "[backend_cpu]") {
  const cpu::attention_shape whole{1, 310, 310, 1, 6, 0, true, 0.5};
  const auto q = check::random<double>(1860, 1), k = check::random<double>(1860, 2), v = check::random<double>(1860, 3),
             dout = check::random<double>(1860, 4);
  const auto r = forward(whole, q, k, v);
  const auto g = backward(whole, dout, q, k, v, r);
  result<double> joined;
  gradients<double> sums{{}, check::zeros<double>(1860), check::zeros<double>(1860)};
  for (const auto& [begin, end] : std::vector<std::pair<int64_t, int64_t>>{{0, 104}, {104, 208}, {208, 310}}) {
    auto part = whole;
    part.query_begin = begin;
    part.queries = end - begin;
    const std::vector<double> q_part(q.begin() + begin * 6, q.begin() + end * 6);
    const std::vector<double> dout_part(dout.begin() + begin * 6, dout.begin() + end * 6);
    const auto r_part = forward(part, q_part, k, v);
    const auto g_part = backward(part, dout_part, q_part, k, v, r_part);
    joined.out.insert(joined.out.end(), r_part.out.begin(), r_part.out.end());
    sums.dq.insert(sums.dq.end(), g_part.dq.begin(), g_part.dq.end());
    for (std::size_t i = 0; i < 1860; ++i) {
      sums.dk[i] += g_part.dk[i];
      sums.dv[i] += g_part.dv[i];
    }
  }
  CHECK(check::distance(joined.out, r.out) < 1e-13);
  CHECK(check::distance(sums.dq, g.dq) < 1e-13);
  CHECK(check::distance(sums.dk, g.dk) < 1e-12);
  CHECK(check::distance(sums.dv, g.dv) < 1e-12);
}

TEST_CASE("the workspace of attention does not grow with the sequence", "[backend_cpu]") {
  const cpu::attention_shape s{1, 1 << 20, 1 << 20, 1, 64, 0, true, 1};
  CHECK(cpu::attention_forward_workspace<float>(s) < 1 << 20);
  CHECK(cpu::attention_backward_workspace<float>(s) < 1 << 20);
}
