// Binds what attention with stored scores takes: renamed axes, position biases and masked softmax.
#pragma once

#include <mmr/backend/cpu/bind/split.hpp>
#include <mmr/backend/cpu/masked_softmax.hpp>
#include <mmr/backend/cpu/relative_bias.hpp>
#include <mmr/op/masked_softmax.hpp>
#include <mmr/op/relative_bias.hpp>
#include <mmr/op/rename.hpp>
#include <span>

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

namespace cpu {
/// Loops: batch, query, head, key, bucket.
inline score_shape shape_of_scores(std::span<const loop_range> l) {
  return {l[0].size, l[1].begin, l[1].size, l[2].size, l[3].begin, l[3].size};
}
/// Bytes of the buckets of one row of keys, in whole elements of T.
template <class T>
std::int64_t bucket_row_bytes(std::span<const loop_range> l) {
  constexpr auto element = static_cast<std::int64_t>(sizeof(T));
  return (l[3].size * 4 + element - 1) / element * element;
}
}  // namespace cpu

template <>
struct kernel<cpu_device, op::relative_bias> {
  template <class T>
  static void run(const op::relative_bias& op, const kernel_args& args) {
    cpu::relative_bias_forward(args.input<T>(0), args.input<T>(1), args.output<T>(0), cpu::shape_of_scores(args.loops),
                               op.buckets, static_cast<std::int32_t*>(args.workspace));
  }
  template <class T>
  static std::int64_t workspace(const op::relative_bias&, const signature&, std::span<const loop_range> loops) {
    return cpu::bucket_row_bytes<T>(loops);
  }
};

template <>
struct kernel<cpu_device, op::relative_bias_grad> {
  template <class T>
  static void run(const op::relative_bias_grad& op, const kernel_args& args) {
    cpu::relative_bias_backward(args.input<T>(0), args.output<T>(0), cpu::shape_of_scores(args.loops), op.buckets,
                                args.loops[4].begin, args.loops[4].size, static_cast<std::int32_t*>(args.workspace));
  }
  template <class T>
  static std::int64_t workspace(const op::relative_bias_grad&, const signature&, std::span<const loop_range> loops) {
    return cpu::bucket_row_bytes<T>(loops);
  }
};

}  // namespace mmr
