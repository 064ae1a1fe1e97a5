#include <atomic>
#include <cstdlib>
#include <functional>
#include <mmr/backend/threads/run_ranks.hpp>
#include <new>
#include <string>
#include <vector>

#include "backend_threads/collectives.hpp"
#include "catch.hpp"

namespace {

thread_local long allocations = 0;

}  // namespace

// Counts what each thread allocates, for the promise that collectives allocate nothing.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size ? size : 1)) return memory;
  throw std::bad_alloc();
}
// The sanitizers would bring their own of this one, which does not go with our delete.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size ? size : 1);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

using mmr::block;
using mmr::dtype;
using mmr::reduction;
using mmr::run_ranks;
using mmr::thread_communicator;

namespace {

/// The text of the error that run_ranks throws; empty if none.
std::string error_of(int ranks, const std::function<void(thread_communicator&)>& f) {
  try {
    run_ranks(ranks, f);
  } catch (const mmr::error& problem) {
    return problem.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct operation {
  const char* name;
  std::function<void(thread_communicator&)> run;
};

/// Each member once, on any group.
std::vector<operation> operations() {
  const auto blocks_of = [](const thread_communicator& c) {
    std::vector<block> result;
    for (int k = 0; k < c.size(); ++k) result.push_back(mmr::dense_block(4 * k, 4));
    return result;
  };
  return {
      {"barrier", [](thread_communicator& c) { c.barrier(); }},
      {"split", [](thread_communicator& c) { c.split(c.rank() % 2, 0); }},
      {"all_gather",
       [=](thread_communicator& c) {
         std::vector<float> src(4), dst(4 * static_cast<std::size_t>(c.size()));
         c.all_gather(src.data(), 4, dst.data(), blocks_of(c), dtype::f32);
       }},
      {"all_to_all",
       [=](thread_communicator& c) {
         std::vector<float> src(4 * static_cast<std::size_t>(c.size())), dst(4 * static_cast<std::size_t>(c.size()));
         c.all_to_all(src.data(), blocks_of(c), dst.data(), blocks_of(c), dtype::f32);
       }},
      {"reduce_scatter",
       [=](thread_communicator& c) {
         std::vector<float> src(4 * static_cast<std::size_t>(c.size())), dst(4);
         c.reduce_scatter(src.data(), blocks_of(c), dst.data(), dtype::f32, reduction::sum);
       }},
      {"all_reduce",
       [](thread_communicator& c) {
         std::vector<float> data(2000);
         c.all_reduce(data.data(), data.data(), 2000, dtype::f32, reduction::sum);
       }},
      {"broadcast",
       [](thread_communicator& c) {
         float x = 0;
         c.broadcast(&x, 1, dtype::f32, 0);
       }},
  };
}

}  // namespace

TEST_CASE("collectives on threads equal a serial reference, to the bit") {
  for (const int n : {1, 2, 3, 4, 5, 8}) {
    DYNAMIC_SECTION(n << " ranks") {
      run_ranks(n, [](thread_communicator& c) { mmr_test::check_collectives(c, 12); });
    }
  }
}

TEST_CASE("groups of a grid, of reversed keys, and of groups") {
  for (const int n : {1, 4, 6}) {
    DYNAMIC_SECTION(n << " ranks") {
      run_ranks(n, [](thread_communicator& c) { mmr_test::check_groups(c, 3); });
    }
  }
}

TEST_CASE("long reductions on threads") {
  run_ranks(3, [](thread_communicator& c) { mmr_test::check_long_reductions(c); });
}

TEST_CASE("one failing rank ends all, wherever the others are") {
  for (const operation& op : operations()) {
    for (const int n : {1, 2, 4}) {
      for (int failing = 0; failing < n; ++failing) {
        // The failing rank stops before the first, or amid the calls; in the whole group, or in a sub-group.
        for (const int calls : {0, 3}) {
          for (const bool in_group : {false, true}) {
            INFO(op.name << ", " << n << " ranks, rank " << failing << " fails after " << calls << " calls");
            std::atomic<int> stopped{0}, lost{0};
            const std::string text = error_of(n, [&](thread_communicator& c) {
              thread_communicator half = c.split(c.rank() % 2, 0);
              thread_communicator& used = in_group ? half : c;
              try {
                for (int i = 0; i < calls; ++i) op.run(used);
                if (c.rank() == failing) mmr::fail("no more paper");
                for (int i = 0; i < 3; ++i) op.run(used);
                c.barrier();
                ++lost;
              } catch (const mmr::aborted& problem) {
                if (contains(problem.what(), "no more paper")) ++stopped;
                throw;
              }
            });
            CHECK(text == "rank " + std::to_string(failing) + ": no more paper");
            CHECK(stopped == n - 1);
            CHECK(lost == 0);
          }
        }
      }
    }
  }
}

TEST_CASE("a failure ends those that wait in send and recv") {
  for (const bool sending : {false, true}) {
    std::atomic<int> stopped{0};
    const std::string text = error_of(3, [&](thread_communicator& c) {
      float x = 1;
      if (c.rank() == 2) throw std::runtime_error("lost");
      try {
        if (c.rank() == 0 && sending) c.send(&x, 1, dtype::f32, 2, 0);
        if (c.rank() == 0) c.recv(&x, 1, dtype::f32, 2, 0);
        if (c.rank() == 1) c.recv(&x, 1, dtype::f32, 0, 0);
      } catch (const mmr::aborted&) {
        ++stopped;
        throw;
      }
    });
    CHECK(text == "rank 2: lost");
    CHECK(stopped == 2);
  }
}

TEST_CASE("a failure in one group wakes ranks in a group that the failing rank is not in") {
  CHECK(error_of(4, [](thread_communicator& c) {
          thread_communicator pair = c.split(c.rank() / 2, 0);
          if (c.rank() == 3) throw 42;
          for (;;) pair.barrier();
        }) == "rank 3: threw something that is not a std::exception");
}

TEST_CASE("a rank that returns while others wait for it is an error") {
  for (const operation& op : operations()) {
    INFO(op.name);
    const std::string text = error_of(3, [&](thread_communicator& c) {
      op.run(c);
      if (c.rank() != 1) op.run(c);
    });
    CHECK(contains(text, std::string(op.name) + " on rank "));
    CHECK(contains(text, "waits for rank 1, which has already returned"));
  }
  CHECK(contains(error_of(2,
                          [](thread_communicator& c) {
                            float x = 0;
                            if (c.rank() == 0) c.recv(&x, 1, dtype::f32, 1, 0);
                          }),
                 "recv on rank 0 waits for rank 1, which has already returned"));
  CHECK(contains(error_of(2,
                          [](thread_communicator& c) {
                            float x = 0;
                            if (c.rank() == 0) c.send(&x, 1, dtype::f32, 1, 0);
                          }),
                 "send on rank 0 waits for rank 1, which has already returned"));
}

TEST_CASE("ranks that call different collectives are told both") {
  const std::vector<operation> all = operations();
  for (std::size_t a = 0; a < all.size(); ++a) {
    for (std::size_t b = 0; b < all.size(); ++b) {
      if (a == b) continue;
      const std::string text =
          error_of(3, [&](thread_communicator& c) { c.rank() == 1 ? all[b].run(c) : all[a].run(c); });
      INFO(text);
      CHECK(contains(text, std::string(all[a].name)));
      CHECK(contains(text, std::string(all[b].name)));
      CHECK(contains(text, " meets "));
    }
  }
}

TEST_CASE("ranks that disagree on counts, types, roots or reductions are told both") {
  std::vector<float> x(4096), y(4096);
  const auto all_reduce = [](thread_communicator& c, std::int64_t n, dtype t, reduction r) {
    std::vector<double> own(4096);
    c.all_reduce(own.data(), own.data(), n, t, r);
  };
  const auto text_of = [&](auto call) { return error_of(3, [&](thread_communicator& c) { call(c, c.rank() == 2); }); };

  std::string text =
      text_of([&](thread_communicator& c, bool odd) { all_reduce(c, odd ? 700 : 7, dtype::f32, reduction::sum); });
  CHECK(contains(text, "all_reduce of 7 float32 sum on rank 0 meets all_reduce of 700 float32 sum on rank 2"));
  text = text_of(
      [&](thread_communicator& c, bool odd) { all_reduce(c, 7, odd ? dtype::f64 : dtype::f32, reduction::sum); });
  CHECK(contains(text, "all_reduce of 7 float64 sum on rank 2"));
  text = text_of(
      [&](thread_communicator& c, bool odd) { all_reduce(c, 7, dtype::f32, odd ? reduction::max : reduction::sum); });
  CHECK(contains(text, "all_reduce of 7 float32 max on rank 2"));
  text = text_of([&](thread_communicator& c, bool odd) {
    float own = 0;
    c.broadcast(&own, 1, dtype::f32, odd ? 1 : 0);
  });
  CHECK(contains(text, "from root 0 on rank 0 meets broadcast of 1 float32 from root 1 on rank 2"));

  const auto blocks = [](std::int64_t first, std::int64_t second, std::int64_t third) {
    return std::vector<block>{mmr::dense_block(0, first), mmr::dense_block(first, second),
                              mmr::dense_block(first + second, third)};
  };
  text = text_of([&](thread_communicator& c, bool odd) {
    std::vector<float> src(9), dst(9);
    c.all_gather(src.data(), odd ? 2 : 3, dst.data(), odd ? blocks(3, 3, 2) : blocks(3, 3, 3), dtype::f32);
  });
  CHECK(contains(text, "all_gather: rank 2 gives rank "));
  CHECK(contains(text, " 2 elements, but rank "));
  text = text_of([&](thread_communicator& c, bool odd) {
    std::vector<float> src(9), dst(9);
    c.all_to_all(src.data(), blocks(odd ? 1 : 2, 2, 2), dst.data(), blocks(2, 2, 2), dtype::f32);
  });
  CHECK(contains(text, "all_to_all: rank 2 gives rank 0 1 elements, but rank 0 expects 2"));
  text = text_of([&](thread_communicator& c, bool odd) {
    std::vector<float> src(9), dst(9);
    c.reduce_scatter(src.data(), blocks(odd ? 1 : 2, 2, 2), dst.data(), dtype::f32, reduction::sum);
  });
  CHECK(contains(text, "reduce_scatter: rank 2 gives rank 0 1 elements, but rank 0 expects 2"));
  text = text_of([&](thread_communicator& c, bool) {
    float own[2] = {};
    if (c.rank() == 0) c.send(own, 2, dtype::f32, 1, 5);
    if (c.rank() == 1) c.recv(own, 1, dtype::f32, 0, 5);
  });
  CHECK(text == "rank 1: recv: rank 0 sent 2 float32 with tag 5, but 1 float32 are expected; both ends must agree");
}

TEST_CASE("bad arguments are refused by name") {
  float x[8] = {};
  const auto text_of = [&](auto call) { return error_of(1, [&](thread_communicator& c) { call(c); }); };
  const std::vector<block> two = {mmr::dense_block(0, 1), mmr::dense_block(1, 1)}, one = {mmr::dense_block(0, 1)};
  CHECK(contains(text_of([&](auto& c) { c.all_gather(x, 1, x + 4, two, dtype::f32); }), "`from` has 2 blocks"));
  CHECK(contains(text_of([&](auto& c) { c.all_gather(x, 2, x + 4, one, dtype::f32); }), "gives 2 elements"));
  CHECK(contains(text_of([&](auto& c) { c.all_reduce(x, x + 1, 4, dtype::f32, reduction::sum); }), "overlap"));
  CHECK(contains(text_of([&](auto& c) { c.all_reduce(x, x, -1, dtype::f32, reduction::sum); }), "count -1"));
  CHECK(contains(text_of([&](auto& c) { c.broadcast(x, 1, dtype::f32, 1); }), "root 1 is not a rank"));
  CHECK(contains(text_of([&](auto& c) { c.send(x, 1, dtype::f32, 0, 0); }), "names itself"));
  CHECK(contains(text_of([&](auto& c) { c.recv(x, 1, dtype::f32, 7, 0); }), "peer 7 is not a rank"));
  CHECK(contains(text_of([&](auto& c) { c.split(-1, 0); }), "color -1"));
  const std::vector<block> folded = {{.offset = 0, .rows = 2, .length = 3, .stride = 1}};
  CHECK(contains(text_of([&](auto& c) { c.reduce_scatter(x, folded, x, dtype::f32, reduction::sum); }), "stride 1"));
  CHECK_THROWS_WITH(run_ranks(0, [](thread_communicator&) {}), "run_ranks: 0 ranks are too few; at least 1 is needed");
}

TEST_CASE("collectives on threads allocate nothing") {
  run_ranks(3, [](thread_communicator& c) {
    std::vector<double> src(6000), dst(6000);
    std::vector<block> blocks;
    for (int k = 0; k < 3; ++k) blocks.push_back({.offset = k * 5, .rows = 20, .length = 5, .stride = 15});
    const long before = allocations;
    for (int i = 0; i < 3; ++i) {
      c.barrier();
      c.all_gather(src.data(), 100, dst.data(), blocks, dtype::f64);
      c.all_to_all(src.data(), blocks, dst.data(), blocks, dtype::f64);
      c.reduce_scatter(src.data(), blocks, dst.data(), dtype::f64, reduction::sum);
      c.all_reduce(src.data(), dst.data(), 6000, dtype::f64, reduction::sum);
      c.all_reduce(src.data(), dst.data(), 60, dtype::f64, reduction::sum);
      c.broadcast(dst.data(), 6000, dtype::f64, 1);
      if (c.rank() == 0) c.send(src.data(), 10, dtype::f64, 1, 0);
      if (c.rank() == 1) c.recv(src.data(), 10, dtype::f64, 0, 0);
    }
    mmr_test::expect(allocations == before, "rank ", c.rank(), " allocated ", allocations - before, " times");
  });
}

namespace {

/// A user's communicator: one rank, with grouped calls.
struct lonely {
  static constexpr bool strided = false;
  int depth = 0, grouped = 0;
  int rank() const { return 0; }
  int size() const { return 1; }
  lonely split(int, int) const { return {}; }
  void barrier() {}
  void all_gather(const void*, std::int64_t, void*, std::span<const block>, dtype) {}
  void all_to_all(const void*, std::span<const block>, void*, std::span<const block>, dtype) {}
  void reduce_scatter(const void*, std::span<const block>, void*, dtype, reduction) {}
  void all_reduce(const void*, void*, std::int64_t, dtype, reduction) { grouped += depth; }
  void broadcast(void*, std::int64_t, dtype, int) {}
  void send(const void*, std::int64_t, dtype, int, int) {}
  void recv(void*, std::int64_t, dtype, int, int) {}
  std::int64_t bytes_sent() const { return 0; }
  void group_begin() { ++depth; }
  void group_end() { --depth; }
};
static_assert(mmr::check_communicator<lonely>());

struct without_recv : lonely {
  without_recv split(int, int) const { return {}; }
  void recv() {}
};
static_assert(!mmr::communicator<without_recv>);
static_assert(!mmr::communicator<int>);

}  // namespace

TEST_CASE("grouped calls use group_begin and group_end where they exist") {
  lonely one;
  mmr::grouped(one, [&] { one.all_reduce(nullptr, nullptr, 0, dtype::f32, reduction::sum); });
  CHECK(one.grouped == 1);
  CHECK(one.depth == 0);
  run_ranks(2, [](thread_communicator& c) { mmr::grouped(c, [&] { c.barrier(); }); });
}
