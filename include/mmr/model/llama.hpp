// Llama 2 and 3 (Touvron et al., arXiv 2307.09288; arXiv 2407.21783), from the public API alone: pre-norm blocks with
// RMS norm, rotary positions, grouped-query attention and SwiGLU, no biases. Parameter names and layouts are those of
// Hugging Face's LlamaForCausalLM: weights have their axes in its order, [out, in], so that nothing is transposed. What
// it has and this lacks: scaled rotary frequencies (Llama 3.1), and heads whose features are not hidden size / heads.
#pragma once

#include <mmr/model/layers.hpp>
#include <tuple>

namespace mmr::llama {

struct Batch : axis<"batch"> {};
struct Seq : axis<"seq"> {};
struct Vocab : axis<"vocab"> {};
struct Embed : axis<"embed"> {};
struct KvHeads : axis<"kv_heads"> {};
struct Group : axis<"group"> {};                                   // query heads that share keys and values
struct Features : axis<"features", dynamic, splitting::whole> {};  // of one head
struct Hidden : axis<"hidden"> {};                                 // of the MLP

struct config {
  std::int64_t layers = 2, heads = 4, kv_heads = 2, embed = 32, hidden = 88, seq = 16, batch = 4, vocab = 256;
  double theta = 10000;   ///< base of the rotary frequencies; 500000 in Llama 3
  double epsilon = 1e-5;  ///< of RMS norm
  bool tied = false;      ///< the output layer is the table of embeddings
  int microbatches = 1;
  bool recompute = false;  ///< plans may make activations of a layer again for backward instead of keeping them

  void check() const {
    constexpr auto name = "llama";
    model::check_extent(name, "the number of layers", layers, 1000);
    model::check_extent(name, "the number of heads", heads);
    model::check_extent(name, "the number of key-value heads", kv_heads);
    model::check_extent(name, "the hidden size", embed);
    model::check_extent(name, "the hidden size of the MLP", hidden);
    model::check_extent(name, "the sequence length", seq);
    model::check_extent(name, "the batch", batch);
    model::check_extent(name, "the vocabulary", vocab);
    model::check_extent(name, "the number of microbatches", microbatches);
    model::check_heads(name, embed, heads);
    if (heads % kv_heads != 0)
      fail("llama: the ", heads, " heads are not a multiple of the ", kv_heads, " key-value heads; change one of them");
    if (embed / heads % 2 != 0)
      fail("llama: a head has ", embed / heads,
           " features, which rotary positions turn in pairs; make their number even");
    if (!(epsilon >= 0)) fail("llama: the epsilon of the norms is ", epsilon, "; it must not be negative");
  }
};

/// How the fixed schemes see the axes of this model. Where there is but one key-value head, they split its queries.
inline scheme_axes scheme() {
  return {.batch = "batch", .sequence = {"seq"}, .tensor = {"kv_heads", "hidden", "vocab", "group"}};
}

template <class T>
using residual = tensor<T, Batch, Seq, Embed>;

/// First half of a block: x + attention(norm(x)). Query head h of the checkpoint is (h / group, h % group).
template <class T>
residual<T> attend(declaration& m, residual<T> x, const config& c) {
  const axes<Embed> embed;
  const auto gain = m.parameter<T, Embed>("input_layernorm.weight", init::ones());
  const auto wq = model::weight<T>(m, "self_attn.q_proj", axes<KvHeads, Group, Features>{}, embed);
  const auto wk = model::weight<T>(m, "self_attn.k_proj", axes<KvHeads, Features>{}, embed);
  const auto wv = model::weight<T>(m, "self_attn.v_proj", axes<KvHeads, Features>{}, embed);
  const auto wo = model::weight<T>(m, "self_attn.o_proj", embed, axes<KvHeads, Group, Features>{});

  const auto h = rms_norm<Embed>(x, gain, c.epsilon);
  // One contraction gathers what it reads once. But where the queries of a single key-value head are split, its keys
  // and values are quicker found apart, on parts of the sequence.
  const auto [q, k, v] = c.kv_heads > 1
                             ? contract<Embed>(h, wq, wk, wv)
                             : std::tuple_cat(std::tuple{contract<Embed>(h, wq)}, contract<Embed>(h, wk, wv));
  return x + linear(causal_attention<Seq>(rotary<Seq>(q, c.theta), rotary<Seq>(k, c.theta), v), wo);
}

/// One transformer block: x + attention(norm(x)), then x + mlp(norm(x)).
template <class T>
residual<T> transformer(declaration& m, residual<T> x, const config& c) {
  x = attend<T>(m, x, c);
  const auto gain = m.parameter<T, Embed>("post_attention_layernorm.weight", init::ones());
  const auto wg = model::weight<T>(m, "mlp.gate_proj", axes<Hidden>{}, axes<Embed>{});
  const auto wu = model::weight<T>(m, "mlp.up_proj", axes<Hidden>{}, axes<Embed>{});
  const auto wd = model::weight<T>(m, "mlp.down_proj", axes<Embed>{}, axes<Hidden>{});
  const auto [gate, up] = contract<Embed>(rms_norm<Embed>(x, gain, c.epsilon), wg, wu);
  return x + linear(swiglu(gate, up), wd);
}

/// Declares the model on the input "tokens" (int32, Batch x Seq) and returns the logits of every next word.
template <class T>
tensor<T, Batch, Seq, Vocab> logits(declaration& m, const config& c) {
  c.check();
  m.set(size<Batch>(c.batch));
  m.set(size<Seq>(c.seq));
  m.set(size<Vocab>(c.vocab));
  m.set(size<Embed>(c.embed));
  m.set(size<KvHeads>(c.kv_heads));
  m.set(size<Group>(c.heads / c.kv_heads));
  m.set(size<Features>(c.embed / c.heads));
  m.set(size<Hidden>(c.hidden));
  m.set_microbatches(c.microbatches);
  if (c.recompute) m.allow_recomputation();

  const auto tokens = m.input<std::int32_t, Batch, Seq>("tokens");
  const auto table = m.parameter<T, Vocab, Embed>("model.embed_tokens.weight", init::normal(0.02));
  auto x = embedding(tokens, table);
  for (int l = 0; l < c.layers; ++l) {
    const declaration::block in_layer(m, "model.layers", l);
    x = transformer<T>(m, x, c);
  }
  const auto gain = m.parameter<T, Embed>("model.norm.weight", init::ones());
  const auto head = c.tied ? table : m.parameter<T, Vocab, Embed>("lm_head.weight", init::normal(0.02));
  return linear(rms_norm<Embed>(x, gain, c.epsilon), head);
}

/// Declares the model and the mean cross-entropy of its logits with the input "targets" (int32, Batch x Seq).
template <class T>
scalar<T> declare(declaration& m, const config& c) {
  const auto words = logits<T>(m, c);
  return cross_entropy(words, m.input<std::int32_t, Batch, Seq>("targets"));
}

/// The graph of a training step.
template <class T, class Optimizer>
graph training_graph(const config& c, const Optimizer& optimizer) {
  declaration m;
  return m.training_step(declare<T>(m, c), optimizer);
}

}  // namespace mmr::llama
