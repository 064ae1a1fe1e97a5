// Binds attention to its CPU kernels.
#pragma once

#include <cmath>
#include <mmr/backend/cpu/attention.hpp>
#include <mmr/op/attention.hpp>
#include <optional>
#include <span>

namespace mmr {

namespace cpu {
/// Loops: batch, query position, head, key position, head feature, and perhaps group. A rank may hold some of the query
/// positions and of the group.
inline attention_shape shape_of_attention(std::span<const loop_range> loops, bool causal, std::optional<double> scale) {
  return {.batch = loops[0].size,
          .queries = loops[1].size,
          .keys = loops[3].size,
          .heads = loops[2].size,
          .head_size = loops[4].size,
          .query_begin = loops[1].begin,
          .causal = causal,
          .scale = scale.value_or(1 / std::sqrt(static_cast<double>(loops[4].extent))),
          .group = loops.size() > 5 ? loops[5].size : 1};
}
}  // namespace cpu

template <>
struct kernel<cpu_device, op::attention> {
  template <class T>
  static void run(const op::attention& op, const kernel_args& args) {
    cpu::attention_forward(args.input<T>(0), args.input<T>(1), args.input<T>(2), args.output<T>(0), args.output<T>(1),
                           cpu::shape_of_attention(args.loops, op.causal, op.scale), args.workspace);
  }
  template <class T>
  static std::int64_t workspace(const op::attention& op, const signature&, std::span<const loop_range> loops) {
    return cpu::attention_forward_workspace<T>(cpu::shape_of_attention(loops, op.causal, op.scale));
  }
};

template <>
struct kernel<cpu_device, op::attention_grad> {
  template <class T>
  static void run(const op::attention_grad& op, const kernel_args& args) {
    cpu::attention_backward(args.input<T>(0), args.input<T>(1), args.input<T>(2), args.input<T>(3), args.input<T>(4),
                            args.input<T>(5), args.output<T>(0), args.output<T>(1), args.output<T>(2),
                            cpu::shape_of_attention(args.loops, op.causal, op.scale), args.workspace);
  }
  template <class T>
  static std::int64_t workspace(const op::attention_grad& op, const signature&, std::span<const loop_range> loops) {
    return cpu::attention_backward_workspace<T>(cpu::shape_of_attention(loops, op.causal, op.scale));
  }
};

}  // namespace mmr
