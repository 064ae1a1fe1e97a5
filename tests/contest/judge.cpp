// The judge of the contest and the problem handed to the solver: both count what a choice costs and holds, the one in
// 128 bits, the other as the solver does.
#include <mmr/solve/evaluate.hpp>
#include <mmr/solve/solve.hpp>

#include "catch.hpp"
#include "contest/instances.hpp"
#include "refusal.hpp"

namespace {

/// Cost by the judge, or -1 where the choice is not allowed.
double judged(const nlohmann::json& j, const std::vector<int>& choice) {
  const auto cost = contest::judged(read(j), choice);
  return cost ? static_cast<double>(*cost) : -1;
}

/// Calls `visit` with every choice.
template <class Visit>
void for_each_choice(const contest::instance& x, Visit visit) {
  std::vector<int> choice(x.costs.size(), 0);
  for (;;) {
    visit(choice);
    std::size_t v = 0;
    for (; v < choice.size(); choice[v++] = 0)
      if (static_cast<std::size_t>(++choice[v]) < x.costs[v].size()) break;
    if (v == choice.size()) return;
  }
}

/// The judge and the solver's own evaluation agree on every choice; returns how many are allowed.
int allowed(const nlohmann::json& j) {
  const auto x = read(j);
  const auto problem = contest::problem_of(x);
  mmr::solve::validate(problem);
  const auto limit = contest::limit_of(x);
  int count = 0;
  for_each_choice(x, [&](const std::vector<int>& choice) {
    const auto cost = contest::judged(x, choice);
    const auto e = mmr::solve::evaluate(problem, choice);
    const bool fits = e.cost < mmr::solve::infinity && (!limit || e.peak <= *limit);
    CHECK(fits == cost.has_value());
    if (cost) CHECK(e.cost == Approx(static_cast<double>(*cost)));
    count += cost.has_value();
  });
  return count;
}

}  // namespace

TEST_CASE("a choice costs its nodes and the pairs of its edges, row-major") {
  CHECK(judged(chain(), {0, 0, 0}) == 8 + 6 + 4 + 0 + 3);
  CHECK(judged(chain(), {0, 1, 0}) == 8 + 2 + 4 + 5 + 0);
  CHECK(judged(chain(), {1, 0, 0}) == 3 + 6 + 4 + 2 + 3);
  CHECK(judged(chain(), {1, 1, 0}) == 10);
  CHECK(judged(chain(), {1, 1}) == -1);
  CHECK(allowed(chain()) == 4);
}

TEST_CASE("a limit that only just does, and one that only just does not") {
  CHECK(judged(chain_with("/usage_limit", 16), {1, 1, 0}) == 10);
  CHECK(judged(chain_with("/usage_limit", 15), {1, 1, 0}) == -1);
  CHECK(judged(chain_with("/usage_limit", 7), {0, 0, 0}) == 21);
  CHECK(judged(chain_with("/usage_limit", 6), {0, 0, 0}) == -1);
  CHECK(allowed(chain_with("/usage_limit", 15)) == 3);
  CHECK(allowed(chain_with("/usage_limit", 6)) == 0);
  CHECK(allowed(chain_with("/usage_limit", 0)) == 0);
}

TEST_CASE("intervals are open at their end, and an empty one holds nothing") {
  // The second node begins where the first ends: never both.
  const auto apart = chain_with("/nodes/intervals/1", {3, 5});
  CHECK(allowed([&] {
          auto j = apart;
          j["problem"]["usage_limit"] = 9;
          return j;
        }()) == 4);
  CHECK(allowed([&] {
          auto j = apart;
          j["problem"]["usage_limit"] = 8;
          return j;
        }()) == 2);
  // The third node's 1000 bytes are never held; nor are they from 9 to 7.
  CHECK(judged(chain_with("/nodes/intervals/2", {9, 7}), {1, 1, 0}) == 10);
  CHECK(judged(chain_with("/nodes/intervals/2", {7, 8}), {1, 1, 0}) == -1);
  CHECK(allowed(chain_with("/nodes/intervals/2", {7, 8})) == 0);
}

TEST_CASE("parallel edges add up, reversed ones are turned, and a node may have an edge with itself") {
  auto j = chain();
  auto& edges = j["problem"]["edges"];
  edges["nodes"] = {{0, 1}, {0, 1}, {1, 0}, {1, 1}};
  edges["costs"] = {{1, 2, 3, 4}, {10, 20, 30, 40}, {100, 300, 200, 400}, {1000, 9, 9, 2000}};
  const double nodes[2][2] = {{8 + 6 + 4, 8 + 2 + 4}, {3 + 6 + 4, 3 + 2 + 4}};
  for (int a = 0; a < 2; ++a)
    for (int b = 0; b < 2; ++b) CHECK(judged(j, {a, b, 0}) == nodes[a][b] + 111 * (2 * a + b + 1) + 1000 * (b + 1));
  CHECK(allowed(j) == 4);
}

TEST_CASE("costs of 10^18 forbid strategies and pairs") {
  CHECK(allowed(chain_with("/nodes/costs/0/1", contest::forbidden)) == 2);
  CHECK(judged(chain_with("/nodes/costs/0/1", contest::forbidden), {1, 1, 0}) == -1);
  CHECK(allowed(chain_with("/edges/costs/0", {contest::forbidden, 5, 2, 1e300})) == 2);
  CHECK(allowed(chain_with("/nodes/costs/1", {1e18, 1e18})) == 0);
  // Just below, nothing is forbidden, and the sum is exact beyond 64 bits.
  auto j = chain();
  const std::int64_t most = contest::forbidden - 1;
  j["problem"]["nodes"]["costs"] = nlohmann::json::array();
  j["problem"]["nodes"]["usages"] = nlohmann::json::array();
  j["problem"]["nodes"]["intervals"] = nlohmann::json::array();
  j["problem"]["edges"] = {{"nodes", nlohmann::json::array()}, {"costs", nlohmann::json::array()}};
  std::vector<int> choice;
  for (int v = 0; v < 25; ++v) {
    j["problem"]["nodes"]["costs"].push_back({most});
    j["problem"]["nodes"]["usages"].push_back({0});
    j["problem"]["nodes"]["intervals"].push_back({0, 1});
    choice.push_back(0);
  }
  const auto cost = contest::judged(read(j), choice);
  REQUIRE(cost);
  CHECK(contest::text_of(*cost) == "24999999999999999975");
  CHECK(allowed(j) == 1);
}

TEST_CASE("usages beyond 64 bits are held to the limit all the same") {
  // Twelve nodes at once, of 9 * 10^17 or a third of it: their sum is beyond 64 bits, and a limit of 10^18 allows none.
  auto j = chain();
  auto& p = j["problem"];
  p["nodes"] = {
      {"costs", nlohmann::json::array()}, {"usages", nlohmann::json::array()}, {"intervals", nlohmann::json::array()}};
  p["edges"] = {{"nodes", nlohmann::json::array()}, {"costs", nlohmann::json::array()}};
  for (int v = 0; v < 12; ++v) {
    p["nodes"]["costs"].push_back({1, 2});
    p["nodes"]["usages"].push_back({900'000'000'000'000'000, 300'000'000'000'000'000});
    p["nodes"]["intervals"].push_back({0, 1});
  }
  p["usage_limit"] = 1'000'000'000'000'000'000;
  CHECK(allowed(j) == 0);
  p["usage_limit"] = 3'600'000'000'000'000'000;  // twelve thirds
  CHECK(allowed(j) == 1);
  p["usage_limit"] = 3'599'999'999'999'999'999;
  CHECK(allowed(j) == 0);
  p["usage_limit"] = 4'200'000'000'000'000'000;  // one of them whole
  CHECK(allowed(j) == 1 + 12);
  p["usage_limit"] = nullptr;
  CHECK(allowed(j) == 4096);
  // Strategies that break the limit alone do not count towards the sum.
  p["usage_limit"] = 20;
  p["nodes"]["usages"][0] = {7, 9'000'000'000'000'000'000};
  p["nodes"]["usages"][1] = {7, 9'000'000'000'000'000'000};
  for (std::size_t v = 2; v < 12; ++v) p["nodes"]["usages"][v] = {1, 900'000'000'000'000'000};
  CHECK(allowed(j) == 0);
  p["usage_limit"] = 24;
  CHECK(allowed(j) == 1);
  // Nor where they fit 64 bits, but not what the solver sums exactly.
  for (std::size_t v = 0; v < 12; ++v) p["nodes"]["usages"][v] = {1, 10'000'000'000'000'000};
  p["usage_limit"] = 12;
  CHECK(mmr::solve::minimise(contest::problem_of(read(j)), {}).cost == 12);
  // What no unit brings down is refused.
  for (std::size_t v = 0; v < 12; ++v) p["nodes"]["usages"][v] = {900'000'000'000'000'000, 1};
  p["usage_limit"] = 900'000'000'000'000'000;
  CHECK_THAT(refusal([&] { contest::problem_of(read(j)); }), contains("add up to more than 2^60 at a step"));
}

TEST_CASE("numbers of 128 bits are written whole") {
  CHECK(contest::text_of(0) == "0");
  CHECK(contest::text_of(10) == "10");
  CHECK(contest::text_of(contest::wide{1} << 100) == "1267650600228229401496703205376");
}
