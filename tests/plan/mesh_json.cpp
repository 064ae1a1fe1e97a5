// Calibrations as JSON: what is saved comes back to the last bit, and whatever is damaged is refused with one sentence.
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <mmr/mesh/topology.hpp>
#include <mmr/plan/mesh_json.hpp>
#include <string>

#include "catch.hpp"
#include "refusal.hpp"

namespace {

mmr::mesh odd_mesh() {
  auto m = mmr::cluster{mmr::device_preset("a100-80g"), 2, 3}.lay(mmr::mesh::parse("data=2,model=3"));
  m.device.matrix.f64 = 1e12 / 3;
  m.axes[0].latency = 1e-5 / 7;
  return m;
}

std::string refused(const std::string& text) {
  return refusal([&] { mmr::mesh_from_json(text, "x.json"); });
}
std::string refused_with(const std::string& where, const nlohmann::json& value) {
  auto j = nlohmann::json(mmr::to_json(odd_mesh()));
  j[nlohmann::json::json_pointer(where)] = value;
  return refused(j.dump());
}

}  // namespace

TEST_CASE("a mesh comes back as it was saved") {
  const auto m = odd_mesh(), back = mmr::mesh_from_json(mmr::to_json(m).dump(), "x.json");
  CHECK(back.text() == m.text());
  CHECK(back.device.name == m.device.name);
  CHECK(back.device.cpu == m.device.cpu);
  for (const auto part : {&mmr::device_speed::matrix, &mmr::device_speed::other}) {
    CHECK((back.device.*part).f64 == (m.device.*part).f64);
    CHECK((back.device.*part).f32 == (m.device.*part).f32);
    CHECK((back.device.*part).bf16 == (m.device.*part).bf16);
  }
  CHECK(back.device.memory_bytes == m.device.memory_bytes);
  CHECK(back.device.launch == m.device.launch);
  for (int a = 0; a < m.count(); ++a) {
    CHECK(back.axis(a).latency == m.axis(a).latency);
    CHECK(back.axis(a).seconds_per_byte == m.axis(a).seconds_per_byte);
  }
  CHECK(mmr::to_json(back) == mmr::to_json(m));
}

TEST_CASE("every preset, laid on a cluster, can be saved and read") {
  for (const auto name : mmr::device_names)
    for (const int nodes : {1, 4, 512}) {
      const auto m = mmr::cluster{mmr::device_preset(name), nodes, 8}.lay(mmr::mesh::parse("all=" + std::to_string(nodes * 8)));
      CHECK(mmr::to_json(mmr::mesh_from_json(mmr::to_json(m).dump(), "x.json")) == mmr::to_json(m));
    }
  CHECK_NOTHROW(mmr::to_json(mmr::mesh::parse("data=1")));
}

TEST_CASE("a file is replaced whole or not at all") {
  const auto folder = std::filesystem::temp_directory_path() / ("mmr_mesh_json_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const auto path = folder / "machine.json";
  const auto m = odd_mesh();
  mmr::save_mesh(m, path);
  CHECK(mmr::to_json(mmr::load_mesh(path)) == mmr::to_json(m));
  auto broken = m;
  broken.axes[1].seconds_per_byte = std::numeric_limits<double>::quiet_NaN();
  CHECK_THAT(refusal([&] { mmr::save_mesh(broken, path); }), contains("seconds_per_byte nan, which no device has"));
  CHECK(mmr::to_json(mmr::load_mesh(path)) == mmr::to_json(m));
  CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 1);
  std::filesystem::remove(path);
  CHECK_THAT(refusal([&] { mmr::load_mesh(path); }), contains("machine.json"));
  CHECK_THAT(refusal([&] { mmr::save_mesh(m, folder / "none" / "x.json"); }), contains("cannot write"));
  std::filesystem::remove_all(folder);
}

TEST_CASE("text that is cut or no calibration is refused") {
  const auto whole = mmr::to_json(odd_mesh()).dump();
  for (std::size_t kept = 0; kept < whole.size(); ++kept)
    CHECK(refused(whole.substr(0, kept)) ==
          "the calibration in x.json is not whole JSON: it is cut or damaged; measure again");
  CHECK_THAT(refused("[]"), contains("not whole JSON"));
  CHECK_THAT(refused("{}"), contains("has no entry 'mmr_mesh'"));
  CHECK_THAT(refused_with("/mmr_mesh", 2), contains("has format version 2 and this program reads 1; measure again"));
  CHECK_THAT(refused_with("/mmr_mesh", "1"), contains("format version \"1\""));
  CHECK_THAT(refused_with("/mmr_mesh", 1.0), contains("format version 1.0"));
  for (const char* key : {"device", "axes"}) {
    auto j = nlohmann::json(mmr::to_json(odd_mesh()));
    j.erase(key);
    CHECK_THAT(refused(j.dump()), contains("has no entry '" + std::string(key) + "'"));
    CHECK(refused_with("/" + std::string(key), 3) != "nothing was refused");
  }
}

TEST_CASE("each constant is checked: its kind, its sign, its size") {
  for (const std::string where :
       {"/device/matrix_flops/float64", "/device/matrix_flops/float32", "/device/matrix_flops/bfloat16",
        "/device/other_flops/float64", "/device/other_flops/float32", "/device/other_flops/bfloat16",
        "/device/memory_bytes_per_second", "/device/launch_seconds", "/axes/0/latency_seconds", "/axes/1/seconds_per_byte"}) {
    INFO(where);
    const auto key = where.substr(where.rfind('/') + 1);
    CHECK_THAT(refused_with(where, 0), contains("has " + key + " 0, which no device has: it lies between "));
    CHECK_THAT(refused_with(where, -1e9), contains("has " + key + " -1e+09, which no device has"));
    CHECK_THAT(refused_with(where, 1e30), contains("has " + key + " 1e+30, which no device has"));
    CHECK_THAT(refused_with(where, 1e-30), contains("has " + key + " 1e-30, which no device has"));
    // What JSON makes of a number that is none.
    CHECK_THAT(refused_with(where, std::nan("")), contains("has " + key + " null where a number belongs"));
    CHECK_THAT(refused_with(where, "fast"), contains("has " + key + " \"fast\" where a number belongs"));
    CHECK_THAT(refused_with(where, true), contains("where a number belongs"));
    CHECK_THAT(refused_with(where, nlohmann::json::array({1})), contains("has " + key + " array where a number belongs"));
    auto j = nlohmann::json(mmr::to_json(odd_mesh()));
    const nlohmann::json::json_pointer at(where);
    j[at.parent_pointer()].erase(at.parent_pointer().to_string().find("axes") != std::string::npos ? key : at.back());
    CHECK_THAT(refused(j.dump()), contains("has no entry '" + key + "'"));
    auto text = mmr::to_json(odd_mesh()).dump();
    const auto number = text.find(':', text.find("\"" + key + "\"")) + 1;
    text.replace(number, text.find_first_of(",}", number) - number, "1e999");
    CHECK_THAT(refused(text), contains("not whole JSON"));
  }
}

TEST_CASE("axes that make no mesh are refused") {
  CHECK_THAT(refused_with("/axes", nlohmann::json::array()), contains("describes no mesh: a mesh has 1 to 3 axes"));
  CHECK_THAT(refused_with("/axes/1/name", "data"), contains("describes no mesh: mesh axis 'data' stands twice"));
  CHECK_THAT(refused_with("/axes/1/name", "a b"), contains("describes no mesh"));
  CHECK_THAT(refused_with("/axes/1/name", 7), contains("has name 7 where a text belongs"));
  for (const nlohmann::json& size : {nlohmann::json(0), nlohmann::json(-2), nlohmann::json(2.0), nlohmann::json("2"),
                                     nlohmann::json(4294967297), nlohmann::json(nullptr)})
    CHECK_THAT(refused_with("/axes/0/size", size), contains("of axis 'data' where a whole number from 1 to 10^9 belongs"));
  CHECK_THAT(refused_with("/axes/0", 3), contains("has no entry 'name'"));
  CHECK_THAT(refused_with("/device/cpu", 1), contains("has cpu 1 where true or false belongs"));
}
