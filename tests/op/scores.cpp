// What attention with stored scores is made of: renamed axes, masked softmax, position biases, dropout with stored
// masks.
#include "harness.hpp"
#include "refusal.hpp"

using namespace mmr_test;
namespace op = mmr::op;

namespace {

mmr::tensor_type type(dtype element, std::vector<std::pair<const char*, std::int64_t>> dims) {
  mmr::tensor_type t{element, {}};
  for (const auto& [name, n] : dims) t.dims.push_back({name, n, true});
  return t;
}

const std::vector<std::array<std::int64_t, 4>> draws = {{2, 5, 3, 5}, {1, 1, 1, 1}, {2, 19, 2, 19}};

template <class F>
void for_all_scores(F&& f) {
  for (const auto& [b, q, h, k] : draws)
    for (auto element : {dtype::f64, dtype::f32}) f(type(element, {{"b", b}, {"q", q}, {"h", h}, {"k", k}}));
}

}  // namespace

TEST_CASE("a renamed axis changes nothing but its name") {
  for_all_scores([](const mmr::tensor_type& t) {
    const op::rename rename{"q", {"p", t.dims[1].extent, true}};
    const bound_operator bound(rename, {t});
    CHECK(bound.shape.type_of(bound.shape.out[0]).dims[1].axis == "p");
    check(bound, {t}, nest([](const point& p) { p.out(0) = p.in(0); }));
  });
  const op::rename longer{"q", {"p", 7, true}};
  CHECK_THAT(refusal([&] {
               longer.sign({type(dtype::f64, {{"b", 2}, {"q", 5}})});
             }),
             contains("extent 5") && contains("has 7"));
}

TEST_CASE("masked softmax") {
  for_all_scores([](const mmr::tensor_type& t) {
    for (const int query : {-1, 1}) {
      const auto n = static_cast<std::size_t>(t.dims[3].extent), heads = static_cast<std::size_t>(t.dims[2].extent),
                 queries = static_cast<std::size_t>(t.dims[1].extent);
      const auto seen = [&](std::size_t row) { return query < 0 ? n : row / heads % queries + 1; };
      const double factor = 0.7;
      check(bound_operator(op::masked_softmax{factor, query}, {t}), {t},
            [&](const signature& s, const arrays& in, const arrays& state) {
              auto made = nest([](const point&) {})(s, in, state);
              for (std::size_t row = 0; row < in[0].values.size() / n; ++row) {
                double sum = 0;
                for (std::size_t j = 0; j < seen(row); ++j) sum += std::exp(factor * in[0].values[row * n + j]);
                for (std::size_t j = 0; j < seen(row); ++j)
                  made.out[0].values[row * n + j] = std::exp(factor * in[0].values[row * n + j]) / sum;
              }
              return made;
            });
    }
    const auto n = static_cast<std::size_t>(t.dims[3].extent);
    check(bound_operator(op::masked_softmax_grad{0.7}, {t, t}), {t, t},
          [&](const signature& s, const arrays& in, const arrays& state) {
            auto made = nest([](const point&) {})(s, in, state);
            for (std::size_t row = 0; row < in[0].values.size() / n; ++row) {
              double dot = 0;
              for (std::size_t j = row * n; j < (row + 1) * n; ++j) dot += in[0].values[j] * in[1].values[j];
              for (std::size_t j = row * n; j < (row + 1) * n; ++j)
                made.out[0].values[j] = 0.7 * in[1].values[j] * (in[0].values[j] - dot);
            }
            return made;
          });
  });
}

TEST_CASE("dropout that stores its mask has the mask of dropout") {
  const mmr::step_info now{11, 3, 1, 2, 0.1};
  const double p_drop = 0.3;
  for_all_scores([&](const mmr::tensor_type& t) {
    const op::stored_dropout drop{p_drop, 7};
    check(
        bound_operator(drop, {t}), {t},
        [&](const signature& s, const arrays& in, const arrays& state) {
          auto made = nest([](const point&) {})(s, in, state);
          const bound_operator plain(op::dropout{p_drop, 7}, {t});
          made.out[0] = run(plain, whole_ranges(plain.shape), in, {}, now, false).out[0];
          for (std::size_t i = 0; i < in[0].values.size(); ++i) made.out[1].values[i] = made.out[0].values[i] != 0;
          return made;
        },
        {}, 12, now);
    auto mask = t;
    mask.element = dtype::u8;
    check(bound_operator(op::stored_dropout_grad{p_drop}, {t, mask}), {t, mask},
          nest([&](const point& p) { p.out(0) = p.in(0) * p.in(1) / (1 - p_drop); }), {normal, below(2)}, 12, now);
  });
}

TEST_CASE("distances fall into the buckets of T5") {
  // Worked by hand from the formula of T5: one bucket a distance below 16 (8 both ways), then widths that grow to 128.
  const mmr::distance_buckets both{32, 128, true}, back{32, 128, false};
  const std::pair<std::int64_t, std::int64_t> two_ways[] = {
      {0, 0},    {-1, 1},    {-7, 7},    {-8, 8},     {-11, 8}, {-12, 9}, {-16, 10}, {-23, 11},
      {-32, 12}, {-127, 15}, {-128, 15}, {-5000, 15}, {1, 17},  {7, 23},  {8, 24},   {5000, 31}};
  for (const auto& [offset, bucket] : two_ways) CHECK(both(offset) == bucket);
  const std::pair<std::int64_t, std::int64_t> one_way[] = {{5, 0},    {0, 0},    {-1, 1},   {-15, 15}, {-16, 16},
                                                           {-19, 17}, {-32, 21}, {-64, 26}, {-128, 31}};
  for (const auto& [offset, bucket] : one_way) CHECK(back(offset) == bucket);
  CHECK_THAT(refusal([] { mmr::distance_buckets{3, 128, true}.check(); }), contains("3 buckets"));
  CHECK_THAT(refusal([] { mmr::distance_buckets{32, 8, true}.check(); }), contains("more than the 8"));
}

TEST_CASE("a bias by head and distance") {
  for_all_scores([](const mmr::tensor_type& t) {
    for (const bool both : {true, false}) {
      const mmr::distance_buckets buckets{8, 12, both};
      const auto table = type(t.element, {{"r", 8}, {"h", t.dims[2].extent}});
      const auto falls = [buckets](const point& p) { return p.loop(4) == buckets(p.loop(3) - p.loop(1)); };
      check(bound_operator(op::relative_bias{buckets}, {t, table}), {t, table}, nest([&](const point& p) {
              if (falls(p)) p.out(0) = p.in(0) + p.in(1);
            }));
      check(bound_operator(op::relative_bias_grad{buckets, table.dims[0]}, {t}), {t}, nest([&](const point& p) {
              if (falls(p)) p.out(0) += p.in(0);
            }));
    }
  });
}
