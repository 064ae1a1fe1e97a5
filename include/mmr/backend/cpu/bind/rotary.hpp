// Binds rotary position embedding to its CPU kernel.
#pragma once

#include <mmr/backend/cpu/rotary.hpp>
#include <mmr/op/rotary.hpp>
#include <span>

namespace mmr {

namespace cpu {
/// The loops are the operand's dimensions in order; positions are global.
inline rotary_shape shape_of_rotary(const op::rotary& op, const signature& shape, std::span<const loop_range> loops) {
  const auto at = static_cast<std::size_t>(shape.find_loop(op.positions));
  rotary_shape s{1, loops[at].size, 1, loops.back().size, loops[at].begin, op.theta, op.back};
  for (std::size_t l = 0; l < at; ++l) s.outer *= loops[l].size;
  for (std::size_t l = at + 1; l + 1 < loops.size(); ++l) s.inner *= loops[l].size;
  return s;
}
}  // namespace cpu

template <>
struct kernel<cpu_device, op::rotary> {
  template <class T>
  static void run(const op::rotary& op, const kernel_args& args) {
    cpu::rotary(args.input<T>(0), args.output<T>(0), cpu::shape_of_rotary(op, *args.shape, args.loops), args.workspace);
  }
  template <class T>
  static std::int64_t workspace(const op::rotary& op, const signature& shape, std::span<const loop_range> loops) {
    return cpu::rotary_workspace<T>(cpu::shape_of_rotary(op, shape, loops));
  }
};

}  // namespace mmr
