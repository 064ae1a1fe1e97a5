// expect: operand_misplaces_axis<mmr::op::rotary, Seq, mmr::tensor<float, Batch, Seq
// The positions are where the features must be.
#include <mmr/op/rotary.hpp>

#include "model.hpp"

auto wrong(f32<Batch, Seq> x) {
  return mmr::rotary<Seq>(x);
}
