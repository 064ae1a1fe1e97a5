// Binds root-mean-square normalisation to its CPU kernels. It runs over the last dimension, which is never split.
#pragma once

#include <mmr/backend/cpu/bind/split.hpp>
#include <mmr/backend/cpu/rms_norm.hpp>
#include <mmr/op/rms_norm.hpp>

namespace mmr {

template <>
struct kernel<cpu_device, op::rms_norm> {
  template <class T>
  static void run(const op::rms_norm& op, const kernel_args& args) {
    const cpu::split x(args.in[0]);
    cpu::rms_norm_forward(args.input<T>(0), args.input<T>(1), args.output<T>(0), args.output<T>(1), x.rows, x.cols,
                          static_cast<T>(op.epsilon));
  }
};

template <>
struct kernel<cpu_device, op::rms_norm_grad> {
  template <class T>
  static void run(const op::rms_norm_grad&, const kernel_args& args) {
    const cpu::split x(args.in[1]);
    cpu::rms_norm_backward(args.input<T>(0), args.input<T>(1), args.input<T>(2), args.input<T>(3), args.output<T>(0),
                           args.output<T>(1), x.rows, x.cols);
  }
};

}  // namespace mmr
