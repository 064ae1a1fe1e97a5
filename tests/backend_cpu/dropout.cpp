// Philox against its published answers, and masks that depend on the global index alone.
#include "mmr/backend/cpu/dropout.hpp"

#include "check.hpp"

namespace cpu = mmr::cpu;
using check::int64_t;

namespace {

/// The elements of the whole 5 x 7 x 45 that a shard holds.
template <class T>
std::vector<T> cut(const std::vector<T>& whole, const cpu::box& shard) {
  std::vector<T> part;
  for (int64_t i = 0; i < shard.size[0]; ++i) {
    for (int64_t j = 0; j < shard.size[1]; ++j) {
      const auto row = ((shard.begin[0] + i) * 7 + shard.begin[1] + j) * 45 + shard.begin[2];
      part.insert(part.end(), whole.begin() + row, whole.begin() + row + shard.size[2]);
    }
  }
  return part;
}

const std::vector<cpu::box> shards_of_5x7x45{
    {3, {5, 7, 45}, {0, 0, 0}, {5, 7, 45}}, {3, {2, 7, 45}, {3, 0, 0}, {5, 7, 45}},
    {3, {5, 3, 45}, {0, 2, 0}, {5, 7, 45}}, {3, {5, 7, 19}, {0, 0, 11}, {5, 7, 45}},
    {3, {1, 2, 3}, {4, 5, 42}, {5, 7, 45}}, {3, {5, 0, 45}, {0, 7, 0}, {5, 7, 45}},
    {3, {5, 7, 0}, {0, 0, 45}, {5, 7, 45}}};

}  // namespace

TEST_CASE("Philox4x32-10 gives the known answers of Random123", "[backend_cpu]") {
  using words = std::array<std::uint32_t, 4>;
  CHECK(cpu::philox({0, 0, 0, 0}, {0, 0}) == words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(cpu::philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
        words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(cpu::philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("a block of words equals the plain generator, also where the counter carries", "[backend_cpu]") {
  for (const std::uint64_t first :
       {std::uint64_t{0}, std::uint64_t{12345}, std::uint64_t{0xfffffff8}, ~std::uint64_t{3}}) {
    std::uint32_t words[cpu::detail::philox_words];
    cpu::detail::philox_block({0x0123456789abcdef, 0xfedcba9876543210}, first, words);
    for (std::uint64_t i = 0; i < cpu::detail::philox_words; ++i) {
      const std::uint64_t counter = first + i / 4;
      const auto expected = cpu::philox({std::uint32_t(counter), std::uint32_t(counter >> 32), 0x76543210, 0xfedcba98},
                                        {0x89abcdef, 0x01234567});
      if (words[i] != expected[i % 4]) FAIL("word " << i << " of counter " << first << " differs");
    }
  }
}

TEMPLATE_TEST_CASE("every sharding finds the same mask", "[backend_cpu]", float, double) {
  using T = TestType;
  const cpu::philox_stream stream{42, 7};
  const auto x = check::random<T>(5 * 7 * 45, 1), residual = check::random<T>(5 * 7 * 45, 2);
  const auto bias = check::random<T>(45, 3);
  auto whole = x, whole_add = x;
  cpu::dropout(x.data(), whole.data(), shards_of_5x7x45[0], stream, 0.3);
  cpu::bias_dropout_add_forward(x.data(), bias.data(), residual.data(), whole_add.data(), shards_of_5x7x45[0], stream,
                                0.3);
  for (const auto& shard : shards_of_5x7x45) {
    auto part = cut(x, shard);
    const auto before = check::allocations();
    cpu::dropout(part.data(), part.data(), shard, stream, 0.3);
    CHECK(check::allocations() == before);
    CHECK(part == cut(whole, shard));
    part = cut(x, shard);
    const auto residual_part = cut(residual, shard);
    cpu::bias_dropout_add_forward(part.data(), bias.data() + shard.begin[2], residual_part.data(), part.data(), shard,
                                  stream, 0.3);
    CHECK(part == cut(whole_add, shard));
  }
}

TEMPLATE_TEST_CASE("an element stays where its word is not below p, times 1/(1-p)", "[backend_cpu]", float, double) {
  using T = TestType;
  const cpu::box all{1, {1000}, {0}, {1000}};
  const auto x = check::random<T>(1000, 1, 1, 2);
  auto y = x;
  cpu::dropout(x.data(), y.data(), all, {5, 6}, 0.25);
  for (std::size_t g = 0; g < 1000; ++g) {
    const auto words = cpu::philox({std::uint32_t(g / 4), 0, 6, 0}, {5, 0});
    const T expected = words[g % 4] >= 0x40000000U ? x[g] / T(0.75) : T(0);
    if (std::abs(y[g] - expected) > 1e-6) FAIL("element " << g);
  }
  cpu::dropout(x.data(), y.data(), all, {5, 6}, 0);
  CHECK(y == x);
  cpu::dropout(x.data(), y.data(), all, {5, 6}, 1);
  CHECK(y == check::zeros<T>(1000));
}

TEST_CASE("the share of dropped elements is p, and streams differ", "[backend_cpu]") {
  constexpr int64_t n = 1 << 18;
  const cpu::box all{1, {n}, {0}, {n}};
  const auto x = check::zeros<float>(n, 1);
  auto y = x, z = x;
  cpu::dropout(x.data(), y.data(), all, {1, 1}, 0.1);
  cpu::dropout(x.data(), z.data(), all, {1, 2}, 0.1);
  const auto dropped = double(std::count(y.begin(), y.end(), 0.0F));
  // Five deviations of the binomial.
  CHECK(std::abs(dropped - 0.1 * n) < 5 * std::sqrt(0.09 * n));
  int64_t both = 0;
  for (std::size_t i = 0; i < n; ++i) both += y[i] == 0 && z[i] == 0;
  CHECK(std::abs(double(both) - 0.01 * n) < 5 * std::sqrt(0.01 * n));
}

TEST_CASE("gradients of bias, dropout and residual equal central differences", "[backend_cpu]") {
  const cpu::box shard{2, {5, 17}, {1, 3}, {9, 40}};
  auto x = check::random<double>(85, 1), bias = check::random<double>(17, 2);
  const auto residual = check::random<double>(85, 3), dy = check::random<double>(85, 4);
  for (const double p : {0.0, 0.4}) {
    const auto loss = [&] {
      auto y = check::zeros<double>(85);
      cpu::bias_dropout_add_forward(x.data(), bias.data(), residual.data(), y.data(), shard, {3, 4}, p);
      return check::dot(y, dy);
    };
    auto dx = check::zeros<double>(85), dbias = check::zeros<double>(17, 9);
    cpu::bias_dropout_add_backward(dy.data(), dx.data(), dbias.data(), shard, {3, 4}, p);
    CHECK(check::distance(dx, check::slopes(x, loss)) < 1e-6);
    CHECK(check::distance(dbias, check::slopes(bias, loss)) < 1e-6);
  }
}
