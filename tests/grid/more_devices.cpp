// More devices never need more memory each. A plan for few devices is a plan for more of them: along a longer mesh axis
// the same strategies leave rank 0, which holds a largest part, ceil(n / k) of an extent n, which no larger k makes
// larger; and no operator need be split along a mesh axis that is added. So every tensor of the least plan fits in its
// place, and what is proved least on more devices cannot be above it.
//
// What these words leave open is resharding: between two placements the planner takes the quickest route, and on
// another mesh the quickest may be one that fills larger buffers. Then other strategies must make up for it. This is
// why it is tested on meshes with links as they are, and is no theorem.
#include <algorithm>
#include <mmr/mesh/topology.hpp>
#include <mmr/plan/planner.hpp>
#include <string>
#include <vector>

#include "catch.hpp"
#include "models.hpp"

namespace {

using meshes = std::vector<mmr::mesh>;

void check_never_more(const std::string& model, const meshes& more_and_more) {
  const auto g = models::make(model);
  std::int64_t before = 0;
  std::string fewer;
  for (const auto& m : more_and_more) {
    mmr::planner planner(g, m);
    const auto lean = planner.make({.axes = models::axes(model)});
    INFO(model << ": " << m.text() << " after " << fewer);
    CHECK(lean.least);
    if (before > 0) CHECK(mmr::peak_bytes(lean) <= before);
    before = mmr::peak_bytes(lean);
    fewer = m.text();
  }
}

meshes parsed(const std::vector<std::string>& specs) {
  meshes all;
  for (const auto& spec : specs) all.push_back(mmr::mesh::parse(spec));
  return all;
}
/// In nodes of at most eight.
meshes on_gpus(meshes all) {
  for (auto& m : all) {
    const int in_a_node = std::min(8, m.rank_count());
    m = mmr::cluster{mmr::device_preset("a100-80g"), m.rank_count() / in_a_node, in_a_node}.lay(m);
  }
  return all;
}
/// The first axis slow, the others so quick that ways round by them beat its own collectives.
meshes with_a_slow_axis(meshes all) {
  for (auto& m : all)
    for (auto& a : m.axes) {
      a.latency = 1e-9;
      a.seconds_per_byte = &a == &m.axes.front() ? 1e-6 : 1e-13;
    }
  return all;
}

const std::vector<std::string> longer{"data=1", "data=2", "data=3", "data=4", "data=6", "data=8"};
const std::vector<std::string> wider{"data=2,model=1", "data=2,model=2", "data=2,model=3", "data=2,model=4",
                                     "data=4,model=4"};

}  // namespace

TEST_CASE("more devices along one mesh axis never need more memory each") {
  for (const char* model : {"gpt", "gpt-odd", "t5"}) check_never_more(model, parsed(longer));
  check_never_more("gpt", on_gpus(parsed(longer)));
}

TEST_CASE("more mesh axes never need more memory a device") {
  check_never_more("gpt", parsed(wider));
  check_never_more("gpt-odd", on_gpus(parsed(wider)));
  check_never_more("gpt", with_a_slow_axis(parsed(wider)));
}
