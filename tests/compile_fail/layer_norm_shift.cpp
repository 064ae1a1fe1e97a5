// expect: operand_lacks_axis<mmr::op::layer_norm, In, mmr::tensor<float, Out
// The shift is over another axis.
#include "model.hpp"

auto wrong(f32<Batch, In> x, f32<In> g, f32<Out> b) {
  return mmr::layer_norm<In>(x, g, b);
}
