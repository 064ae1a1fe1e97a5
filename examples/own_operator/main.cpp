// A template-driven experiment: one operator of one's own (pointwise.hpp), instantiated with several formulas
// (formulas.hpp), in the hidden layer of a small regression. Each row of the table it prints is one instantiation: how the
// planner splits it over four ranks, how far its gradient is from finite differences, how far four ranks are from one, and
// what it learns. Ends with status 1 where a claim fails.
#include "formulas.hpp"
#include "pointwise.hpp"

#include <cstdio>
#include <iostream>
#include <numeric>

namespace {

struct Sample : mmr::axis<"sample", 64> {};
struct In : mmr::axis<"in", 6> {};
struct Hidden : mmr::axis<"hidden"> {};
struct Out : mmr::axis<"out", 2> {};

/// The model with F in its hidden layer, and its parameters' handles.
template <class F, class T>
struct regression {
  mmr::declaration m;
  std::vector<mmr::tensor_id> parameters;
  mmr::graph step;

  template <class Optimizer>
  regression(std::int64_t hidden, const Optimizer& optimizer) : m(mmr::size<Hidden>(hidden)) {
    const auto weight = [&]<class... A>(const char* name, mmr::axes<A...>) {
      auto w = m.parameter<T, A...>(name, mmr::init::normal(0.4));
      parameters.push_back(w.id);
      return w;
    };
    auto x = m.input<T, Sample, In>("x");
    auto up = weight("up", mmr::axes<In, Hidden>{});
    auto down = weight("down", mmr::axes<Hidden, Out>{});
    auto hidden_layer = [&] {
      if constexpr (F::operands == 1) {
        return map<F>(mmr::linear(x, up));
      } else {
        auto [g, v] = mmr::contract<In>(x, weight("gate", mmr::axes<In, Hidden>{}), up);
        return map<F>(g, v);
      }
    };
    auto loss = mmr::mean_squared_error(mmr::linear(hidden_layer(), down), m.input<T, Sample, Out>("y"));
    step = m.training_step(loss, optimizer);
  }
};

/// The same samples in every step: products and waves of the inputs.
template <class T>
void samples(const mmr::tensor_info& input, std::span<const mmr::interval> box, const mmr::step_info&, void* to) {
  std::vector<T> x, y;
  for (int s = 0; s < Sample::extent; ++s) {
    std::array<double, In::extent> v;
    for (int i = 0; i < In::extent; ++i) v[static_cast<std::size_t>(i)] = std::sin(1.7 * s * (i + 1) + i * i);
    for (double e : v) x.push_back(static_cast<T>(e));
    y.push_back(static_cast<T>(v[0] * v[1] - 0.5 * v[2]));
    y.push_back(static_cast<T>(std::sin(2 * v[3]) + v[4] * v[5]));
  }
  mmr::copy_part<T>(input, box, input.name == "x" ? x : y, to);
}

struct training {
  std::vector<double> losses;
  std::string split;  ///< which loop of the operator each mesh axis splits
};

/// Trains under the plan of least memory that keeps the pins.
template <class F, class T>
training train(std::int64_t hidden, const mmr::mesh& m, int steps, const mmr::pins& fixed = {}) {
  const regression<F, T> model(hidden, mmr::adamw{.weight_decay = 0});
  const auto plan = mmr::planner(model.step, m).make({.fixed = fixed});
  training out;
  for (mmr::op_id o = 0; o < model.step.ops(); ++o)
    if (const auto& op = model.step.op(o); op.rules && op.rules->name() == pointwise<F>::name)
      out.split = mmr::text(op, m, plan.strategies[static_cast<std::size_t>(o)]);
  mmr::run_ranks(m.rank_count(), [&](auto& world) {
    mmr::trainer trainer(model.step, m, plan, world, /*seed=*/7);
    for (int s = 0; s < steps; ++s) {
      const double loss = trainer.step(0.01, samples<T>);
      if (world.rank() == 0) out.losses.push_back(loss);
    }
  });
  return out;
}

/// Largest difference of the gradient to five-point differences of the loss, in double, over the gradient's largest element.
template <class F>
double gradient_error(std::int64_t hidden) {
  const regression<F, double> model(hidden, mmr::sgd{});
  const auto m = mmr::mesh::parse("ranks=1");
  const auto plan = mmr::planner(model.step, m).make({});
  double worst = 0, largest = 0;
  mmr::run_ranks(1, [&](auto& world) {
    mmr::trainer trainer(model.step, m, plan, world, 7);
    // A step of rate 0 is the loss alone, and one of rate 1 subtracts the gradient.
    const auto loss = [&] { return trainer.step(0.0, samples<double>); };
    const auto values = [&](mmr::tensor_id p) {
      const auto count = static_cast<std::size_t>(model.step.tensor_of(p).type.count());
      return std::span(static_cast<double*>(trainer.run().data(p)), count);
    };
    std::vector<std::vector<double>> before, gradient;
    for (auto p : model.parameters) before.emplace_back(values(p).begin(), values(p).end());
    trainer.step(1.0, samples<double>);
    for (std::size_t p = 0; p < before.size(); ++p) {
      const auto now = values(model.parameters[p]);
      gradient.emplace_back(before[p]);
      for (std::size_t i = 0; i < now.size(); ++i) {
        gradient[p][i] -= now[i];
        now[i] = before[p][i];
      }
    }
    for (std::size_t p = 0; p < before.size(); ++p)
      for (std::size_t i = 0; i < before[p].size(); ++i) {
        const auto at = [&](double shift) {
          double& x = values(model.parameters[p])[i];
          x = before[p][i] + shift;
          const double l = loss();
          x = before[p][i];
          return l;
        };
        const double h = 1e-4;
        const double slope = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
        worst = std::max(worst, std::abs(slope - gradient[p][i]));
        largest = std::max(largest, std::abs(slope));
      }
  });
  return worst / largest;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]) / std::abs(a[i]));
  return most;
}

std::string text(const char* format, double x) {
  char out[32];
  std::snprintf(out, sizeof out, format, x);
  return out;
}

/// One row of the table; true where all that it claims holds.
template <class F>
bool add_row(mmr::text_table& table, std::int64_t parameters) {
  constexpr int steps = 60;
  // Equal numbers of parameters: a gated layer has three matrices where the other has two.
  const auto hidden = parameters / (F::operands * In::extent + Out::extent);
  const double gradient = gradient_error<F>(hidden);
  const auto alone = mmr::mesh::parse("ranks=1"), together = mmr::mesh::parse("data=2,model=2");
  // In float as the planner likes it; in double with the operator pinned, by its type, to another split.
  const auto one_f = train<F, float>(hidden, alone, steps), four_f = train<F, float>(hidden, together, steps);
  mmr::pins fixed;
  fixed.split<pointwise<F>, Hidden>("model");
  const auto one = train<F, double>(hidden, alone, steps), four = train<F, double>(hidden, together, steps, fixed);
  const double apart = largest_difference(one.losses, four.losses);
  const double apart_f = largest_difference(one_f.losses, four_f.losses);
  table.add_row({F::name, std::to_string(hidden), text("%.0e", gradient), four_f.split, text("%.0e", apart_f), four.split,
                 text("%.0e", apart), text("%.4f", four.losses.front()), text("%.4f", four.losses.back())});
  return gradient < 1e-6 && apart < 1e-10 && apart_f < 1e-4 && four_f.split.find("none") == std::string::npos &&
         four.losses.back() < four.losses.front();
}

template <class... F>
bool sweep(mmr::text_table& table) {
  bool all = true;
  for (std::int64_t parameters : {168, 336}) ((all = add_row<F>(table, parameters) && all), ...);
  return all;
}

}  // namespace

int main() try {
  using mmr::align;
  mmr::text_table table({{"formula", align::left}, {"hidden"}, {"gradient", align::right, "error"},
                         {"planned", align::left, "split"}, {"4 ranks to 1", align::right, "float"},
                         {"pinned", align::left, "split"}, {"4 ranks to 1", align::right, "double"},
                         {"loss", align::right, "before"}, {"loss", align::right, "after"}});
  const bool holds = sweep<squared_relu, silu, bilinear, swiglu, geglu>(table);
  std::cout << table;
  if (!holds) std::cout << "a claim fails: see main.cpp for the limits\n";
  return holds ? 0 : 1;
} catch (const std::exception& problem) {
  std::cerr << "own_operator: " << problem.what() << "\n";
  return 1;
}
