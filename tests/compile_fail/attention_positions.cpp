// expect: operands_have_different_axes<mmr::op::attention, mmr::tensor<float, Batch, Seq, Seq, Features>|axis_stands_twice<Seq|operands_have_different_axes<mmr::op::attention
// The positions are not the second axis.
#include "model.hpp"

auto wrong(f32<Batch, Heads, Seq, Features> q) {
  return mmr::causal_attention<Seq>(q, q, q);
}
