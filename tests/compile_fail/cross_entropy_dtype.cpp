// expect: operand_must_have_dtype<mmr::op::cross_entropy, int, mmr::tensor<float, Batch
// Targets are words, not probabilities.
#include "model.hpp"

auto wrong(f32<Batch, Vocab> logits, f32<Batch> targets) {
  return mmr::cross_entropy(logits, targets);
}
