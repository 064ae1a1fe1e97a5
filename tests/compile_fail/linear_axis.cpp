// expect: operand_lacks_axis<mmr::op::linear, Out, mmr::tensor<float, Batch, In
// The weight has no axis of the input.
#include "model.hpp"

auto wrong(f32<Batch, In> x, f32<Out> w) {
  return mmr::linear(x, w);
}
