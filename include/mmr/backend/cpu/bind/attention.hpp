// Binds causal attention to its CPU kernels.
#pragma once

#include <cmath>
#include <mmr/backend/cpu/attention.hpp>
#include <mmr/op/attention.hpp>
#include <span>

namespace mmr {

namespace cpu {
/// Loops: batch, query position, head, key position, head feature. A rank may hold some of the query positions.
inline attention_shape shape_of_attention(std::span<const loop_range> loops) {
  return {.batch = loops[0].size,
          .queries = loops[1].size,
          .keys = loops[3].size,
          .heads = loops[2].size,
          .head_size = loops[4].size,
          .query_begin = loops[1].begin,
          .causal = true,
          .scale = 1 / std::sqrt(static_cast<double>(loops[4].extent))};
}
}  // namespace cpu

template <>
struct kernel<cpu_device, op::attention> {
  template <class T>
  static void run(const op::attention&, const kernel_args& args) {
    cpu::attention_forward(args.input<T>(0), args.input<T>(1), args.input<T>(2), args.output<T>(0), args.output<T>(1),
                           cpu::shape_of_attention(args.loops), args.workspace);
  }
  template <class T>
  static std::int64_t workspace(const op::attention&, const signature&, std::span<const loop_range> loops) {
    return cpu::attention_forward_workspace<T>(cpu::shape_of_attention(loops));
  }
};

template <>
struct kernel<cpu_device, op::attention_grad> {
  template <class T>
  static void run(const op::attention_grad&, const kernel_args& args) {
    cpu::attention_backward(args.input<T>(0), args.input<T>(1), args.input<T>(2), args.input<T>(3), args.input<T>(4),
                            args.input<T>(5), args.output<T>(0), args.output<T>(1), args.output<T>(2),
                            cpu::shape_of_attention(args.loops), args.workspace);
  }
  template <class T>
  static std::int64_t workspace(const op::attention_grad&, const signature&, std::span<const loop_range> loops) {
    return cpu::attention_backward_workspace<T>(cpu::shape_of_attention(loops));
  }
};

}  // namespace mmr
