// The graphs of training steps, by configuration: each family is built in a file of its own, so that none instantiates
// the operators of all.
#pragma once

#include <mmr/model/catalog.hpp>

namespace grid {

/// Parameters and activations in bf16 or in float32; the optimizer says what gradients are kept in.
mmr::graph training_graph(const mmr::gpt::config& c, bool bf16, const mmr::adamw& o);
mmr::graph training_graph(const mmr::moe::config& c, bool bf16, const mmr::adamw& o);
mmr::graph training_graph(const mmr::llama::config& c, bool bf16, const mmr::adamw& o);
mmr::graph training_graph(const mmr::bert::config& c, bool bf16, const mmr::adamw& o);
mmr::graph training_graph(const mmr::t5::config& c, bool bf16, const mmr::adamw& o);
mmr::graph training_graph(const mmr::vit::config& c, bool bf16, const mmr::adamw& o);

inline mmr::scheme_axes scheme_of(const mmr::gpt::config&) {
  return mmr::gpt::scheme();
}
inline mmr::scheme_axes scheme_of(const mmr::moe::config&) {
  return mmr::moe::scheme();
}
inline mmr::scheme_axes scheme_of(const mmr::llama::config&) {
  return mmr::llama::scheme();
}
inline mmr::scheme_axes scheme_of(const mmr::bert::config&) {
  return mmr::bert::scheme();
}
inline mmr::scheme_axes scheme_of(const mmr::t5::config&) {
  return mmr::t5::scheme();
}
inline mmr::scheme_axes scheme_of(const mmr::vit::config&) {
  return mmr::vit::scheme();
}

}  // namespace grid
