// expect: operand_misplaces_axis<mmr::op::attention, Seq, mmr::tensor<float, Batch, Heads, Seq
// The positions are not the second axis.
#include "model.hpp"

auto wrong(f32<Batch, Heads, Seq, Features> q) { return mmr::causal_attention<Seq>(q, q, q); }
