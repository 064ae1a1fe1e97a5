// expect: operand_lacks_axis<mmr::op::attention, Heads, mmr::tensor<float, Batch, Seq, Out, Features
// The keys lack the heads.
#include "model.hpp"

auto wrong(f32<Batch, Seq, Heads, Features> q, f32<Batch, Seq, Out, Features> k) {
  return mmr::causal_attention<Seq>(q, k, q);
}
