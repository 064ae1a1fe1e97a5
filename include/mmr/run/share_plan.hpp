// One plan for all ranks of a run: where each is a process of its own, one of them solves and the others take its plan.
// (The same question asked twice may get two plans, as the solver has a time limit.)
#pragma once

#include <mmr/plan/json.hpp>
#include <mmr/run/communicator.hpp>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace mmr {

namespace detail {

/// Text of rank 0, on all ranks.
template <communicator C>
std::string share_text(C& world, std::string text) {
  auto size = static_cast<std::int32_t>(text.size());
  world.broadcast(&size, 1, dtype::i32, 0);
  text.resize(static_cast<std::size_t>(size));
  std::vector<std::int32_t> words(text.size() / sizeof(std::int32_t) + 1);
  std::memcpy(words.data(), text.data(), text.size());
  world.broadcast(words.data(), static_cast<std::int64_t>(words.size()), dtype::i32, 0);
  std::memcpy(text.data(), words.data(), text.size());
  return text;
}

}  // namespace detail

/// Calls `make` on rank 0 only and returns its plan on all ranks, which call this together:
///
///   mmr::planner planner(graph, mesh);
///   const auto plan = mmr::share_plan(world, planner.where(), [&] { return planner.make(request); });
///
/// Where `make` throws, all ranks throw its sentence.
template <communicator C, class Make>
plan share_plan(C& world, setting& s, Make make) {
  std::optional<plan> mine;
  std::string text, problem;
  if (world.rank() == 0) {
    try {
      mine = make();
      text = to_json(*mine, s.g, s.m).dump();
    } catch (const std::exception& e) {
      problem = e.what();
    }
  }
  problem = detail::share_text(world, problem);
  if (!problem.empty()) fail(problem);
  text = detail::share_text(world, text);
  return mine ? *mine : plan_from_json(text, "rank 0", s);
}

}  // namespace mmr
