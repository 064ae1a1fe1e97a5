// Attention with stored scores: the losses of the memory-efficient one.
#include <mmr/model/gpt.hpp>

#include "runs.hpp"

using namespace mmr_test;

namespace {

mmr::gpt::config small() {
  return {.layers = 2, .heads = 3, .embed = 12, .seq = 9, .batch = 4, .vocab = 31};
}

}  // namespace

TEST_CASE("without dropout of attention, stored scores give the losses of the memory-efficient attention") {
  auto c = small();
  const auto one = mmr::mesh::parse("one=1");
  const auto run = [&] {
    const auto g = mmr::gpt::training_graph<double>(c, optimizer);
    return train(g, one, mmr::planner(g, one).make(asked("single", mmr::gpt::scheme())), made_up(c.vocab), 6).losses;
  };
  const auto want = run();
  c.store_scores = true;
  CHECK(worst_difference(run(), want) <= 1e-12);
  c.store_masks = true;  // the masks are those that would have been made again
  CHECK(worst_difference(run(), want) <= 1e-12);
  c.attention_dropout = 0.3;
  const auto dropped = run();
  CHECK(worst_difference(dropped, want) > 1e-6);
  c.store_masks = false;
  CHECK(worst_difference(run(), dropped) <= 1e-12);
}

TEST_CASE("gpt with stored scores and masks has one rank's losses under every plan") {
  auto c = small();
  c.store_scores = c.store_masks = true;
  c.attention_dropout = 0.1;
  const auto g = mmr::gpt::training_graph<double>(c, optimizer);
  same_as_one_rank(g, mmr::gpt::scheme(), made_up(c.vocab), {"data=2,model=2"}, {"memory", "time", "megatron", "megatron-sp"});
  same_as_one_rank(g, mmr::gpt::scheme(), made_up(c.vocab), {"data=3"}, {"memory", "zero3"});
  auto lone = small();
  lone.attention_dropout = 0.1;
  CHECK_THROWS_WITH(lone.check(), contains("set store_scores"));
}
