// expect: operand_must_have_dtype<mmr::op::embedding, int, mmr::tensor<float, Batch
// Tokens are int32.
#include "model.hpp"

auto wrong(f32<Batch> tokens, f32<Vocab, In> table) {
  return mmr::embedding(tokens, table);
}
