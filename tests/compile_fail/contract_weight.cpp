// expect: operand_lacks_axis<mmr::op::contract, In, mmr::tensor<float, Seq, Out
// The second of two weights lacks the contracted axis.
#include "model.hpp"

auto wrong(f32<Batch, In> x, f32<In, Out> w, f32<Seq, Out> u) {
  return mmr::contract<In>(x, w, u);
}
