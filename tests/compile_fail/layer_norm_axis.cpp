// expect: operand_lacks_axis<mmr::op::layer_norm, Out, mmr::tensor<float, Batch, In
// The input lacks the normalised axis.
#include "model.hpp"

auto wrong(f32<Batch, In> x, f32<Out> g, f32<Out> b) {
  return mmr::layer_norm<Out>(x, g, b);
}
