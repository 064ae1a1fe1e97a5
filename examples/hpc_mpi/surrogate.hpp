// The surrogate: a network from a rod's three numbers to its temperature at every position of the grid.
#pragma once

#include "heat.hpp"

#include <mmr/auto_parallel.hpp>

struct Rod : mmr::axis<"rod"> {};
struct Number : mmr::axis<"number", 3> {};
struct Narrow : mmr::axis<"narrow", 32> {};
struct Wide : mmr::axis<"wide", 48> {};
struct Position : mmr::axis<"position"> {};

/// Temperatures that the network predicts for the rods of the input "rods".
inline mmr::tensor<float, Rod, Position> predict(mmr::declaration& m, std::int64_t rods, const grid& g) {
  using mmr::init::normal, mmr::init::zeros;
  m.set(mmr::size<Rod>(rods));
  m.set(mmr::size<Position>(g.points));
  auto x = m.input<float, Rod, Number>("rods");
  auto w1 = m.parameter<float, Number, Narrow>("narrow.weight", normal(0.6));
  auto b1 = m.parameter<float, Narrow>("narrow.bias", zeros());
  auto w2 = m.parameter<float, Narrow, Wide>("wide.weight", normal(0.2));
  auto b2 = m.parameter<float, Wide>("wide.bias", zeros());
  auto w3 = m.parameter<float, Wide, Position>("position.weight", normal(0.15));
  auto b3 = m.parameter<float, Position>("position.bias", zeros());
  auto h1 = mmr::bias_gelu(mmr::linear(x, w1), b1);
  auto h2 = mmr::bias_gelu(mmr::linear(h1, w2), b2);
  return mmr::linear(h2, w3, b3);
}

/// Fills this rank's part of "rods", and of "temperatures" from its own part of the simulation.
inline mmr::input_filler feed(const std::vector<rod>& rods, std::vector<double> simulated, const grid& g) {
  std::vector<float> numbers;
  for (const auto& r : rods)
    for (double v : {2 * r.k - 1, r.a, r.b}) numbers.push_back(static_cast<float>(v));
  return [=](const mmr::tensor_info& input, std::span<const mmr::interval> box, const mmr::step_info&, void* to) {
    if (input.name == "rods") return mmr::copy_part<float>(input, box, numbers, to);
    // Pinned to the grid's own division (main.cpp), so the whole box was computed here: [rod][position] of [position][rod].
    auto* out = static_cast<float*>(to);
    for (auto r = box[0].begin; r < box[0].begin + box[0].size; ++r)
      for (auto i = box[1].begin; i < box[1].begin + box[1].size; ++i)
        *out++ = static_cast<float>(simulated[static_cast<std::size_t>((i - g.mine.begin) * input.type.dims[0].extent + r)]);
  };
}
