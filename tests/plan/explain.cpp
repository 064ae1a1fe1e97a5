// Plans as people read them.
#include <mmr/plan/explain.hpp>
#include <sstream>

#include "catch.hpp"

TEST_CASE("a row of the comparison is of one rank: the one with the greatest peak") {
  mmr::plan p;
  p.name = "uneven";
  p.per_rank.resize(3);
  for (auto& r : p.per_rank) r = {.parameters = 1024, .gradients = 1024, .peak_live = 2048, .arena = 2048};
  p.per_rank[1] = {.parameters = 3072, .gradients = 4096, .redundant = 512, .peak_live = 7168, .arena = 8192};
  std::ostringstream out;
  mmr::print_comparison(out, {p});
  CHECK_THAT(out.str(), contains("uneven    3.00   4.00   0.00   0.00       0.50  7.00   8.00"));
  CHECK(mmr::peak_bytes(p) == 7168);
  CHECK(mmr::peak_bytes({}) == 0);
}

TEST_CASE("a plan is called proved only where both halves of what was asked are") {
  const auto said = [](mmr::goal minimised, bool least, bool proved) {
    mmr::plan p;
    p.minimised = minimised;
    p.least = least;
    p.proved = proved;
    p.per_rank = {{}};
    std::ostringstream table;
    mmr::print_comparison(table, {p});
    return std::string(mmr::proof_of(p)) + "|" + table.str();
  };
  using mmr::goal;
  CHECK_THAT(said(goal::memory, true, true), contains("proved|") && contains("  yes"));
  CHECK_THAT(said(goal::memory, true, false), contains("least peak memory proved, least time not|") && contains("  peak only"));
  CHECK_THAT(said(goal::time, true, false), contains("least time proved, least memory not|") && contains("  time only"));
  CHECK_THAT(said(goal::time, false, false), contains("not proved best|") && contains("  no"));
}
