// expect: operands_mix_dtypes<mmr::op::bias, mmr::tensor<float, Batch, In>, mmr::tensor<double, In
// A float input and a double bias.
#include "model.hpp"

auto wrong(f32<Batch, In> x, f64<In> b) {
  return mmr::bias(x, b);
}
