// Proofs of plans for real graphs, beyond exhaustive search: no claim may contradict a choice found by another request.
#include <mmr/plan/planner.hpp>

#include "catch.hpp"
#include "models.hpp"
#include "solve/no_contradiction.hpp"

TEST_CASE("no proof for a GPT contradicts a choice found by another request") {
  // The shape of train_gpt's demo, at which a price that was no number once proved too much.
  models::gpt_size demo{12, 4, 128, 64, 8, 256};
  demo.updates = models::optimizer::adamw_clipped;
  mmr::graph g = models::gpt(demo);
  test::no_contradiction(mmr::planner(g, mmr::mesh::parse("data=2,model=2")).formulated({}).problem, 3, {0.0, 0.0005});

  const models::gpt_size uneven{2, 2, 30, 20, 5, 301};
  mmr::graph h = models::gpt(uneven);
  test::no_contradiction(mmr::planner(h, mmr::mesh::parse("data=2")).formulated({}).problem, 3, {0.0, 0.002, 0.05});
}
