// Binds sums, products, biases and GeLU to their CPU kernels.
#pragma once

#include <mmr/backend/cpu/bias.hpp>
#include <mmr/backend/cpu/bind/split.hpp>
#include <mmr/backend/cpu/elementwise.hpp>
#include <mmr/backend/cpu/gelu.hpp>
#include <mmr/op/add.hpp>
#include <mmr/op/bias.hpp>
#include <mmr/op/gelu.hpp>

namespace mmr {

template <>
struct kernel<cpu_device, op::add> {
  template <class T>
  static void run(const op::add&, const kernel_args& args) {
    cpu::add(args.input<T>(0), args.input<T>(1), args.output<T>(0), args.out[0].count());
  }
};

template <>
struct kernel<cpu_device, op::multiply> {
  template <class T>
  static void run(const op::multiply&, const kernel_args& args) {
    cpu::multiply(args.input<T>(0), args.input<T>(1), args.output<T>(0), args.out[0].count());
  }
};

template <>
struct kernel<cpu_device, op::scale> {
  template <class T>
  static void run(const op::scale& op, const kernel_args& args) {
    cpu::scale(static_cast<T>(op.factor), args.input<T>(0), args.output<T>(0), args.out[0].count());
  }
};

template <>
struct kernel<cpu_device, op::sum_leading> {
  template <class T>
  static void run(const op::sum_leading& op, const kernel_args& args) {
    const cpu::split x(args.in[0], op.kept);
    cpu::column_sums(args.input<T>(0), args.output<T>(0), x.rows, x.cols);
  }
};

template <>
struct kernel<cpu_device, op::bias> {
  template <class T>
  static void run(const op::bias&, const kernel_args& args) {
    const cpu::split x(args.in[0], args.in[1].sizes.size());
    cpu::add_bias(args.input<T>(0), args.input<T>(1), args.output<T>(0), x.rows, x.cols);
  }
};

template <>
struct kernel<cpu_device, op::gelu> {
  template <class T>
  static void run(const op::gelu&, const kernel_args& args) {
    cpu::gelu_forward(args.input<T>(0), args.output<T>(0), args.out[0].count());
  }
};

template <>
struct kernel<cpu_device, op::gelu_grad> {
  template <class T>
  static void run(const op::gelu_grad&, const kernel_args& args) {
    cpu::gelu_backward(args.input<T>(0), args.input<T>(1), args.output<T>(0), args.out[0].count());
  }
};

template <>
struct kernel<cpu_device, op::bias_gelu> {
  template <class T>
  static void run(const op::bias_gelu&, const kernel_args& args) {
    const cpu::split x(args.in[0], args.in[1].sizes.size());
    cpu::bias_gelu_forward(args.input<T>(0), args.input<T>(1), args.output<T>(0), x.rows, x.cols);
  }
};

template <>
struct kernel<cpu_device, op::bias_gelu_grad> {
  template <class T>
  static void run(const op::bias_gelu_grad&, const kernel_args& args) {
    const cpu::split x(args.in[0], args.in[2].sizes.size());
    cpu::bias_gelu_backward(args.input<T>(0), args.input<T>(1), args.input<T>(2), args.output<T>(0), args.output<T>(1),
                            x.rows, x.cols);
  }
};

}  // namespace mmr
