// BERT (Devlin et al., arXiv 1810.04805) with its masked-language-model loss, from the public API alone: post-norm
// blocks that see both directions, learned positions, segments, tied embedding. Parameter names and layouts are those
// of Hugging Face's BertForMaskedLM. GeLU is the tanh form here, where Hugging Face's default is the exact one; every
// position of the sequence is read (no padding mask), and attention has no dropout.
#pragma once

#include <mmr/model/layers.hpp>
#include <mmr/op/rename.hpp>

namespace mmr::bert {

struct Batch : axis<"batch"> {};
struct Seq : axis<"seq"> {};
struct Vocab : axis<"vocab"> {};
struct Segments : axis<"segments"> {};
struct Embed : axis<"embed"> {};
struct Heads : axis<"heads"> {};
struct Features : axis<"features", dynamic, splitting::whole> {};  // of one head
struct Hidden : axis<"hidden"> {};                                 // of the MLP
struct Transformed : axis<"transformed"> {};                       // of the layer before the output, as many as Embed

struct config {
  std::int64_t layers = 2, heads = 4, embed = 32, hidden = 128, seq = 16, batch = 4, vocab = 256, segments = 2;
  double dropout = 0.1;
  double epsilon = 1e-12;  ///< of layer norm
  int microbatches = 1;
  bool recompute = false;  ///< plans may make activations of a layer again for backward instead of keeping them

  void check() const {
    constexpr auto name = "bert";
    model::check_extent(name, "the number of layers", layers, 1000);
    model::check_extent(name, "the number of heads", heads);
    model::check_extent(name, "the hidden size", embed);
    model::check_extent(name, "the hidden size of the MLP", hidden);
    model::check_extent(name, "the sequence length", seq);
    model::check_extent(name, "the batch", batch);
    model::check_extent(name, "the vocabulary", vocab);
    model::check_extent(name, "the number of segments", segments);
    model::check_extent(name, "the number of microbatches", microbatches);
    model::check_heads(name, embed, heads);
    model::check_dropout(name, dropout);
    if (!(epsilon >= 0)) fail("bert: the epsilon of the norms is ", epsilon, "; it must not be negative");
  }
};

/// How the fixed schemes see the axes of this model.
inline scheme_axes scheme() {
  return {.batch = "batch", .sequence = {"seq"}, .tensor = {"heads", "hidden", "vocab"}};
}

template <class T>
using residual = tensor<T, Batch, Seq, Embed>;

/// One transformer block: x = norm(x + attention(x)), then x = norm(x + mlp(x)).
template <class T>
residual<T> transformer(declaration& m, residual<T> x, const config& c) {
  using head = axes<Heads, Features>;
  const model::dense<T, head, axes<Embed>> query(m, "attention.self.query"), key(m, "attention.self.key"),
      value(m, "attention.self.value");
  const model::dense<T, axes<Embed>, head> out(m, "attention.output.dense");
  const auto [q, k, v] = contract<Embed>(x, query.w, key.w, value.w);
  const auto o = attention<Seq>(bias(q, query.b), bias(k, key.b), bias(v, value.b));
  x = model::normalised<Embed>(m, "attention.output.LayerNorm", bias_dropout_add(linear(o, out.w), out.b, x, c.dropout),
                               c.epsilon);

  const model::dense<T, axes<Hidden>, axes<Embed>> up(m, "intermediate.dense");
  const model::dense<T, axes<Embed>, axes<Hidden>> down(m, "output.dense");
  const auto h = bias_gelu(linear(x, up.w), up.b);
  return model::normalised<Embed>(m, "output.LayerNorm", bias_dropout_add(linear(h, down.w), down.b, x, c.dropout),
                                  c.epsilon);
}

/// Declares the model on the inputs "tokens" and "segments" (int32, Batch x Seq) and returns the logits of every word.
template <class T>
tensor<T, Batch, Seq, Vocab> logits(declaration& m, const config& c) {
  c.check();
  m.set(size<Batch>(c.batch));
  m.set(size<Seq>(c.seq));
  m.set(size<Vocab>(c.vocab));
  m.set(size<Segments>(c.segments));
  m.set(size<Embed>(c.embed));
  m.set(size<Transformed>(c.embed));
  m.set(size<Heads>(c.heads));
  m.set(size<Features>(c.embed / c.heads));
  m.set(size<Hidden>(c.hidden));
  m.set_microbatches(c.microbatches);
  if (c.recompute) m.allow_recomputation();

  const std::string in = "bert.embeddings.", out = "cls.predictions.";
  const auto tokens = m.input<std::int32_t, Batch, Seq>("tokens");
  const auto segments = m.input<std::int32_t, Batch, Seq>("segments");
  const auto words = m.parameter<T, Vocab, Embed>(in + "word_embeddings.weight", init::normal(0.02));
  const auto places = m.parameter<T, Seq, Embed>(in + "position_embeddings.weight", init::normal(0.02),
                                                 {.name = in + "position_embeddings.weight", .may_be_longer = true});
  const auto kinds = m.parameter<T, Segments, Embed>(in + "token_type_embeddings.weight", init::normal(0.02));
  auto x = bias(embedding(tokens, words) + embedding(segments, kinds), places);
  x = dropout(model::normalised<Embed>(m, in + "LayerNorm", x, c.epsilon), c.dropout);
  for (int l = 0; l < c.layers; ++l) {
    const declaration::block in_layer(m, "bert.encoder.layer", l);
    x = transformer<T>(m, x, c);
  }
  const model::dense<T, axes<Transformed>, axes<Embed>> transform(m, out + "transform.dense");
  const auto h = rename<Transformed, Embed>(bias_gelu(linear(x, transform.w), transform.b));
  const auto offset = m.parameter<T, Vocab>(out + "bias", init::zeros());
  return bias(linear(model::normalised<Embed>(m, out + "transform.LayerNorm", h, c.epsilon), words), offset);
}

/// Declares the model and the mean cross-entropy of its logits with the input "targets" (int32, Batch x Seq) over the
/// positions where that is not negative: those that were masked. The mean is that of each microbatch.
template <class T>
scalar<T> declare(declaration& m, const config& c) {
  const auto words = logits<T>(m, c);
  return masked_cross_entropy(words, m.input<std::int32_t, Batch, Seq>("targets"));
}

/// The graph of a training step.
template <class T, class Optimizer>
graph training_graph(const config& c, const Optimizer& optimizer) {
  declaration m;
  return m.training_step(declare<T>(m, c), optimizer);
}

}  // namespace mmr::bert
