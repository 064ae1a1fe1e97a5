// expect: operand_lacks_axis<mmr::op::rms_norm, In, mmr::tensor<float, Out
// The gain is over another axis.
#include <mmr/op/rms_norm.hpp>

#include "model.hpp"

auto wrong(f32<Batch, In> x, f32<Out> g) {
  return mmr::rms_norm<In>(x, g);
}
