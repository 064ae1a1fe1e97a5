// The constants of a mesh as JSON: what a calibration measured once, for plans made elsewhere and later. Versioned, and
// checked on loading: every figure must be one that a device or a link can have.
#pragma once

#include <mmr/io/file.hpp>
#include <mmr/mesh/mesh.hpp>
#include <mmr/tensor/json.hpp>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>
#include <utility>

namespace mmr {

inline constexpr int mesh_format_version = 1;

namespace detail {

/// Where a constant can lie: wide enough for any device yet to be built, narrow enough to catch a wrong unit.
struct range {
  double least, most;
  const char* unit;
};
inline constexpr range plausible_flops{1e6, 1e18, "flop/s"};
inline constexpr range plausible_bandwidth{1e6, 1e16, "bytes/s"};
inline constexpr range plausible_latency{1e-12, 10, "s"};
inline constexpr range plausible_seconds_per_byte{1e-16, 1e-5, "s a byte"};

/// Calls see(key, value, range) for each constant of a device or of a link, in the order of the file.
template <class Rates, class See>
void see_rates(Rates& r, See see) {
  see("float64", r.f64, plausible_flops);
  see("float32", r.f32, plausible_flops);
  see("bfloat16", r.bf16, plausible_flops);
}
template <class Device, class See>
void see_device(Device& d, See see) {
  see("memory_bytes_per_second", d.memory_bytes, plausible_bandwidth);
  see("launch_seconds", d.launch, plausible_latency);
}
template <class Axis, class See>
void see_link(Axis& a, See see) {
  see("latency_seconds", a.latency, plausible_latency);
  see("seconds_per_byte", a.seconds_per_byte, plausible_seconds_per_byte);
}

/// Fails with why(...) where a value lies outside its range; a value that is no number does.
template <class Why>
void check_constant(const char* key, double value, const range& within, Why why) {
  if (!(value >= within.least && value <= within.most))
    why("has ", key, " ", value, ", which no device has: it lies between ", within.least, " and ", within.most, " ",
        within.unit);
}

}  // namespace detail

/// {"mmr_mesh": 1, "device": {...}, "axes": [...]}. Fails where a constant is one that no device has.
inline nlohmann::ordered_json to_json(const mesh& m) {
  m.check();
  const auto why = [&](const auto&... parts) { fail("the mesh ", m.text(), " ", parts...); };
  nlohmann::ordered_json j;
  const auto into = [&](nlohmann::ordered_json& to) {
    return [&](const char* key, double value, const detail::range& within) {
      detail::check_constant(key, value, within, why);
      to[key] = value;
    };
  };
  j["mmr_mesh"] = mesh_format_version;
  auto& device = j["device"];
  device["name"] = m.device.name;
  device["cpu"] = m.device.cpu;
  detail::see_rates(m.device.matrix, into(device["matrix_flops"]));
  detail::see_rates(m.device.other, into(device["other_flops"]));
  detail::see_device(m.device, into(device));
  for (const auto& a : m.axes) {
    nlohmann::ordered_json axis{{"name", a.name}, {"size", a.size}};
    detail::see_link(a, into(axis));
    j["axes"].push_back(std::move(axis));
  }
  return j;
}

/// Reads a mesh with its constants. Fails with one sentence that names `source` where the text is cut, of another version,
/// or holds a constant that no device has. Entries that are not known are passed over.
inline mesh mesh_from_json(const std::string& text, const std::string& source) {
  const auto damaged = [&](const auto&... why) { fail("the calibration in ", source, " ", why..., "; measure again"); };
  const auto j = detail::parsed_json(text);
  if (j.is_discarded() || !j.is_object()) damaged("is not whole JSON: it is cut or damaged");
  const auto get = [&](const nlohmann::json& in, const char* key) -> const nlohmann::json& {
    if (!in.is_object() || !in.contains(key)) damaged("has no entry '", key, "'");
    return in[key];
  };
  const auto kind = [](const nlohmann::json& x) { return x.is_structured() ? std::string(x.type_name()) : x.dump(); };
  const auto from = [&](const nlohmann::json& in) {
    return [&](const char* key, double& value, const detail::range& within) {
      const auto& x = get(in, key);
      if (!x.is_number()) damaged("has ", key, " ", kind(x), " where a number belongs");
      value = x.get<double>();
      detail::check_constant(key, value, within, damaged);
    };
  };
  const auto text_of = [&](const nlohmann::json& in, const char* key) {
    const auto& x = get(in, key);
    if (!x.is_string()) damaged("has ", key, " ", kind(x), " where a text belongs");
    return x.get<std::string>();
  };
  const auto& version = get(j, "mmr_mesh");
  if (!version.is_number_integer() || version != mesh_format_version)
    damaged("has format version ", kind(version), " and this program reads ", mesh_format_version);
  mesh m;
  const auto& device = get(j, "device");
  m.device.name = text_of(device, "name");
  if (!get(device, "cpu").is_boolean()) damaged("has cpu ", kind(device["cpu"]), " where true or false belongs");
  m.device.cpu = device["cpu"];
  detail::see_rates(m.device.matrix, from(get(device, "matrix_flops")));
  detail::see_rates(m.device.other, from(get(device, "other_flops")));
  detail::see_device(m.device, from(device));
  const auto& axes = get(j, "axes");
  if (!axes.is_array()) damaged("has axes ", kind(axes), " where a list belongs");
  for (const auto& axis : axes) {
    auto& a = m.axes.emplace_back();
    a.name = text_of(axis, "name");
    const auto& size = get(axis, "size");
    if (!size.is_number_integer() || size < 1 || size > 1'000'000'000)
      damaged("has size ", kind(size), " of axis '", a.name, "' where a whole number from 1 to 10^9 belongs");
    a.size = size;
    detail::see_link(a, from(axis));
  }
  try {
    m.check();
  } catch (const error& e) {
    damaged("describes no mesh: ", e.what());
  }
  return m;
}

/// Replaces the file by the constants of the mesh, or leaves it as it was and throws. Of several ranks one should call it.
inline void save_mesh(const mesh& m, const std::filesystem::path& path) {
  write_text_file(path, to_json(m).dump(1) + "\n");
}
/// The mesh that save_mesh wrote: a planner given it plans with the constants measured.
inline mesh load_mesh(const std::filesystem::path& path) { return mesh_from_json(read_text_file(path), path.string()); }

}  // namespace mmr
