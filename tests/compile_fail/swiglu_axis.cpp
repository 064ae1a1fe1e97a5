// expect: operand_lacks_axis<mmr::op::swiglu, Out, mmr::tensor<float, Batch, In
// Gate and product are over different axes.
#include <mmr/op/silu.hpp>

#include "model.hpp"

auto wrong(f32<Batch, In> gate, f32<Batch, Out> up) {
  return mmr::swiglu(gate, up);
}
