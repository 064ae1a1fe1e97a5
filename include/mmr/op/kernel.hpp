// The door between operators and devices: what a kernel is given, and the template that binds one to an operator.
#pragma once

#include <mmr/op/signature.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace mmr {

/// The part of one loop that this rank runs: global positions [begin, begin + size) of `extent`.
struct loop_range {
  std::int64_t begin = 0, size = 0, extent = 0;
};

/// A dense row-major local shard in device memory; sizes[d] elements along dimension d.
struct tensor_view {
  void* data = nullptr;
  dtype element = dtype::f32;
  std::span<const std::int64_t> sizes;

  std::int64_t count() const {
    std::int64_t n = 1;
    for (auto s : sizes) n *= s;
    return n;
  }
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

/// What changes from step to step and is the same on all ranks.
struct step_info {
  std::uint64_t seed = 0;
  std::int64_t step = 0;          ///< optimizer steps already taken
  std::int64_t microbatch = 0;    ///< index within the step
  std::int64_t microbatches = 1;
  double learning_rate = 0;
};

/// Everything a kernel may touch.
struct kernel_args {
  std::span<const loop_range> loops;
  std::span<const tensor_view> in, out, state;
  void* workspace = nullptr;
  const step_info* step = nullptr;
  const signature* shape = nullptr;  ///< the operator's loop nest: which loop walks each dimension

  const loop_range& range(int l) const { return loops[static_cast<std::size_t>(l)]; }
  template <class T>
  const T* input(std::size_t i) const {
    return in[i].template as<const T>();
  }
  template <class T>
  T* output(std::size_t i) const {
    return out[i].template as<T>();
  }
};

/// Devices are tag types; this one runs kernels on the calling thread. (The kernels themselves are in namespace cpu.)
struct cpu_device {
  static constexpr const char* name = "cpu";
};

/// Specialise for a device and an operator:
///   template <class T> static void run(const Op&, const kernel_args&);  T: float, double
///   template <class T> static std::int64_t workspace(const Op&, const signature&, std::span<const loop_range>);
/// The second is optional: bytes that run() may use at kernel_args::workspace for these ranges of the loops.
template <class Device, class Op>
struct kernel {
  static constexpr bool missing = true;
};

template <class Device, class Op>
concept has_kernel = !requires { kernel<Device, Op>::missing; };

}  // namespace mmr
