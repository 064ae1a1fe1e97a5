// Graphs of small real models for the tests of plans. Types end here: only models.cpp includes the operators and
// kernels, so that the tests themselves compile quickly.
#pragma once

#include <cstdint>
#include <mmr/graph/graph.hpp>
#include <mmr/plan/scheme.hpp>

namespace models {

enum class optimizer { adamw, sgd, adamw_clipped };

struct gpt_size {
  std::int64_t layers = 1, heads = 2, embed = 8, seq = 4, batch = 4, vocab = 12;
  double dropout = 0;
  int microbatches = 1;
  optimizer updates = optimizer::adamw;
  bool double_precision = false;
  bool recompute = false;
  bool bf16 = false;
};
mmr::graph gpt(const gpt_size& size);
mmr::scheme_axes gpt_axes();

/// x[batch, in] through one linear layer, or two with GeLU between, against t[batch, out]: loss = sum of y * t.
/// Tensors: "x", "t", "w0", "w1"; axes: batch, in, hidden, out.
struct mlp_size {
  int layers = 1;
  std::int64_t batch = 6, in = 5, hidden = 7, out = 4;
  int microbatches = 1;
  optimizer updates = optimizer::sgd;
};
mmr::graph mlp(const mlp_size& size);

/// `layers` blocks of x = x + gelu(x w + bias) on x[batch, in] with the choice to recompute; every block but the first adds
/// the result of a first linear layer too, which is outside them and which backward does not read.
mmr::graph skipping(int layers, int microbatches = 1);
/// The id of a tensor, by name.
mmr::tensor_id tensor_named(const mmr::graph& g, const std::string& name);

}  // namespace models
