// Binds dropout to its CPU kernels: gives them the place of the shard in the whole tensor and the key of the mask.
#pragma once

#include <mmr/backend/cpu/bind/split.hpp>
#include <mmr/backend/cpu/dropout.hpp>
#include <mmr/op/dropout.hpp>
#include <string_view>
#include <tuple>

namespace mmr {

namespace cpu {

/// The shard of operand 0, whose dimensions are the first loops in order.
inline box shard_of_operand(const kernel_args& args, std::string_view op) {
  constexpr std::size_t most = sizeof(box::size) / sizeof(box::size[0]);
  const std::size_t dims = args.in[0].sizes.size();
  if (dims > most) fail(op, ": its operand has ", dims, " axes; it takes at most ", most);
  box b{};
  b.rank = std::max(1, static_cast<int>(dims));
  b.size[0] = b.global[0] = 1;
  for (std::size_t d = 0; d < dims; ++d) {
    b.size[d] = args.loops[d].size;
    b.begin[d] = args.loops[d].begin;
    b.global[d] = args.loops[d].extent;
  }
  return b;
}

/// A stream of its own for each operator (upper half) and microbatch since the beginning of training (lower half).
inline philox_stream mask_key(std::uint32_t operator_stream, const step_info& now) {
  const auto batch = static_cast<std::uint64_t>(now.step * now.microbatches + now.microbatch);
  return {now.seed, std::uint64_t{operator_stream} << 32 | (batch & 0xffffffffU)};
}

}  // namespace cpu

template <>
struct kernel<cpu_device, op::dropout> {
  template <class T>
  static void run(const op::dropout& op, const kernel_args& args) {
    cpu::dropout(args.input<T>(0), args.output<T>(0), cpu::shard_of_operand(args, op.name),
                 cpu::mask_key(op.stream, *args.step), op.probability);
  }
};

template <>
struct kernel<cpu_device, op::dropout_bias_grad> {
  template <class T>
  static void run(const op::dropout_bias_grad& op, const kernel_args& args) {
    const cpu::split dx(args.in[0], op.kept);
    cpu::dropout(args.input<T>(0), args.output<T>(0), cpu::shard_of_operand(args, op.name),
                 cpu::mask_key(op.stream, *args.step), op.probability);
    cpu::column_sums(static_cast<const T*>(args.output<T>(0)), args.output<T>(1), dx.rows, dx.cols);
  }
};

template <>
struct kernel<cpu_device, op::bias_dropout_add> {
  template <class T>
  static void run(const op::bias_dropout_add& op, const kernel_args& args) {
    const auto [x, b, residual, y] =
        std::tuple(args.input<T>(0), args.input<T>(1), args.input<T>(2), args.output<T>(0));
    const auto shard = cpu::shard_of_operand(args, op.name);
    const auto key = cpu::mask_key(op.stream, *args.step);
    const std::size_t bias_axes = args.in[1].sizes.size();
    if (bias_axes == 1) return cpu::bias_dropout_add_forward(x, b, residual, y, shard, key, op.probability);
    // The fused kernel takes a bias over one axis. The result may take over x but never the residual.
    const cpu::split whole(args.in[0], bias_axes);
    cpu::add_bias(x, b, y, whole.rows, whole.cols);
    cpu::dropout(static_cast<const T*>(y), y, shard, key, op.probability);
    cpu::add(residual, static_cast<const T*>(y), y, args.out[0].count());
  }
};

template <>
struct kernel<cpu_device, op::stored_dropout> {
  template <class T>
  static void run(const op::stored_dropout& op, const kernel_args& args) {
    cpu::stored_dropout_forward(args.input<T>(0), args.output<T>(0), args.output<std::uint8_t>(1),
                                cpu::shard_of_operand(args, op.name), cpu::mask_key(op.stream, *args.step),
                                op.probability);
  }
};

template <>
struct kernel<cpu_device, op::stored_dropout_grad> {
  template <class T>
  static void run(const op::stored_dropout_grad& op, const kernel_args& args) {
    cpu::stored_dropout_backward(args.input<T>(0), args.input<std::uint8_t>(1), args.output<T>(0), args.in[0].count(),
                                 op.probability);
  }
};

}  // namespace mmr
