// Binds SiLU and SwiGLU to their CPU kernels.
#pragma once

#include <mmr/backend/cpu/silu.hpp>
#include <mmr/op/silu.hpp>

namespace mmr {

template <>
struct kernel<cpu_device, op::silu> {
  template <class T>
  static void run(const op::silu&, const kernel_args& args) {
    cpu::silu_forward(args.input<T>(0), args.output<T>(0), args.out[0].count());
  }
};

template <>
struct kernel<cpu_device, op::silu_grad> {
  template <class T>
  static void run(const op::silu_grad&, const kernel_args& args) {
    cpu::silu_backward(args.input<T>(0), args.input<T>(1), args.output<T>(0), args.out[0].count());
  }
};

template <>
struct kernel<cpu_device, op::swiglu> {
  template <class T>
  static void run(const op::swiglu&, const kernel_args& args) {
    cpu::swiglu_forward(args.input<T>(0), args.input<T>(1), args.output<T>(0), args.out[0].count());
  }
};

template <>
struct kernel<cpu_device, op::swiglu_grad> {
  template <class T>
  static void run(const op::swiglu_grad&, const kernel_args& args) {
    cpu::swiglu_backward(args.input<T>(0), args.input<T>(1), args.input<T>(2), args.output<T>(0), args.output<T>(1),
                         args.out[0].count());
  }
};

}  // namespace mmr
