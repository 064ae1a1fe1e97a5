// expect: operand_lacks_axis<mmr::op::add, Out,
// Two weights that give results over different axes, which do not add.
#include <mmr/graph/declaration.hpp>

#include "model.hpp"

auto wrong(f32<Batch, In> x, f32<In, Out> w, f32<In, Heads> u) {
  const auto [y, z] = mmr::contract<In>(x, w, u);
  return y + z;
}
