// expect: operand_must_end_with_axis<mmr::op::softmax, Batch, mmr::tensor<float, Batch, In
// The axis is not the last one.
#include "model.hpp"

auto wrong(f32<Batch, In> x) {
  return mmr::softmax<Batch>(x);
}
