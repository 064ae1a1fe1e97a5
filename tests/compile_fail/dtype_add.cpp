// expect: operands_mix_dtypes<mmr::op::add, mmr::tensor<float, Batch>, mmr::tensor<double, Batch
// A float and a double term.
#include "model.hpp"

auto wrong(f32<Batch> x, f64<Batch> y) {
  return x + y;
}
