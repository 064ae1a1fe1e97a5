// A training loop of one's own: a classifier over named axes, a plan under a byte budget with pins, gradient accumulation,
// a learning rate that follows the test loss, and checkpoints to go back to. Ends with status 1 below 95% accuracy.
#include <mmr/auto_parallel.hpp>

#include "spirals.hpp"

#include <cstdio>
#include <iostream>

namespace {

struct Point : mmr::axis<"point"> {};
struct Coord : mmr::axis<"coord", 2> {};
struct Wide : mmr::axis<"wide"> {};
struct Deep : mmr::axis<"deep"> {};
struct Arm : mmr::axis<"arm", 2> {};

constexpr int microbatches = 4;
constexpr std::int64_t points_each = 64;
constexpr const char* checkpoint = "spirals.safetensors";

struct classifier {
  mmr::tensor<float, Point, Coord> points;
  mmr::tensor<float, Point, Arm> logits;
};

/// One declaration for training and for evaluation; only the number of points differs.
classifier declare(mmr::declaration& m, std::int64_t points) {
  using mmr::init::normal, mmr::init::zeros;
  m.set(mmr::size<Point>(points));
  m.set(mmr::size<Wide>(64));
  m.set(mmr::size<Deep>(48));
  auto xy = m.input<float, Point, Coord>("points");
  auto w1 = m.parameter<float, Coord, Wide>("wide.weight", normal(2));
  auto b1 = m.parameter<float, Wide>("wide.bias", zeros());
  auto w2 = m.parameter<float, Wide, Deep>("deep.weight", normal(0.2));
  auto b2 = m.parameter<float, Deep>("deep.bias", zeros());
  auto w3 = m.parameter<float, Deep, Arm>("arm.weight", normal(0.2));
  auto b3 = m.parameter<float, Arm>("arm.bias", zeros());
  auto h1 = mmr::bias_gelu(mmr::linear(xy, w1), b1);
  auto h2 = mmr::bias_gelu(mmr::linear(h1, w2), b2);
  return {xy, mmr::linear(h2, w3, b3)};
}

/// Gives a rank its part of the points that `now` returns for a microbatch.
template <class Now>
mmr::input_filler feed(Now now) {
  return [now](const mmr::tensor_info& input, std::span<const mmr::interval> box, const mmr::step_info& step, void* to) {
    const labelled_points& all = now(step.microbatch);
    if (input.name == "points")
      mmr::copy_part<float>(input, box, all.xy, to);
    else
      mmr::copy_part<std::int32_t>(input, box, all.arm, to);
  };
}

mmr::graph training_graph(mmr::pins& fixed) {
  mmr::declaration m;
  m.set_microbatches(microbatches);
  const auto net = declare(m, points_each);
  const auto loss = mmr::cross_entropy(net.logits, m.input<std::int32_t, Point>("arms"));
  fixed.shard<Point>(net.points, "data");                // one tensor
  fixed.split<mmr::op::bias_gelu, Wide>("model");        // every operator of a type that has this loop
  return m.training_step(loss, mmr::adamw{.weight_decay = 1e-3, .clip_norm = 1});
}

/// The fastest plan that the pins allow, and the fastest in three quarters of its memory.
std::vector<mmr::plan> make_plans(const mmr::graph& g, const mmr::mesh& m, const mmr::pins& fixed) {
  mmr::planner planner(g, m);
  auto fastest = planner.make({.minimise = mmr::goal::time, .fixed = fixed});
  const auto budget = mmr::peak_bytes(fastest) * 3 / 4;
  auto lean = planner.make({.minimise = mmr::goal::time, .budget = budget, .fixed = fixed});
  lean.name = "budget";
  mmr::explain(std::cout, planner.where(), lean);
  std::cout << "\nbudget " << mmr::format_bytes(static_cast<double>(budget)) << " a rank\n";
  return {fastest, lean};
}

/// Keeps the best weights in a checkpoint. When the test loss has not fallen for `patience` looks, goes back to them and
/// halves the rate. All ranks decide alike: losses and results are the same on each.
class plateau {
 public:
  double rate = 0.05;
  int returns = 0;

  template <class Trainer>
  void look(Trainer& trainer, double test_loss) {
    if (test_loss < best_) {
      best_ = test_loss;
      bad_ = 0;
      trainer.save(checkpoint);
    } else if (++bad_ == patience) {
      bad_ = 0;
      rate /= 2;
      ++returns;
      trainer.load(checkpoint);
    }
  }

 private:
  static constexpr int patience = 2;
  double best_ = 1e300;
  int bad_ = 0;
};

template <mmr::communicator C>
score train(C& world, const mmr::graph& g, const mmr::mesh& m, const mmr::plan& p, int steps) {
  const auto known = spirals(1000, 1), unseen = spirals(400, 2);
  mmr::trainer trainer(g, m, p, world, /*seed=*/1);

  mmr::declaration forward;
  const auto forward_graph = forward.inference(declare(forward, unseen.count()).logits);
  mmr::evaluation evaluation(forward_graph, trainer.run());
  const auto test = feed([&](std::int64_t) -> const labelled_points& { return unseen; });
  const auto evaluate = [&] { return rate_logits(evaluation.template result<float>(test), unseen); };

  labelled_points batch;
  plateau schedule;
  for (int step = 0; step < steps; ++step) {
    const auto fill = feed([&](std::int64_t micro) -> const labelled_points& {
      batch = choose(known, points_each, static_cast<std::uint32_t>(step * microbatches + micro));
      return batch;
    });
    const double loss = trainer.step(schedule.rate, fill);
    if ((step + 1) % 20 != 0) continue;
    const auto now = evaluate();
    if (world.rank() == 0 && (step + 1) % 100 == 0)
      std::printf("step %4d  rate %.5f  went back %d times  training loss %.4f  test loss %.4f  accuracy %.1f%%\n", step + 1,
                  schedule.rate, schedule.returns, loss, now.loss, 100 * now.accuracy);
    schedule.look(trainer, now.loss);
  }
  trainer.load(checkpoint);
  return evaluate();
}

}  // namespace

int main() try {
  const auto m = mmr::mesh::parse("data=2,model=2");
  mmr::pins fixed;
  const auto g = training_graph(fixed);
  const auto plans = make_plans(g, m, fixed);
  mmr::print_comparison(std::cout, plans);
  std::cout << std::flush;

  score best, alone;
  mmr::run_ranks(m.rank_count(), [&](auto& world) {
    const auto s = train(world, g, m, plans.back(), 400);
    if (world.rank() == 0) best = s;
  });
  // The checkpoint holds whole tensors: one rank reads what four have written.
  const auto one = mmr::mesh::parse("ranks=1");
  const auto single = mmr::planner(g, one).make({.scheme = "single"});
  mmr::run_ranks(1, [&](auto& world) { alone = train(world, g, one, single, 0); });

  std::printf("best accuracy %.2f%%, test loss %.4f; on one rank, from the checkpoint: %.2f%%, %.4f\n", 100 * best.accuracy,
              best.loss, 100 * alone.accuracy, alone.loss);
  return best.accuracy >= 0.95 && best.accuracy == alone.accuracy ? 0 : 1;
} catch (const std::exception& problem) {
  std::cerr << "custom_trainer: " << problem.what() << "\n";
  return 1;
}
