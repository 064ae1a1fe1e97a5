// expect: operand_lacks_axis<mmr::op::rename, Seq, mmr::tensor<float, Batch, In
// The axis to be renamed is not there.
#include <mmr/op/rename.hpp>

#include "model.hpp"

auto wrong(f32<Batch, In> x) {
  return mmr::rename<Seq, Out>(x);
}
