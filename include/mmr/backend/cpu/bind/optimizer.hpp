// Binds parameter updates and global-norm clipping to their CPU kernels.
#pragma once

#include <cmath>
#include <mmr/backend/cpu/elementwise.hpp>
#include <mmr/backend/cpu/optimizer.hpp>
#include <mmr/op/optimizer.hpp>

namespace mmr {

namespace cpu {

/// The clip scale, where the update has one.
template <class T>
double gradient_scale(const kernel_args& args) {
  return args.in.size() > 2 ? static_cast<double>(*args.input<T>(2)) : 1.0;
}

/// The buffer of the new parameter, holding the old one.
template <class T>
T* parameter_to_update(const kernel_args& args) {
  copy(args.input<T>(1), args.output<T>(0), args.out[0].count());
  return args.output<T>(0);
}

}  // namespace cpu

template <>
struct kernel<cpu_device, op::sum_squares> {
  template <class T>
  static void run(const op::sum_squares&, const kernel_args& args) {
    *args.output<T>(0) = static_cast<T>(cpu::sum_squares(args.input<T>(0), args.in[0].count()));
  }
};

template <>
struct kernel<cpu_device, op::sum_of> {
  template <class T>
  static void run(const op::sum_of&, const kernel_args& args) {
    T* const sum = args.output<T>(0);
    cpu::copy(args.input<T>(0), sum, args.out[0].count());
    for (std::size_t i = 1; i < args.in.size(); ++i)
      cpu::add(static_cast<const T*>(sum), args.input<T>(i), sum, args.out[0].count());
  }
};

template <>
struct kernel<cpu_device, op::clip_scale> {
  template <class T>
  static void run(const op::clip_scale& op, const kernel_args& args) {
    for (std::int64_t i = 0; i < args.out[0].count(); ++i) {
      const double factor = op.limit / (std::sqrt(static_cast<double>(args.input<T>(0)[i])) + 1e-6);
      // Written so that NaN stays NaN, and is found.
      args.output<T>(0)[i] = static_cast<T>(factor > 1 ? 1 : factor);
    }
  }
};

template <>
struct kernel<cpu_device, op::sgd> {
  template <class T>
  static void run(const op::sgd& op, const kernel_args& args) {
    T* const velocity = args.state.empty() ? nullptr : args.state[0].template as<T>();
    cpu::sgd(cpu::parameter_to_update<T>(args), args.input<T>(0), velocity, args.out[0].count(),
             args.step->learning_rate, op.momentum, op.weight_decay, cpu::gradient_scale<T>(args));
  }
};

template <>
struct kernel<cpu_device, op::adamw> {
  template <class T>
  static void run(const op::adamw& op, const kernel_args& args) {
    cpu::adamw(cpu::parameter_to_update<T>(args), args.input<T>(0), args.state[0].template as<T>(),
               args.state[1].template as<T>(), args.out[0].count(),
               {args.step->learning_rate, op.beta1, op.beta2, op.epsilon, op.weight_decay, args.step->step + 1,
                cpu::gradient_scale<T>(args)});
  }
};

}  // namespace mmr
