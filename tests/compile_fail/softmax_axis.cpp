// expect: operand_lacks_axis<mmr::op::softmax, Out, mmr::tensor<float, Batch, In
// The input lacks the axis.
#include "model.hpp"

auto wrong(f32<Batch, In> x) {
  return mmr::softmax<Out>(x);
}
