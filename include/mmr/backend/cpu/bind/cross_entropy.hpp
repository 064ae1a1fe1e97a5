// Binds the steps of cross-entropy to their CPU kernels. The vocabulary is the last dimension of the logits, and loop
// number (dimensions - 1): the logits' loops come first.
#pragma once

#include <mmr/backend/cpu/bind/split.hpp>
#include <mmr/backend/cpu/cross_entropy.hpp>
#include <mmr/op/cross_entropy.hpp>

namespace mmr {

namespace cpu {
/// The first word of the vocabulary that this rank holds.
inline std::int64_t first_word(const kernel_args& args) {
  return args.loops[args.in[0].sizes.size() - 1].begin;
}
}  // namespace cpu

template <>
struct kernel<cpu_device, op::row_max> {
  template <class T>
  static void run(const op::row_max&, const kernel_args& args) {
    const cpu::split logits(args.in[0]);
    cpu::row_max(args.input<T>(0), args.output<T>(0), logits.rows, logits.cols);
  }
};

template <>
struct kernel<cpu_device, op::sum_exp> {
  template <class T>
  static void run(const op::sum_exp&, const kernel_args& args) {
    const cpu::split logits(args.in[0]);
    cpu::sum_exp(args.input<T>(0), args.input<T>(1), args.output<T>(0), logits.rows, logits.cols);
  }
};

template <>
struct kernel<cpu_device, op::pick> {
  template <class T>
  static void run(const op::pick&, const kernel_args& args) {
    const cpu::split logits(args.in[0]);
    cpu::pick(args.input<T>(0), args.input<std::int32_t>(1), args.output<T>(0), logits.rows, logits.cols,
              cpu::first_word(args));
  }
};

template <>
struct kernel<cpu_device, op::cross_entropy> {
  template <class T>
  static void run(const op::cross_entropy& op, const kernel_args& args) {
    *args.output<T>(0) = cpu::negative_log_likelihood(args.input<T>(0), args.input<T>(1), args.input<T>(2),
                                                      args.in[0].count(), op.factor);
  }
};

template <>
struct kernel<cpu_device, op::cross_entropy_grad> {
  template <class T>
  static void run(const op::cross_entropy_grad& op, const kernel_args& args) {
    const cpu::split logits(args.in[0]);
    cpu::cross_entropy_backward(args.input<T>(0), args.input<T>(2), args.input<T>(3), args.input<std::int32_t>(1),
                                args.output<T>(0), logits.rows, logits.cols, cpu::first_word(args),
                                static_cast<T>(op.factor * static_cast<double>(*args.input<T>(4))));
  }
};

}  // namespace mmr
