// expect: operands_have_different_axes<mmr::op::combine, mmr::tensor<float, Batch, Heads, Features, In
// The experts' results are given group by group.
#include <mmr/op/dispatch.hpp>

#include "model.hpp"

auto wrong(f32<Batch, Heads, Features, In> z, const mmr::routing<float, Batch, Heads, Features>& where) {
  return mmr::combine<Seq>(z, where);
}
