// expect: operand_lacks_axis<mmr::op::bias_gelu, Out, mmr::tensor<float, Batch, In
// The bias is over an axis that the input lacks.
#include "model.hpp"

auto wrong(f32<Batch, In> x, f32<Out> b) {
  return mmr::bias_gelu(x, b);
}
