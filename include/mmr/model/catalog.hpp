// Published models by name, as configurations of the ready models: what can be planned without looking up a paper.
#pragma once

#include <mmr/model/bert.hpp>
#include <mmr/model/gpt.hpp>
#include <mmr/model/llama.hpp>
#include <mmr/model/moe.hpp>
#include <mmr/model/t5.hpp>
#include <mmr/model/vit.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace mmr::model {

/// A configuration of any of the ready models.
using any_config = std::variant<gpt::config, llama::config, bert::config, t5::config, vit::config, moe::config>;

namespace detail {

inline scheme_axes scheme_of(const gpt::config&) { return gpt::scheme(); }
inline scheme_axes scheme_of(const llama::config&) { return llama::scheme(); }
inline scheme_axes scheme_of(const bert::config&) { return bert::scheme(); }
inline scheme_axes scheme_of(const t5::config&) { return t5::scheme(); }
inline scheme_axes scheme_of(const vit::config&) { return vit::scheme(); }
inline scheme_axes scheme_of(const moe::config&) { return moe::scheme(); }

inline gpt::config gpt_shape(std::int64_t layers, std::int64_t embed, std::int64_t heads, std::int64_t seq, std::int64_t vocab) {
  return {.layers = layers, .heads = heads, .embed = embed, .seq = seq, .batch = 8, .vocab = vocab, .dropout = 0.1};
}
inline llama::config llama_shape(std::int64_t layers, std::int64_t embed, std::int64_t heads, std::int64_t kv_heads,
                                 std::int64_t hidden) {
  return {.layers = layers, .heads = heads, .kv_heads = kv_heads, .embed = embed, .hidden = hidden, .seq = 4096, .batch = 8,
          .vocab = 32000, .theta = 10000, .epsilon = 1e-5};
}
inline llama::config llama3_shape(std::int64_t layers, std::int64_t embed, std::int64_t heads, std::int64_t hidden) {
  auto c = llama_shape(layers, embed, heads, 8, hidden);
  c.seq = 8192;
  c.vocab = 128256;
  c.theta = 500000;
  return c;
}
inline bert::config bert_shape(std::int64_t layers, std::int64_t embed, std::int64_t heads) {
  return {.layers = layers, .heads = heads, .embed = embed, .hidden = 4 * embed, .seq = 512, .batch = 8, .vocab = 30522};
}
inline t5::config t5_shape(std::int64_t layers, std::int64_t embed, std::int64_t heads, std::int64_t hidden) {
  return {.layers = layers, .decoder_layers = layers, .heads = heads, .embed = embed, .hidden = hidden, .source = 512,
          .seq = 114, .batch = 8, .vocab = 32128};
}
inline vit::config vit_shape(std::int64_t layers, std::int64_t embed, std::int64_t heads, std::int64_t side) {
  return {.layers = layers, .heads = heads, .embed = embed, .hidden = 4 * embed, .patches = (224 / side) * (224 / side),
          .pixels = 3 * side * side, .classes = 1000, .batch = 8};
}

}  // namespace detail

/// All names with their configurations, each of 8 sequences (images) a microbatch.
inline const std::vector<std::pair<std::string_view, any_config>>& catalog() {
  using namespace detail;
  static const std::vector<std::pair<std::string_view, any_config>> all{
      // GPT-2: Radford et al., 2019, table 2; heads of 64 features.
      {"gpt2", gpt_shape(12, 768, 12, 1024, 50257)},
      {"gpt2-medium", gpt_shape(24, 1024, 16, 1024, 50257)},
      {"gpt2-large", gpt_shape(36, 1280, 20, 1024, 50257)},
      {"gpt2-xl", gpt_shape(48, 1600, 25, 1024, 50257)},
      // GPT-3: Brown et al., arXiv 2005.14165, table 2.1. All layers are dense here. 1.3b: the table's 24 heads do not
      // divide 2048, so 16 of 128 features; 13b: its 5140 is no multiple of the 40 heads, so 5120. The vocabulary is
      // padded from 50257 to 51200, as Megatron-LM does.
      {"gpt3-125m", gpt_shape(12, 768, 12, 2048, 51200)},
      {"gpt3-350m", gpt_shape(24, 1024, 16, 2048, 51200)},
      {"gpt3-760m", gpt_shape(24, 1536, 16, 2048, 51200)},
      {"gpt3-1.3b", gpt_shape(24, 2048, 16, 2048, 51200)},
      {"gpt3-2.7b", gpt_shape(32, 2560, 32, 2048, 51200)},
      {"gpt3-6.7b", gpt_shape(32, 4096, 32, 2048, 51200)},
      {"gpt3-13b", gpt_shape(40, 5120, 40, 2048, 51200)},
      {"gpt3-175b", gpt_shape(96, 12288, 96, 2048, 51200)},
      // Megatron-LM: Korthikanti et al., arXiv 2205.05198, table 3; the two smallest as in Brown et al., which its
      // repository trains.
      {"megatron-1.3b", gpt_shape(24, 2048, 16, 2048, 51200)},
      {"megatron-6.7b", gpt_shape(32, 4096, 32, 2048, 51200)},
      {"megatron-22b", gpt_shape(48, 6144, 64, 2048, 51200)},
      {"megatron-175b", gpt_shape(96, 12288, 96, 2048, 51200)},
      {"megatron-530b", gpt_shape(105, 20480, 128, 2048, 51200)},
      {"megatron-1t", gpt_shape(128, 25600, 160, 2048, 51200)},
      // Llama 2: Touvron et al., arXiv 2307.09288, and its released configurations.
      {"llama2-7b", llama_shape(32, 4096, 32, 32, 11008)},
      {"llama2-13b", llama_shape(40, 5120, 40, 40, 13824)},
      {"llama2-70b", llama_shape(80, 8192, 64, 8, 28672)},
      // Llama 3: arXiv 2407.21783, table 3.
      {"llama3-8b", llama3_shape(32, 4096, 32, 14336)},
      {"llama3-70b", llama3_shape(80, 8192, 64, 28672)},
      {"llama3-405b", llama3_shape(126, 16384, 128, 53248)},
      // BERT: Devlin et al., arXiv 1810.04805; the uncased vocabulary.
      {"bert-base", bert_shape(12, 768, 12)},
      {"bert-large", bert_shape(24, 1024, 16)},
      // T5: Raffel et al., arXiv 1910.10683, in the sizes of version 1.1 (gated MLP), with the 512 and 114 words of its
      // pre-training. small: 8 heads of 64 features, where version 1.1 has 6, which do not divide 512.
      {"t5-small", t5_shape(8, 512, 8, 1024)},
      {"t5-base", t5_shape(12, 768, 12, 2048)},
      {"t5-large", t5_shape(24, 1024, 16, 2816)},
      {"t5-3b", t5_shape(24, 2048, 32, 5120)},
      {"t5-11b", t5_shape(24, 4096, 64, 10240)},
      // ViT: Dosovitskiy et al., arXiv 2010.11929, table 1, on 224 x 224 pixels in patches of 16 (huge: 14).
      {"vit-b", vit_shape(12, 768, 12, 16)},
      {"vit-l", vit_shape(24, 1024, 16, 16)},
      {"vit-h", vit_shape(32, 1280, 16, 14)},
      // The shape of Mixtral 8x7B (Jiang et al., arXiv 2401.04088) as the mixture of experts here: its experts have two
      // matrices and not three, and all heads have keys and values of their own.
      {"mixtral-8x7b-like", moe::config{.layers = 32, .heads = 32, .embed = 4096, .seq = 4096, .batch = 8, .vocab = 32000,
                                        .hidden = 14336, .experts = 8, .top_k = 2, .dropout = 0}},
  };
  return all;
}

/// "gpt2, gpt2-medium, ...".
inline std::string catalog_names() {
  std::string names;
  for (const auto& [name, config] : catalog()) names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

/// Whether the catalog has this name.
inline bool in_catalog(std::string_view name) {
  for (const auto& [known, config] : catalog())
    if (known == name) return true;
  return false;
}

/// How the fixed schemes see the axes of a model.
inline scheme_axes scheme_of(const any_config& config) {
  return std::visit([](const auto& c) { return detail::scheme_of(c); }, config);
}

/// The configuration of this name. Fails with the list of names for any other.
inline any_config find_model(std::string_view name) {
  for (const auto& [known, config] : catalog())
    if (known == name) return config;
  fail("there is no model '", name, "'; the models are ", catalog_names());
}

}  // namespace mmr::model
