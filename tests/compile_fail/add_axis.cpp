// expect: operand_lacks_axis<mmr::op::add, In, mmr::tensor<float, Batch, Out
// The second term is over another axis.
#include "model.hpp"

auto wrong(f32<Batch, In> x, f32<Batch, Out> y) {
  return x + y;
}
