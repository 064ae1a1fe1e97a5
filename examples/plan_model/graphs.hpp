// The graphs of training steps, by configuration and precision. Each is built in the file of its family, so that no file
// instantiates the operators of all.
#pragma once

#include <mmr/model/catalog.hpp>

enum class precision { bf16, fp32 };

/// What a graph depends on beside the model's configuration.
struct graph_request {
  precision element = precision::bf16;
  mmr::adamw optimizer{};
  bool recompute = false;  ///< plans may make activations of layers again instead of keeping them
};

/// The training step of the one or the other declaration.
template <class Bf16, class Fp32>
mmr::graph build(const graph_request& r, Bf16 declare_bf16, Fp32 declare_fp32) {
  mmr::declaration m;
  if (r.recompute) m.allow_recomputation();
  return r.element == precision::bf16 ? m.training_step(declare_bf16(m), r.optimizer) : m.training_step(declare_fp32(m), r.optimizer);
}

mmr::graph training_graph(const mmr::gpt::config& c, const graph_request& r);
mmr::graph training_graph(const mmr::moe::config& c, const graph_request& r);
mmr::graph training_graph(const mmr::llama::config& c, const graph_request& r);
mmr::graph training_graph(const mmr::bert::config& c, const graph_request& r);
mmr::graph training_graph(const mmr::t5::config& c, const graph_request& r);
mmr::graph training_graph(const mmr::vit::config& c, const graph_request& r);

inline mmr::scheme_axes scheme_of(const mmr::gpt::config&) { return mmr::gpt::scheme(); }
inline mmr::scheme_axes scheme_of(const mmr::moe::config&) { return mmr::moe::scheme(); }
inline mmr::scheme_axes scheme_of(const mmr::llama::config&) { return mmr::llama::scheme(); }
inline mmr::scheme_axes scheme_of(const mmr::bert::config&) { return mmr::bert::scheme(); }
inline mmr::scheme_axes scheme_of(const mmr::t5::config&) { return mmr::t5::scheme(); }
inline mmr::scheme_axes scheme_of(const mmr::vit::config&) { return mmr::vit::scheme(); }
