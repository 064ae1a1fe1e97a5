// expect: operands_have_different_axes<mmr::op::add, mmr::tensor<float, Batch, In>, mmr::tensor<float, In, Batch
// The same axes in another order.
#include "model.hpp"

auto wrong(f32<Batch, In> x, f32<In, Batch> y) {
  return x + y;
}
