// T5, whose graph is no chain, under solver plans.
#include <mmr/model/t5.hpp>

#include "runs.hpp"

using namespace mmr_test;

namespace {

const mmr::t5::config encoder_decoder{.layers = 2,
                                      .decoder_layers = 2,
                                      .heads = 3,
                                      .embed = 12,
                                      .hidden = 14,
                                      .source = 11,
                                      .seq = 7,
                                      .batch = 4,
                                      .vocab = 31,
                                      .buckets = 6,
                                      .max_distance = 8};

}  // namespace

TEST_CASE("t5 has one rank's losses under every plan") {
  const auto g = mmr::t5::training_graph<double>(encoder_decoder, optimizer);
  CHECK(g.ordered());
  same_as_one_rank(g, mmr::t5::scheme(), made_up(encoder_decoder.vocab), {"data=2,model=2"}, {"memory", "time", "megatron", "megatron-sp"});
  same_as_one_rank(g, mmr::t5::scheme(), made_up(encoder_decoder.vocab), {"data=3"}, {"memory", "zero3"});
}

TEST_CASE("t5 that makes its activations again trains as one that keeps them") {
  same_made_again(encoder_decoder, mmr::t5::scheme(), made_up(encoder_decoder.vocab), "data=2,model=2", "memory");
}

TEST_CASE("the decoder sees all of the source, and of what is said only what came before") {
  // The loss of the first word depends on the last source word, but not on the second word said.
  auto c = encoder_decoder;
  c.dropout = 0;
  mmr::declaration d;
  const auto forward = d.inference(mmr::t5::logits<double>(d, c));
  const auto m = mmr::mesh::parse("one=1");
  const auto p = mmr::planner(forward, m).make(asked("single", mmr::t5::scheme()));
  const auto first_logits = [&](const std::string& changed, std::int64_t place) {
    std::vector<double> out;
    mmr::run_ranks(1, [&](mmr::thread_communicator& world) {
      mmr::trainer<mmr::thread_communicator> t(forward, m, p, world, 17);
      t.run().step({}, [&](const mmr::tensor_info& input, std::span<const mmr::interval> box, const mmr::step_info& now,
                           void* to) {
        made_up(c.vocab)(input, box, now, to);
        if (input.name == changed) static_cast<std::int32_t*>(to)[place] = 30;
      });
      const auto* all = static_cast<const double*>(t.run().data(forward.loss));
      out.assign(all, all + c.vocab);
    });
    return out;
  };
  const auto as_is = first_logits("", 0);
  CHECK(first_logits("tokens", 1) == as_is);
  CHECK(first_logits("tokens", 0) != as_is);
  CHECK(first_logits("source", c.source - 1) != as_is);
}

TEST_CASE("t5 says what is wrong with its settings") {
  const auto says = [](auto change) {
    auto c = encoder_decoder;
    change(c);
    try {
      c.check();
    } catch (const mmr::error& e) {
      return std::string(e.what());
    }
    return std::string("nothing");
  };
  CHECK_THAT(says([](auto& c) { c.decoder_layers = 0; }), contains("decoder layers is 0"));
  CHECK_THAT(says([](auto& c) { c.heads = 5; }), contains("not a multiple of the 5 heads"));
  CHECK_THAT(says([](auto& c) { c.buckets = 7; }), contains("7 buckets"));
  CHECK_THAT(says([](auto& c) { c.max_distance = 3; }), contains("greatest distance is 3"));
}
