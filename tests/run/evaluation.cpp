// What a user's own training loop stands on: parts of host inputs, one plan for all ranks, and forward passes on the weights
// of a model in training.
#include <atomic>
#include <cmath>
#include <limits>
#include <mmr/auto_parallel.hpp>
#include <numeric>
#include <vector>

#include "catch.hpp"

namespace {

struct Sample : mmr::axis<"sample", 5> {};
struct In : mmr::axis<"in", 3> {};
struct Hidden : mmr::axis<"hidden", 7> {};
struct Out : mmr::axis<"out", 2> {};

mmr::tensor<double, Sample, Out> predict(mmr::declaration& m, const char* second = "down") {
  auto x = m.input<double, Sample, In>("x");
  auto up = m.parameter<double, In, Hidden>("up", mmr::init::normal(0.5));
  auto bias = m.parameter<double, Hidden>("bias", mmr::init::ones());
  auto down = m.parameter<double, Hidden, Out>(second, mmr::init::normal(0.5));
  return mmr::linear(mmr::bias_gelu(mmr::linear(x, up), bias), down);
}

std::vector<double> values(std::int64_t count) {
  std::vector<double> v;
  for (std::int64_t i = 0; i < count; ++i) v.push_back(std::sin(1.0 + 0.7 * static_cast<double>(i)));
  return v;
}

void fill(const mmr::tensor_info& input, std::span<const mmr::interval> box, const mmr::step_info&, void* to) {
  mmr::copy_part<double>(input, box, values(input.type.count()), to);
}

mmr::graph training_graph() {
  mmr::declaration m;
  const auto y = predict(m);
  return m.training_step(mmr::mean_squared_error(y, m.input<double, Sample, Out>("y")), mmr::sgd{});
}

template <class Call>
std::string sentence(Call call) {
  try {
    call();
  } catch (const mmr::error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a forward pass beside training has the weights of that moment") {
  const auto g = training_graph();
  for (const char* spec : {"ranks=1", "data=2,model=2", "ranks=3"}) {
    INFO(spec);
    const auto m = mmr::mesh::parse(spec);
    const auto p = mmr::planner(g, m).make({});
    std::vector<double> told, seen;
    mmr::run_ranks(m.rank_count(), [&](auto& world) {
      mmr::trainer trainer(g, m, p, world, 3);
      mmr::declaration forward;
      const auto f = forward.inference(predict(forward));
      mmr::evaluation evaluation(f, trainer.run());
      for (int s = 0; s < 4; ++s) {
        // The loss of a step is that of the weights before it.
        const auto y = evaluation.template result<double>(fill);
        const auto target = values(Sample::extent * Out::extent);
        double loss = 0;
        for (std::size_t i = 0; i < target.size(); ++i) loss += (y[i] - target[i]) * (y[i] - target[i]);
        const double step = trainer.step(0.3, fill);
        if (world.rank() != world.size() - 1) continue;
        seen.push_back(loss / static_cast<double>(target.size()));
        told.push_back(step);
      }
    });
    REQUIRE(told.size() == 4);
    for (std::size_t s = 0; s < 4; ++s) CHECK(std::abs(seen[s] - told[s]) <= 1e-12 * told[s]);
    CHECK(told[3] < told[0]);
  }
}

TEST_CASE("a forward pass must have the parameters of training") {
  const auto g = training_graph();
  const auto m = mmr::mesh::parse("ranks=1");
  const auto p = mmr::planner(g, m).make({});
  mmr::run_ranks(1, [&](auto& world) {
    mmr::trainer trainer(g, m, p, world, 3);
    mmr::declaration forward;
    const auto f = forward.inference(predict(forward, "other"));
    CHECK(sentence([&] { mmr::evaluation(f, trainer.run()); }).find("'other'") != std::string::npos);
    mmr::declaration again;
    const auto h = again.inference(predict(again));
    mmr::evaluation evaluation(h, trainer.run());
    CHECK(sentence([&] { evaluation.template result<float>(fill); }).find("float64") != std::string::npos);
  });
}

TEST_CASE("a forward pass whose result is not finite anywhere says so, and which operator made it so") {
  const auto g = training_graph();
  const auto m = mmr::mesh::parse("ranks=2");
  const auto p = mmr::planner(g, m).make({});
  const auto problem = sentence([&] {
    mmr::run_ranks(2, [&](auto& world) {
      mmr::trainer trainer(g, m, p, world, 3);
      mmr::declaration forward;
      const auto f = forward.inference(predict(forward));
      mmr::evaluation evaluation(f, trainer.run());
      // The last sample alone: the first element of the result stays finite.
      evaluation.template result<double>([](const mmr::tensor_info& input, std::span<const mmr::interval> box,
                                            const mmr::step_info&, void* to) {
        auto x = values(input.type.count());
        x.back() = std::numeric_limits<double>::infinity();
        mmr::copy_part<double>(input, box, x, to);
      });
    });
  });
  CHECK_THAT(problem, contains("the result of the forward pass holds") && contains("operator '") && contains("'up'"));
  CHECK(problem.find("step") == std::string::npos);
}

TEST_CASE("a handle gives this rank's part of a tensor") {
  mmr::declaration d;
  auto w = d.parameter<double, Hidden, Out>("w", mmr::init::ones());
  auto x = d.input<double, Sample, Hidden>("x");
  const auto g = d.training_step(mmr::mean_squared_error(mmr::linear(x, w), d.input<double, Sample, Out>("y")), mmr::sgd{});
  const auto m = mmr::mesh::parse("ranks=2");
  mmr::plan_request r;
  r.fixed.shard<Hidden>(w, "ranks");
  const auto p = mmr::planner(g, m).make(r);
  mmr::run_ranks(2, [&](auto& world) {
    mmr::trainer trainer(g, m, p, world, 3);
    const auto part = trainer.run().data(w);
    const bool right = part.size() == (world.rank() == 0 ? 8u : 6u) && std::accumulate(part.begin(), part.end(), 0.0) ==
                                                                         static_cast<double>(part.size());
    if (!right) mmr::fail("the part has ", part.size(), " elements");
  });
}

TEST_CASE("a part of a host tensor is its box") {
  mmr::tensor_info info{.name = "x", .type = {mmr::dtype::f32, {{"a", 3, true}, {"b", 4, true}}}};
  std::vector<float> whole(12);
  std::iota(whole.begin(), whole.end(), 0.0F);
  const std::vector<mmr::interval> box{{1, 2}, {1, 3}};
  std::vector<float> part(6);
  mmr::copy_part<float>(info, box, whole, part.data());
  CHECK(part == std::vector<float>{5, 6, 7, 9, 10, 11});
  whole.pop_back();
  CHECK(sentence([&] { mmr::copy_part<float>(info, box, whole, part.data()); }).find("has 12 elements and was given 11") !=
        std::string::npos);
  const std::vector<double> other(12);
  CHECK(sentence([&] { mmr::copy_part<double>(info, box, other, part.data()); }).find("float32") != std::string::npos);
}

TEST_CASE("one rank plans for all, and its error is everybody's") {
  const auto g = training_graph();
  const auto m = mmr::mesh::parse("data=2,model=2");
  std::atomic<int> made = 0, same = 0, told = 0;
  std::vector<mmr::strategy> first;
  mmr::run_ranks(4, [&](auto& world) {
    mmr::planner planner(g, m);
    const auto p = mmr::share_plan(world, planner.where(), [&] {
      ++made;
      auto q = planner.make({});
      first = q.strategies;
      return q;
    });
    world.barrier();
    same += p.strategies == first && p.per_rank.size() == 4;
    const auto text = sentence([&] { mmr::share_plan(world, planner.where(), [&] { return planner.make({.budget = 100}); }); });
    told += text.find("no plan keeps the budget of 100 bytes") == 0;
  });
  CHECK(made == 1);
  CHECK(same == 4);
  CHECK(told == 4);
}
