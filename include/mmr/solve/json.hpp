// Problems to and from JSON, so that a real one can be kept, sent and solved again.
#pragma once

#include <istream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "mmr/solve/problem.hpp"

namespace mmr::solve {

namespace detail {

/// JSON has no infinity: null stands for it.
inline nlohmann::json costs_to_json(const std::vector<double>& cost) {
  auto out = nlohmann::json::array();
  for (double c : cost) out.push_back(c < infinity ? nlohmann::json(c) : nlohmann::json(nullptr));
  return out;
}

inline std::vector<double> costs_from_json(const nlohmann::json& in) {
  std::vector<double> out;
  for (const auto& c : in) out.push_back(c.is_null() ? infinity : c.get<double>());
  return out;
}

template <class Use>
nlohmann::json uses_to_json(const std::vector<Use>& uses) {
  auto out = nlohmann::json::array();
  for (const auto& use : uses) out.push_back({{"begin", use.begin}, {"end", use.end}, {"bytes", use.bytes}});
  return out;
}

template <class Use>
std::vector<Use> uses_from_json(const nlohmann::json& in) {
  std::vector<Use> out;
  for (const auto& use : in)
    out.push_back(
        {use.at("begin").get<int>(), use.at("end").get<int>(), use.at("bytes").get<std::vector<std::int64_t>>()});
  return out;
}

}  // namespace detail

/// Writes the problem; `load` gives it back exactly.
inline void save(const problem& p, std::ostream& out) {
  nlohmann::json nodes = nlohmann::json::array(), edges = nlohmann::json::array();
  for (const auto& n : p.nodes)
    nodes.push_back(
        {{"name", n.name}, {"cost", detail::costs_to_json(n.cost)}, {"uses", detail::uses_to_json(n.uses)}});
  for (const auto& e : p.edges)
    edges.push_back({{"u", e.u},
                     {"v", e.v},
                     {"u_class", e.u_class},
                     {"v_class", e.v_class},
                     {"u_classes", e.u_classes},
                     {"v_classes", e.v_classes},
                     {"cost", detail::costs_to_json(e.cost)},
                     {"uses", detail::uses_to_json(e.uses)}});
  out << nlohmann::json{{"steps", p.steps}, {"base", p.base}, {"nodes", nodes}, {"edges", edges}} << '\n';
}

/// Reads what `save` wrote. Throws mmr::error when the text is no problem.
inline problem load(std::istream& in) {
  problem p;
  try {
    const auto j = nlohmann::json::parse(in);
    p.steps = j.at("steps").get<int>();
    p.base = j.at("base").get<std::vector<std::int64_t>>();
    for (const auto& n : j.at("nodes"))
      p.nodes.push_back({n.at("name").get<std::string>(), detail::costs_from_json(n.at("cost")),
                         detail::uses_from_json<use>(n.at("uses"))});
    for (const auto& e : j.at("edges"))
      p.edges.push_back({e.at("u").get<int>(), e.at("v").get<int>(), e.at("u_class").get<std::vector<int>>(),
                         e.at("v_class").get<std::vector<int>>(), e.at("u_classes").get<int>(),
                         e.at("v_classes").get<int>(), detail::costs_from_json(e.at("cost")),
                         detail::uses_from_json<edge_use>(e.at("uses"))});
  } catch (const nlohmann::json::exception& problem_text) {
    fail("this is not a saved problem: ", problem_text.what());
  }
  validate(p);
  return p;
}

}  // namespace mmr::solve
