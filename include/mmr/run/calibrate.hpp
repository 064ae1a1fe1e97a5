// Measures the device and the communicator at hand, and returns a mesh with what it found: planning with that mesh is
// planning for this machine. Figures of the time model come from the library's own kernels and collectives.
//
//   const auto measured = mmr::calibrate(world, mmr::mesh::parse("data=2,model=2"));
//   if (world.rank() == 0) mmr::save_mesh(measured, "machine.json");
//   mmr::planner planner(graph, mmr::load_mesh("machine.json"));
#pragma once

#include <mmr/op/add.hpp>
#include <mmr/op/contract.hpp>
#include <mmr/op/gelu.hpp>
#include <mmr/op/softmax.hpp>
#include <mmr/run/memory.hpp>
#include <mmr/run/resharder.hpp>
#include <mmr/run/stopwatch.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mmr {

/// How long a calibration takes: the defaults measure four ranks on two cores within a few seconds.
struct calibration_effort {
  int rounds = 5;                       ///< medians are of so many rounds
  double least_seconds = 4e-3;          ///< that a round lasts
  std::int64_t memory_bytes = 16 << 20; ///< of each of the three arrays that memory is measured with: beyond the caches
  std::int64_t link_bytes = 4 << 20;    ///< of the largest tensor that is moved
};

/// seconds = latency + per_byte * bytes.
struct link_fit {
  double latency = 0, per_byte = 0;
};
struct link_sample {
  double bytes = 0, seconds = 0;
};

/// The line through the samples that makes the squares of the relative errors least (so that small transfers say the
/// latency and large ones the rate). Neither constant is below a floor that no link reaches. Needs two sizes at least.
inline link_fit fit_link(std::span<const link_sample> samples) {
  constexpr double least_latency = 1e-9, least_per_byte = 1e-15;
  double w = 0, wx = 0, wxx = 0, wt = 0, wxt = 0;
  for (const auto& s : samples) {
    const double weight = 1 / (s.seconds * s.seconds);
    w += weight;
    wx += weight * s.bytes;
    wxx += weight * s.bytes * s.bytes;
    wt += weight * s.seconds;
    wxt += weight * s.bytes * s.seconds;
  }
  const double det = w * wxx - wx * wx;
  if (!(det > 0)) fail("a link is fitted to transfers of two sizes at least; give other sizes");
  link_fit fit{(wt * wxx - wx * wxt) / det, (w * wxt - wx * wt) / det};
  // Where one of the two comes out too small, the other is fitted alone.
  if (fit.latency < least_latency) fit = {least_latency, wxt / wxx};
  if (fit.per_byte < least_per_byte) fit = {std::max(wt / w, least_latency), least_per_byte};
  return fit;
}

namespace detail {

/// One operator on data of its own, whole, as a single rank runs it.
template <class Device, class T, class Op>
class kernel_trial {
 public:
  kernel_trial(Op op, const std::vector<tensor_type>& in) : op_(std::move(op)), shape_(op_.sign(in)) {
    static_assert(has_kernel<Device, Op>, "mmr: calibrate needs the device's kernels: include its kernels.hpp before");
    for (const auto& l : shape_.loops) {
      ranges_.push_back({0, l.extent, l.extent});
      extents_.push_back(l.extent);
    }
    sizes_.reserve(shape_.in.size() + shape_.out.size());  // the views point into it
    for (const auto& a : shape_.in) in_.push_back(view(a));
    for (const auto& a : shape_.out) out_.push_back(view(a));
    if constexpr (requires { &kernel<Device, Op>::template workspace<T>; })
      buffers_.emplace_back(kernel<Device, Op>::template workspace<T>(op_, shape_, ranges_));
    else
      buffers_.emplace_back(0);
  }

  double flops() const { return op_.flops(extents_); }
  double bytes() const {
    double sum = 0;
    for (const auto* views : {&in_, &out_})
      for (const auto& v : *views) sum += static_cast<double>(v.count()) * sizeof(T);
    return sum;
  }
  void operator()() {
    const kernel_args args{.loops = ranges_, .in = in_, .out = out_, .state = {}, .workspace = buffers_.back().data(),
                           .step = &step_, .shape = &shape_};
    kernel<Device, Op>::template run<T>(op_, args);
  }

 private:
  tensor_view view(const access& a) {
    auto& sizes = sizes_.emplace_back();
    for (int l : a.loops) sizes.push_back(shape_.loops[static_cast<std::size_t>(l)].extent);
    tensor_view v{nullptr, dtype_of<T>, sizes};
    buffers_.emplace_back(v.count() * static_cast<std::int64_t>(sizeof(T)));
    v.data = buffers_.back().data();
    std::fill_n(v.template as<T>(), v.count(), T(0.5));
    return v;
  }

  Op op_;
  signature shape_;
  std::vector<loop_range> ranges_;
  std::vector<std::int64_t> extents_;
  std::vector<std::vector<std::int64_t>> sizes_;
  std::vector<tensor_view> in_, out_;
  std::vector<host_memory> buffers_;
  step_info step_;
};

inline tensor_type trial_type(dtype element, std::int64_t rows, std::int64_t cols, const char* row, const char* col) {
  return {element, {{row, rows, true}, {col, cols, true}}};
}

/// flop/s of matrix products: one of the size of a layer's on a rank, 192 x 512 by 512 x 256.
template <class Device, class T, communicator C>
double measure_matrix(group_stopwatch<C>& watch) {
  const std::vector<tensor_type> in{trial_type(dtype_of<T>, 192, 512, "row", "sum"),
                                    trial_type(dtype_of<T>, 512, 256, "sum", "col")};
  kernel_trial<Device, T, op::contract> trial({{{0, 0, 1}}, {{"row", "col"}}}, in);
  return trial.flops() / watch.seconds([&] { trial(); });
}

/// flop/s of other arithmetic, as the operators count it: GeLU and softmax of what fits the caches.
template <class Device, class T, communicator C>
double measure_other(group_stopwatch<C>& watch) {
  const std::vector<tensor_type> in{trial_type(dtype_of<T>, 64, 256, "row", "col")};
  kernel_trial<Device, T, op::gelu> gelu({}, in);
  kernel_trial<Device, T, op::softmax> softmax({}, in);
  return (gelu.flops() + softmax.flops()) / watch.seconds([&] { gelu(), softmax(); });
}

/// Bytes/s of memory, read and written ones counted as the time model does: a sum of arrays beyond the caches.
template <class Device, communicator C>
double measure_memory(group_stopwatch<C>& watch, std::int64_t bytes) {
  const auto x = trial_type(dtype::f32, std::max<std::int64_t>(bytes / 4096, 1), 1024, "row", "col");
  kernel_trial<Device, float, op::add> trial({}, {x, x});
  return trial.bytes() / watch.seconds([&] { trial(); });
}

/// Seconds that a kernel costs which has next to nothing to do.
template <class Device, communicator C>
double measure_launch(group_stopwatch<C>& watch) {
  const auto x = trial_type(dtype::f32, 1, 1, "row", "col");
  kernel_trial<Device, float, op::add> trial({}, {x, x});
  return std::max(watch.seconds([&] { trial(); }), 1e-9);
}

/// Latency and seconds a byte of all-gathers and all-reduces along one mesh axis, in all its groups at the same time.
/// The bytes of a sample are what the formulas of mesh/reshard.hpp multiply with: B (n-1)/n, and twice that.
template <communicator C>
link_fit measure_link(group_stopwatch<C>& watch, C& group, std::int64_t largest) {
  const int n = group.size();
  const std::int64_t most = std::max<std::int64_t>(largest / 4 / n, 1024) * n;
  host_memory from(most * 4), to(most * 4);
  std::fill_n(reinterpret_cast<float*>(from.data()), most, 0.5f);
  std::fill_n(reinterpret_cast<float*>(to.data()), most, 0.5f);
  std::vector<link_sample> samples;
  for (const std::int64_t part : {256, 32, 4, 1}) {
    const std::int64_t share = std::max<std::int64_t>(most / part / n, 1), whole = share * n;
    std::vector<block> shares;
    for (int k = 0; k < n; ++k) shares.push_back(dense_block(k * share, share));
    const double moved = 4.0 * static_cast<double>(share * (n - 1));
    samples.push_back({moved, watch.seconds([&] { group.all_gather(from.data(), share, to.data(), shares, dtype::f32); })});
    samples.push_back({2 * moved, watch.seconds([&] {
                         group.all_reduce(from.data(), to.data(), whole, dtype::f32, reduction::sum);
                       })});
  }
  return fit_link(samples);
}

}  // namespace detail

/// The mesh `m` with measured constants, the same on all ranks, which call this together; `m` has as many ranks as run.
/// Ranks measure at the same time: where they share cores or memory, each figure is what one of them is left with. An axis
/// of size 1 keeps the link it has, as nothing moves along it; two-byte floats, for which there are no CPU kernels, get the
/// rates of float32. Include the device's kernels before.
template <class Device = cpu_device, communicator C>
mesh calibrate(C& world, mesh m, const calibration_effort& effort = {}) {
  m.check();
  axis_groups<C> groups(m, world);
  group_stopwatch<C> watch(world, effort.rounds, effort.least_seconds);
  auto& d = m.device;
  d.name = std::string(Device::name) + ", measured";
  d.cpu = std::same_as<Device, cpu_device>;
  d.matrix.f32 = d.matrix.bf16 = detail::measure_matrix<Device, float>(watch);
  d.matrix.f64 = detail::measure_matrix<Device, double>(watch);
  d.other.f32 = d.other.bf16 = detail::measure_other<Device, float>(watch);
  d.other.f64 = detail::measure_other<Device, double>(watch);
  d.memory_bytes = detail::measure_memory<Device>(watch, effort.memory_bytes);
  d.launch = detail::measure_launch<Device>(watch);
  for (int a = 0; a < m.count(); ++a) {
    if (m.axis(a).size == 1) continue;
    const auto fit = detail::measure_link(watch, groups.along(a), effort.link_bytes);
    auto& axis = m.axes[static_cast<std::size_t>(a)];
    axis.latency = fit.latency;
    axis.seconds_per_byte = fit.per_byte;
  }
  return m;
}

}  // namespace mmr
