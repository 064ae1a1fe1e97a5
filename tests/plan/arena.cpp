// The arena: buffers that live together never share a byte, and it is hardly larger than the peak.
#include <mmr/plan/arena.hpp>

#include "catch.hpp"
#include "draw.hpp"
#include "models.hpp"

using namespace models;

namespace {

std::int64_t peak_of(const mmr::program& run) {
  const auto live = run.live_bytes();
  return *std::max_element(live.begin(), live.end());
}

void check_disjoint(const mmr::program& run, const mmr::arena& a) {
  REQUIRE(a.offset.size() == run.buffers.size());
  CHECK(a.bytes >= peak_of(run));
  bool apart = true, placed = true;
  for (std::size_t i = 0; i < run.buffers.size(); ++i) {
    const auto& b = run.buffers[i];
    if (b.bytes == 0 || b.life.begin >= b.life.end) continue;
    placed = placed && a.offset[i] >= 0 && a.offset[i] % mmr::detail::alignment_of(b.bytes) == 0 && a.offset[i] + b.bytes <= a.bytes;
    for (std::size_t j = 0; j < i; ++j) {
      const auto& c = run.buffers[j];
      if (c.bytes == 0 || c.life.begin >= b.life.end || b.life.begin >= c.life.end) continue;
      apart = apart && (c.life.begin >= c.life.end || a.offset[i] + b.bytes <= a.offset[j] ||
                        a.offset[j] + c.bytes <= a.offset[i]);
    }
  }
  CHECK(placed);
  CHECK(apart);
}

}  // namespace

TEST_CASE("random buffers never overlap") {
  const auto g = mlp({});
  mmr::setting s(g, mmr::mesh::parse("a=1"));
  std::mt19937 random(3);
  const auto upto = [&](int n) { return std::uniform_int_distribution<int>(0, n)(random); };
  for (int draw = 0; draw < 200; ++draw) {
    mmr::program run(s, std::vector<mmr::strategy>(static_cast<std::size_t>(g.ops())), 0);
    run.steps = 1 + upto(20);
    run.buffers.clear();
    for (int n = upto(60); n > 0; --n) {
      const int begin = upto(run.steps);
      run.buffers.push_back(
          {.bytes = upto(5) ? 1 + upto(5000) : 0, .life = {begin, std::min(run.steps, begin + upto(8))}});
    }
    check_disjoint(run, mmr::lay_out(run));
  }
}

TEST_CASE("an arena with nothing in it is empty") {
  const auto g = mlp({});
  mmr::setting s(g, mmr::mesh::parse("a=1"));
  mmr::program run(s, std::vector<mmr::strategy>(static_cast<std::size_t>(g.ops())), 0);
  run.buffers.clear();
  CHECK(mmr::lay_out(run).bytes == 0);
}

TEST_CASE("fragmented steps, which leave every greedy order gaps, are at most 1.05 x the peak") {
  const auto g = mlp({});
  mmr::setting s(g, mmr::mesh::parse("a=1"));
  // A few large sizes and short lives make one step in hundreds that is hard to lay out: these are. Bytes are drawn here,
  // and not made by operators, whose workspaces depend on the width of the vectors that a build has.
  for (const unsigned seed : {481u, 538u, 872u, 889u, 1350u, 1402u, 1742u, 2305u}) {
    std::mt19937 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    const auto bytes = [&] {
      constexpr int extents[] = {17, 24, 32, 40, 64};
      std::int64_t n = 8;
      for (int d = 1 + below(3); d > 0; --d) n *= extents[below(5)];
      return n;
    };
    mmr::program run(s, std::vector<mmr::strategy>(static_cast<std::size_t>(g.ops())), 0);
    run.steps = 30 + below(40);
    run.buffers.clear();
    for (int i = run.steps; i > 0; --i) run.buffers.push_back({.bytes = bytes(), .life = {0, run.steps}});
    run.buffers.resize(run.buffers.size() / 4);
    for (int t = 0; t < run.steps; ++t)
      for (int i = 1 + below(3); i > 0; --i) {
        const auto size = bytes();
        const int more = below(3) ? below(3) : below(run.steps);
        run.buffers.push_back({.bytes = size, .life = {t, std::min(run.steps, t + 1 + more)}});
      }
    const auto a = mmr::lay_out(run);
    INFO("seed " << seed);
    check_disjoint(run, a);
    CHECK(static_cast<double>(a.bytes) <= 1.05 * static_cast<double>(peak_of(run)));
    CHECK(mmr::lay_out(run).offset == a.offset);
  }
}

TEST_CASE("arenas of real steps are at most 1.05 x the peak, under every scheme") {
  const gpt_size sizes[] = {
      {.layers = 4, .heads = 4, .embed = 128, .seq = 64, .batch = 8, .vocab = 256, .dropout = 0.1},
      {.layers = 8, .heads = 8, .embed = 512, .seq = 256, .batch = 8, .vocab = 256},
      {.layers = 3, .heads = 6, .embed = 96, .seq = 50, .batch = 7, .vocab = 1001, .microbatches = 2},
      {.layers = 12,
       .heads = 8,
       .embed = 256,
       .seq = 64,
       .batch = 4,
       .vocab = 4096,
       .dropout = 0.1,
       .updates = optimizer::adamw_clipped}};
  for (const auto& size : sizes) {
    const auto g = gpt(size);
    for (const auto* spec : {"data=4", "data=2,model=2"}) {
      mmr::setting s(g, mmr::mesh::parse(spec));
      std::mt19937 random(5);
      for (const auto name : mmr::scheme_names) {
        const auto f = mmr::formulate(s, mmr::scheme_restriction(name, g, s.m, gpt_axes()));
        const auto chosen = f.chosen(any_choice(f.problem, random));
        INFO(name << " on " << spec << ", " << size.layers << " layers of " << size.embed);
        const mmr::program run(s, chosen, 0);
        const auto a = mmr::lay_out(run);
        check_disjoint(run, a);
        CHECK(static_cast<double>(a.bytes) <= 1.05 * static_cast<double>(peak_of(run)));
      }
    }
  }
}
