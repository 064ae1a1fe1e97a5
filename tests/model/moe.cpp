// The mixture of experts under solver plans, and tokens that travel to split experts by all-to-all.
#include <mmr/model/moe.hpp>

#include "runs.hpp"

using namespace mmr_test;

namespace {

mmr::moe::config small(std::int64_t experts, int top_k) {
  return {.layers = 2,
          .heads = 2,
          .embed = 12,
          .seq = 9,
          .batch = 4,
          .vocab = 31,
          .hidden = 20,
          .experts = experts,
          .top_k = top_k,
          .capacity_factor = 1.0};
}

}  // namespace

TEST_CASE("a mixture of experts has one rank's losses under every plan") {
  for (const auto& [experts, top_k] : {std::pair{4, 1}, {3, 2}}) {
    INFO(experts << " experts, top " << top_k);
    const auto c = small(experts, top_k);
    const auto g = mmr::moe::training_graph<double>(c, optimizer);
    CHECK(g.ordered());
    same_as_one_rank(g, mmr::moe::scheme(), made_up(c.vocab), {"data=2,model=2"}, {"memory", "time", "megatron", "megatron-sp"});
    same_as_one_rank(g, mmr::moe::scheme(), made_up(c.vocab), {"data=3"}, {"memory", "zero3"});
  }
}

TEST_CASE("with accumulation and a clipped norm, too") {
  auto c = small(4, 2);
  c.microbatches = 2;
  const auto g = mmr::moe::training_graph<double>(c, mmr::adamw{.clip_norm = 0.5});
  same_as_one_rank(g, mmr::moe::scheme(), made_up(c.vocab), {"data=2,model=2"}, {"memory"}, 4);
}

TEST_CASE("a mixture of experts that makes its activations again trains as one that keeps them") {
  same_made_again(small(4, 2), mmr::moe::scheme(), made_up(31), "data=2,model=2", "memory");
}

TEST_CASE("tokens split by rows travel to split experts by all-to-all, and back") {
  for (const char* spec : {"data=2", "data=3", "data=4"}) {
    for (const int experts : {4, 3}) {
      INFO(spec << ", " << experts << " experts");
      const auto c = small(experts, 2);
      const auto g = mmr::moe::training_graph<double>(c, optimizer);
      const auto one = mmr::mesh::parse("one=1");
      const auto want = train(g, one, mmr::planner(g, one).make(asked("single", mmr::moe::scheme())), made_up(c.vocab), 4);
      const auto m = mmr::mesh::parse(spec);
      auto request = asked("time", mmr::moe::scheme());
      for (const char* tokens : {"route", "route_grad", "dispatch", "collect", "combine", "combine_grad"})
        request.fixed.split(tokens, "batch", "data");
      for (const char* of_experts : {"gelu", "gelu_grad"}) request.fixed.split(of_experts, "experts", "data");
      mmr::planner planner(g, m);
      const auto p = planner.make(request);

      // What each operator's operands go through.
      std::map<std::string, int> exchanges;
      const mmr::program run(planner.where(), p.strategies, 0);
      for (const auto& x : run.instructions)
        for (const auto& t : x.operands)
          for (const auto& step : t.path->steps)
            if (step.kind == mmr::collective::all_to_all) ++exchanges[std::string(g.op(x.op).rules->name())];
      // Forward: into the experts' first product and out to `combine`; backward: the same the other way round.
      CHECK(exchanges["contract"] >= 2 * c.layers);
      CHECK(exchanges["combine"] + exchanges["combine_grad"] >= c.layers);

      const auto got = train(g, m, p, made_up(c.vocab), 4);
      CHECK(worst_difference(got.losses, want.losses) <= 1e-10);
      for (std::size_t r = 0; r < got.arenas.size(); ++r) CHECK(got.arenas[r] == p.per_rank[r].arena);
    }
  }
}
