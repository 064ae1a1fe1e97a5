// Routes between placements: what a step costs, that each step is one a collective can do, and that none is quicker.
#include <mmr/mesh/reshard.hpp>
#include <set>

#include "catch.hpp"

using namespace mmr;

namespace {

/// Links that differ, so that no two steps cost the same by chance.
mesh uneven_mesh(const std::string& spec) {
  auto m = mesh::parse(spec);
  for (int a = 0; a < m.count(); ++a) {
    m.axes[static_cast<std::size_t>(a)].latency = 1e-5 * (a + 1);
    m.axes[static_cast<std::size_t>(a)].seconds_per_byte = 3e-7 / (a + 2);
  }
  m.device.launch = 1.3e-6;
  m.device.memory_bytes = 7e8;
  return m;
}

std::vector<placement> all_placements(const mesh& m, int dims) {
  std::vector<placement> all{{}};
  for (int a = 0; a < m.count(); ++a) {
    std::vector<placement> more;
    for (auto p : all)
      for (int c = -2; c < dims; ++c) {
        p[a] = static_cast<axis_placement>(c);
        more.push_back(p);
      }
    all = std::move(more);
  }
  return all;
}

using elements = std::set<std::int64_t>;

/// The elements of a tensor over (extents[0], extents[1]) that a rank holds.
elements held(const mesh& m, const std::vector<std::int64_t>& extents, const placement& p, int rank) {
  const auto box = local_box(m, extents, p, rank);
  elements all;
  for (auto i = box[0].begin; i < box[0].begin + box[0].size; ++i)
    for (auto j = box[1].begin; j < box[1].begin + box[1].size; ++j) all.insert(i * extents[1] + j);
  return all;
}

/// The ranks that differ from `rank` in their coordinate along mesh axis a alone.
std::vector<int> group_of(const mesh& m, int rank, int a) {
  std::vector<int> group;
  for (int r = 0; r < m.rank_count(); ++r) {
    bool same = true;
    for (int b = 0; b < m.count(); ++b) same = same && (b == a || m.coordinate(r, b) == m.coordinate(rank, b));
    if (same) group.push_back(r);
  }
  return group;
}

/// The collective that turns `p` into `q` along mesh axis a, decided by who holds what: every rank must find what it
/// needs within its group. -1: none does.
int collective_for(const mesh& m, const std::vector<std::int64_t>& extents, const placement& p, const placement& q,
                   int a) {
  for (int r = 0; r < m.rank_count(); ++r) {
    elements there;
    for (int g : group_of(m, r, a)) there.merge(held(m, extents, p, g));
    for (auto e : held(m, extents, q, r))
      if (!there.contains(e)) return -1;
  }
  if (p[a] == partial) return static_cast<int>(q[a] == replicate ? collective::all_reduce : collective::reduce_scatter);
  if (p[a] == replicate) return static_cast<int>(q[a] == partial ? collective::mask : collective::slice);
  if (q[a] == partial) return -1;
  return static_cast<int>(q[a] == replicate ? collective::all_gather : collective::all_to_all);
}

/// Seconds by the formulas of the design page: n ranks, B bytes whole along the mesh axis.
double formula(const mesh& m, collective kind, int a, double B) {
  const double n = m.axis(a).size, alpha = m.axis(a).latency, beta = m.axis(a).seconds_per_byte;
  switch (kind) {
    case collective::all_gather:
    case collective::reduce_scatter:
      return alpha + beta * B * (n - 1) / n;
    case collective::all_reduce:
      return alpha + 2 * beta * B * (n - 1) / n;
    case collective::all_to_all:
      return alpha + beta * B * (n - 1) / (n * n);
    // Copies at memory speed: read and write.
    case collective::slice:
      return m.device.launch + 2 * (B / n) / m.device.memory_bytes;
    case collective::mask:
      return m.device.launch + 2 * B / m.device.memory_bytes;
  }
  return -1;
}

constexpr double never = 1e300;

}  // namespace

TEST_CASE("seconds of collectives follow the formulas") {
  const auto m = uneven_mesh("a=4,b=3");
  for (int a = 0; a < 2; ++a)
    for (double bytes : {0.0, 64.0, 1e6})
      for (auto kind : {collective::all_gather, collective::all_reduce, collective::reduce_scatter,
                        collective::all_to_all, collective::slice, collective::mask})
        CHECK(collective_seconds(m, kind, a, bytes) == Approx(formula(m, kind, a, bytes)).epsilon(1e-12));
}

TEST_CASE("every route is legal, and as quick as the shortest path over single steps") {
  const std::int64_t element = 4;
  for (const auto* spec : {"a=2", "a=3", "a=2,b=2", "a=2,b=3", "a=4,b=2"}) {
    const auto m = uneven_mesh(spec);
    // Extents that every split changes, so that who holds what shows which steps are legal.
    const std::vector<std::int64_t> extents{24, 35};
    const auto places = all_placements(m, 2);
    std::map<placement, std::map<placement, double>> step;
    for (const auto& p : places)
      for (const auto& q : places) {
        int differ = 0, axis = 0;
        for (int a = 0; a < m.count(); ++a)
          if (p[a] != q[a]) ++differ, axis = a;
        if (differ != 1) continue;
        const int kind = collective_for(m, extents, p, q, axis);
        if (kind < 0) continue;
        auto whole = p;
        whole[axis] = replicate;
        step[p][q] = formula(m, static_cast<collective>(kind), axis,
                             static_cast<double>(element * local_count(m, extents, whole, 0)));
      }
    router routes(m, extents, element);
    for (const auto& from : places) {
      // Bellman-Ford.
      std::map<placement, double> least;
      for (const auto& p : places) least[p] = never;
      least[from] = 0;
      for (std::size_t round = 0; round < places.size(); ++round)
        for (const auto& [p, next] : step)
          for (const auto& [q, seconds] : next) least[q] = std::min(least[q], least[p] + seconds);
      for (const auto& to : places) {
        const auto& r = routes.find(from, to);
        const auto& c = routes.cost(from, to);
        CHECK(c.seconds == r.seconds);
        CHECK(c.bytes_of(false) == r.bytes(false));
        CHECK(c.bytes_of(true) == r.bytes(true));
        CHECK(c.last == (r.steps.empty() ? 0 : r.steps.back().bytes));
        REQUIRE(r.seconds == Approx(least[to]).epsilon(1e-9));
        auto at = from;
        double seconds = 0;
        for (const auto& s : r.steps) {
          REQUIRE(s.before == at);
          auto after = at;
          after[s.axis] = s.after[s.axis];
          REQUIRE(s.after == after);
          REQUIRE(static_cast<int>(s.kind) == collective_for(m, extents, s.before, s.after, s.axis));
          CHECK(s.bytes == element * local_count(m, extents, s.after, 0));
          CHECK(s.from_dim == (s.before[s.axis] >= 0 ? s.before[s.axis] : -1));
          CHECK(s.to_dim == (s.after[s.axis] >= 0 ? s.after[s.axis] : -1));
          seconds += s.seconds;
          at = s.after;
        }
        REQUIRE(at == to);
        CHECK(r.seconds == Approx(seconds).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("a route to where the tensor lies already has no steps and costs nothing") {
  const auto m = uneven_mesh("a=2,b=2");
  router routes(m, {4, 4}, 4);
  for (const auto& p : all_placements(m, 2)) {
    CHECK(routes.find(p, p).steps.empty());
    CHECK(routes.find(p, p).seconds == 0);
    CHECK(routes.find(p, p).bytes(false) == 0);
  }
}

TEST_CASE("what a rank sends: ring algorithms") {
  const auto m = uneven_mesh("a=4");
  router routes(m, {16, 8}, 4);  // 512 bytes
  const placement whole, rows{{0, replicate, replicate}}, columns{{1, replicate, replicate}},
      sum{{partial, replicate, replicate}};
  CHECK(routes.find(rows, whole).steps.at(0).sent == 512 * 3 / 4);
  CHECK(routes.find(sum, rows).steps.at(0).sent == 512 * 3 / 4);
  CHECK(routes.find(sum, whole).steps.at(0).sent == 2 * 512 * 3 / 4);
  CHECK(routes.find(rows, columns).steps.at(0).sent == 512 * 3 / 16);
  CHECK(routes.find(whole, rows).steps.at(0).sent == 0);
}

TEST_CASE("only a first step that keeps the shape works in place, and only where the source dies") {
  const auto m = uneven_mesh("a=2,b=2");
  router routes(m, {8, 8}, 4);
  const placement both{{partial, partial, replicate}}, whole;
  const auto& sum = routes.find(both, whole);
  std::int64_t all = 0;
  for (const auto& s : sum.steps) all += s.bytes;
  CHECK(sum.bytes(false) == all);
  for (const auto& from : all_placements(m, 2))
    for (const auto& to : all_placements(m, 2)) {
      const auto& r = routes.find(from, to);
      if (r.steps.empty()) continue;
      const bool keeps = r.steps[0].kind == collective::all_reduce || r.steps[0].kind == collective::mask;
      CHECK(r.bytes(false) - r.bytes(true) == (keeps ? r.steps[0].bytes : 0));
    }
}
