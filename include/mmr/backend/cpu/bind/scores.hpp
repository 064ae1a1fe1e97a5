// Binds what attention with stored scores takes: renamed axes and masked softmax.
#pragma once

#include <mmr/backend/cpu/bind/split.hpp>
#include <mmr/backend/cpu/masked_softmax.hpp>
#include <mmr/op/masked_softmax.hpp>
#include <mmr/op/rename.hpp>

namespace mmr {

template <>
struct kernel<cpu_device, op::rename> {
  template <class T>
  static void run(const op::rename&, const kernel_args& args) {
    cpu::copy(args.input<T>(0), args.output<T>(0), args.out[0].count());
  }
};

template <>
struct kernel<cpu_device, op::masked_softmax> {
  template <class T>
  static void run(const op::masked_softmax& op, const kernel_args& args) {
    const cpu::split x(args.in[0]);
    cpu::key_mask mask;
    if (op.query >= 0) {
      const auto q = static_cast<std::size_t>(op.query);
      mask = {true, args.loops[q].begin, args.loops[q].size, 1};
      for (std::size_t d = q + 1; d + 1 < args.in[0].sizes.size(); ++d) mask.inner *= args.in[0].sizes[d];
    }
    cpu::masked_softmax_forward(args.input<T>(0), args.output<T>(0), x.rows, x.cols, static_cast<T>(op.scale), mask);
  }
};

template <>
struct kernel<cpu_device, op::masked_softmax_grad> {
  template <class T>
  static void run(const op::masked_softmax_grad& op, const kernel_args& args) {
    const cpu::split dy(args.in[0]);
    cpu::masked_softmax_backward(args.input<T>(0), args.input<T>(1), args.output<T>(0), dy.rows, dy.cols,
                                 static_cast<T>(op.scale));
  }
};

}  // namespace mmr
