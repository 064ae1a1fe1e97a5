// expect: operand_must_end_with_axis<mmr::op::layer_norm, Batch, mmr::tensor<float, Batch, In
// The normalised axis is not the last one.
#include "model.hpp"

auto wrong(f32<Batch, In> x, f32<Batch> g, f32<Batch> b) {
  return mmr::layer_norm<Batch>(x, g, b);
}
