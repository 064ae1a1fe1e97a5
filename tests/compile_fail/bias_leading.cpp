// expect: operands_have_different_axes<mmr::op::bias, mmr::tensor<float, Batch, In>, mmr::tensor<float, Batch
// The bias is over a leading axis.
#include "model.hpp"

auto wrong(f32<Batch, In> x, f32<Batch> b) {
  return mmr::bias(x, b);
}
