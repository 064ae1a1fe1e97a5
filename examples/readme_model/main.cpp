// The code of the README, compiled and run: declares a small model, plans it, trains it for a moment.
#include <mmr/auto_parallel.hpp>

#include <cmath>
#include <iostream>

struct Point : mmr::axis<"point"> {};
struct Wide : mmr::axis<"wide"> {};
struct Coord : mmr::axis<"coord", 2> {};
struct Class : mmr::axis<"class", 2> {};

int main() try {
  // declare
  mmr::declaration m{mmr::size<Point>(4096), mmr::size<Wide>(1024)};
  auto x = m.input<float, Point, Coord>("x");
  auto y = m.input<std::int32_t, Point>("y");
  auto w1 = m.parameter<float, Coord, Wide>("w1", mmr::init::normal(1));
  auto b1 = m.parameter<float, Wide>("b1", mmr::init::zeros());
  auto w2 = m.parameter<float, Wide, Class>("w2", mmr::init::normal(0.02));

  auto h = mmr::bias_gelu(mmr::linear(x, w1), b1);        // [Point, Wide]
  auto loss = mmr::cross_entropy(mmr::linear(h, w2), y);  // scalar
  mmr::graph g = m.training_step(loss, mmr::adamw{});

  // plan
  auto mesh = mmr::mesh::parse("data=2,model=2");
  mmr::planner planner(g, mesh);
  mmr::plan p = planner.make({});
  mmr::explain(std::cout, planner.where(), p);

  // run: is a point inside the ring?
  const auto fill = [](const mmr::tensor_info& input, std::span<const mmr::interval> box, const mmr::step_info& step, void* to) {
    for (std::int64_t i = 0; i < box[0].size; ++i) {
      const auto n = static_cast<double>(box[0].begin + i + 4096 * step.step);
      const double at[2] = {2 * std::sin(n), 2 * std::cos(n * n)};
      const double radius = std::hypot(at[0], at[1]);
      if (input.name == "y")
        static_cast<std::int32_t*>(to)[i] = radius > 1 && radius < 2;
      else
        for (std::int64_t c = 0; c < box[1].size; ++c)
          static_cast<float*>(to)[i * box[1].size + c] = static_cast<float>(at[box[1].begin + c]);
    }
  };
  mmr::run_ranks(mesh.rank_count(), [&](auto& world) {
    mmr::trainer trainer(g, mesh, p, world, /*seed=*/1);
    for (int step = 0; step < 100; ++step) {
      const double now = trainer.step({.peak = 1e-2}, fill);
      if (world.rank() == 0 && step % 33 == 0) std::cout << "step " << step << ": loss " << now << "\n";
    }
  });
} catch (const std::exception& problem) {
  std::cerr << "readme_model: " << problem.what() << "\n";
  return 1;
}
