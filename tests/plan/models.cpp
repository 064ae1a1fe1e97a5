#include "models.hpp"

#include <mmr/model/gpt.hpp>

namespace models {

namespace {

struct Batch : mmr::axis<"batch"> {};
struct In : mmr::axis<"in"> {};
struct Hidden : mmr::axis<"hidden"> {};
struct Out : mmr::axis<"out"> {};

template <class T>
mmr::graph trained(mmr::declaration& m, mmr::scalar<T> loss, optimizer how) {
  switch (how) {
    case optimizer::sgd:
      return m.training_step(loss, mmr::sgd{.momentum = 0.9});
    case optimizer::adamw:
      return m.training_step(loss, mmr::adamw{});
    case optimizer::adamw_clipped:
      return m.training_step(loss, mmr::adamw{.clip_norm = 1});
  }
  mmr::fail("models: no such optimizer");
}

template <class T>
mmr::graph gpt_of(const gpt_size& s) {
  mmr::declaration m;
  const mmr::gpt::config c{.layers = s.layers,
                           .heads = s.heads,
                           .embed = s.embed,
                           .seq = s.seq,
                           .batch = s.batch,
                           .vocab = s.vocab,
                           .dropout = s.dropout,
                           .microbatches = s.microbatches,
                           .recompute = s.recompute};
  return trained(m, mmr::gpt::declare<T>(m, c), s.updates);
}

}  // namespace

mmr::graph gpt(const gpt_size& s) {
  if (s.bf16) return gpt_of<mmr::bf16>(s);
  return s.double_precision ? gpt_of<double>(s) : gpt_of<float>(s);
}
mmr::scheme_axes gpt_axes() {
  return mmr::gpt::scheme();
}

mmr::graph mlp(const mlp_size& s) {
  mmr::declaration m{mmr::size<Batch>(s.batch), mmr::size<In>(s.in), mmr::size<Hidden>(s.hidden),
                     mmr::size<Out>(s.out)};
  m.set_microbatches(s.microbatches);
  const auto x = m.input<float, Batch, In>("x");
  const auto t = m.input<float, Batch, Out>("t");
  const auto loss = [&](auto y) { return trained(m, mmr::contract<Batch, Out>(y, t), s.updates); };
  if (s.layers == 1) return loss(mmr::linear(x, m.parameter<float, In, Out>("w0", mmr::init::normal(1))));
  const auto h = mmr::gelu(mmr::linear(x, m.parameter<float, In, Hidden>("w0", mmr::init::normal(1))));
  return loss(mmr::linear(h, m.parameter<float, Hidden, Out>("w1", mmr::init::normal(1))));
}

mmr::graph skipping(int layers, int microbatches) {
  mmr::declaration m{mmr::size<Batch>(6), mmr::size<In>(4), mmr::size<Hidden>(8)};
  m.set_microbatches(microbatches);
  m.allow_recomputation();
  const auto matrix = [&](const char* name) { return m.parameter<float, In, Hidden>(name, mmr::init::normal(1)); };
  const auto first = mmr::linear(m.input<float, Batch, In>("x"), matrix("w"));
  auto x = mmr::gelu(mmr::linear(m.input<float, Batch, In>("y"), matrix("v")));
  for (int l = 0; l < layers; ++l) {
    const mmr::declaration::block in_block(m, "skip", l);
    const auto inner = mmr::linear(mmr::gelu(x), m.parameter<float, Hidden, In>("down", mmr::init::normal(1)));
    const auto outer = mmr::bias(mmr::linear(mmr::gelu(inner), matrix("up")), m.parameter<float, Hidden>("b", mmr::init::zeros()));
    x = mmr::gelu(l > 0 ? mmr::add(mmr::add(x, outer), first) : mmr::add(x, outer));
  }
  return trained(m, mmr::contract<Batch, Hidden>(x, m.input<float, Batch, Hidden>("t")), optimizer::sgd);
}

mmr::tensor_id tensor_named(const mmr::graph& g, const std::string& name) {
  for (mmr::tensor_id t = 0; t < g.tensors(); ++t)
    if (g.tensor_of(t).name == name) return t;
  mmr::fail("the graph has no tensor '", name, "'");
}

}  // namespace models
