// Vision Transformer (Dosovitskiy et al., arXiv 2010.11929) with a classification loss, from the public API alone:
// pre-norm blocks over the patches of an image, learned positions, and a class from the mean of all patches instead of
// a class token (Beyer et al., arXiv 2205.01580). Parameter names are those of Hugging Face's
// ViTForImageClassification. There the patch embedding is a convolution [embed, channels, height, width], here the same
// numbers as [embed, pixels]; positions have a leading 1 and a row for the class token; and GeLU is exact where this
// one is the tanh form.
#pragma once

#include <mmr/model/layers.hpp>

namespace mmr::vit {

struct Batch : axis<"batch"> {};
struct Patches : axis<"patches"> {};
struct Pixels : axis<"pixels"> {};  // of one patch, times the channels
struct Embed : axis<"embed"> {};
struct Heads : axis<"heads"> {};
struct Features : axis<"features", dynamic, splitting::whole> {};  // of one head
struct Hidden : axis<"hidden"> {};                                 // of the MLP
struct Classes : axis<"classes"> {};

struct config {
  std::int64_t layers = 2, heads = 4, embed = 32, hidden = 128, patches = 16, pixels = 48, classes = 10, batch = 4;
  double dropout = 0;
  double epsilon = 1e-12;  ///< of layer norm
  int microbatches = 1;
  bool recompute = false;  ///< plans may make activations of a layer again for backward instead of keeping them

  void check() const {
    constexpr auto name = "vit";
    model::check_extent(name, "the number of layers", layers, 1000);
    model::check_extent(name, "the number of heads", heads);
    model::check_extent(name, "the hidden size", embed);
    model::check_extent(name, "the hidden size of the MLP", hidden);
    model::check_extent(name, "the number of patches", patches);
    model::check_extent(name, "the number of pixels of a patch", pixels);
    model::check_extent(name, "the number of classes", classes);
    model::check_extent(name, "the batch", batch);
    model::check_extent(name, "the number of microbatches", microbatches);
    model::check_heads(name, embed, heads);
    model::check_dropout(name, dropout);
    if (!(epsilon >= 0)) fail("vit: the epsilon of the norms is ", epsilon, "; it must not be negative");
  }
};

/// How the fixed schemes see the axes of this model.
inline scheme_axes scheme() {
  return {.batch = "batch", .sequence = {"patches"}, .tensor = {"heads", "hidden", "classes"}};
}

template <class T>
using residual = tensor<T, Batch, Patches, Embed>;

/// One transformer block: x + attention(norm(x)), then x + mlp(norm(x)).
template <class T>
residual<T> transformer(declaration& m, residual<T> x, const config& c) {
  using head = axes<Heads, Features>;
  const auto before = model::normalised<Embed>(m, "layernorm_before", x, c.epsilon);
  const model::dense<T, head, axes<Embed>> query(m, "attention.attention.query"), key(m, "attention.attention.key"),
      value(m, "attention.attention.value");
  const model::dense<T, axes<Embed>, head> out(m, "attention.output.dense");
  const auto [q, k, v] = contract<Embed>(before, query.w, key.w, value.w);
  const auto o = attention<Patches>(bias(q, query.b), bias(k, key.b), bias(v, value.b));
  x = bias_dropout_add(linear(o, out.w), out.b, x, c.dropout);

  const auto after = model::normalised<Embed>(m, "layernorm_after", x, c.epsilon);
  const model::dense<T, axes<Hidden>, axes<Embed>> up(m, "intermediate.dense");
  const model::dense<T, axes<Embed>, axes<Hidden>> down(m, "output.dense");
  return bias_dropout_add(linear(bias_gelu(linear(after, up.w), up.b), down.w), down.b, x, c.dropout);
}

/// Declares the model on the input "patches" (T, Batch x Patches x Pixels) and returns the logits of the classes.
template <class T>
tensor<T, Batch, Classes> logits(declaration& m, const config& c) {
  c.check();
  m.set(size<Batch>(c.batch));
  m.set(size<Patches>(c.patches));
  m.set(size<Pixels>(c.pixels));
  m.set(size<Embed>(c.embed));
  m.set(size<Heads>(c.heads));
  m.set(size<Features>(c.embed / c.heads));
  m.set(size<Hidden>(c.hidden));
  m.set(size<Classes>(c.classes));
  m.set_microbatches(c.microbatches);
  if (c.recompute) m.allow_recomputation();

  const std::string in = "vit.embeddings.";
  const auto patches = m.input<T, Batch, Patches, Pixels>("patches");
  const model::dense<T, axes<Embed>, axes<Pixels>> project(m, in + "patch_embeddings.projection");
  const auto places = m.parameter<T, Patches, Embed>(in + "position_embeddings", init::normal(0.02));
  auto x = dropout(bias(linear(patches, project.w, project.b), places), c.dropout);
  for (int l = 0; l < c.layers; ++l) {
    const declaration::block in_layer(m, "vit.encoder.layer", l);
    x = transformer<T>(m, x, c);
  }
  const model::dense<T, axes<Classes>, axes<Embed>> classifier(m, "classifier");
  return linear(mean<Patches>(model::normalised<Embed>(m, "vit.layernorm", x, c.epsilon)), classifier.w, classifier.b);
}

/// Declares the model and the mean cross-entropy of its logits with the input "labels" (int32, Batch).
template <class T>
scalar<T> declare(declaration& m, const config& c) {
  const auto classes = logits<T>(m, c);
  return cross_entropy(classes, m.input<std::int32_t, Batch>("labels"));
}

/// The graph of a training step.
template <class T, class Optimizer>
graph training_graph(const config& c, const Optimizer& optimizer) {
  declaration m;
  return m.training_step(declare<T>(m, c), optimizer);
}

}  // namespace mmr::vit
