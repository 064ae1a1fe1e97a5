// Where the devices of a mesh stand: nodes of so many devices, and what that makes of the links of each mesh axis.
#pragma once

#include <mmr/mesh/presets.hpp>

#include <algorithm>

namespace mmr {

/// `nodes` nodes of `devices_per_node` devices each. Devices are numbered node by node, as ranks of a mesh are (row-major,
/// last axis fastest), so that the last mesh axes stay within a node.
///
///   const auto m = mmr::cluster{mmr::device_preset("a100-80g"), 8, 8}.lay(mmr::mesh::parse("data=8,model=8"));
struct cluster {
  device_model device;
  int nodes = 1, devices_per_node = 1;

  /// Devices that can be laid; more are taken for a mistake.
  static constexpr std::int64_t most_devices = 1 << 20;

  /// The mesh with this device, and with the link of each axis as its groups lie: a group is the devices that differ in
  /// that coordinate only, and talks in a ring that visits its nodes one after another (as NCCL's rings do).
  ///
  /// bytes/s. Every byte of the ring crosses each boundary between two of its nodes once in each direction, so the
  /// slowest boundary bounds it. A node's network is shared evenly by its devices, and all devices of a node take part in
  /// a collective along the axis at the same time, each in its own group: a group with g devices in a node has g shares
  /// there. Within a node a device sends with all it has. A group of one node: within; of several: the least of within
  /// and g * between over its nodes.
  ///
  /// latency. A ring of n ranks over h nodes takes n - 1 steps, h - 1 of them between nodes:
  /// start + (n - h) * within.step + (h - 1) * between.step. (Rings are what the bytes are counted for in reshard.hpp.
  /// For small all-reduces over many ranks libraries take trees, which need fewer steps: there this is too slow.)
  ///
  /// Where the groups of one axis lie differently, the slowest counts, as all wait for it. Fails where the mesh has not
  /// as many ranks as the cluster has devices.
  mesh lay(mesh m) const {
    check();
    m.check();
    if (m.rank_count() != nodes * devices_per_node)
      fail("the mesh ", m.text(), " has ", m.rank_count(), " ranks, but ", nodes, nodes == 1 ? " node" : " nodes", " of ",
           devices_per_node, " have ", nodes * devices_per_node,
           " devices; give mesh axes whose sizes multiply to that, or other nodes, or other devices a node");
    m.device = device.speed;
    int stride = m.rank_count();
    for (auto& axis : m.axes) {
      const int span = stride;  // ranks that agree in all axes before this one
      stride /= axis.size;
      double rate = device.within.bytes_per_second;
      int most_nodes = 1;
      for (int first = 0; first < m.rank_count(); first += span)
        for (int inner = 0; inner < stride; ++inner) visit(first + inner, stride, axis.size, rate, most_nodes);
      axis.seconds_per_byte = 1 / rate;
      axis.latency = device.collective_start + (axis.size - most_nodes) * device.within.step +
                     (most_nodes - 1) * device.between.step;
    }
    return m;
  }

  /// Fails with a sentence where there can be no such cluster.
  void check() const {
    if (nodes < 1 || devices_per_node < 1)
      fail("a cluster has at least one node of at least one device; this one has ", nodes, " of ", devices_per_node);
    if (static_cast<std::int64_t>(nodes) * devices_per_node > most_devices)
      fail(nodes, " nodes of ", devices_per_node, " devices are more than the ", most_devices,
           " that can be planned for; give fewer");
  }

 private:
  /// Lowers `rate` to what the group of `size` devices from `first` on, `stride` apart, has between its nodes.
  void visit(int first, int stride, int size, double& rate, int& most_nodes) const {
    int touched = 0, least = size;
    for (int k = 0; k < size;) {
      const int node = (first + k * stride) / devices_per_node;
      int here = 0;
      while (k < size && (first + k * stride) / devices_per_node == node) ++here, ++k;
      least = std::min(least, here);
      ++touched;
    }
    if (touched == 1) return;
    rate = std::min(rate, least * device.between.bytes_per_second);
    most_nodes = std::max(most_nodes, touched);
  }
};

}  // namespace mmr
