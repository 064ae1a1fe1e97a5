// Solves an instance of the ASPLOS / EuroSys 2025 contest on intra-operator parallelism: improving choices as they are
// found, with the bound proved by then, and as the last line the strategies chosen, [] where there is none.
//
//   bench_solve_iopddl FILE SECONDS
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <mmr/solve/solve.hpp>

#include "common/command_line.hpp"
#include "contest.hpp"

namespace {

int run(const std::string& file, double seconds, double work, std::uint64_t seed) {
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  const auto instance = contest::parse(contest::unpacked(file));
  const auto problem = contest::problem_of(instance);
  const auto size = mmr::solve::size_of(problem);
  std::printf("%s: %d nodes, %d strategies, %d edges, %d steps; read in %.1f s\n", instance.name.c_str(), size.nodes,
              size.strategies, size.edges, problem.steps, elapsed());

  mmr::solve::request wanted{mmr::solve::goal::cost};
  if (const auto limit = contest::limit_of(instance)) wanted.peak_limit = *limit;
  wanted.seconds = seconds;
  wanted.work = work;
  wanted.seed = seed;
  // Sums beyond 2^53 are rounded on the way: what is proved of them is proved to a billionth.
  const bool exact = mmr::solve::detail::has_whole_costs(problem);
  const auto bound_of = [&](const mmr::solve::result& r) {
    return exact ? r.bound : r.bound * (1 - mmr::solve::cost_tolerance);
  };
  std::optional<contest::wide> best;
  wanted.on_better = [&](const mmr::solve::result& r) {
    const auto cost = contest::judged(instance, r.choice);
    if (!cost || (best && *cost >= *best)) return;
    best = cost;
    std::printf("%8.2f s  cost %20s  bound %20.0f  gap %7.3f %%\n", elapsed(), contest::text_of(*cost).c_str(),
                0.0 + std::ceil(bound_of(r) - 1e-6 * std::max(1.0, bound_of(r) * 1e-9)),
                100 * (static_cast<double>(*cost) - bound_of(r)) / std::max(1.0, static_cast<double>(*cost)));
    std::fflush(stdout);
  };
  const auto found = mmr::solve::minimise(problem, wanted);
  const auto cost = found.choice.empty() ? std::nullopt : contest::judged(instance, found.choice);
  if (!found.choice.empty() && !cost) mmr::fail("the solver's choice does not keep the instance's own rules");

  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  std::printf(
      "%s after %.2f s: cost %s, bound %.0f; reduced to %d nodes, %d strategies, %d edges; work %.3g; %ld MiB\n",
      std::string(name_of(found.outcome)).c_str(), elapsed(), cost ? contest::text_of(*cost).c_str() : "none",
      bound_of(found), found.reduced.nodes, found.reduced.strategies, found.reduced.edges, found.work,
      used.ru_maxrss / 1024);
  if (found.outcome == mmr::solve::status::infeasible)
    std::cerr << "solve_iopddl: no choice keeps the usage limit and all that is forbidden; this is proved\n";
  if (found.outcome == mmr::solve::status::nothing_found) {
    std::cerr << "solve_iopddl: ";
    if (found.work > work)
      std::cerr << "a work of " << work << " was too little";
    else
      std::cerr << seconds << " s were too short";
    std::cerr << " to find any choice; give more\n";
  }
  std::printf("[");
  for (std::size_t v = 0; v < found.choice.size(); ++v) std::printf("%s%d", v == 0 ? "" : ", ", found.choice[v]);
  std::printf("]\n");
  expect_printed();
  return 0;
}

}  // namespace

int main(int count, char** words) {
  CLI::App app{"Chooses a strategy for every node of a contest instance at the least cost within its usage limit."};
  std::string file;
  double seconds = 60, work = mmr::solve::infinity;
  std::uint64_t seed = 0;
  app.add_option("file", file, "instance, .json or .json.gz");
  app.add_option("seconds", seconds, "wall time for solving; reading comes on top (default 60)")
      ->check(within(0.0, 1e6));
  app.add_option("--work", work, "entries of tables that may be looked at: the same work gives the same answer")
      ->check(within(1.0, 1e300));
  app.add_option("--seed", seed, "of what is drawn at random")
      ->check(within(std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max()));
  CLI11_PARSE(app, count, words);
  if (file.empty()) {  // run among all benches, with nothing to read
    std::cout << app.help();
    return 0;
  }
  try {
    return run(file, seconds, work, seed);
  } catch (const std::exception& e) {
    std::cerr << "solve_iopddl: " << e.what() << '\n';
    std::printf("[]\n");
    return 1;
  }
}
