// expect: operand_lacks_axis<mmr::op::bias_dropout_add, In, mmr::tensor<float, Batch, Out
// The residual is over another axis.
#include "model.hpp"

auto wrong(f32<Batch, In> x, f32<In> b, f32<Batch, Out> residual) {
  return mmr::bias_dropout_add(x, b, residual, 0.1);
}
