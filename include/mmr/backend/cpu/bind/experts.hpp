// Binds routing, dispatch and the balancing loss of mixtures of experts to their CPU kernels.
#pragma once

#include <mmr/backend/cpu/dispatch.hpp>
#include <mmr/backend/cpu/route.hpp>
#include <mmr/op/dispatch.hpp>
#include <mmr/op/load_balance.hpp>
#include <mmr/op/route.hpp>
#include <span>

namespace mmr {

namespace cpu {

/// Loops: group, position, expert, slot.
inline routing_shape shape_of_routing(std::span<const loop_range> loops, int top_k) {
  return {.groups = loops[0].size,
          .positions = loops[1].size,
          .experts = loops[2].size,
          .slot_begin = loops[3].begin,
          .slots = loops[3].size,
          .capacity = loops[3].extent,
          .position_begin = loops[1].begin,
          .top_k = top_k};
}

/// Bytes of n 32-bit numbers in whole elements of T.
template <class T>
std::int64_t scratch_bytes(std::int64_t n) {
  constexpr auto element = static_cast<std::int64_t>(sizeof(T));
  return (n * 4 + element - 1) / element * element;
}

/// Loops: group, position, feature, expert, slot.
inline dispatch_shape shape_of_dispatch(const kernel_args& args) {
  const auto& l = args.loops;
  return {l[0].size, l[1].begin, l[1].size, l[2].size, l[3].size, l[4].size};
}

}  // namespace cpu

template <>
struct kernel<cpu_device, op::route> {
  template <class T>
  static void run(const op::route& op, const kernel_args& args) {
    cpu::route_forward(args.input<T>(0), args.output<T>(0), args.output<std::int32_t>(1), args.output<T>(2),
                       cpu::shape_of_routing(args.loops, op.top_k), static_cast<std::int32_t*>(args.workspace));
  }
  template <class T>
  static std::int64_t workspace(const op::route& op, const signature&, std::span<const loop_range> loops) {
    return cpu::scratch_bytes<T>(cpu::route_scratch(cpu::shape_of_routing(loops, op.top_k)));
  }
};

template <>
struct kernel<cpu_device, op::route_grad> {
  template <class T>
  static void run(const op::route_grad& op, const kernel_args& args) {
    cpu::route_backward(args.input<T>(0), args.input<T>(1), args.input<std::int32_t>(2), args.output<T>(0),
                        cpu::shape_of_routing(args.loops, op.top_k), static_cast<std::int32_t*>(args.workspace));
  }
  template <class T>
  static std::int64_t workspace(const op::route_grad& op, const signature&, std::span<const loop_range>) {
    return cpu::scratch_bytes<T>(op.top_k);
  }
};

template <>
struct kernel<cpu_device, op::dispatch> {
  template <class T>
  static void run(const op::dispatch&, const kernel_args& args) {
    cpu::dispatch_forward(args.input<T>(0), args.input<std::int32_t>(1), args.output<T>(0),
                          cpu::shape_of_dispatch(args));
  }
};

template <>
struct kernel<cpu_device, op::collect> {
  template <class T>
  static void run(const op::collect&, const kernel_args& args) {
    cpu::collect_rows(args.input<T>(0), args.input<std::int32_t>(1), args.output<T>(0), cpu::shape_of_dispatch(args));
  }
};

template <>
struct kernel<cpu_device, op::combine> {
  template <class T>
  static void run(const op::combine&, const kernel_args& args) {
    cpu::combine_forward(args.input<T>(0), args.input<T>(1), args.input<std::int32_t>(2), args.output<T>(0),
                         cpu::shape_of_dispatch(args));
  }
};

template <>
struct kernel<cpu_device, op::combine_grad> {
  template <class T>
  static void run(const op::combine_grad&, const kernel_args& args) {
    cpu::combine_backward(args.input<T>(0), args.input<T>(1), args.input<T>(2), args.input<std::int32_t>(3),
                          args.output<T>(0), args.output<T>(1), cpu::shape_of_dispatch(args));
  }
};

template <>
struct kernel<cpu_device, op::load_balance> {
  template <class T>
  static void run(const op::load_balance& op, const kernel_args& args) {
    const auto &probs = args.in[0].sizes, &load = args.in[1].sizes;
    const std::int64_t groups = load[0], positions = probs[1], experts = load[1];
    T sum = 0;
    for (std::int64_t g = 0; g < groups; ++g)
      for (std::int64_t t = 0; t < positions; ++t)
        sum += cpu::detail::sum_of<T>(
            experts, [](cpu::pack<T> a, cpu::pack<T> b) { return a * b; },
            args.input<T>(0) + (g * positions + t) * experts, args.input<T>(1) + g * experts);
    *args.output<T>(0) = static_cast<T>(op.factor) * sum;
  }
};

template <>
struct kernel<cpu_device, op::load_balance_grad> {
  template <class T>
  static void run(const op::load_balance_grad& op, const kernel_args& args) {
    const auto& probs = args.out[0].sizes;
    const T factor = static_cast<T>(op.factor) * *args.input<T>(1);
    for (std::int64_t g = 0; g < probs[0]; ++g)
      for (std::int64_t t = 0; t < probs[1]; ++t)
        cpu::scale(factor, args.input<T>(0) + g * probs[2], args.output<T>(0) + (g * probs[1] + t) * probs[2],
                   probs[2]);
  }
};

}  // namespace mmr
