// Every operator against plain loops, whole and in parts. The parts are what the planner relies on: shards run on their
// own, put side by side or summed as the signature says, are the whole.
#include <map>
#include <optional>

#include "harness.hpp"

using namespace mmr_test;
namespace op = mmr::op;

namespace {

/// Operand types by letters: axes "bse" with the extents of this draw.
struct extents {
  std::map<char, std::int64_t> of;
  dtype element;

  mmr::tensor_type operator()(const char* axes) const { return type(axes, element); }
  mmr::tensor_type tokens(const char* axes) const { return type(axes, dtype::i32); }
  mmr::tensor_type type(const char* axes, dtype t) const {
    mmr::tensor_type made{t, {}};
    for (; *axes; ++axes) made.dims.push_back({std::string(1, *axes), of.at(*axes), true});
    return made;
  }
};

/// Odd sizes, ones, and sizes that fill registers or pass them by one; in double and in float.
template <class F>
void for_all_extents(F&& f) {
  const std::vector<std::map<char, std::int64_t>> draws = {
      {{'b', 2}, {'s', 5}, {'e', 7}, {'h', 3}, {'d', 5}, {'g', 2}, {'v', 11}},
      {{'b', 1}, {'s', 1}, {'e', 1}, {'h', 1}, {'d', 1}, {'g', 1}, {'v', 1}},
      {{'b', 3}, {'s', 17}, {'e', 33}, {'h', 2}, {'d', 16}, {'g', 3}, {'v', 70}},
  };
  for (const auto& d : draws)
    for (auto element : {dtype::f64, dtype::f32}) f(extents{d, element});
}

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double gelu_slope(double x) {
  const double c = std::sqrt(2 / M_PI), t = std::tanh(c * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x);
}

double silu(double x) {
  return x / (1 + std::exp(-x));
}
double silu_slope(double x) {
  const double s = 1 / (1 + std::exp(-x));
  return s + x * s * (1 - s);
}

/// Oracles that go row by row of operand 0: f(first element of the row, its length, results).
oracle by_rows(std::function<void(const arrays& in, std::size_t row, std::size_t n, arrays& out)> f) {
  return [=](const signature& s, const arrays& in, const arrays& state) {
    auto made = nest([](const point&) {})(s, in, state);
    const auto n = static_cast<std::size_t>(in[0].sizes.back());
    for (std::size_t row = 0; row < in[0].values.size() / n; ++row) f(in, row, n, made.out);
    return made;
  };
}

/// 0 or 1 / (1 - p) for the element with this global flat index, from the plain form of the generator.
double mask(std::uint32_t stream, double p, const mmr::step_info& now, std::size_t flat) {
  const auto batch = static_cast<std::uint32_t>(now.step * now.microbatches + now.microbatch);
  const std::array<std::uint32_t, 4> counter = {static_cast<std::uint32_t>(flat / 4), 0, batch, stream};
  const auto words =
      mmr::cpu::philox(counter, {static_cast<std::uint32_t>(now.seed), static_cast<std::uint32_t>(now.seed >> 32)});
  return words[flat % 4] < p * 4294967296.0 ? 0 : 1 / (1 - p);
}

}  // namespace

TEST_CASE("sums, products, constants and biases") {
  for_all_extents([](const extents& t) {
    const auto one = [&](const auto& o, const std::vector<mmr::tensor_type>& in, const oracle& want) {
      check(bound_operator(o, in), in, want);
    };
    one(op::add{}, {t("bse"), t("bse")}, nest([](const point& p) { p.out(0) = p.in(0) + p.in(1); }));
    one(op::multiply{}, {t("bse"), t("bse")}, nest([](const point& p) { p.out(0) = p.in(0) * p.in(1); }));
    one(op::scale{-1.5}, {t("bse")}, nest([](const point& p) { p.out(0) = -1.5 * p.in(0); }));
    one(op::scale{-1.5}, {t("")}, nest([](const point& p) { p.out(0) = -1.5 * p.in(0); }));
    one(op::constant{2.5, t("se")}, {}, nest([](const point& p) { p.out(0) = 2.5; }));
    one(op::report{}, {t("")}, nest([](const point& p) { p.out(0) = p.in(0); }));
    one(op::accumulate{1}, {t("se")}, nest([](const point& p) { p.out(0) = p.in(0); }));
    one(op::sum_of{}, {t(""), t(""), t("")}, nest([](const point& p) { p.out(0) = p.in(0) + p.in(1) + p.in(2); }));
    for (const char* trailing : {"e", "se", "bse"}) {
      const std::size_t kept = std::string(trailing).size();
      one(op::bias{}, {t("bse"), t(trailing)}, nest([](const point& p) { p.out(0) = p.in(0) + p.in(1); }));
      one(op::sum_leading{kept}, {t("bse")}, nest([](const point& p) { p.out(0) += p.in(0); }));
      one(op::bias_gelu{}, {t("bse"), t(trailing)}, nest([](const point& p) { p.out(0) = gelu(p.in(0) + p.in(1)); }));
      one(op::bias_gelu_grad{}, {t("bse"), t("bse"), t(trailing)}, nest([](const point& p) {
            const double dx = p.in(0) * gelu_slope(p.in(1) + p.in(2));
            p.out(0) = dx;
            p.out(1) += dx;
          }));
    }
    one(op::silu{}, {t("bse")}, nest([](const point& p) { p.out(0) = silu(p.in(0)); }));
    one(op::silu_grad{}, {t("bse"), t("bse")}, nest([](const point& p) { p.out(0) = p.in(0) * silu_slope(p.in(1)); }));
    one(op::swiglu{}, {t("bse"), t("bse")}, nest([](const point& p) { p.out(0) = silu(p.in(0)) * p.in(1); }));
    one(op::swiglu_grad{}, {t("bse"), t("bse"), t("bse")}, nest([](const point& p) {
          p.out(0) = p.in(0) * p.in(2) * silu_slope(p.in(1));
          p.out(1) = p.in(0) * silu(p.in(1));
        }));
    one(op::gelu{}, {t("bse")}, nest([](const point& p) { p.out(0) = gelu(p.in(0)); }));
    one(op::gelu_grad{}, {t("bse"), t("bse")}, nest([](const point& p) { p.out(0) = p.in(0) * gelu_slope(p.in(1)); }));
  });
}

TEST_CASE("a gradient accumulates over microbatches, whatever its buffer held before") {
  const std::vector<mmr::loop_range> loops = {{0, 3, 3}};
  double part[3] = {1, 2, 3}, sum[3] = {NAN, NAN, NAN};
  const coordinates sizes = {3};
  const mmr::tensor_view in[] = {{part, dtype::f64, sizes}}, out[] = {{sum, dtype::f64, sizes}};
  for (std::int64_t step : {0, 1})
    for (std::int64_t m = 0; m < 3; ++m) {
      const mmr::step_info now{1, step, m, 3, 0};
      mmr::kernel_args args;
      args.loops = loops, args.in = in, args.out = out, args.step = &now;
      mmr::kernel<mmr::cpu_device, op::accumulate>::run<double>(op::accumulate{3}, args);
      for (int i = 0; i < 3; ++i) CHECK(sum[i] == part[i] * static_cast<double>(m + 1));
    }
}

TEST_CASE("softmax and layer normalisation") {
  for_all_extents([](const extents& t) {
    const auto one = [&](const auto& o, const std::vector<mmr::tensor_type>& in, const oracle& want,
                         const std::vector<law>& laws = {}) { check(bound_operator(o, in), in, want, laws); };
    one(op::softmax{}, {t("bse")}, by_rows([](const arrays& in, std::size_t row, std::size_t n, arrays& out) {
          double sum = 0;
          for (std::size_t j = row * n; j < (row + 1) * n; ++j) sum += std::exp(in[0].values[j]);
          for (std::size_t j = row * n; j < (row + 1) * n; ++j) out[0].values[j] = std::exp(in[0].values[j]) / sum;
        }));
    one(op::softmax_grad{}, {t("bse"), t("bse")},
        by_rows([](const arrays& in, std::size_t row, std::size_t n, arrays& out) {
          double dot = 0;
          for (std::size_t j = row * n; j < (row + 1) * n; ++j) dot += in[0].values[j] * in[1].values[j];
          for (std::size_t j = row * n; j < (row + 1) * n; ++j)
            out[0].values[j] = in[1].values[j] * (in[0].values[j] - dot);
        }));
    one(op::rms_norm{1e-3}, {t("bse"), t("e")},
        by_rows([](const arrays& in, std::size_t row, std::size_t n, arrays& out) {
          double square = 0;
          for (std::size_t j = 0; j < n; ++j) square += std::pow(in[0].values[row * n + j], 2) / static_cast<double>(n);
          const double rstd = 1 / std::sqrt(square + 1e-3);
          for (std::size_t j = 0; j < n; ++j)
            out[0].values[row * n + j] = in[0].values[row * n + j] * rstd * in[1].values[j];
          out[1].values[row] = rstd;
        }));
    one(op::rms_norm_grad{}, {t("bse"), t("bse"), t("e"), t("bs")},
        by_rows([](const arrays& in, std::size_t row, std::size_t n, arrays& out) {
          const double rstd = in[3].values[row];
          double along = 0;
          for (std::size_t j = 0; j < n; ++j)
            along += in[0].values[row * n + j] * in[2].values[j] * in[1].values[row * n + j] * rstd;
          for (std::size_t j = 0; j < n; ++j) {
            const double dy = in[0].values[row * n + j], h = in[1].values[row * n + j] * rstd;
            out[0].values[row * n + j] = rstd * (dy * in[2].values[j] - h * along / static_cast<double>(n));
            out[1].values[j] += dy * h;
          }
        }),
        {{}, {}, {}, positive});
    one(op::layer_norm{1e-3}, {t("bse"), t("e"), t("e")},
        by_rows([](const arrays& in, std::size_t row, std::size_t n, arrays& out) {
          const double count = static_cast<double>(n);
          double mean = 0, variance = 0;
          for (std::size_t j = 0; j < n; ++j) mean += in[0].values[row * n + j] / count;
          for (std::size_t j = 0; j < n; ++j) variance += std::pow(in[0].values[row * n + j] - mean, 2) / count;
          const double rstd = 1 / std::sqrt(variance + 1e-3);
          for (std::size_t j = 0; j < n; ++j)
            out[0].values[row * n + j] = (in[0].values[row * n + j] - mean) * rstd * in[1].values[j] + in[2].values[j];
          out[1].values[row] = mean;
          out[2].values[row] = rstd;
        }));
    one(op::layer_norm_grad{}, {t("bse"), t("bse"), t("e"), t("bs"), t("bs")},
        by_rows([](const arrays& in, std::size_t row, std::size_t n, arrays& out) {
          const double count = static_cast<double>(n), mean = in[3].values[row], rstd = in[4].values[row];
          const auto dy = [&](std::size_t j) { return in[0].values[row * n + j]; };
          const auto h = [&](std::size_t j) { return (in[1].values[row * n + j] - mean) * rstd; };
          double plain = 0, along = 0;
          for (std::size_t j = 0; j < n; ++j) {
            plain += dy(j) * in[2].values[j] / count;
            along += dy(j) * in[2].values[j] * h(j) / count;
            out[1].values[j] += dy(j) * h(j);
            out[2].values[j] += dy(j);
          }
          for (std::size_t j = 0; j < n; ++j)
            out[0].values[row * n + j] = rstd * (dy(j) * in[2].values[j] - plain - h(j) * along);
        }),
        {normal, normal, normal, normal, positive});
  });
}

TEST_CASE("cross-entropy") {
  for_all_extents([](const extents& t) {
    const auto one = [&](const auto& o, const std::vector<mmr::tensor_type>& in, const oracle& want,
                         const std::vector<law>& laws = {}) { check(bound_operator(o, in), in, want, laws); };
    const law word = below(t.of.at('v'));
    one(op::row_max{}, {t("bsv")},
        nest([](const point& p) { p.out(0) = std::max(p.out(0), p.in(0)); }, -std::numeric_limits<double>::infinity()));
    one(op::sum_exp{}, {t("bsv"), t("bs")}, nest([](const point& p) { p.out(0) += std::exp(p.in(0) - p.in(1)); }));
    one(op::pick{}, {t("bsv"), t.tokens("bs")}, nest([](const point& p) {
          if (static_cast<double>(p.loop(2)) == p.in(1)) p.out(0) = p.in(0);
        }),
        {normal, word});
    one(op::cross_entropy{0.25}, {t("bs"), t("bs"), t("bs")},
        nest([](const point& p) { p.out(0) += 0.25 * (std::log(p.in(1)) + p.in(0) - p.in(2)); }),
        {normal, positive, normal});
    one(op::cross_entropy_grad{0.25}, {t("bsv"), t.tokens("bs"), t("bs"), t("bs"), t("")}, nest([](const point& p) {
          const double hot = static_cast<double>(p.loop(2)) == p.in(1) ? 1 : 0;
          p.out(0) = (std::exp(p.in(0) - p.in(2)) / p.in(3) - hot) * 0.25 * p.in(4);
        }),
        {normal, word, positive, positive, normal});

    // Some rows have no target.
    const law masked = [&](std::mt19937& random) { return word(random) - (random() % 3 == 0 ? 100 : 0); };
    one(op::count_targets{}, {t.tokens("bs")}, nest([](const point& p) { p.out(0) += p.in(0) >= 0; }), {masked});
    const law counts = below(4);
    one(op::masked_cross_entropy{0.25}, {t("bs"), t("bs"), t("bs"), t.tokens("bs"), t.tokens("")},
        nest([](const point& p) {
          if (p.in(3) >= 0) p.out(0) += 0.25 / std::max(1.0, p.in(4)) * (std::log(p.in(1)) + p.in(0) - p.in(2));
        }),
        {normal, positive, normal, masked, counts});
    one(op::masked_cross_entropy_grad{0.25}, {t("bsv"), t.tokens("bs"), t("bs"), t("bs"), t.tokens(""), t("")},
        nest([](const point& p) {
          const double hot = static_cast<double>(p.loop(2)) == p.in(1) ? 1 : 0;
          p.out(0) = (std::exp(p.in(0) - p.in(2)) / p.in(3) - hot) * 0.25 * p.in(5) / std::max(1.0, p.in(4));
          if (p.in(1) < 0) p.out(0) = 0;
        }),
        {normal, masked, positive, positive, counts, normal});
  });
}

TEST_CASE("rotary position embedding") {
  for (auto element : {dtype::f64, dtype::f32})
    for (bool back : {false, true})
      for (const auto& sizes : {coordinates{2, 5, 3, 6}, coordinates{1, 1, 1, 2}, coordinates{2, 17, 1, 40}}) {
        const mmr::tensor_type x{element, {{"b", sizes[0]}, {"s", sizes[1]}, {"h", sizes[2]}, {"e", sizes[3]}}};
        check(bound_operator(op::rotary{"s", 100, back}, {x}), {x},
              [&](const signature& s, const arrays& in, const arrays& state) {
                auto made = nest([](const point&) {})(s, in, state);
                for_each_index(sizes, [&](const coordinates& at) {
                  const auto half = sizes[3] / 2, i = at[3] % half;
                  const double angle = (back ? -1 : 1) * static_cast<double>(at[1]) *
                                       std::pow(100, -2 * static_cast<double>(i) / static_cast<double>(sizes[3]));
                  const auto value = [&](std::int64_t f) {
                    return in[0].values[offset(sizes, {at[0], at[1], at[2], f})];
                  };
                  const double a = value(i), b = value(i + half);
                  made.out[0].values[offset(sizes, at)] = at[3] < half ? a * std::cos(angle) - b * std::sin(angle)
                                                                       : b * std::cos(angle) + a * std::sin(angle);
                });
                return made;
              });
      }
  const mmr::tensor_type odd{dtype::f64, {{"s", 4}, {"e", 5}}};
  CHECK_THROWS_WITH(op::rotary{"s"}.sign({odd}), contains("'e' has extent 5") && contains("even"));
  CHECK_THROWS_WITH((op::rotary{"s", 0}.sign({odd})), contains("theta is 0"));
  CHECK_THROWS_WITH(op::rotary{"e"}.sign({odd}), contains("'e'"));
}

TEST_CASE("embedding") {
  for_all_extents([](const extents& t) {
    const law word = below(t.of.at('v'));
    for (const char* tokens : {"bs", "s"}) {
      const auto rank = std::string(tokens).size();
      const std::vector<mmr::tensor_type> in = {t.tokens(tokens), t("ve")};
      check(bound_operator(op::embedding{}, in), in, nest([rank](const point& p) {
              if (static_cast<double>(p.loop(rank)) == p.in(0)) p.out(0) = p.in(1);
            }),
            {word});
      const std::vector<mmr::tensor_type> back = {t.tokens(tokens), t((std::string(tokens) + "e").c_str())};
      check(bound_operator(op::embedding_grad{t("ve"), rank + 1}, back), back, nest([rank](const point& p) {
              if (static_cast<double>(p.loop(rank + 1)) == p.in(0)) p.out(0) += p.in(1);
            }),
            {word});
    }
  });
}

TEST_CASE("dropout: one mask under every sharding, another for each seed, operator and microbatch") {
  const mmr::step_info now{11, 3, 1, 2, 0.1};
  const double p_drop = 0.3;
  for_all_extents([&](const extents& t) {
    const std::vector<mmr::tensor_type> x = {t("bse")};
    const auto kept = [&](const point& p) { return mask(7, p_drop, now, p.place(p.shape.in[0], p.operands[0])); };
    const op::dropout drop{p_drop, 7};
    check(bound_operator(drop, x), x, nest([&](const point& p) { p.out(0) = p.in(0) * kept(p); }), {}, 12, now);
    const std::vector<mmr::tensor_type> scalar = {t("")};
    check(bound_operator(drop, scalar), scalar, nest([&](const point& p) { p.out(0) = p.in(0) * kept(p); }), {}, 1,
          now);
    for (const char* trailing : {"e", "se"}) {
      const std::size_t axes = std::string(trailing).size();
      check(bound_operator(op::dropout_bias_grad{p_drop, 7, axes}, x), x, nest([&](const point& p) {
              p.out(0) = p.in(0) * kept(p);
              p.out(1) += p.out(0);
            }),
            {}, 12, now);
      const std::vector<mmr::tensor_type> all = {t("bse"), t(trailing), t("bse")};
      check(bound_operator(op::bias_dropout_add{p_drop, 7}, all), all,
            nest([&](const point& p) { p.out(0) = p.in(2) + (p.in(0) + p.in(1)) * kept(p); }), {}, 12, now);
      check(bound_operator(op::bias_dropout_add{0, 7}, all), all,
            nest([&](const point& p) { p.out(0) = p.in(2) + p.in(0) + p.in(1); }), {}, 4, now);
    }
  });

  mmr::tensor_type many{dtype::f64, {{"n", 4000, true}}};
  array ones{dtype::f64, {4000}, std::vector<double>(4000, 1)};
  std::vector<std::vector<double>> masks;
  const auto draw = [&](std::uint32_t stream, mmr::step_info step) {
    const bound_operator drop(op::dropout{p_drop, stream}, {many});
    masks.push_back(run(drop, whole_ranges(drop.shape), {ones}, {}, step, false).out[0].values);
    const auto zeros = std::count(masks.back().begin(), masks.back().end(), 0.0);
    CHECK(std::abs(static_cast<double>(zeros) - 1200) < 4 * std::sqrt(4000 * 0.3 * 0.7));
  };
  draw(1, {1, 0, 0, 2, 0});
  draw(1, {1, 0, 1, 2, 0});
  draw(1, {1, 1, 0, 2, 0});
  draw(1, {2, 0, 0, 2, 0});
  draw(2, {1, 0, 0, 2, 0});
  for (std::size_t a = 0; a < masks.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) CHECK(masks[a] != masks[b]);
}

namespace {

/// Attention by definition, row by row of the queries: causal or not, and with the scale of its scores.
struct plain_attention {
  bool causal;
  double scale;

  struct row {
    std::size_t query;              // its first element
    std::vector<std::size_t> keys;  // those of the keys that it sees
    std::vector<double> scores;
  };
  /// Calls f(number of the row, row) for q over (batch, position, heads, .., features), k over (batch, position, heads,
  /// features).
  template <class F>
  void for_each_row(const array& q, const array& k, F&& f) const {
    const auto d = static_cast<std::size_t>(q.sizes.back());
    const coordinates rows(q.sizes.begin(), q.sizes.end() - 1);
    std::size_t number = 0;
    for_each_index(rows, [&](const coordinates& at) {
      row r{number * d, {}, {}};
      for (std::int64_t j = 0; j < (causal ? at[1] + 1 : k.sizes[1]); ++j) {
        r.keys.push_back(offset(k.sizes, {at[0], j, at[2], 0}));
        r.scores.push_back(scale * dot(q, r.query, k, r.keys.back(), d));
      }
      f(number++, r);
    });
  }
  static double dot(const array& a, std::size_t i, const array& b, std::size_t j, std::size_t n) {
    double sum = 0;
    for (std::size_t f = 0; f < n; ++f) sum += a.values[i + f] * b.values[j + f];
    return sum;
  }

  oracle forward() const {
    return [*this](const signature& s, const arrays& in, const arrays& state) {
      auto made = nest([](const point&) {})(s, in, state);
      const auto d = static_cast<std::size_t>(in[0].sizes.back());
      for_each_row(in[0], in[1], [&](std::size_t number, const row& r) {
        double sum = 0;
        for (double score : r.scores) sum += std::exp(score);
        made.out[1].values[number] = std::log(sum);
        for (std::size_t j = 0; j < r.keys.size(); ++j)
          for (std::size_t f = 0; f < d; ++f)
            made.out[0].values[r.query + f] += std::exp(r.scores[j]) / sum * in[2].values[r.keys[j] + f];
      });
      return made;
    };
  }
  /// Any out and lse will do: the rule is a formula of its operands.
  oracle backward() const {
    return [*this](const signature& s, const arrays& in, const arrays& state) {
      auto made = nest([](const point&) {})(s, in, state);
      const auto d = static_cast<std::size_t>(in[1].sizes.back());
      for_each_row(in[1], in[2], [&](std::size_t number, const row& r) {
        const double mean = dot(in[0], r.query, in[4], r.query, d);
        for (std::size_t j = 0; j < r.keys.size(); ++j) {
          const double w = std::exp(r.scores[j] - in[5].values[number]);
          const double slope = w * (dot(in[0], r.query, in[3], r.keys[j], d) - mean) * scale;
          for (std::size_t f = 0; f < d; ++f) {
            made.out[0].values[r.query + f] += slope * in[2].values[r.keys[j] + f];
            made.out[1].values[r.keys[j] + f] += slope * in[1].values[r.query + f];
            made.out[2].values[r.keys[j] + f] += w * in[0].values[r.query + f];
          }
        }
      });
      return made;
    };
  }
};

}  // namespace

TEST_CASE("attention: causal or not, to other positions, with groups of queries") {
  for_all_extents([&](const extents& t) {
    const double usual = 1 / std::sqrt(static_cast<double>(t.of.at('d')));
    const auto one = [&](const char* queries, const char* rows, const char* keys, bool causal,
                         std::optional<double> scale) {
      INFO("queries " << queries << ", keys " << keys << (causal ? ", causal" : ""));
      const plain_attention plain{causal, scale.value_or(usual)};
      const auto q = t(queries), k = t(keys);
      check(bound_operator(op::attention{causal, scale}, {q, k, k}), {q, k, k}, plain.forward());
      const std::vector<mmr::tensor_type> in = {q, q, k, k, q, t(rows)};
      check(bound_operator(op::attention_grad{causal, scale}, in), in, plain.backward(),
            {{}, {}, {}, {}, {}, positive});
    };
    one("bshd", "bsh", "bshd", true, {});
    one("bshd", "bsh", "bshd", false, {});
    one("bshd", "bsh", "bvhd", false, 1.0);
    one("bshgd", "bshg", "bshd", true, {});
    one("bshgd", "bshg", "bvhd", false, {});
  });
}

TEST_CASE("norms and updates") {
  for_all_extents([](const extents& t) {
    const mmr::step_info now{11, 3, 1, 2, 0.1};
    const std::vector<mmr::tensor_type> g = {t("bse")};
    check(bound_operator(op::sum_squares{}, g), g, nest([](const point& p) { p.out(0) += p.in(0) * p.in(0); }));
    const std::vector<mmr::tensor_type> norm = {t("")};
    for (double limit : {0.1, 100.0})
      check(bound_operator(op::clip_scale{limit}, norm), norm,
            nest([=](const point& p) { p.out(0) = std::min(1.0, limit / (std::sqrt(p.in(0)) + 1e-6)); }), {positive});

    // Updates go element by element: gradient, parameter and perhaps the clip scale; states beside.
    using update = std::function<void(double g, double& p, double* states)>;
    const auto updates = [](const update& f) -> oracle {
      return [=](const signature& s, const arrays& in, const arrays& state) {
        outcome made{{in[1]}, state};
        for (std::size_t i = 0; i < in[1].values.size(); ++i) {
          double states[2] = {};
          for (std::size_t k = 0; k < state.size(); ++k) states[k] = state[k].values[i];
          f(in[0].values[i] * (in.size() > 2 ? in[2].values[0] : 1), made.out[0].values[i], states);
          for (std::size_t k = 0; k < state.size(); ++k) made.state[k].values[i] = states[k];
        }
        CHECK(s.state.size() == state.size());
        return made;
      };
    };
    for (const auto& in : {std::vector{t("se"), t("se")}, std::vector{t("se"), t("se"), t("")}}) {
      check(bound_operator(op::sgd{0, 0.02}, in), in,
            updates([&](double grad, double& p, double*) { p -= 0.1 * (grad + 0.02 * p); }), {}, 8, now);
      check(bound_operator(op::sgd{0.9, 0.02}, in), in, updates([&](double grad, double& p, double* v) {
              v[0] = 0.9 * v[0] + grad + 0.02 * p;
              p -= 0.1 * v[0];
            }),
            {}, 8, now);
      check(bound_operator(op::adamw{0.9, 0.99, 1e-8, 0.02}, in), in, updates([&](double grad, double& p, double* v) {
              // Step 3 counts from 0: it is the fourth.
              p -= 0.1 * 0.02 * p;
              v[0] = 0.9 * v[0] + 0.1 * grad;
              v[1] = 0.99 * v[1] + 0.01 * grad * grad;
              p -= 0.1 * (v[0] / (1 - std::pow(0.9, 4))) / (std::sqrt(v[1] / (1 - std::pow(0.99, 4))) + 1e-8);
            }),
            {}, 8, now);
    }
  });
}
