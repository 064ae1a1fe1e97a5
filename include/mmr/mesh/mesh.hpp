// A mesh of devices: up to three named mesh axes, each with a size and a link, and the device's own speeds.
#pragma once

#include <mmr/tensor/dtype.hpp>
#include <mmr/tensor/error.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace mmr {

/// flop/s by the element type that is computed with.
struct flop_rates {
  double f64 = 0, f32 = 0;
  double bf16 = 0;  ///< two-byte floats

  /// Whole numbers count as float32.
  double of(dtype t) const { return t == dtype::f64 ? f64 : t == dtype::bf16 ? bf16 : f32; }
};

/// What one device does, for the time model: flop/s of matrix products, of other arithmetic, and bytes/s of its memory.
/// The defaults are a guess for one CPU rank; presets.hpp has others, and run/calibrate.hpp measures them.
struct device_speed {
  std::string name = "cpu-rank";
  // Double precision fills half as many lanes; two-byte floats are computed with as floats.
  flop_rates matrix{.f64 = 20e9, .f32 = 40e9, .bf16 = 40e9};
  flop_rates other{.f64 = 4e9, .f32 = 8e9, .bf16 = 8e9};
  double memory_bytes = 10e9;
  double launch = 2e-6;  ///< seconds that starting one operator costs
  bool cpu = true;       ///< runs the kernels of cpu_device, whose workspaces count; those of other devices are not known
};

/// One mesh axis: ranks that differ only in this coordinate talk over its link.
struct mesh_axis {
  std::string name;
  int size = 1;
  double latency = 30e-6;         ///< seconds a collective
  double seconds_per_byte = 1.0 / 4e9;
};

/// Devices in row-major order of the mesh axes: the last axis varies fastest.
struct mesh {
  static constexpr int max_axes = 3;
  std::vector<mesh_axis> axes;
  device_speed device;

  int rank_count() const {
    int n = 1;
    for (const auto& a : axes) n *= a.size;
    return n;
  }
  int count() const { return static_cast<int>(axes.size()); }
  const mesh_axis& axis(int a) const { return axes[static_cast<std::size_t>(a)]; }
  /// Coordinate of a rank along mesh axis `a`.
  int coordinate(int rank, int a) const {
    for (int k = count() - 1; k > a; --k) rank /= axis(k).size;
    return rank % axis(a).size;
  }
  /// The mesh axis of this name, or -1.
  int find(const std::string& name) const {
    for (int a = 0; a < count(); ++a)
      if (axis(a).name == name) return a;
    return -1;
  }
  /// "data=2,model=2", which parse() takes.
  std::string text() const {
    std::string s;
    for (const auto& a : axes) s += (s.empty() ? "" : ",") + a.name + "=" + std::to_string(a.size);
    return s;
  }
  /// Fails with a sentence where the mesh cannot be one.
  void check() const {
    if (axes.empty() || count() > max_axes)
      fail("a mesh has 1 to ", max_axes, " axes; this one has ", axes.size());
    std::int64_t ranks = 1;
    for (const auto& a : axes) {
      if (a.name.empty()) fail("a mesh axis has no name; write data=2,model=2");
      for (char c : a.name)
        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && c != '_' && c != '-' && c != '.')
          fail("a mesh axis has a name with other characters than letters, digits, '_', '-' and '.'; write data=2,model=2");
      if (a.size < 1) fail("mesh axis '", a.name, "' has size ", a.size, "; a size is at least 1");
      ranks *= a.size;
      if (ranks > std::numeric_limits<int>::max())
        fail("the mesh ", text(), " has more ranks than an int can count; give it smaller axes");
      int same = 0;
      for (const auto& b : axes) same += a.name == b.name;
      if (same > 1) fail("mesh axis '", a.name, "' stands twice; give each its own name");
    }
  }

  /// The mesh that text() writes.
  static mesh parse(const std::string& spec) {
    mesh m;
    std::size_t at = 0;
    while (at <= spec.size()) {
      const auto comma = std::min(spec.find(',', at), spec.size());
      const auto part = spec.substr(at, comma - at);
      const auto equals = part.find('=');
      const auto digits = equals == std::string::npos ? std::string() : part.substr(equals + 1);
      if (digits.empty() || digits.size() > 9 || digits.find_first_not_of("0123456789") != std::string::npos)
        fail("'", spec, "' is no mesh: '", part, "' is not NAME=SIZE with a size of at most 9 digits; write data=2,model=2");
      m.axes.push_back({.name = part.substr(0, equals), .size = std::stoi(digits)});
      at = comma + 1;
    }
    m.check();
    return m;
  }
};

}  // namespace mmr
