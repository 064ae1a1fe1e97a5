// expect: operand_lacks_axis<mmr::op::dispatch, Batch, mmr::tensor<float, Out, Seq, In
// The tokens are not grouped as the routing is.
#include <mmr/op/dispatch.hpp>

#include "model.hpp"

auto wrong(f32<Out, Seq, In> tokens, const mmr::routing<float, Batch, Heads, Features>& where) {
  return mmr::dispatch(tokens, where);
}
