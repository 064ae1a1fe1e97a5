// Llama at a tiny size: the losses of one rank under every kind of plan, and the tensors of its checkpoint.
#include <mmr/model/llama.hpp>

#include "refusal.hpp"
#include "runs.hpp"

namespace {

using namespace mmr_test;
// Nothing that the meshes divide but the groups: key-value heads, batch, sequence and words are 3, 3, 7 and 29.
const mmr::llama::config odd{.heads = 6, .kv_heads = 3, .embed = 24, .hidden = 20, .seq = 7, .batch = 3, .vocab = 29};

}  // namespace

TEST_CASE("Llama trains on ranks as on one") {
  const auto g = mmr::llama::training_graph<double>(odd, optimizer);
  same_as_one_rank(g, mmr::llama::scheme(), made_up(29), {"data=2,model=2", "data=3"}, {"memory", "megatron-sp"});
}

TEST_CASE("with sequence parallelism each normed input is gathered once a pass, for queries, keys and values alike") {
  const auto g = mmr::llama::training_graph<double>(odd, optimizer);
  mmr::planner planner(g, mmr::mesh::parse("model=2"));
  const auto p = planner.make(asked("megatron-sp", mmr::llama::scheme()));
  const mmr::program run(planner.where(), p.strategies, 0);
  int forward = 0, weights = 0;
  for (const auto& x : run.instructions)
    for (std::size_t i = 0; i < x.operands.size(); ++i) {
      const auto& op = g.op(x.op);
      if (!x.operands[i].path || op.rules->name() != "contract") continue;
      const auto& read = g.op(g.tensor_of(op.in[i]).producer);
      if (!read.rules || read.rules->name() != "rms_norm") continue;
      for (const auto& step : x.operands[i].path->steps)
        if (step.kind == mmr::collective::all_gather) ++(g.tensor_of(op.out[0]).forward ? forward : weights);
    }
  // Two norms a layer, and the last one.
  CHECK(forward == 2 * odd.layers + 1);
  CHECK(weights == 2 * odd.layers + 1);
}

TEST_CASE("Llama that makes its activations again trains as one that keeps them") {
  same_made_again(odd, mmr::llama::scheme(), made_up(29), "data=2,model=2", "megatron-sp");
}

TEST_CASE("Llama with one key-value head, a tied embedding, microbatches and clipping trains on ranks as on one") {
  mmr::llama::config c{
      .kv_heads = 1, .embed = 24, .hidden = 20, .seq = 8, .vocab = 30, .tied = true, .microbatches = 2};
  const auto g = mmr::llama::training_graph<double>(c, mmr::adamw{.clip_norm = 0.5});
  same_as_one_rank(g, mmr::llama::scheme(), made_up(30), {"data=2,model=2"}, {"memory", "zero2", "megatron"});
}

TEST_CASE("the losses are those of Hugging Face's Llama from the same weights") {
  // FlaxLlamaForCausalLM of transformers 4.44 in double precision, its float32 tables and norms made double too.
  const std::vector<double> reference{4.207320550432465, 3.8252129047153174, 3.2377087652156047, 2.7740958025788807};
  const auto got = losses_by_formula(mmr::llama::training_graph<double>(odd, mmr::sgd{}), odd.vocab, false);
  for (std::size_t i = 0; i < reference.size(); ++i) CHECK(std::abs(got[i] - reference[i]) < 1e-9);
}

TEST_CASE("parameters of Llama are stored as Hugging Face stores them") {
  const auto g = mmr::llama::training_graph<float>(odd, optimizer);
  using shape = std::vector<std::int64_t>;
  CHECK(stored_shape(g, "model.embed_tokens.weight") == shape{29, 24});
  CHECK(stored_shape(g, "lm_head.weight") == shape{29, 24});
  CHECK(stored_shape(g, "model.norm.weight") == shape{24});
  const std::string layer = "model.layers.1.";
  CHECK(stored_shape(g, layer + "input_layernorm.weight") == shape{24});
  CHECK(stored_shape(g, layer + "post_attention_layernorm.weight") == shape{24});
  CHECK(stored_shape(g, layer + "self_attn.q_proj.weight") == shape{24, 24});
  CHECK(stored_shape(g, layer + "self_attn.k_proj.weight") == shape{12, 24});
  CHECK(stored_shape(g, layer + "self_attn.v_proj.weight") == shape{12, 24});
  CHECK(stored_shape(g, layer + "self_attn.o_proj.weight") == shape{24, 24});
  CHECK(stored_shape(g, layer + "mlp.gate_proj.weight") == shape{20, 24});
  CHECK(stored_shape(g, layer + "mlp.up_proj.weight") == shape{20, 24});
  CHECK(stored_shape(g, layer + "mlp.down_proj.weight") == shape{24, 20});
  auto tied = odd;
  tied.tied = true;
  CHECK(stored_shape(mmr::llama::training_graph<float>(tied, optimizer), "lm_head.weight").empty());
}

TEST_CASE("published Llamas have the published number of parameters") {
  const auto count = [](const mmr::llama::config& c) {
    return parameters(mmr::llama::training_graph<mmr::bf16>(c, optimizer));
  };
  CHECK(
      count({.layers = 32, .heads = 32, .kv_heads = 32, .embed = 4096, .hidden = 11008, .seq = 4096, .vocab = 32000}) ==
      6'738'415'616);  // Llama 2 7B
  CHECK(
      count({.layers = 80, .heads = 64, .kv_heads = 8, .embed = 8192, .hidden = 28672, .seq = 4096, .vocab = 32000}) ==
      68'976'648'192);  // Llama 2 70B
  CHECK(
      count({.layers = 32, .heads = 32, .kv_heads = 8, .embed = 4096, .hidden = 14336, .seq = 8192, .vocab = 128256}) ==
      8'030'261'248);  // Llama 3 8B
}

TEST_CASE("a Llama that cannot be is refused in one sentence") {
  const auto refused = [](auto change) {
    mmr::llama::config c;
    change(c);
    return refusal([&] { c.check(); });
  };
  CHECK_NOTHROW(mmr::llama::config{}.check());
  CHECK_THAT(refused([](auto& c) { c.kv_heads = 3; }), contains("4 heads") && contains("3 key-value heads"));
  CHECK_THAT(refused([](auto& c) { c.embed = 36; }), contains("9 features"));
  CHECK_THAT(refused([](auto& c) { c.embed = 30; }), contains("hidden size 30"));
  CHECK_THAT(refused([](auto& c) { c.kv_heads = 0; }), contains("key-value heads is 0"));
  CHECK_THAT(refused([](auto& c) { c.layers = 100000; }), contains("at most 1000"));
}
