// Megatron-LM's published rules of memory, beside what pinned plans hold. A rule is a formula of the paper; what stands
// beside it is counted tensor by tensor in a plan of the one space with the choices pinned. The bench prints whole
// models, the tests in tests/model take a few layers of each.
#pragma once

#include <cstdint>
#include <map>
#include <mmr/auto_parallel.hpp>
#include <mmr/model/gpt.hpp>
#include <string>
#include <vector>

namespace rules {

/// Brown et al., arXiv 2005.14165, table 2.1, and Korthikanti et al., arXiv 2205.05198, table 3, for 22B. The
/// microbatch is one sequence of 2048 words.
struct shape {
  const char* name;
  std::int64_t layers, embed, heads;
};
inline constexpr shape shapes[] = {
    {"1.3B", 24, 2048, 16}, {"6.7B", 32, 4096, 32}, {"22B", 48, 6144, 64}, {"175B", 96, 12288, 96}};
inline constexpr std::int64_t words = 2048, vocabulary = 51200, tensor_ranks = 8;

/// The model of the rules: 16-bit parameters and activations, scores and masks of dropout stored, the masks a byte an
/// element. Clipping by the global norm needs every gradient at once.
inline mmr::graph model(const shape& s, mmr::dtype gradients = mmr::dtype::f32) {
  mmr::adamw optimizer{.clip_norm = 1};
  optimizer.gradients = gradients;
  return mmr::gpt::training_graph<mmr::bf16>({.layers = s.layers,
                                              .heads = s.heads,
                                              .embed = s.embed,
                                              .seq = words,
                                              .batch = 1,
                                              .vocab = vocabulary,
                                              .dropout = 0.1,
                                              .store_scores = true,
                                              .store_masks = true,
                                              .attention_dropout = 0.1},
                                             optimizer);
}

/// Bytes of activations that rank 0 keeps of layer `layer` from its forward to its backward pass: what is live where
/// the next layer begins and was made in this one or for it. `items`, where given, gets them by name.
inline std::int64_t saved_of_layer(mmr::setting& s, const std::vector<mmr::strategy>& chosen, int layer,
                                   std::map<std::string, std::int64_t>* items = nullptr) {
  const auto& g = s.g;
  int boundary = s.live.steps();
  for (int step = 0; step < s.live.steps() && boundary == s.live.steps(); ++step) {
    const auto& op = g.op(s.live.schedule[static_cast<std::size_t>(step)]);
    if (op.where.block == "h" && op.where.repetition == layer + 1) boundary = step;
  }
  // What the next layer reads is that layer's input.
  const auto passed_on = [&](mmr::tensor_id t) {
    const auto from = g.tensor_of(t).producer;
    for (auto [e, end] = boost::out_edges(static_cast<std::size_t>(from), g.dag()); e != end; ++e) {
      const auto& user = g.op(static_cast<mmr::op_id>(boost::target(*e, g.dag())));
      if (g.dag()[*e].tensor == t && user.where.block == "h" &&
          user.where.repetition == g.op(from).where.repetition + 1)
        return true;
    }
    return false;
  };
  std::int64_t bytes = 0;
  for (mmr::tensor_id t = 0; t < g.tensors(); ++t) {
    const auto& info = g.tensor_of(t);
    const auto& maker = g.op(info.producer);
    const auto& life = s.live.life[static_cast<std::size_t>(t)];
    if (info.kind != mmr::tensor_class::activation || maker.where.block != "h" || life.begin > boundary ||
        life.end <= boundary || maker.where.repetition + (passed_on(t) ? 1 : 0) != layer)
      continue;
    const auto here = s.bytes(t, s.made_placement(t, chosen[static_cast<std::size_t>(info.producer)]), 0);
    bytes += here;
    if (items) (*items)[info.name] += here;
  }
  return bytes;
}

/// A rule of activations: Korthikanti et al., equations 1, 2 and 4, multiplied out.
struct activation_rule {
  const char *name, *mesh, *scheme;
  std::int64_t (*bytes)(const shape&);
  std::int64_t shards;  ///< of what is saved beside the rule: mean and deviation of the rows of both normalisations
};
inline std::int64_t scores(const shape& s) {
  return 5 * s.heads * words;
}
inline const std::vector<activation_rule> activation_rules{
    {"none", "one=1", "single", [](const shape& s) { return words * (34 * s.embed + scores(s)); }, 1},
    {"TP", "model=8", "megatron",
     [](const shape& s) { return words * (10 * s.embed + (24 * s.embed + scores(s)) / tensor_ranks); }, 1},
    {"TP+SP", "model=8", "megatron-sp",
     [](const shape& s) { return words * (34 * s.embed + scores(s)) / tensor_ranks; }, tensor_ranks}};
/// Bytes of those rows, which the rules leave out: two normalisations, two figures of 2 bytes a word.
inline std::int64_t beside_rule(const activation_rule& r) {
  return 2 * 2 * 2 * words / r.shards;
}

/// Elements of the parameters that tensor parallelism splits, and of those that it replicates.
struct parameter_count {
  std::int64_t split, whole;
};
inline parameter_count parameters(const shape& s) {
  const auto h = s.embed;
  // q, k, v and the first of the MLP with their biases, both projections back; and the embedding of words.
  const auto split = s.layers * (3 * h * h + 3 * h + h * h + 4 * h * h + 4 * h + 4 * h * h) + vocabulary * h;
  // Both normalisations and the biases behind the sums; the embedding of places and the last normalisation.
  const auto whole = s.layers * (4 * h + 2 * h) + words * h + 2 * h;
  return {split, whole};
}

/// A rule of model states, bytes of a rank: parameters, gradients and optimizer state. ZeRO: Rajbhandari et al., arXiv
/// 1910.02054, figure 1. Splits are even here: 16 heads, which biases are split by, on at most 16 ranks.
struct state_rule {
  const char *name, *mesh, *scheme;
  mmr::dtype gradients;
  std::int64_t (*bytes)(std::int64_t split, std::int64_t whole);
};
inline const std::vector<state_rule> state_rules{
    {"none, 18", "one=1", "single", mmr::dtype::f32, [](auto p, auto w) { return 18 * (p + w); }},
    {"none, 16", "one=1", "single", mmr::dtype::bf16, [](auto p, auto w) { return 16 * (p + w); }},
    {"TP, 18", "model=8", "megatron", mmr::dtype::f32, [](auto p, auto w) { return 18 * (p / 8 + w); }},
    {"TP+SP, 18", "model=8", "megatron-sp", mmr::dtype::f32, [](auto p, auto w) { return 18 * (p / 8 + w); }},
    {"TP, 6+12/d", "data=2,model=8", "megatron-zero1", mmr::dtype::f32,
     [](auto p, auto w) { return 6 * (p / 8 + w) + 12 * (p / 8 + w) / 2; }},
    {"ZeRO-1", "data=8", "zero1", mmr::dtype::bf16, [](auto p, auto w) { return 4 * (p + w) + 12 * (p + w) / 8; }},
    {"ZeRO-2", "data=8", "zero2", mmr::dtype::bf16, [](auto p, auto w) { return 2 * (p + w) + 14 * (p + w) / 8; }},
    {"ZeRO-3", "data=8", "zero3", mmr::dtype::bf16, [](auto p, auto w) { return 16 * (p + w) / 8; }}};

inline mmr::plan pinned(mmr::planner& planner, const char* scheme) {
  mmr::plan_request r;
  r.axes = mmr::gpt::scheme();
  r.scheme = scheme;
  return planner.make(r);
}

/// Model states of rank 0: stored from step to step, and the gradients where all are there.
inline std::int64_t states(const mmr::plan& p) {
  const auto& r = p.per_rank.front();
  return r.parameters + r.gradients + r.optimizer;
}

}  // namespace rules
