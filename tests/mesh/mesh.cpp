// Meshes: what is refused, how ranks are numbered, and that the parts of a tensor tile it.
#include <functional>
#include <mmr/mesh/placement.hpp>
#include <set>

#include "catch.hpp"
#include "refusal.hpp"

using namespace mmr;

namespace {

/// Calls `visit` with every placement of a tensor of `dims` dimensions on the mesh; unused mesh axes stay Replicate.
void for_each_placement(const mesh& m, int dims, const std::function<void(const placement&)>& visit, placement p = {},
                        int a = 0) {
  if (a == m.count()) return visit(p);
  for (int c = -2; c < dims; ++c) {
    p[a] = static_cast<axis_placement>(c);
    for_each_placement(m, dims, visit, p, a + 1);
  }
}

}  // namespace

TEST_CASE("a mesh that cannot be one is refused with its reason") {
  const auto parsed = [](const std::string& spec) { return refusal([&] { mesh::parse(spec); }); };
  for (const auto* spec : {"", "data", "data=", "data=x", "data=-1", "data=2,,model=2", "data=2,", "data=1e3",
                           "data= 2", "data=99999999999"}) {
    INFO(spec);
    CHECK_THAT(parsed(spec), contains("is not NAME=SIZE with a size of at most 9 digits; write data=2,model=2"));
  }
  CHECK_THAT(parsed("data=0"), contains("mesh axis 'data' has size 0"));
  CHECK_THAT(parsed("=2"), contains("no name"));
  CHECK_THAT(parsed("data=2,data=2"), contains("'data' stands twice"));
  CHECK_THAT(parsed("a=1,b=1,c=1,d=1"), contains("1 to 3 axes"));
  CHECK_THAT(parsed("a=99999,b=99999"), contains("more ranks than an int can count"));
  CHECK_THAT(refusal([] { mesh{}.check(); }), contains("1 to 3 axes"));
}

TEST_CASE("ranks are numbered row-major over the mesh axes") {
  const auto m = mesh::parse("data=2,model=3,extra=4");
  CHECK(m.rank_count() == 24);
  CHECK(m.text() == "data=2,model=3,extra=4");
  CHECK(m.find("model") == 1);
  CHECK(m.find("seq") == -1);
  for (int r = 0; r < m.rank_count(); ++r)
    CHECK(r == (m.coordinate(r, 0) * 3 + m.coordinate(r, 1)) * 4 + m.coordinate(r, 2));
}

TEST_CASE("the parts of a dimension are contiguous, differ by at most one, and the first is a largest") {
  for (std::int64_t size = 0; size < 12; ++size)
    for (int n = 1; n < 6; ++n) {
      std::int64_t next = 5;
      for (int k = 0; k < n; ++k) {
        const auto part = part_of({5, size}, n, k);
        CHECK(part.begin == next);
        CHECK((part.size == size / n || part.size == size / n + 1));
        CHECK(part.size <= part_of({5, size}, n, 0).size);
        next += part.size;
      }
      CHECK(next == 5 + size);
    }
}

TEST_CASE("local boxes hold every element as often as the placement says, and rank 0 holds a largest box") {
  for (const auto* spec : {"a=2", "a=3", "a=5", "a=2,b=2", "a=3,b=2", "a=2,b=1,c=3"}) {
    const auto m = mesh::parse(spec);
    const std::vector<std::int64_t> extents{5, 4};
    for_each_placement(m, 2, [&](const placement& p) {
      std::vector<int> holders(20, 0);
      for (int r = 0; r < m.rank_count(); ++r) {
        const auto box = local_box(m, extents, p, r);
        for (auto i = box[0].begin; i < box[0].begin + box[0].size; ++i)
          for (auto j = box[1].begin; j < box[1].begin + box[1].size; ++j)
            ++holders[static_cast<std::size_t>(4 * i + j)];
        CHECK(box[0].size * box[1].size == local_count(m, extents, p, r));
        CHECK(local_count(m, extents, p, r) <= local_count(m, extents, p, 0));
      }
      // Replication r = p / s: each element lies on that many ranks.
      const auto replication = static_cast<int>(m.rank_count() / shards(m, p));
      CHECK(std::set<int>(holders.begin(), holders.end()) == std::set<int>{replication});
    });
  }
}

TEST_CASE("placements are written one entry a mesh axis") {
  const auto m = mesh::parse("a=2,b=2,c=2");
  const std::vector<std::string> dims{"rows", "columns"};
  placement p;
  p[0] = 1, p[2] = partial;
  CHECK(text(m, p, dims) == "S(columns),R,P");
}
