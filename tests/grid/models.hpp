// Graphs of tiny models for the grid of plans. Types end here, so that the tests themselves compile quickly.
#pragma once

#include <mmr/graph/graph.hpp>
#include <mmr/plan/scheme.hpp>
#include <string>

namespace models {

/// "gpt", "gpt-odd" (extents that nothing divides, 50257 words), "gpt-again" (with recomputation), "t5" (no chain).
/// `precision`: "fp32", "bf16", or "pure-bf16" with gradients in bf16 too.
mmr::graph make(const std::string& name, const std::string& precision = "fp32", int microbatches = 1);
mmr::scheme_axes axes(const std::string& name);

}  // namespace models
