// GPT-2 whose blocks have a mixture of experts for their MLP (GShard, arXiv 2006.16668; Switch Transformers, arXiv
// 2101.03961), from the public API alone. Each row of the batch is routed by itself, so that the model is the same
// however its batch is split; where the rows are split and the experts are, too, tokens travel by all-to-all.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <mmr/model/gpt.hpp>
#include <vector>

namespace mmr::moe {

using gpt::Batch, gpt::Embed, gpt::Hidden, gpt::Seq;

struct Experts : axis<"experts"> {};
struct Capacity : axis<"capacity", dynamic, splitting::whole> {};  // slots of an expert for the tokens of one row

struct config {
  std::int64_t layers = 4, heads = 4, embed = 128, seq = 64, batch = 8, vocab = 256;
  std::int64_t hidden = 512;  ///< of one expert
  std::int64_t experts = 8;
  int top_k = 2;                  ///< experts of a token
  double capacity_factor = 1.25;  ///< slots, over those that equally busy experts need
  double balance = 0.01;          ///< weight of the loss that keeps experts equally busy
  double dropout = 0.1;
  int microbatches = 1;
  bool recompute = false;  ///< plans may make activations of a layer again for backward instead of keeping them

  /// Slots of each expert for a row of the batch; a token that finds none passes by the residual.
  std::int64_t capacity() const {
    const double even = static_cast<double>(seq * top_k) / static_cast<double>(experts);
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(capacity_factor * even)), 1, seq);
  }
  /// What it shares with GPT-2: all but the experts.
  gpt::config dense() const {
    return {.layers = layers,
            .heads = heads,
            .embed = embed,
            .seq = seq,
            .batch = batch,
            .vocab = vocab,
            .dropout = dropout,
            .microbatches = microbatches,
            .recompute = recompute};
  }
  void check() const {
    dense().check();
    if (hidden < 1 || hidden > 1'000'000'000)
      fail("moe: the hidden size of an expert is ", hidden, "; give 1 to 1000000000");
    if (experts < 1 || experts > 1'000'000) fail("moe: the number of experts is ", experts, "; give 1 to 1000000");
    if (top_k < 1 || top_k > experts)
      fail("moe: each token goes to ", top_k, " of ", experts, " experts; give 1 to ", experts);
    if (!(capacity_factor > 0 && capacity_factor <= 1e6))
      fail("moe: the capacity factor is ", capacity_factor, "; give more than 0, and at most 1000000");
    if (!(balance >= 0 && std::isfinite(balance)))
      fail("moe: the weight of the balancing loss is ", balance, "; give 0 or more");
  }
};

/// How the fixed schemes see the axes: the experts are split where tensors are (expert parallelism).
inline scheme_axes scheme() {
  return {.batch = "batch", .sequence = {"seq"}, .tensor = {"heads", "experts", "hidden", "vocab"}};
}

template <class T>
using residual = gpt::residual<T>;

/// Second half of a block: x + mixture(ln(x)). Appends the balancing loss of its router.
template <class T>
residual<T> mix(declaration& m, residual<T> x, const config& c, std::vector<scalar<T>>& balance) {
  auto g = m.parameter<T, Embed>("ln_2.weight", init::ones());
  auto b = m.parameter<T, Embed>("ln_2.bias", init::zeros());
  auto router = m.parameter<T, Embed, Experts>("moe.router.weight", init::normal(0.02));
  auto up = m.parameter<T, Experts, Embed, Hidden>("moe.up.weight", init::normal(0.02));
  auto down = m.parameter<T, Experts, Hidden, Embed>("moe.down.weight", gpt::branch_start(c.dense()));

  const auto tokens = layer_norm<Embed>(x, g, b);               // (Batch, Seq, Embed)
  const auto probs = softmax<Experts>(linear(tokens, router));  // (Batch, Seq, Experts)
  const auto where = route<Capacity>(probs, c.top_k);
  const auto in = dispatch(tokens, where);  // (Experts, Batch, Capacity, Embed)
  const auto out = contract<Hidden>(gelu(contract<Embed>(in, up)), down);
  if (c.balance > 0) balance.push_back(load_balance(probs, where, c.balance));
  return x + dropout(combine<Seq>(out, where), c.dropout);
}

/// Declares the model on the inputs "tokens" and "targets" (int32, Batch x Seq): the mean cross-entropy of every next
/// word, and the balancing losses of all layers.
template <class T>
scalar<T> declare(declaration& m, const config& c) {
  c.check();
  m.set(size<Hidden>(c.hidden));
  m.set(size<Experts>(c.experts));
  m.set(size<Capacity>(c.capacity()));
  const auto dense = c.dense();
  std::vector<scalar<T>> balance;
  const auto words = gpt::logits_through<T>(
      m, dense, [&](residual<T> x) { return mix<T>(m, gpt::attend<T>(m, x, dense), c, balance); });
  auto loss = cross_entropy(words, m.input<std::int32_t, Batch, Seq>("targets"));
  for (const auto& uneven : balance) loss = loss + uneven;
  return loss;
}

/// The graph of a training step.
template <class T, class Optimizer>
graph training_graph(const config& c, const Optimizer& optimizer) {
  declaration m;
  return m.training_step(declare<T>(m, c), optimizer);
}

}  // namespace mmr::moe
