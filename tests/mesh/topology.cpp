// Device presets against the figures of the data sheets, and the links of mesh axes by where their groups lie.
#include <cmath>
#include <mmr/mesh/reshard.hpp>
#include <mmr/mesh/topology.hpp>
#include <vector>

#include "catch.hpp"
#include "refusal.hpp"

using namespace mmr;

TEST_CASE("every preset is a device, and an unknown one is told the names") {
  for (const auto name : device_names) {
    INFO(name);
    const auto d = device_preset(name);
    CHECK(d.speed.name == name);
    for (const auto* rates : {&d.speed.matrix, &d.speed.other})
      for (const double r : {rates->f64, rates->f32, rates->bf16}) CHECK((r > 1e9 && r < 1e15));
    CHECK(d.speed.matrix.bf16 >= d.speed.matrix.f32);
    CHECK(d.speed.matrix.f32 >= d.speed.matrix.f64);
    CHECK(d.speed.memory_bytes > d.within.bytes_per_second);
    CHECK(d.within.bytes_per_second > d.between.bytes_per_second);
    CHECK(d.memory > 1'000'000'000);
    CHECK(d.speed.cpu == (name == "cpu-rank"));
  }
  CHECK(refusal([] { device_preset("a100"); }) ==
        "there is no device 'a100'; the devices are v100-16g, v100-32g, a100-40g, a100-80g, h100, h200, cpu-rank");
}

TEST_CASE("no preset promises more than its data sheet, and newer devices are faster") {
  struct peak {
    const char* name;
    double bf16, f32, memory_rate, nvlink_one_way, network;
    std::int64_t memory;
  };
  double before = 0;
  for (const peak& p : {peak{"v100-16g", 125e12, 15.7e12, 900e9, 150e9, 6.25e9, 16'000'000'000},
                        peak{"v100-32g", 125e12, 15.7e12, 900e9, 150e9, 6.25e9, 32'000'000'000},
                        peak{"a100-40g", 312e12, 19.5e12, 1555e9, 300e9, 25e9, 40'000'000'000},
                        peak{"a100-80g", 312e12, 19.5e12, 2039e9, 300e9, 25e9, 80'000'000'000},
                        peak{"h100", 989.4e12, 67e12, 3.35e12, 450e9, 50e9, 80'000'000'000},
                        peak{"h200", 989.4e12, 67e12, 4.8e12, 450e9, 50e9, 141'000'000'000}}) {
    INFO(p.name);
    const auto d = device_preset(p.name);
    const auto share = [](double reached, double of) { return reached > 0.45 * of && reached < of; };
    CHECK(share(d.speed.matrix.bf16, p.bf16));
    CHECK(share(d.speed.matrix.f32, p.f32));
    CHECK(share(d.speed.memory_bytes, p.memory_rate));
    CHECK(share(d.within.bytes_per_second, p.nvlink_one_way));
    CHECK(share(d.between.bytes_per_second, p.network));
    CHECK(d.memory == p.memory);
    CHECK(d.speed.matrix.bf16 + d.speed.memory_bytes >= before);
    before = d.speed.matrix.bf16 + d.speed.memory_bytes;
  }
  const auto plain = device_preset("a100-80g"), rounded = plain.with_tf32();
  CHECK(rounded.speed.matrix.f32 == Approx(8 * plain.speed.matrix.f32));
  CHECK(rounded.speed.matrix.bf16 == plain.speed.matrix.bf16);
  CHECK_THAT(refusal([] { device_preset("v100-32g").with_tf32(); }), contains("'v100-32g' computes no TensorFloat-32"));
}

TEST_CASE("rates go by element type") {
  const flop_rates r{.f64 = 1, .f32 = 2, .bf16 = 3};
  CHECK(r.of(dtype::f64) == 1);
  CHECK(r.of(dtype::f32) == 2);
  CHECK(r.of(dtype::i32) == 2);
  CHECK(r.of(dtype::bf16) == 3);
}

TEST_CASE("CPU ranks of one node are what a mesh begins with") {
  const auto plain = mesh::parse("data=2,model=2"), laid = cluster{device_preset("cpu-rank"), 1, 4}.lay(plain);
  for (int a = 0; a < 2; ++a) {
    CHECK(laid.axis(a).latency == plain.axis(a).latency);
    CHECK(laid.axis(a).seconds_per_byte == plain.axis(a).seconds_per_byte);
  }
  CHECK(laid.device.matrix.f64 == plain.device.matrix.f64);
  CHECK(laid.device.memory_bytes == plain.device.memory_bytes);
}

namespace {

device_model round_device() {
  device_model d;
  d.within = {100, 1};
  d.between = {7, 10};
  d.collective_start = 1000;
  return d;
}

}  // namespace

TEST_CASE("an axis whose groups stay in a node has its link; one that spans nodes shares their network") {
  struct expected {
    const char* mesh;
    int nodes, devices;
    std::vector<double> rate, latency;
  };
  // A ring of n ranks over h nodes: 1000 + (n - h) * 1 + (h - 1) * 10.
  for (const expected& e : {
           expected{"all=8", 1, 8, {100}, {1007}},
           expected{"all=8", 8, 1, {7}, {1070}},
           expected{"all=8", 2, 4, {28}, {1016}},               // four devices in each node
           expected{"all=32", 2, 16, {100}, {1040}},            // sixteen shares of 7 are more than a device sends
           expected{"data=2,model=4", 2, 4, {7, 100}, {1010, 1003}},
           expected{"data=4,model=2", 2, 4, {14, 100}, {1012, 1001}},  // two of a group in a node
           expected{"data=2,model=4", 4, 2, {7, 14}, {1010, 1012}},
           expected{"data=3,model=4", 2, 6, {7, 14}, {1011, 1012}},    // ranks 4 to 7 lie across the border
           expected{"pipe=2,data=2,model=2", 2, 4, {7, 100, 100}, {1010, 1001, 1001}},
           expected{"data=4,one=1", 4, 1, {7, 100}, {1030, 1000}},
       }) {
    INFO(e.mesh << " on " << e.nodes << " x " << e.devices);
    const auto m = cluster{round_device(), e.nodes, e.devices}.lay(mesh::parse(e.mesh));
    for (int a = 0; a < m.count(); ++a) {
      CHECK(1 / m.axis(a).seconds_per_byte == Approx(e.rate[static_cast<std::size_t>(a)]));
      CHECK(m.axis(a).latency == Approx(e.latency[static_cast<std::size_t>(a)]));
    }
  }
}

TEST_CASE("the same ranks are never slower on fewer nodes") {
  for (const auto* spec : {"all=16", "a=4,b=4", "a=2,b=8", "a=8,b=2", "a=2,b=2,c=4"})
    for (const auto name : device_names)
      for (int nodes = 1; nodes < 16; nodes *= 2) {
        const auto dense = cluster{device_preset(name), nodes, 16 / nodes}.lay(mesh::parse(spec));
        const auto sparse = cluster{device_preset(name), 2 * nodes, 8 / nodes}.lay(mesh::parse(spec));
        for (int a = 0; a < dense.count(); ++a)
          for (const double bytes : {1e3, 1e9})
            CHECK(collective_seconds(dense, collective::all_reduce, a, bytes) <=
                  collective_seconds(sparse, collective::all_reduce, a, bytes) * (1 + 1e-12));
      }
}

TEST_CASE("a mesh that does not factor the devices is refused") {
  const auto laid = [](int nodes, int devices, const char* spec) {
    return refusal([&] { cluster{device_preset("h100"), nodes, devices}.lay(mesh::parse(spec)); });
  };
  CHECK(laid(2, 8, "data=3,model=4") ==
        "the mesh data=3,model=4 has 12 ranks, but 2 nodes of 8 have 16 devices; give mesh axes whose sizes multiply to "
        "that, or other nodes, or other devices a node");
  CHECK_THAT(laid(0, 8, "data=1"), contains("at least one node"));
  CHECK_THAT(laid(1, -8, "data=1"), contains("at least one node of at least one device; this one has 1 of -8"));
  CHECK_THAT(laid(2000000000, 2000000000, "data=1"), contains("more than the 1048576"));
  CHECK_THAT(refusal([] { cluster{device_preset("h100"), 1, 1}.lay(mesh{}); }), contains("1 to 3 axes"));
}
