// Binds the embedding lookup to its CPU kernels.
#pragma once

#include <mmr/backend/cpu/bind/split.hpp>
#include <mmr/backend/cpu/embedding.hpp>
#include <mmr/op/embedding.hpp>

namespace mmr {

template <>
struct kernel<cpu_device, op::embedding> {
  template <class T>
  static void run(const op::embedding&, const kernel_args& args) {
    const cpu::split table(args.in[1], args.in[1].sizes.size() - 1);
    // The tokens' loops, then the vocabulary.
    const auto& words = args.loops[args.in[0].sizes.size()];
    cpu::embedding_forward(args.input<T>(1), args.input<std::int32_t>(0), args.output<T>(0), args.in[0].count(),
                           table.cols, words.begin, words.size);
  }
};

template <>
struct kernel<cpu_device, op::embedding_grad> {
  template <class T>
  static void run(const op::embedding_grad& op, const kernel_args& args) {
    const cpu::split table(args.out[0], args.out[0].sizes.size() - 1);
    const auto& words = args.loops[op.vocabulary];
    cpu::embedding_backward(args.input<T>(1), args.input<std::int32_t>(0), args.output<T>(0), args.in[0].count(),
                            table.cols, words.begin, words.size);
  }
};

}  // namespace mmr
