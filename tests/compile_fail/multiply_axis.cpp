// expect: operand_lacks_axis<mmr::op::multiply, Seq, mmr::tensor<float, Batch
// The first factor lacks an axis of the second.
#include "model.hpp"

auto wrong(f32<Batch> x, f32<Batch, Seq> y) {
  return x * y;
}
