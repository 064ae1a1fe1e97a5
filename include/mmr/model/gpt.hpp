// GPT-2 (Radford et al., 2019), from the public API alone: pre-norm blocks, tanh GeLU, tied embedding. Parameter names
// and layouts are those of Hugging Face's GPT2LMHeadModel.
#pragma once

#include <mmr/declare.hpp>
#include <mmr/model/layers.hpp>
#include <mmr/model/stored_attention.hpp>

#include <cmath>
#include <cstdint>
#include <string>

namespace mmr::gpt {

struct Batch : axis<"batch"> {};
struct Seq : axis<"seq"> {};
struct Vocab : axis<"vocab"> {};
struct Embed : axis<"embed"> {};
struct Heads : axis<"heads"> {};
struct Features : axis<"features", dynamic, splitting::whole> {};  // of one head
struct Hidden : axis<"hidden"> {};                                 // of the MLP
struct Keys : axis<"keys", dynamic, splitting::whole> {};          // positions that stored scores are of

struct config {
  std::int64_t layers = 4, heads = 4, embed = 128, seq = 64, batch = 8, vocab = 256;
  double dropout = 0.1;
  int microbatches = 1;
  bool store_scores = false;     ///< attention with stored scores instead of the memory-efficient one
  bool store_masks = false;      ///< dropout keeps its masks, a byte an element, instead of making them again
  double attention_dropout = 0;  ///< of the probabilities; needs stored scores
  bool recompute = false;        ///< plans may make activations of a layer again for backward instead of keeping them

  void check() const {
    constexpr auto name = "gpt";
    model::check_extent(name, "the number of layers", layers, 1000);
    model::check_extent(name, "the number of heads", heads);
    model::check_extent(name, "the hidden size", embed);
    model::check_extent(name, "the sequence length", seq);
    model::check_extent(name, "the batch", batch);
    model::check_extent(name, "the vocabulary", vocab);
    model::check_extent(name, "the number of microbatches", microbatches);
    model::check_heads(name, embed, heads);
    model::check_dropout(name, dropout);
    if (!(attention_dropout >= 0 && attention_dropout < 1))
      fail("gpt: the dropout of attention is ", attention_dropout, "; it must be in [0, 1)");
    if (attention_dropout > 0 && !store_scores)
      fail("gpt: only attention with stored scores has dropout; set store_scores, or the dropout of attention to 0");
  }
};

/// How the fixed schemes see the axes of this model.
inline scheme_axes scheme() { return {.batch = "batch", .sequence = {"seq"}, .tensor = {"heads", "hidden", "vocab"}}; }

template <class T>
using residual = tensor<T, Batch, Seq, Embed>;

/// Linear layer whose output is split into heads: one third of the fused c_attn of the checkpoint.
template <class T>
struct projection {
  tensor<T, Embed, Heads, Features> weight;
  tensor<T, Heads, Features> bias;
  projection(declaration& m, const std::string& name, int third)
      : weight(m.parameter<T, Embed, Heads, Features>("attn." + name + ".weight", init::normal(0.02),
                                                      {.name = "attn.c_attn.weight", .rows = 1, .part = third, .parts = 3})),
        bias(m.parameter<T, Heads, Features>("attn." + name + ".bias", init::zeros(),
                                             {.name = "attn.c_attn.bias", .rows = 0, .part = third, .parts = 3})) {}
};

/// Residual branches start smaller with depth, as in GPT-2.
inline initial branch_start(const config& c) { return init::normal(0.02 / std::sqrt(2.0 * static_cast<double>(c.layers))); }

/// Causal attention that stores its scores. Keys' positions get a name of their own there.
template <class T>
tensor<T, Batch, Seq, Heads, Features> scored_attention(tensor<T, Batch, Seq, Heads, Features> q,
                                                        tensor<T, Batch, Seq, Heads, Features> k,
                                                        tensor<T, Batch, Seq, Heads, Features> v, const config& c) {
  const auto keys = rename<Seq, Keys>(k), values = rename<Seq, Keys>(v);
  return stored_attention(q, keys, values, {.dropout = c.attention_dropout, .store_masks = c.store_masks});
}

/// First half of a block: x + attention(ln(x)).
template <class T>
residual<T> attend(declaration& m, residual<T> x, const config& c) {
  auto g1 = m.parameter<T, Embed>("ln_1.weight", init::ones());
  auto b1 = m.parameter<T, Embed>("ln_1.bias", init::zeros());
  const projection<T> pq(m, "q", 0), pk(m, "k", 1), pv(m, "v", 2);
  auto wo = m.parameter<T, Heads, Features, Embed>("attn.c_proj.weight", branch_start(c), {.name = "attn.c_proj.weight", .rows = 2});
  auto bo = m.parameter<T, Embed>("attn.c_proj.bias", init::zeros());

  auto [q, k, v] = contract<Embed>(layer_norm<Embed>(x, g1, b1), pq.weight, pk.weight, pv.weight);
  const auto values = bias(v, pv.bias), keys = bias(k, pk.bias), queries = bias(q, pq.bias);
  const auto o = c.store_scores ? scored_attention<T>(queries, keys, values, c) : causal_attention<Seq>(queries, keys, values);
  return bias_dropout_add_of(linear(o, wo), bo, x, c.dropout, c.store_masks);
}

/// One transformer block: x + attention(ln(x)), then x + mlp(ln(x)).
template <class T>
residual<T> transformer(declaration& m, residual<T> x, const config& c) {
  x = attend<T>(m, x, c);

  auto g2 = m.parameter<T, Embed>("ln_2.weight", init::ones());
  auto b2 = m.parameter<T, Embed>("ln_2.bias", init::zeros());
  auto w1 = m.parameter<T, Embed, Hidden>("mlp.c_fc.weight", init::normal(0.02));
  auto a1 = m.parameter<T, Hidden>("mlp.c_fc.bias", init::zeros());
  auto w2 = m.parameter<T, Hidden, Embed>("mlp.c_proj.weight", branch_start(c));
  auto a2 = m.parameter<T, Embed>("mlp.c_proj.bias", init::zeros());

  auto h = bias_gelu(linear(layer_norm<Embed>(x, g2, b2), w1), a1);
  return bias_dropout_add_of(linear(h, w2), a2, x, c.dropout, c.store_masks);
}

/// Embedding, `layers` blocks x = block(x), and the head, on the input "tokens" (int32, Batch x Seq). The configuration is
/// checked already; the block gives its own axes their extents.
template <class T, class Block>
tensor<T, Batch, Seq, Vocab> logits_through(declaration& m, const config& c, Block block) {
  m.set(size<Batch>(c.batch));
  m.set(size<Seq>(c.seq));
  m.set(size<Vocab>(c.vocab));
  m.set(size<Embed>(c.embed));
  m.set(size<Heads>(c.heads));
  m.set(size<Features>(c.embed / c.heads));
  if (c.store_scores) m.set(size<Keys>(c.seq));
  m.set_microbatches(c.microbatches);
  if (c.recompute) m.allow_recomputation();

  auto tokens = m.input<std::int32_t, Batch, Seq>("tokens");
  auto wte = m.parameter<T, Vocab, Embed>("wte.weight", init::normal(0.02));
  auto wpe = m.parameter<T, Seq, Embed>("wpe.weight", init::normal(0.02), {.name = "wpe.weight", .may_be_longer = true});

  auto x = dropout_of(bias(embedding(tokens, wte), wpe), c.dropout, c.store_masks);
  for (int l = 0; l < c.layers; ++l) {
    const declaration::block in_layer(m, "h", l);
    x = block(x);
  }
  auto g = m.parameter<T, Embed>("ln_f.weight", init::ones());
  auto b = m.parameter<T, Embed>("ln_f.bias", init::zeros());
  return linear(layer_norm<Embed>(x, g, b), wte);
}

/// Declares the model on the input "tokens" (int32, Batch x Seq) and returns the logits of every next word.
template <class T>
tensor<T, Batch, Seq, Vocab> logits(declaration& m, const config& c) {
  c.check();
  m.set(size<Hidden>(4 * c.embed));
  return logits_through<T>(m, c, [&](residual<T> x) { return transformer<T>(m, x, c); });
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

}  // namespace mmr::gpt
