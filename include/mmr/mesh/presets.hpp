// Devices that can be planned for without having them: speeds, memory and links by name, each figure with its source.
// Peaks are the vendor's; what programs reach of them is in the four factors of `reached`, which stand apart so that both
// can be checked.
#pragma once

#include <mmr/mesh/mesh.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace mmr {

/// A way from a device to its neighbour in a ring, in one direction.
struct device_link {
  double bytes_per_second = 0;
  double step = 0;  ///< seconds that one step of a ring collective adds
};

/// A device as it is planned for. All rates are what programs reach, not peaks.
struct device_model {
  device_speed speed;
  std::int64_t memory = 0;       ///< bytes, in the vendor's decimal gigabytes: the rest goes to driver and libraries
  device_link within, between;   ///< to a device of the same node; to one of another, as a share of the node's network
  double collective_start = 0;   ///< seconds that any collective costs
  double tf32_flops = 0;         ///< matrix products of float32 rounded to TensorFloat-32; 0 where there are none

  /// The same device with float32 matrix products in TensorFloat-32 (10 bits of mantissa): an option of the program, so
  /// no preset begins with it. Fails where the device has none.
  device_model with_tf32() const {
    if (tf32_flops <= 0) fail("the device '", speed.name, "' computes no TensorFloat-32; plan it in float32 or bfloat16");
    auto copy = *this;
    copy.speed.matrix.f32 = tf32_flops;
    return copy;
  }
};

inline constexpr std::array<std::string_view, 7> device_names{"v100-16g", "v100-32g", "a100-40g", "a100-80g",
                                                              "h100",     "h200",     "cpu-rank"};

namespace detail {

/// What the vendor's data sheet says: flop/s without sparsity, bytes/s, NVLink as it is printed there, which is both
/// directions together, and the network of the vendor's own 8-device node in one direction.
struct data_sheet {
  std::string_view name;
  flop_rates matrix, other;
  double tf32 = 0;
  double memory_rate = 0;
  std::int64_t memory = 0;
  double nvlink_both_ways = 0;
  double node_network = 0;
  double matrix_reached = 0;  ///< of the peak of matrix products, by large ones
};

// What is reached of the other peaks.
inline constexpr double memory_reached = 0.9;   // an assumption: streaming kernels reach 0.85 to 0.95 of the data sheet
inline constexpr double arithmetic_reached = 0.5;  // an assumption: few formulas are all multiply-add, which the peak counts
inline constexpr double link_reached = 0.8;     // NCCL's own model takes 235 of 300 GB/s for A100 (src/graph/tuning.cc)

inline device_model gpu(const data_sheet& d) {
  const auto scaled = [](flop_rates r, double by) { return flop_rates{r.f64 * by, r.f32 * by, r.bf16 * by}; };
  device_model m;
  m.speed.name = std::string(d.name);
  m.speed.matrix = scaled(d.matrix, d.matrix_reached);
  m.speed.other = scaled(d.other, arithmetic_reached);
  m.speed.memory_bytes = d.memory_rate * memory_reached;
  m.speed.launch = 4e-6;  // an assumption: queued kernels of a CUDA stream start 2 to 5 us apart
  m.speed.cpu = false;
  m.memory = d.memory;
  // NCCL's model of a ring (src/graph/tuning.cc, protocol LL128): 14 us to start, then 1.9 us a step over NVLink and
  // 4.0 us over a network.
  m.collective_start = 14e-6;
  m.within = {d.nvlink_both_ways / 2 * link_reached, 1.9e-6};
  m.between = {d.node_network / 8 * link_reached, 4.0e-6};
  m.tf32_flops = d.tf32 * d.matrix_reached;
  return m;
}

inline constexpr double tera = 1e12, giga = 1e9;
/// Bytes/s of one direction of an InfiniBand port of so many Gbit/s.
constexpr double infiniband(double gigabits) { return gigabits * giga / 8; }

// NVIDIA Tesla V100 data sheet (2018) and whitepaper WP-08608, SXM2: 7.8 / 15.7 / 125 Tflop/s, 900 GB/s, 16 or 32 GB,
// NVLink 300 GB/s. Its tensor cores take float16 and no bfloat16: the two-byte rate is that of float16. float16 outside
// of matrix products is computed in float32. Network: DGX-1, four EDR ports of 100 Gbit/s for 8 devices (DGX-1 system
// architecture, WP-08437). Reached: 83 Tflop/s (Markidis et al., 2018, doi 10.1109/IPDPSW.2018.00091).
inline constexpr data_sheet v100{.name = "v100-32g",
                                 .matrix = {.f64 = 7.8 * tera, .f32 = 15.7 * tera, .bf16 = 125 * tera},
                                 .other = {.f64 = 7.8 * tera, .f32 = 15.7 * tera, .bf16 = 15.7 * tera},
                                 .memory_rate = 900 * giga,
                                 .memory = 32'000'000'000,
                                 .nvlink_both_ways = 300 * giga,
                                 .node_network = 4 * infiniband(100),
                                 .matrix_reached = 83.0 / 125};

// NVIDIA A100 data sheet (2021) and Ampere whitepaper, SXM4: float64 9.7, by tensor cores 19.5; float32 19.5; TF32 156;
// bfloat16 and float16 312 Tflop/s; 40 GB at 1,555 GB/s or 80 GB at 2,039 GB/s; NVLink 600 GB/s. Network: DGX A100, eight
// HDR ports of 200 Gbit/s. Reached: 271.2 of 312 Tflop/s (Bekman, Machine Learning Engineering, table of maximum
// achievable matmul flop/s).
inline constexpr data_sheet a100{.name = "a100-80g",
                                 .matrix = {.f64 = 19.5 * tera, .f32 = 19.5 * tera, .bf16 = 312 * tera},
                                 .other = {.f64 = 9.7 * tera, .f32 = 19.5 * tera, .bf16 = 19.5 * tera},
                                 .tf32 = 156 * tera,
                                 .memory_rate = 2039 * giga,
                                 .memory = 80'000'000'000,
                                 .nvlink_both_ways = 600 * giga,
                                 .node_network = 8 * infiniband(200),
                                 .matrix_reached = 271.2 / 312};

// NVIDIA H100 data sheet (2023), SXM5, the figures without sparsity: float64 34, by tensor cores 67; float32 67; TF32
// 494.7 (printed with sparsity: 989); bfloat16 and float16 989.4 Tflop/s (printed: 1,979); 80 GB at 3.35 TB/s; NVLink
// 900 GB/s. Network: DGX H100, eight NDR ports of 400 Gbit/s. Reached: 794.5 of 989 Tflop/s (Bekman, as above).
inline constexpr data_sheet h100{.name = "h100",
                                 .matrix = {.f64 = 67 * tera, .f32 = 67 * tera, .bf16 = 989.4 * tera},
                                 .other = {.f64 = 34 * tera, .f32 = 67 * tera, .bf16 = 67 * tera},
                                 .tf32 = 494.7 * tera,
                                 .memory_rate = 3350 * giga,
                                 .memory = 80'000'000'000,
                                 .nvlink_both_ways = 900 * giga,
                                 .node_network = 8 * infiniband(400),
                                 .matrix_reached = 794.5 / 989.4};

/// A sheet of the same chip with other memory.
constexpr data_sheet remembering(data_sheet d, std::string_view name, std::int64_t memory, double rate) {
  d.name = name;
  d.memory = memory;
  d.memory_rate = rate;
  return d;
}

}  // namespace detail

/// The device of this name, one of `device_names`. "cpu-rank" is the guess that meshes begin with: one process or thread
/// on a CPU. Fails with the list of names for any other.
inline device_model device_preset(std::string_view name) {
  using namespace detail;
  if (name == "v100-16g") return gpu(remembering(v100, name, 16'000'000'000, 900 * giga));
  if (name == "v100-32g") return gpu(v100);
  if (name == "a100-40g") return gpu(remembering(a100, name, 40'000'000'000, 1555 * giga));
  if (name == "a100-80g") return gpu(a100);
  if (name == "h100") return gpu(h100);
  // NVIDIA H200 data sheet (2024): the chip of H100 with 141 GB at 4.8 TB/s.
  if (name == "h200") return gpu(remembering(h100, name, 141'000'000'000, 4800 * giga));
  if (name == "cpu-rank") {
    device_model m;
    const mesh_axis link;
    m.memory = 8'000'000'000;  // an assumption: a rank's share of a usual machine
    m.collective_start = link.latency;
    m.within = {1 / link.seconds_per_byte, 0};
    m.between = {1.25 * giga, 30e-6};  // an assumption: Ethernet of 10 Gbit/s for each rank
    return m;
  }
  std::string names;
  for (const auto n : device_names) names += (names.empty() ? "" : ", ") + std::string(n);
  fail("there is no device '", name, "'; the devices are ", names);
}

}  // namespace mmr
