// expect: axis_stands_twice<Vocab
// The tokens have the axis of the vocabulary.
#include "model.hpp"

auto wrong(mmr::tensor<std::int32_t, Vocab> tokens, f32<Vocab, In> table) {
  return mmr::embedding(tokens, table);
}
