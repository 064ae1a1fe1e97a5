// expect: operand_lacks_axis<mmr::op::cross_entropy, Seq, mmr::tensor<float, Batch
// The targets lack a row axis of the logits.
#include "model.hpp"

auto wrong(f32<Batch, Seq, Vocab> logits, mmr::tensor<std::int32_t, Batch> targets) {
  return mmr::cross_entropy(logits, targets);
}
