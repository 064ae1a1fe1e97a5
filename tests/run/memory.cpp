// What a run takes from the machine: nothing in a step, and arenas of the size that was planned.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "catch.hpp"
#include "run/sanitized.hpp"
#include "run/small_gpt.hpp"

#if defined(__GLIBC__) && !MMR_TEST_SANITIZED
// Every allocation passes here, also those of operator new and of C functions.
namespace {
std::atomic<bool> counting{false};
std::atomic<std::int64_t> allocations{0};
void note() {
  if (counting.load(std::memory_order_relaxed)) allocations.fetch_add(1, std::memory_order_relaxed);
}
}  // namespace
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void* malloc(std::size_t n) {
  return note(), __libc_malloc(n);
}
void* calloc(std::size_t n, std::size_t size) {
  return note(), __libc_calloc(n, size);
}
void* realloc(void* p, std::size_t n) {
  return note(), __libc_realloc(p, n);
}
void* memalign(std::size_t a, std::size_t n) {
  return note(), __libc_memalign(a, n);
}
void* aligned_alloc(std::size_t a, std::size_t n) {
  return note(), __libc_memalign(a, n);
}
int posix_memalign(void** p, std::size_t a, std::size_t n) {
  note();
  *p = __libc_memalign(a, n);
  return *p ? 0 : 12;
}
}

TEST_CASE("nothing is allocated in a step") {
  using namespace mmr_test;
  allocations = 0;
  counting = true;
  // Volatile, as compilers drop pairs that they see through.
  int* volatile number = new int(1);
  void* volatile bytes = std::malloc(1);
  counting = false;
  delete number;
  std::free(bytes);
  REQUIRE(allocations == 2);  // or this test would show nothing

  for (int microbatches : {1, 2}) {
    const mmr::gpt::config c{
        .layers = 2, .heads = 3, .embed = 24, .seq = 17, .batch = 3, .vocab = 257, .microbatches = microbatches};
    const auto g = mmr::gpt::training_graph<float>(c, mmr::adamw{.clip_norm = microbatches > 1 ? 1.0 : 0.0});
    for (const auto& [spec, plan] :
         {std::pair{"one=1", "single"}, {"data=3", "zero3"}, {"data=2,model=2", "megatron-sp"}}) {
      INFO(plan << " on " << spec << " with " << microbatches << " microbatches");
      const auto m = mmr::mesh::parse(spec);
      const auto p = make_plan(g, m, plan);
      std::int64_t in_steps = -1;
      mmr::run_ranks(m.rank_count(), [&](mmr::thread_communicator& world) {
        trainer t(g, m, p, world, 17);
        const auto fill = feed(c);
        t.step(rate(), fill);
        world.barrier();
        if (world.rank() == 0) allocations = 0, counting = true;
        world.barrier();
        for (int i = 0; i < 3; ++i) t.step(rate(), fill);
        world.barrier();
        if (world.rank() == 0) counting = false, in_steps = allocations;
        world.barrier();
      });
      CHECK(in_steps == 0);
    }
  }
}

namespace {
struct Batch : mmr::axis<"batch"> {};
struct Narrow : mmr::axis<"in"> {};
struct Wide : mmr::axis<"out"> {};

/// Bytes that a fresh process gains by a few steps on `ranks` ranks, and the sum of their arenas.
std::pair<std::int64_t, std::int64_t> gained(const mmr::graph& g, const mmr::mesh& m, const mmr::plan& p) {
  int ends[2];
  if (::pipe(ends) != 0) return {-1, -1};
  const pid_t child = ::fork();
  if (child == 0) {
    std::int64_t found[2] = {-1, 0};
    try {
      std::atomic<std::int64_t> arenas{0};
      const auto before = mmr::resident_bytes();
      mmr::run_ranks(m.rank_count(), [&](mmr::thread_communicator& world) {
        mmr_test::trainer t(g, m, p, world, 1);
        arenas += t.run().arena_bytes();
        const auto fill = [](const mmr::tensor_info& info, std::span<const mmr::interval> box, const mmr::step_info&,
                             void* to) {
          std::int64_t n = 1;
          for (const auto& i : box) n *= i.size;
          if (info.type.element == mmr::dtype::f32) std::fill_n(static_cast<float*>(to), n, 0.5F);
        };
        for (int i = 0; i < 2; ++i) t.step({.peak = 1e-3}, fill);
        world.barrier();
        if (world.rank() == 0) found[0] = mmr::resident_bytes() - before;
        world.barrier();
      });
      found[1] = arenas;
    } catch (...) {
    }
    const auto put = ::write(ends[1], found, sizeof found);
    ::_exit(put == sizeof found ? 0 : 1);
  }
  ::close(ends[1]);
  std::int64_t found[2] = {-1, -1};
  const auto got = ::read(ends[0], found, sizeof found);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return got == sizeof found ? std::pair{found[0], found[1]} : std::pair<std::int64_t, std::int64_t>{-1, -1};
}
}  // namespace

TEST_CASE("what a process gains is what its arenas take, where a rank holds 200 MB") {
  // Weights of 50 MB with their gradient and two moments.
  mmr::declaration d{mmr::size<Batch>(16), mmr::size<Narrow>(3000), mmr::size<Wide>(4200)};
  const auto w = d.parameter<float, Narrow, Wide>("w", mmr::init::ones());
  const auto y = mmr::linear(d.input<float, Batch, Narrow>("x"), w);
  const auto g = d.training_step(mmr::scale(mmr::contract<Batch, Wide>(y, y), 1e-9), mmr::adamw{.clip_norm = 1});
  for (const auto& [spec, plan] : {std::pair{"data=1", "single"}, {"data=2", "ddp"}}) {
    INFO(plan << " on " << spec);
    const auto m = mmr::mesh::parse(spec);
    mmr::plan_request r;
    r.scheme = plan;
    const auto p = mmr::planner(g, m).make(r);
    REQUIRE(p.per_rank[0].arena >= 200'000'000);
    const auto [bytes, arenas] = gained(g, m, p);
    std::int64_t predicted = 0;
    for (const auto& rank : p.per_rank) predicted += rank.arena;
    CHECK(arenas == predicted);
    CHECK(static_cast<double>(bytes) == Approx(static_cast<double>(arenas)).epsilon(0.05));
  }
}
#endif
