// expect: operands_mix_dtypes<mmr::op::linear, mmr::tensor<float, Batch, In>, mmr::tensor<double, In, Out
// A float input and a double weight.
#include "model.hpp"

auto wrong(f32<Batch, In> x, f64<In, Out> w) {
  return mmr::linear(x, w);
}
