// expect: operand_lacks_axis<mmr::op::attention, Out, mmr::tensor<float, Batch, Seq, Heads, Features
// The keys are not at the positions that cross-attention reads.
#include "model.hpp"

auto wrong(f32<Batch, Seq, Heads, Features> q, f32<Batch, Seq, Heads, Features> k) {
  return mmr::attention<Seq, Out>(q, k, k);
}
