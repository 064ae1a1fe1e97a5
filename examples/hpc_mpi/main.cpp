// A small HPC code that takes mmr as headers: it has MPI, a communicator and a divided grid already, simulates rods that
// cool, and fits a network to them on the same ranks. What a rank has simulated stays there: the temperatures are pinned to
// the grid's own division, and the planner arranges the rest for least memory.
//
//   mpirun -n 4 heat_surrogate
#include "surrogate.hpp"

#include <mmr/mpi.hpp>

#include <cstdio>
#include <iostream>
#include <random>

namespace {

constexpr double end = 0.05;

std::vector<rod> random_rods(int count, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto uniform = [&] { return static_cast<double>(random()) / 4294967296.0; };
  std::vector<rod> rods;
  for (int i = 0; i < count; ++i) rods.push_back({uniform(), 2 * uniform() - 1, 2 * uniform() - 1});
  return rods;
}

/// Root mean square of the error over that of the exact solution, both over all ranks.
double relative_error(const std::vector<rod>& rods, const grid& g, MPI_Comm line, auto value) {
  double sums[2] = {0, 0};
  for (std::size_t r = 0; r < rods.size(); ++r)
    for (auto i = g.mine.begin; i < g.mine.begin + g.mine.size; ++i) {
      const double exact = rods[r].exact(g.x(i), end), error = value(r, i) - exact;
      sums[0] += error * error;
      sums[1] += exact * exact;
    }
  MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, line);
  return std::sqrt(sums[0] / sums[1]);
}

int run(MPI_Comm line) {
  const grid g(62, line);  // not divided evenly by four ranks
  const auto known = random_rods(200, 1), unseen = random_rods(50, 2);
  const auto simulated = simulate(known, end, g, line);
  const double simulation_error = relative_error(known, g, line, [&](std::size_t r, std::int64_t i) {
    return simulated[static_cast<std::size_t>(i - g.mine.begin) * known.size() + r];
  });

  mmr::mpi_communicator world(line);
  const auto m = mmr::mesh::parse("ranks=" + std::to_string(world.size()));

  mmr::declaration model;
  const auto predicted = predict(model, static_cast<std::int64_t>(known.size()), g);
  const auto target = model.input<float, Rod, Position>("temperatures");
  const auto step = model.training_step(mmr::mean_squared_error(predicted, target), mmr::adamw{.weight_decay = 0});
  mmr::plan_request request;
  if (world.size() > 1) request.fixed.shard<Position>(target, "ranks");
  mmr::planner planner(step, m);
  const auto plan = mmr::share_plan(world, planner.where(), [&] { return planner.make(request); });
  if (world.rank() == 0) mmr::explain(std::cout, planner.where(), plan);

  constexpr int steps = 600;
  mmr::trainer trainer(step, m, plan, world, /*seed=*/1);
  const mmr::learning_rate rate{.peak = 0.01, .warmup = 20, .shape = mmr::decay::cosine, .total = steps, .floor = 1e-4};
  const auto fill = feed(known, simulated, g);
  double first = 0, last = 0;
  for (int s = 0; s < steps; ++s) {
    last = trainer.step(rate, fill);
    if (s == 0) first = last;
  }

  mmr::declaration forward;
  const auto forward_graph = forward.inference(predict(forward, static_cast<std::int64_t>(unseen.size()), g));
  mmr::evaluation evaluation(forward_graph, trainer.run());
  const auto temperatures = evaluation.result<float>(feed(unseen, {}, g));
  const double error = relative_error(unseen, g, line, [&](std::size_t r, std::int64_t i) {
    return static_cast<double>(temperatures[r * static_cast<std::size_t>(g.points) + static_cast<std::size_t>(i)]);
  });
  if (world.rank() == 0)
    std::printf("\nsimulation on %d ranks: %.2f%% from the exact solution\nmean squared error %.5f -> %.7f\n"
                "surrogate on unseen rods: %.2f%% from the exact solution\n",
                world.size(), 100 * simulation_error, first, last, 100 * error);
  return simulation_error < 0.01 && error < 0.05 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int ranks = 1, open_ends = 0, status = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm line = MPI_COMM_NULL;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &open_ends, 0, &line);
  try {
    status = run(line);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "heat_surrogate: %s\n", problem.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Comm_free(&line);
  MPI_Finalize();
  return status;
}
