// The JSON of the ASPLOS / EuroSys 2025 contest on intra-operator parallelism (github.com/google/iopddl) as a problem
// of the solver, and its judge in integers.
#pragma once

#include <zlib.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mmr/io/file.hpp>
#include <mmr/solve/problem.hpp>
#include <mmr/tensor/error.hpp>
#include <mmr/tensor/json.hpp>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace contest {

/// Wide enough for any sum of the contest's numbers.
__extension__ using wide = __int128;

inline std::string text_of(wide n) {
  std::string digits;
  do digits.push_back(static_cast<char>('0' + static_cast<int>(n % 10)));
  while ((n /= 10) > 0);
  return {digits.rbegin(), digits.rend()};
}

/// A number of the file: whole, at least 0. From `forbidden` on it forbids.
inline constexpr std::int64_t forbidden = 1'000'000'000'000'000'000;

struct interval {
  std::int64_t begin = 0, end = 0;
};

/// An instance as it stands in its file.
struct instance {
  std::string name;
  std::vector<interval> intervals;
  std::vector<std::vector<std::int64_t>> costs, usages;
  std::vector<std::pair<int, int>> edges;
  std::vector<std::vector<std::int64_t>> edge_costs;  ///< row-major: strategies of the first node x of the second
  std::optional<std::int64_t> usage_limit;
};

/// The text of a file, unpacked where it is gzip. Throws mmr::error where it cannot be read or is damaged.
inline std::string unpacked(const std::string& path) {
  const mmr::input_file regular(path);  // says what is wrong with folders, devices and what is not there
  struct handle {
    gzFile file;
    ~handle() { gzclose(file); }
  } const in{gzopen(path.c_str(), "rb")};
  if (in.file == nullptr) mmr::fail("'", path, "' cannot be opened; give a .json or .json.gz file");
  std::string text, part(std::size_t{1} << 20, '\0');
  for (;;) {
    const int n = gzread(in.file, part.data(), static_cast<unsigned>(part.size()));
    if (n > 0) text.append(part, 0, static_cast<std::size_t>(n));
    if (n > 0) continue;
    int code = Z_OK;
    const char* said = gzerror(in.file, &code);
    // The end of a file that was cut is no end to gzip: it reports a buffer error.
    if (n < 0 || (code != Z_OK && code != Z_STREAM_END)) mmr::fail("'", path, "' is damaged: ", said);
    return text;
  }
}

namespace detail {

/// What stands in the file, cut short where it is long.
inline std::string shown(const nlohmann::json& j) {
  if (j.is_structured()) return j.is_array() ? "a list" : "an object";
  const auto text = j.dump();
  return text.size() <= 40 ? text : text.substr(0, 37) + "...";
}

/// An entry that the file must have.
inline const nlohmann::json& member(const nlohmann::json& j, const char* key) {
  if (!j.is_object())
    mmr::fail("this is no instance of the contest: ", shown(j), " stands where an object with '", key, "' belongs");
  if (!j.contains(key)) mmr::fail("this is no instance of the contest: it has no '", key, "'");
  return j[key];
}

/// A list of the file; a single value is none.
inline const nlohmann::json& list(const nlohmann::json& j, const char* what) {
  if (!j.is_array()) mmr::fail("the instance is damaged: ", what, " holds ", shown(j), "; it needs a list");
  return j;
}

/// A whole number, at least 0. What is `most` or more counts as `most`.
inline std::int64_t number(const nlohmann::json& j, const char* what, std::int64_t most) {
  if (!j.is_number()) mmr::fail("the instance is damaged: ", what, " holds ", shown(j), "; it needs a number");
  const double about = j.get<double>();
  if (about < 0) mmr::fail("the instance is damaged: ", what, " holds ", shown(j), "; it needs 0 or more");
  if (about != std::floor(about))
    mmr::fail("the instance is damaged: ", what, " holds ", shown(j), "; it needs a whole number");
  // Compared as what it is: near 10^18 neighbours are equal as doubles.
  if (j.is_number_unsigned())
    return static_cast<std::int64_t>(std::min(j.get<std::uint64_t>(), static_cast<std::uint64_t>(most)));
  return about >= static_cast<double>(most) ? most : static_cast<std::int64_t>(about);
}

inline constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

/// A number that is part of a sum: one of 64 bits and more is none that an instance can mean.
inline std::int64_t exact(const nlohmann::json& j, const char* what) {
  const auto n = number(j, what, largest);
  if (n == largest) mmr::fail("the instance is damaged: ", what, " holds ", shown(j), "; it needs less than 2^63");
  return n;
}

inline std::vector<std::int64_t> costs(const nlohmann::json& j, const char* what) {
  std::vector<std::int64_t> out;
  for (const auto& n : list(j, what)) out.push_back(number(n, what, forbidden));
  return out;
}

/// The two numbers of an interval or of an edge.
inline std::pair<std::int64_t, std::int64_t> pair(const nlohmann::json& j, const char* what) {
  if (list(j, what).size() != 2)
    mmr::fail("the instance is damaged: ", what, " hold a list of ", j.size(), " numbers; each needs two");
  return {exact(j[0], what), exact(j[1], what)};
}

}  // namespace detail

/// Reads an instance. Throws mmr::error that names what is missing, damaged or does not fit.
inline instance parse(const std::string& text) {
  instance out;
  try {
    const auto whole = mmr::detail::parsed_json(text);
    if (whole.is_discarded()) mmr::fail("this is no instance of the contest: it is not whole JSON, but cut or damaged");
    const auto& j = detail::member(whole, "problem");
    out.name = "unnamed";
    if (j.contains("name") && j.at("name").is_string()) out.name = j.at("name").get<std::string>();
    const auto& nodes = detail::member(j, "nodes");
    for (const auto& i : detail::list(detail::member(nodes, "intervals"), "intervals")) {
      const auto [begin, end] = detail::pair(i, "intervals");
      out.intervals.push_back({begin, end});
    }
    for (const auto& c : detail::list(detail::member(nodes, "costs"), "costs"))
      out.costs.push_back(detail::costs(c, "costs"));
    for (const auto& u : detail::list(detail::member(nodes, "usages"), "usages")) {
      auto& bytes = out.usages.emplace_back();
      for (const auto& n : detail::list(u, "usages")) bytes.push_back(detail::exact(n, "usages"));
    }
    const auto& edges = detail::member(j, "edges");
    for (const auto& e : detail::list(detail::member(edges, "nodes"), "edges")) {
      const auto [u, v] = detail::pair(e, "edges");
      // Numbers that no int holds are beyond the nodes, and refused as such below.
      const auto node = [](std::int64_t n) { return static_cast<int>(std::min<std::int64_t>(n, INT_MAX)); };
      out.edges.push_back({node(u), node(v)});
    }
    for (const auto& c : detail::list(detail::member(edges, "costs"), "edge costs"))
      out.edge_costs.push_back(detail::costs(c, "edge costs"));
    if (j.contains("usage_limit") && !j.at("usage_limit").is_null())
      out.usage_limit = detail::number(j.at("usage_limit"), "usage_limit", detail::largest);
  } catch (const nlohmann::json::exception& said) {
    mmr::fail("this is no instance of the contest: ", said.what());
  }
  const auto n = out.costs.size();
  if (n == 0) mmr::fail("the instance '", out.name, "' has no nodes; there is nothing to choose");
  if (out.intervals.size() != n || out.usages.size() != n)
    mmr::fail("the instance is damaged: ", n, " nodes have costs, ", out.intervals.size(), " intervals and ",
              out.usages.size(), " usages");
  for (std::size_t v = 0; v < n; ++v) {
    if (out.costs[v].empty()) mmr::fail("the instance is damaged: node ", v, " has no strategies");
    if (out.usages[v].size() != out.costs[v].size())
      mmr::fail("the instance is damaged: node ", v, " has ", out.costs[v].size(), " costs but ", out.usages[v].size(),
                " usages");
  }
  if (out.edges.size() != out.edge_costs.size())
    mmr::fail("the instance is damaged: ", out.edges.size(), " edges have ", out.edge_costs.size(), " cost tables");
  for (std::size_t e = 0; e < out.edges.size(); ++e) {
    const auto [u, v] = out.edges[e];
    if (static_cast<std::size_t>(std::max(u, v)) >= n)
      mmr::fail("the instance is damaged: edge ", e, " joins ", u, " and ", v, " but there are ", n, " nodes");
    const auto pairs = out.costs[static_cast<std::size_t>(u)].size() * out.costs[static_cast<std::size_t>(v)].size();
    if (out.edge_costs[e].size() != pairs)
      mmr::fail("the instance is damaged: edge ", e, " has ", out.edge_costs[e].size(), " costs; its nodes need ",
                pairs);
  }
  return out;
}

/// Bytes in a unit in which the most that a step can hold fits the solver's 64 bits. Most instances need none.
struct byte_unit {
  std::int64_t size = 1;           ///< divides all usages
  bool drops_what_breaks = false;  ///< strategies that alone break the limit are forbidden
};

/// The unit for an instance. Fails where none makes the sums fit.
inline byte_unit unit_of(const instance& from) {
  const auto most = [&](const byte_unit& unit) {
    std::vector<std::pair<std::int64_t, wide>> changes;
    for (std::size_t v = 0; v < from.costs.size(); ++v) {
      const auto& i = from.intervals[v];
      if (i.begin >= i.end) continue;
      std::int64_t worst = 0;
      for (const auto bytes : from.usages[v])
        if (!unit.drops_what_breaks || bytes <= *from.usage_limit) worst = std::max(worst, bytes);
      changes.push_back({i.begin, worst / unit.size});
      changes.push_back({i.end, -static_cast<wide>(worst / unit.size)});
    }
    std::sort(changes.begin(), changes.end());
    wide held = 0, peak = 0;
    for (const auto& change : changes) peak = std::max(peak, held += change.second);
    return peak;
  };
  constexpr wide room = std::int64_t{1} << 60, exact = static_cast<std::int64_t>(mmr::solve::most_exact);
  byte_unit unit;
  if (!from.usage_limit || most(unit) <= exact) return unit;
  unit.drops_what_breaks = true;
  if (most(unit) <= exact) return unit;
  std::int64_t divisor = 0;
  for (const auto& node : from.usages)
    for (const auto bytes : node) divisor = std::gcd(divisor, bytes);
  unit.size = std::max<std::int64_t>(divisor, 1);
  if (most(unit) > room)
    mmr::fail(
        "the usages of the instance add up to more than 2^60 at a step, which the solver cannot count; give them ",
        "in a larger unit");
  return unit;
}

/// The solver's limit on what a step holds, in the unit of `problem_of`; nothing where the instance has none.
inline std::optional<std::int64_t> limit_of(const instance& from) {
  if (!from.usage_limit) return {};
  return *from.usage_limit / unit_of(from).size;
}

/// The solver's problem of an instance. Steps are numbered anew: only those at which an interval begins can hold most.
inline mmr::solve::problem problem_of(const instance& from) {
  const auto unit = unit_of(from);
  const auto cost = [](std::int64_t c) { return c >= forbidden ? mmr::solve::infinity : static_cast<double>(c); };
  std::vector<std::int64_t> times;
  for (const auto& i : from.intervals)
    if (i.begin < i.end) times.push_back(i.begin);
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  const auto step = [&](std::int64_t t) {
    return static_cast<int>(std::lower_bound(times.begin(), times.end(), t) - times.begin());
  };
  mmr::solve::problem out;
  out.steps = static_cast<int>(times.size());
  for (std::size_t v = 0; v < from.costs.size(); ++v) {
    mmr::solve::node n{std::to_string(v), {}, {}};
    for (auto c : from.costs[v]) n.cost.push_back(cost(c));
    const auto& i = from.intervals[v];
    if (from.usage_limit && i.begin < i.end) {
      auto bytes = from.usages[v];
      for (std::size_t s = 0; s < bytes.size(); ++s) {
        if (unit.drops_what_breaks && bytes[s] > *from.usage_limit) n.cost[s] = mmr::solve::infinity, bytes[s] = 0;
        bytes[s] /= unit.size;
      }
      n.uses.push_back({step(i.begin), step(i.end), std::move(bytes)});
    }
    out.nodes.push_back(std::move(n));
  }
  for (std::size_t e = 0; e < from.edges.size(); ++e) {
    mmr::solve::edge x;
    std::tie(x.u, x.v) = from.edges[e];
    const auto classes = [&](int v, std::vector<int>& of, int& count) {
      count = static_cast<int>(from.costs[static_cast<std::size_t>(v)].size());
      for (int s = 0; s < count; ++s) of.push_back(s);
    };
    classes(x.u, x.u_class, x.u_classes);
    classes(x.v, x.v_class, x.v_classes);
    for (auto c : from.edge_costs[e]) x.cost.push_back(cost(c));
    out.edges.push_back(std::move(x));
  }
  return out;
}

/// The exact cost of a choice, as the contest counts it; nothing where it is forbidden or breaks the limit.
inline std::optional<wide> judged(const instance& of, const std::vector<int>& choice) {
  if (choice.size() != of.costs.size()) return {};
  wide cost = 0;
  std::vector<std::pair<std::int64_t, wide>> changes;
  for (std::size_t v = 0; v < choice.size(); ++v) {
    const auto s = static_cast<std::size_t>(choice[v]);
    if (of.costs[v][s] >= forbidden) return {};
    cost += of.costs[v][s];
    if (of.intervals[v].begin >= of.intervals[v].end) continue;
    changes.push_back({of.intervals[v].begin, of.usages[v][s]});
    changes.push_back({of.intervals[v].end, -static_cast<wide>(of.usages[v][s])});
  }
  for (std::size_t e = 0; e < of.edges.size(); ++e) {
    const auto u = static_cast<std::size_t>(of.edges[e].first), v = static_cast<std::size_t>(of.edges[e].second);
    const auto c = of.edge_costs[e][static_cast<std::size_t>(choice[u]) * of.costs[v].size() +
                                    static_cast<std::size_t>(choice[v])];
    if (c >= forbidden) return {};
    cost += c;
  }
  // What ends at a time is gone before what begins there is held.
  std::sort(changes.begin(), changes.end());
  wide held = 0;
  for (const auto& [time, bytes] : changes) {
    held += bytes;
    if (of.usage_limit && held > *of.usage_limit) return {};
  }
  return cost;
}

}  // namespace contest
