// expect: operand_lacks_axis<mmr::op::contract,
// Two weights that give results over different axes.
#include "model.hpp"

auto wrong(f32<Batch, In> x, f32<In, Out> w, f32<In, Heads> u) {
  return mmr::contract<In>(x, w, u);
}
