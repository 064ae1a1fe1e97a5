// T5 (Raffel et al., arXiv 1910.10683) with the gated MLP of its version 1.1 (Shazeer, arXiv 2002.05202), from the
// public API alone: an encoder and a decoder that attends to it, relative positions, RMS norm without bias, tied
// embedding.
#pragma once

#include <cmath>
#include <cstdint>
#include <mmr/model/layers.hpp>
#include <mmr/model/stored_attention.hpp>
#include <string>

namespace mmr::t5 {

struct Batch : axis<"batch"> {};
struct Source : axis<"source"> {};  // positions of the encoder
struct Seq : axis<"seq"> {};        // positions of the decoder
struct SourceKeys : axis<"source_keys", dynamic, splitting::whole> {};
struct Keys : axis<"keys", dynamic, splitting::whole> {};
struct Vocab : axis<"vocab"> {};
struct Embed : axis<"embed"> {};
struct Heads : axis<"heads"> {};
struct Features : axis<"features", dynamic, splitting::whole> {};  // of one head
struct Hidden : axis<"hidden"> {};                                 // of the MLP
struct Buckets : axis<"buckets"> {};                               // of distances

struct config {
  std::int64_t layers = 4;  ///< of the encoder
  std::int64_t decoder_layers = 4;
  std::int64_t heads = 4, embed = 128, hidden = 256;
  std::int64_t source = 64, seq = 32;  ///< words that the encoder and the decoder read
  std::int64_t batch = 8, vocab = 256;
  std::int64_t buckets = 32, max_distance = 128;  ///< of relative positions
  double dropout = 0.1;
  int microbatches = 1;
  bool recompute = false;  ///< plans may make activations of a layer again for backward instead of keeping them

  void check() const {
    constexpr auto name = "t5";
    model::check_extent(name, "the number of encoder layers", layers, 1000);
    model::check_extent(name, "the number of decoder layers", decoder_layers, 1000);
    model::check_extent(name, "the number of heads", heads);
    model::check_extent(name, "the hidden size", embed);
    model::check_extent(name, "the hidden size of the MLP", hidden);
    model::check_extent(name, "the length of the source", source);
    model::check_extent(name, "the sequence length", seq);
    model::check_extent(name, "the batch", batch);
    model::check_extent(name, "the vocabulary", vocab);
    model::check_extent(name, "the number of buckets", buckets, 1'000'000);
    model::check_extent(name, "the number of microbatches", microbatches);
    model::check_heads(name, embed, heads);
    model::check_dropout(name, dropout);
    distances(true).check();
    distances(false).check();
  }
  distance_buckets distances(bool both_ways) const { return {buckets, max_distance, both_ways}; }
};

/// How the fixed schemes see the axes of this model. Sequence parallelism is that of the decoder.
inline scheme_axes scheme() {
  return {.batch = "batch", .sequence = {"seq", "source"}, .tensor = {"heads", "hidden", "vocab"}};
}

/// Residual stream of a stack over `Positions`.
template <class T, class Positions>
using residual = tensor<T, Batch, Positions, Embed>;

/// Declares the parts of one model; `prefix` names the parameters of a layer's part.
template <class T>
class parts {
 public:
  parts(declaration& m, const config& c) : m_(m), c_(c) {}

  /// x + self-attention(norm(x)); `table` holds the biases of the stack's distances.
  template <class OwnKeys, class Positions>
  residual<T, Positions> attend(residual<T, Positions> x, tensor<T, Buckets, Heads> table, bool causal) {
    const auto h = norm(x, "attn.norm.weight");
    const auto wq = into_heads("attn.q.weight", query_start()), wk = into_heads("attn.k.weight"),
               wv = into_heads("attn.v.weight");
    const auto [q, k, v] = contract<Embed>(h, wq, wk, wv);
    const auto keys = rename<Positions, OwnKeys>(k), values = rename<Positions, OwnKeys>(v);
    const auto o = stored_attention(q, keys, values, {.causal = causal, .scale = 1, .dropout = c_.dropout},
                                    [&](auto scores) { return relative_bias(scores, table, c_.distances(!causal)); });
    return branch(x, linear(o, from_heads("attn.o.weight")));
  }

  /// x + attention of norm(x) to what the encoder gives.
  residual<T, Seq> attend_to(residual<T, Seq> x, residual<T, Source> memory) {
    const auto h = norm(x, "cross.norm.weight");
    const auto wq = into_heads("cross.q.weight", query_start()), wk = into_heads("cross.k.weight"),
               wv = into_heads("cross.v.weight");
    const auto q = contract<Embed>(h, wq);
    const auto [k, v] = contract<Embed>(memory, wk, wv);
    const auto o = stored_attention(q, k, v, {.causal = false, .scale = 1, .dropout = c_.dropout});
    return branch(x, linear(o, from_heads("cross.o.weight")));
  }

  /// x + mlp(norm(x)), with the product of a GeLU branch and a linear one between.
  template <class Positions>
  residual<T, Positions> feed_forward(residual<T, Positions> x) {
    const auto h = norm(x, "mlp.norm.weight");
    const auto w0 = m_.template parameter<T, Embed, Hidden>("mlp.wi_0.weight", scaled(c_.embed));
    const auto w1 = m_.template parameter<T, Embed, Hidden>("mlp.wi_1.weight", scaled(c_.embed));
    const auto wo = m_.template parameter<T, Hidden, Embed>("mlp.wo.weight", scaled(c_.hidden));
    const auto [gate, up] = contract<Embed>(h, w0, w1);
    return branch(x, linear(dropout(gelu(gate) * up, c_.dropout), wo));
  }

  template <class Positions>
  residual<T, Positions> norm(residual<T, Positions> x, const std::string& name) {
    return rms_norm<Embed>(x, m_.template parameter<T, Embed>(name, init::ones()), 1e-6);
  }
  tensor<T, Buckets, Heads> distance_table(const std::string& stack) {
    return m_.template parameter<T, Buckets, Heads>(stack + ".relative_attention_bias.weight", scaled(c_.embed));
  }

 private:
  /// Deviation 1 / sqrt(inputs), as T5 starts.
  static initial scaled(std::int64_t inputs) { return init::normal(1 / std::sqrt(static_cast<double>(inputs))); }
  /// Scores are not scaled: queries start smaller instead.
  initial query_start() const { return scaled(c_.embed * (c_.embed / c_.heads)); }
  tensor<T, Embed, Heads, Features> into_heads(const std::string& name, initial start) {
    return m_.template parameter<T, Embed, Heads, Features>(name, start);
  }
  tensor<T, Embed, Heads, Features> into_heads(const std::string& name) { return into_heads(name, scaled(c_.embed)); }
  tensor<T, Heads, Features, Embed> from_heads(const std::string& name) {
    return m_.template parameter<T, Heads, Features, Embed>(name, scaled(c_.embed));
  }
  template <class X>
  X branch(X x, X added) {
    return x + dropout(added, c_.dropout);
  }

  declaration& m_;
  const config& c_;
};

/// Declares the model on the inputs "source" (int32, Batch x Source) and "tokens" (int32, Batch x Seq, what the decoder
/// has said) and returns the logits of the decoder's every next word.
template <class T>
tensor<T, Batch, Seq, Vocab> logits(declaration& m, const config& c) {
  c.check();
  m.set(size<Batch>(c.batch));
  m.set(size<Source>(c.source));
  m.set(size<SourceKeys>(c.source));
  m.set(size<Seq>(c.seq));
  m.set(size<Keys>(c.seq));
  m.set(size<Vocab>(c.vocab));
  m.set(size<Embed>(c.embed));
  m.set(size<Heads>(c.heads));
  m.set(size<Features>(c.embed / c.heads));
  m.set(size<Hidden>(c.hidden));
  m.set(size<Buckets>(c.buckets));
  m.set_microbatches(c.microbatches);
  if (c.recompute) m.allow_recomputation();
  parts<T> part(m, c);

  auto words = m.parameter<T, Vocab, Embed>("shared.weight", init::normal(1));
  auto x = dropout(embedding(m.input<std::int32_t, Batch, Source>("source"), words), c.dropout);
  const auto behind_and_ahead = part.distance_table("encoder");
  for (int l = 0; l < c.layers; ++l) {
    const declaration::block in_layer(m, "encoder", l);
    x = part.feed_forward(part.template attend<SourceKeys>(x, behind_and_ahead, false));
  }
  const auto memory = dropout(part.norm(x, "encoder.norm.weight"), c.dropout);

  auto y = dropout(embedding(m.input<std::int32_t, Batch, Seq>("tokens"), words), c.dropout);
  const auto behind = part.distance_table("decoder");
  for (int l = 0; l < c.decoder_layers; ++l) {
    const declaration::block in_layer(m, "decoder", l);
    y = part.feed_forward(part.attend_to(part.template attend<Keys>(y, behind, true), memory));
  }
  const auto said = dropout(part.norm(y, "decoder.norm.weight"), c.dropout);
  // The words' vectors are long: as a head they are scaled down.
  return linear(scale(said, 1 / std::sqrt(static_cast<double>(c.embed))), words);
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

}  // namespace mmr::t5
