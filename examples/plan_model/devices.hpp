// The devices that are planned for: presets in nodes, or a mesh whose constants were measured.
#pragma once

#include "options.hpp"

#include <mmr/mesh/topology.hpp>
#include <mmr/plan/mesh_json.hpp>

#include <optional>
#include <string>

struct devices {
  mmr::mesh mesh;
  std::optional<std::int64_t> memory;  ///< bytes of each; a calibration does not know them
  std::string text;                    ///< "64 x a100-80g in 8 nodes"
};

/// Devices that are planned for at most: as in the cluster of the largest runs published.
inline constexpr int most_devices = 1 << 16;

inline devices find_devices(const options& o, bool mesh_given) {
  devices d;
  if (!o.calibration.empty()) {
    d.mesh = mmr::load_mesh(o.calibration);
    if (mesh_given && mmr::mesh::parse(o.mesh).text() != d.mesh.text())
      mmr::fail("--calibration ", o.calibration, " measured the mesh ", d.mesh.text(), ", not ", o.mesh,
                "; leave --mesh out, or measure again");
    d.text = std::to_string(d.mesh.rank_count()) + " x " + d.mesh.device.name + ", measured";
  } else {
    const auto device = mmr::device_preset(o.device);
    const auto mesh = mmr::mesh::parse(o.mesh);
    const int ranks = mesh.rank_count(), in_a_node = o.devices_per_node.value_or(o.nodes ? 8 : std::min(8, ranks));
    const mmr::cluster cluster{device, o.nodes.value_or(std::max(1, ranks / in_a_node)), in_a_node};
    d.mesh = cluster.lay(mesh);
    d.memory = device.memory;
    d.text = std::to_string(ranks) + " x " + o.device + " in " + std::to_string(cluster.nodes) +
             (cluster.nodes == 1 ? " node" : " nodes");
  }
  if (d.mesh.rank_count() > most_devices)
    mmr::fail("the mesh ", d.mesh.text(), " has ", d.mesh.rank_count(), " devices; plan_model plans for at most ", most_devices);
  return d;
}
