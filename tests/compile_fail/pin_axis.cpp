// expect: operand_lacks_axis<mmr::pins, Seq, mmr::tensor<float, Batch, In
// A pin on an axis that the tensor does not have.
#include <mmr/plan/pin.hpp>

#include "model.hpp"

void wrong(mmr::pins& pins, f32<Batch, In> x) {
  pins.shard<Seq>(x, "data");
}
