// The graphs of training steps, by configuration and precision. Each is built in the file of its family, so that no file
// instantiates the operators of all.
#pragma once

#include <mmr/model/catalog.hpp>

enum class precision { bf16, fp32 };

mmr::graph training_graph(const mmr::gpt::config& c, precision p, const mmr::adamw& o);
mmr::graph training_graph(const mmr::moe::config& c, precision p, const mmr::adamw& o);
mmr::graph training_graph(const mmr::llama::config& c, precision p, const mmr::adamw& o);
mmr::graph training_graph(const mmr::bert::config& c, precision p, const mmr::adamw& o);
mmr::graph training_graph(const mmr::t5::config& c, precision p, const mmr::adamw& o);
mmr::graph training_graph(const mmr::vit::config& c, precision p, const mmr::adamw& o);

inline mmr::scheme_axes scheme_of(const mmr::gpt::config&) { return mmr::gpt::scheme(); }
inline mmr::scheme_axes scheme_of(const mmr::moe::config&) { return mmr::moe::scheme(); }
inline mmr::scheme_axes scheme_of(const mmr::llama::config&) { return mmr::llama::scheme(); }
inline mmr::scheme_axes scheme_of(const mmr::bert::config&) { return mmr::bert::scheme(); }
inline mmr::scheme_axes scheme_of(const mmr::t5::config&) { return mmr::t5::scheme(); }
inline mmr::scheme_axes scheme_of(const mmr::vit::config&) { return mmr::vit::scheme(); }
