// The graphs of training steps, by configuration and precision. Each family is built in a file of its own, so that none
// instantiates the operators of all. Whoever needs them includes graphs.cmake and compiles its sources.
#pragma once

#include <mmr/model/catalog.hpp>

/// Parameters and activations in bf16 or in float32; the optimizer says what gradients are kept in.
mmr::graph training_graph(const mmr::gpt::config& c, bool bf16, const mmr::adamw& o);
mmr::graph training_graph(const mmr::moe::config& c, bool bf16, const mmr::adamw& o);
mmr::graph training_graph(const mmr::llama::config& c, bool bf16, const mmr::adamw& o);
mmr::graph training_graph(const mmr::bert::config& c, bool bf16, const mmr::adamw& o);
mmr::graph training_graph(const mmr::t5::config& c, bool bf16, const mmr::adamw& o);
mmr::graph training_graph(const mmr::vit::config& c, bool bf16, const mmr::adamw& o);
