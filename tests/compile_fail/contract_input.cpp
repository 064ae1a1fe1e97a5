// expect: operand_lacks_axis<mmr::op::contract, Out, mmr::tensor<float, Batch, In
// The input lacks the contracted axis.
#include "model.hpp"

auto wrong(f32<Batch, In> x, f32<In, Out> w) {
  return mmr::contract<Out>(x, w);
}
