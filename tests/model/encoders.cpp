// BERT and the Vision Transformer at a tiny size: the losses of one rank under every kind of plan, what their losses
// count, and the tensors of their checkpoints.
#include <mmr/model/bert.hpp>
#include <mmr/model/vit.hpp>

#include "refusal.hpp"
#include "runs.hpp"

namespace {

using namespace mmr_test;
using shape = std::vector<std::int64_t>;
// Nothing that the meshes divide: heads, batch, sequence or patches, and words are 3, 3, 7 and 29.
const mmr::bert::config odd_bert{.heads = 3, .embed = 12, .hidden = 20, .seq = 7, .batch = 3, .vocab = 29};
const mmr::vit::config odd_vit{
    .heads = 3, .embed = 12, .hidden = 20, .patches = 7, .pixels = 5, .classes = 5, .batch = 3, .dropout = 0.1};

}  // namespace

TEST_CASE("BERT trains on ranks as on one, with a mean over the masked words alone") {
  const auto g = mmr::bert::training_graph<double>(odd_bert, optimizer);
  same_as_one_rank(g, mmr::bert::scheme(), made_up(29, true), {"data=2,model=2", "data=3"}, {"memory", "megatron-sp"});
  auto accumulated = odd_bert;
  accumulated.microbatches = 2;
  same_as_one_rank(mmr::bert::training_graph<double>(accumulated, optimizer), mmr::bert::scheme(), made_up(29, true),
                   {"data=2,model=2"}, {"memory", "zero2"});
}

TEST_CASE("the losses are those of Hugging Face's BERT from the same weights") {
  // FlaxBertForMaskedLM of transformers 4.44 in double precision, with hidden_act gelu_new.
  const std::vector<double> reference{3.5810174792967673, 3.1222686731158644, 2.9297446157612015, 2.6885236789557823};
  auto c = odd_bert;
  c.dropout = 0;
  const auto got = losses_by_formula(mmr::bert::training_graph<double>(c, mmr::sgd{}), c.vocab, true);
  for (std::size_t i = 0; i < reference.size(); ++i) CHECK(std::abs(got[i] - reference[i]) < 1e-9);
}

TEST_CASE("a batch without a single masked word has no loss, and teaches BERT nothing") {
  auto c = odd_bert;
  c.dropout = 0;
  const auto g = mmr::bert::training_graph<double>(c, mmr::sgd{});
  const auto one = mmr::mesh::parse("one=1");
  mmr::planner planner(g, one);
  const auto masked = made_up(29, true);
  const auto unmasked_first = [masked](const mmr::tensor_info& input, std::span<const mmr::interval> box,
                                       const mmr::step_info& now, void* to) {
    masked(input, box, {now.seed, 0, 0, 1, 0}, to);
    if (now.step == 1 && input.name == "targets") std::fill_n(static_cast<std::int32_t*>(to), 3 * 7, -1);
  };
  const auto got = train(g, one, planner.make(asked("single", mmr::bert::scheme())), unmasked_first, 3).losses;
  const auto plain = train(
                         g, one, planner.make(asked("single", mmr::bert::scheme())),
                         [masked](const mmr::tensor_info& input, std::span<const mmr::interval> box,
                                  const mmr::step_info& now, void* to) {
                           masked(input, box, {now.seed, 0, 0, 1, 0}, to);
                         },
                         2)
                         .losses;
  CHECK(got[0] == plain[0]);
  CHECK(got[1] == 0);
  CHECK(got[2] == plain[1]);
}

TEST_CASE("the Vision Transformer trains on ranks as on one") {
  const auto g = mmr::vit::training_graph<double>(odd_vit, optimizer);
  same_as_one_rank(g, mmr::vit::scheme(), made_up(5), {"data=2,model=2", "data=3"}, {"memory", "megatron-sp"});
}

TEST_CASE("the losses are those of Hugging Face's Vision Transformer from the same weights") {
  // FlaxViTEncoder of transformers 4.44 in double precision, with hidden_act gelu_new; around it embedding, mean and
  // head as vit.hpp states them.
  const std::vector<double> reference{1.006507910369779, 0.7323916944189313, 0.6617287348306551, 0.6347312520420265};
  auto c = odd_vit;
  c.dropout = 0;
  const auto got = losses_by_formula(mmr::vit::training_graph<double>(c, mmr::sgd{}), c.classes, false);
  for (std::size_t i = 0; i < reference.size(); ++i) CHECK(std::abs(got[i] - reference[i]) < 1e-9);
}

TEST_CASE("encoders that make their activations again train as those that keep them") {
  same_made_again(odd_bert, mmr::bert::scheme(), made_up(29, true), "data=3", "memory");
  same_made_again(odd_vit, mmr::vit::scheme(), made_up(5), "data=2,model=2", "memory");
}

TEST_CASE("parameters of the encoders are stored as Hugging Face stores them") {
  const auto bert = mmr::bert::training_graph<float>(odd_bert, optimizer);
  const std::string layer = "bert.encoder.layer.1.";
  CHECK(stored_shape(bert, "bert.embeddings.word_embeddings.weight") == shape{29, 12});
  CHECK(stored_shape(bert, "bert.embeddings.position_embeddings.weight") == shape{7, 12});
  CHECK(stored_shape(bert, "bert.embeddings.token_type_embeddings.weight") == shape{2, 12});
  CHECK(stored_shape(bert, "bert.embeddings.LayerNorm.bias") == shape{12});
  CHECK(stored_shape(bert, layer + "attention.self.query.weight") == shape{12, 12});
  CHECK(stored_shape(bert, layer + "attention.self.query.bias") == shape{12});
  CHECK(stored_shape(bert, layer + "attention.output.dense.weight") == shape{12, 12});
  CHECK(stored_shape(bert, layer + "attention.output.LayerNorm.weight") == shape{12});
  CHECK(stored_shape(bert, layer + "intermediate.dense.weight") == shape{20, 12});
  CHECK(stored_shape(bert, layer + "output.dense.weight") == shape{12, 20});
  CHECK(stored_shape(bert, "cls.predictions.transform.dense.weight") == shape{12, 12});
  CHECK(stored_shape(bert, "cls.predictions.transform.LayerNorm.bias") == shape{12});
  CHECK(stored_shape(bert, "cls.predictions.bias") == shape{29});

  const auto vit = mmr::vit::training_graph<float>(odd_vit, optimizer);
  CHECK(stored_shape(vit, "vit.embeddings.patch_embeddings.projection.weight") == shape{12, 5});
  CHECK(stored_shape(vit, "vit.encoder.layer.1.attention.attention.value.weight") == shape{12, 12});
  CHECK(stored_shape(vit, "vit.encoder.layer.0.layernorm_after.weight") == shape{12});
  CHECK(stored_shape(vit, "classifier.weight") == shape{5, 12});
}

TEST_CASE("published encoders have the published number of parameters") {
  const auto bert = [](const mmr::bert::config& c) {
    return parameters(mmr::bert::training_graph<mmr::bf16>(c, optimizer));
  };
  CHECK(bert({.layers = 12, .heads = 12, .embed = 768, .hidden = 3072, .seq = 512, .vocab = 30522}) == 109'514'298);
  CHECK(bert({.layers = 24, .heads = 16, .embed = 1024, .hidden = 4096, .seq = 512, .vocab = 30522}) == 335'174'458);
  // ViT-B/16 without its class token and the position of that.
  const mmr::vit::config base{
      .layers = 12, .heads = 12, .embed = 768, .hidden = 3072, .patches = 196, .pixels = 768, .classes = 1000};
  CHECK(parameters(mmr::vit::training_graph<mmr::bf16>(base, optimizer)) == 86'567'656 - 2 * 768);
}

TEST_CASE("encoders that cannot be are refused in one sentence") {
  CHECK_NOTHROW(mmr::bert::config{}.check());
  CHECK_NOTHROW(mmr::vit::config{}.check());
  CHECK_THAT(refusal([] { mmr::bert::config{.heads = 5}.check(); }), contains("bert") && contains("5 heads"));
  CHECK_THAT(refusal([] { mmr::bert::config{.dropout = 1}.check(); }), contains("dropout is 1"));
  CHECK_THAT(refusal([] { mmr::bert::config{.segments = 0}.check(); }), contains("segments is 0"));
  CHECK_THAT(refusal([] { mmr::vit::config{.patches = -1}.check(); }), contains("vit") && contains("patches is -1"));
  CHECK_THAT(refusal([] { mmr::vit::config{.microbatches = 0}.check(); }), contains("microbatches is 0"));
}
