// Calibration: that it measures every constant, that all ranks get the same ones, and that a line is fitted as it should
// be. How fast this machine is, is not asserted.
#include <mmr/backend/cpu/kernels.hpp>
#include <mmr/backend/threads/run_ranks.hpp>
#include <mmr/plan/mesh_json.hpp>
#include <mmr/run/calibrate.hpp>
#include <vector>

#include "catch.hpp"
#include "refusal.hpp"

namespace {

/// As little as does: the figures are poor, and that does not matter here.
constexpr mmr::calibration_effort least{.rounds = 1, .least_seconds = 1e-6, .memory_bytes = 4096, .link_bytes = 16384};

}  // namespace

TEST_CASE("a calibrated mesh is the same on all ranks, and has every constant measured") {
  for (const char* spec : {"data=2,model=2", "all=3", "one=1", "a=2,one=1"}) {
    INFO(spec);
    const auto before = mmr::mesh::parse(spec);
    std::vector<mmr::mesh> found(static_cast<std::size_t>(before.rank_count()));
    mmr::run_ranks(before.rank_count(), [&](mmr::thread_communicator& world) {
      found[static_cast<std::size_t>(world.rank())] = mmr::calibrate(world, before, least);
    });
    const auto& m = found[0];
    CHECK(m.text() == spec);
    CHECK(m.device.name == "cpu, measured");
    CHECK(m.device.cpu);
    const mmr::device_speed guess;
    for (const auto part : {&mmr::device_speed::matrix, &mmr::device_speed::other}) {
      CHECK((m.device.*part).f64 != (guess.*part).f64);
      CHECK((m.device.*part).f32 != (guess.*part).f32);
      CHECK((m.device.*part).bf16 == (m.device.*part).f32);
    }
    CHECK(m.device.memory_bytes != guess.memory_bytes);
    CHECK(m.device.launch != guess.launch);
    for (int a = 0; a < m.count(); ++a) {
      CHECK((m.axis(a).latency == before.axis(a).latency) == (m.axis(a).size == 1));
      CHECK((m.axis(a).seconds_per_byte == before.axis(a).seconds_per_byte) == (m.axis(a).size == 1));
    }
    // Saving checks that each constant is one that a machine can have.
    const auto saved = mmr::to_json(m).dump();
    CHECK(mmr::to_json(mmr::mesh_from_json(saved, "memory")).dump() == saved);
    for (const auto& other : found) CHECK(mmr::to_json(other).dump() == saved);
  }
}

TEST_CASE("a mesh that is not the ranks that run is refused") {
  CHECK_THAT(refusal([] { mmr::run_ranks(2, [](auto& world) { mmr::calibrate(world, mmr::mesh::parse("data=3"), least); }); }),
             contains("the mesh data=3 has 3 ranks but 2 are running"));
  CHECK_THAT(refusal([] { mmr::run_ranks(1, [](auto& world) { mmr::calibrate(world, mmr::mesh{}, least); }); }), contains("1 to 3 axes"));
}

TEST_CASE("samples on a line give its constants") {
  std::vector<mmr::link_sample> samples;
  for (const double bytes : {1e3, 2e3, 1e5, 1e6, 5e6}) samples.push_back({bytes, 3e-5 + 2e-10 * bytes});
  const auto fit = mmr::fit_link(samples);
  CHECK(fit.latency == Approx(3e-5));
  CHECK(fit.per_byte == Approx(2e-10));
  // An error of a tenth costs about a tenth, wherever it is.
  for (std::size_t i = 0; i < samples.size(); ++i) {
    auto off = samples;
    off[i].seconds *= 1.1;
    CHECK(mmr::fit_link(off).latency == Approx(3e-5).epsilon(0.15));
    CHECK(mmr::fit_link(off).per_byte == Approx(2e-10).epsilon(0.15));
  }
}

TEST_CASE("samples on no line still give constants that a link can have") {
  const auto fit = [](std::vector<mmr::link_sample> s) { return mmr::fit_link(s); };
  const auto falling = fit({{1e3, 4e-5}, {1e6, 2e-5}});
  CHECK(falling.latency > 1e-5);
  CHECK((falling.per_byte > 0 && falling.per_byte < 1e-12));
  const auto steep = fit({{1e3, 1e-9}, {1e6, 1e-3}});
  CHECK((steep.latency > 0 && steep.latency < 1e-8));
  CHECK((steep.per_byte > 0 && steep.per_byte < 1e-8));
  CHECK_THAT(refusal([&] { fit({{5, 1}, {5, 2}}); }), contains("two sizes at least"));
}
