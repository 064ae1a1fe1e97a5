// Binds cross-entropy over the rows that have a target to its CPU kernels.
#pragma once

#include <algorithm>
#include <mmr/backend/cpu/bind/cross_entropy.hpp>
#include <mmr/backend/cpu/masked_cross_entropy.hpp>
#include <mmr/op/masked_cross_entropy.hpp>

namespace mmr {

template <>
struct kernel<cpu_device, op::count_targets> {
  template <class T>
  static void run(const op::count_targets&, const kernel_args& args) {
    *args.output<std::int32_t>(0) = cpu::count_targets(args.input<std::int32_t>(0), args.in[0].count());
  }
};

template <>
struct kernel<cpu_device, op::masked_cross_entropy> {
  template <class T>
  static void run(const op::masked_cross_entropy& op, const kernel_args& args) {
    const double counted = std::max(1, *args.input<std::int32_t>(4));
    *args.output<T>(0) =
        cpu::masked_negative_log_likelihood(args.input<T>(0), args.input<T>(1), args.input<T>(2),
                                            args.input<std::int32_t>(3), args.in[0].count(), op.factor / counted);
  }
};

template <>
struct kernel<cpu_device, op::masked_cross_entropy_grad> {
  template <class T>
  static void run(const op::masked_cross_entropy_grad& op, const kernel_args& args) {
    const cpu::split logits(args.in[0]);
    const double counted = std::max(1, *args.input<std::int32_t>(4));
    const double factor = op.factor * static_cast<double>(*args.input<T>(5)) / counted;
    cpu::masked_cross_entropy_backward(args.input<T>(0), args.input<T>(2), args.input<T>(3),
                                       args.input<std::int32_t>(1), args.output<T>(0), logits.rows, logits.cols,
                                       cpu::first_word(args), static_cast<T>(factor));
  }
};

}  // namespace mmr
