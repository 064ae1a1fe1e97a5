// Rows looked up in a table that may be split by words: each rank fills in the words it holds, and the sum over ranks
// is the whole.
#pragma once

#include <cstdint>

#include "mmr/backend/cpu/elementwise.hpp"

namespace mmr::cpu {

/// out[count, n] = table[token - vocab_begin] where the token is one of this rank's vocab_rows words, else zero.
template <class T>
void embedding_forward(const T* table, const std::int32_t* tokens, T* out, int64_t count, int64_t n,
                       int64_t vocab_begin, int64_t vocab_rows) {
  for (int64_t i = 0; i < count; ++i) {
    const int64_t word = tokens[i] - vocab_begin;
    if (word >= 0 && word < vocab_rows) {
      copy(table + word * n, out + i * n, n);
    } else {
      fill(T(0), out + i * n, n);
    }
  }
}

/// dtable[vocab_rows, n] = sums of the rows of dout[count, n] whose token is that word, added in order of position.
template <class T>
void embedding_backward(const T* dout, const std::int32_t* tokens, T* dtable, int64_t count, int64_t n,
                        int64_t vocab_begin, int64_t vocab_rows) {
  fill(T(0), dtable, vocab_rows * n);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t word = tokens[i] - vocab_begin;
    if (word >= 0 && word < vocab_rows) add(dtable + word * n, dout + i * n, dtable + word * n, n);
  }
}

}  // namespace mmr::cpu
