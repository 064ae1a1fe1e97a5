// Binds softmax and layer normalisation to their CPU kernels. Both run over the last dimension, which is never split.
#pragma once

#include <mmr/backend/cpu/bind/split.hpp>
#include <mmr/backend/cpu/layer_norm.hpp>
#include <mmr/backend/cpu/softmax.hpp>
#include <mmr/op/layer_norm.hpp>
#include <mmr/op/softmax.hpp>

namespace mmr {

template <>
struct kernel<cpu_device, op::softmax> {
  template <class T>
  static void run(const op::softmax&, const kernel_args& args) {
    const cpu::split x(args.in[0]);
    cpu::softmax_forward(args.input<T>(0), args.output<T>(0), x.rows, x.cols);
  }
};

template <>
struct kernel<cpu_device, op::softmax_grad> {
  template <class T>
  static void run(const op::softmax_grad&, const kernel_args& args) {
    const cpu::split dy(args.in[0]);
    cpu::softmax_backward(args.input<T>(0), args.input<T>(1), args.output<T>(0), dy.rows, dy.cols);
  }
};

template <>
struct kernel<cpu_device, op::layer_norm> {
  template <class T>
  static void run(const op::layer_norm& op, const kernel_args& args) {
    const cpu::split x(args.in[0]);
    cpu::layer_norm_forward(args.input<T>(0), args.input<T>(1), args.input<T>(2), args.output<T>(0), args.output<T>(1),
                            args.output<T>(2), x.rows, x.cols, static_cast<T>(op.epsilon));
  }
};

template <>
struct kernel<cpu_device, op::layer_norm_grad> {
  template <class T>
  static void run(const op::layer_norm_grad&, const kernel_args& args) {
    const cpu::split x(args.in[1]);
    cpu::layer_norm_backward(args.input<T>(0), args.input<T>(1), args.input<T>(2), args.input<T>(3), args.input<T>(4),
                             args.output<T>(0), args.output<T>(1), args.output<T>(2), x.rows, x.cols);
  }
};

}  // namespace mmr
