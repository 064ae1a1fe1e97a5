// expect: operand_lacks_axis<mmr::op::cross_entropy, Seq, mmr::tensor<float, Batch, Vocab
// The logits lack an axis of the targets.
#include "model.hpp"

auto wrong(f32<Batch, Vocab> logits, mmr::tensor<std::int32_t, Batch, Seq> targets) {
  return mmr::cross_entropy(logits, targets);
}
