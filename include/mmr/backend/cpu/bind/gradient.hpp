// Binds the operators that hold a training step together to their CPU kernels.
#pragma once

#include <mmr/backend/cpu/elementwise.hpp>
#include <mmr/op/gradient.hpp>

namespace mmr {

template <>
struct kernel<cpu_device, op::constant> {
  template <class T>
  static void run(const op::constant& op, const kernel_args& args) {
    cpu::fill(static_cast<T>(op.value), args.output<T>(0), args.out[0].count());
  }
};

template <>
struct kernel<cpu_device, op::accumulate> {
  template <class T>
  static void run(const op::accumulate& op, const kernel_args& args) {
    const T* const part = args.input<T>(0);
    T* const sum = args.output<T>(0);
    if (op.microbatches == 1 || args.step->microbatch == 0)
      cpu::copy(part, sum, args.out[0].count());
    else
      cpu::add(static_cast<const T*>(sum), part, sum, args.out[0].count());
  }
};

template <>
struct kernel<cpu_device, op::report> {
  template <class T>
  static void run(const op::report&, const kernel_args& args) {
    cpu::copy(args.input<T>(0), args.output<T>(0), args.out[0].count());
  }
};

}  // namespace mmr
