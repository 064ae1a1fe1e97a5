// The models of the grid: each ready model small, small with extents that no mesh divides, and in published sizes.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/graphs/graphs.hpp"

namespace grid {

struct model {
  std::string name;
  mmr::model::any_config config;
  mmr::scheme_axes axes() const { return mmr::model::scheme_of(config); }
};

/// float32; bf16 with gradients and optimizer in float32 (18 bytes a parameter); bf16 with gradients in bf16 (16).
inline constexpr const char* precisions[] = {"fp32", "bf16", "pure-bf16"};

inline mmr::graph graph_of(const model& m, const std::string& name, int microbatches) {
  mmr::adamw optimizer{.clip_norm = microbatches > 1 ? 1.0 : 0.0};
  if (name == "pure-bf16") optimizer.gradients = mmr::dtype::bf16;
  return std::visit(
      [&](auto c) {
        c.microbatches = microbatches;
        return training_graph(c, name != "fp32", optimizer);
      },
      m.config);
}

inline std::vector<model> small_models() {
  mmr::gpt::config again{.layers = 2, .heads = 4, .embed = 64, .seq = 32, .batch = 8, .vocab = 256, .recompute = true};
  return {
      {"gpt", mmr::gpt::config{.layers = 2, .heads = 4, .embed = 64, .seq = 32, .batch = 8, .vocab = 256}},
      {"gpt-odd", mmr::gpt::config{.layers = 2, .heads = 3, .embed = 48, .seq = 7, .batch = 5, .vocab = 50257}},
      {"gpt-again", again},
      {"gpt-scores", mmr::gpt::config{.layers = 2,
                                      .heads = 4,
                                      .embed = 64,
                                      .seq = 32,
                                      .batch = 4,
                                      .vocab = 256,
                                      .store_scores = true,
                                      .store_masks = true,
                                      .attention_dropout = 0.1}},
      {"llama", mmr::llama::config{}},
      {"llama-odd", mmr::llama::config{.layers = 3,
                                       .heads = 6,
                                       .kv_heads = 3,
                                       .embed = 36,
                                       .hidden = 101,
                                       .seq = 7,
                                       .batch = 3,
                                       .vocab = 997,
                                       .tied = true}},
      {"bert", mmr::bert::config{}},
      {"bert-odd",
       mmr::bert::config{.layers = 2, .heads = 3, .embed = 33, .hidden = 77, .seq = 9, .batch = 5, .vocab = 30522}},
      {"vit", mmr::vit::config{}},
      {"vit-odd",
       mmr::vit::config{
           .layers = 2, .heads = 3, .embed = 33, .hidden = 65, .patches = 49, .pixels = 75, .classes = 7, .batch = 5}},
      {"t5", mmr::t5::config{.layers = 2,
                             .decoder_layers = 2,
                             .heads = 4,
                             .embed = 32,
                             .hidden = 64,
                             .source = 16,
                             .seq = 8,
                             .batch = 8}},
      {"t5-odd", mmr::t5::config{.layers = 1,
                                 .decoder_layers = 2,
                                 .heads = 3,
                                 .embed = 27,
                                 .hidden = 35,
                                 .source = 11,
                                 .seq = 7,
                                 .batch = 3,
                                 .vocab = 641}},
      {"moe",
       mmr::moe::config{.layers = 2, .heads = 4, .embed = 32, .seq = 16, .batch = 8, .hidden = 64, .experts = 4}},
      {"moe-odd",
       mmr::moe::config{
           .layers = 1, .heads = 3, .embed = 27, .seq = 7, .batch = 5, .vocab = 101, .hidden = 41, .experts = 3}},
  };
}

inline std::vector<model> published_models() {
  std::vector<model> all;
  for (const char* name : {"gpt2", "gpt3-1.3b", "gpt3-175b", "llama2-7b", "llama3-8b", "bert-large", "t5-large",
                           "vit-l", "mixtral-8x7b-like"})
    all.push_back({name, mmr::model::find_model(name)});
  return all;
}

}  // namespace grid
