// Plans as JSON: versioned, and checked against graph and mesh on loading. Strategies are written by loop name, so that a
// person can read and edit them.
#pragma once

#include <mmr/io/file.hpp>
#include <mmr/plan/plan.hpp>
#include <mmr/tensor/hash.hpp>
#include <mmr/tensor/json.hpp>

#include <nlohmann/json.hpp>

#include <filesystem>

namespace mmr {

inline constexpr int plan_format_version = 1;

/// A number that changes with anything of the graph that a plan depends on: operators, loops, extents, types, order.
inline std::uint64_t fingerprint(const graph& g) {
  auto h = detail::hash_of("");
  // A byte that no text holds ends each, so that "ab", "c" is not "a", "bc".
  const auto add = [&](std::string_view text) { h = detail::hash_of("\xff", detail::hash_of(text, h)); };
  for (op_id o = 0; o < g.ops(); ++o) {
    const auto& op = g.op(o);
    add(op.name);
    add(name_of(op.element));
    for (const auto& l : op.loops.loops) add(l.axis), add(std::to_string(l.extent));
    for (auto t : op.in) add(std::to_string(t));
  }
  add(std::to_string(g.microbatches));
  return h;
}

/// {"parameters": …, "gradients": …, …} of one rank, in bytes.
inline nlohmann::ordered_json to_json(const rank_memory& r) {
  return {{"parameters", r.parameters}, {"gradients", r.gradients}, {"optimizer", r.optimizer},
          {"activations", r.activations}, {"redundant", r.redundant}, {"peak_live", r.peak_live}, {"arena", r.arena}};
}

/// A number that changes with the strategies of a plan and with what is claimed of them.
inline std::uint64_t seal_of(const nlohmann::json& j) {
  auto h = detail::hash_of("");
  for (const char* key : {"name", "objective", "lower_bound", "lower_bound_unit", "least_proved", "proved", "operators"})
    if (j.contains(key)) h = detail::hash_of(j[key].dump(), h);
  return h;
}

inline nlohmann::ordered_json to_json(const plan& p, const graph& g, const mesh& m) {
  nlohmann::ordered_json j;
  j["mmr_plan"] = plan_format_version;
  j["name"] = p.name;
  j["objective"] = p.objective;
  j["graph"] = std::to_string(fingerprint(g));
  for (const auto& a : m.axes) j["mesh"].push_back({{"name", a.name}, {"size", a.size}});
  j["lower_bound"] = p.lower_bound;
  j["lower_bound_unit"] = unit_of(p.minimised);
  j["least_proved"] = p.least;
  j["proved"] = p.proved;
  j["step_time_s"] = p.step_seconds;
  for (const auto& r : p.per_rank) j["per_rank"].push_back(to_json(r));
  for (op_id o = 0; o < g.ops(); ++o) {
    nlohmann::ordered_json along = nlohmann::ordered_json::array();
    const auto& op = g.op(o);
    const auto& s = p.strategies[static_cast<std::size_t>(o)];
    if (!s.runs()) {
      j["operators"].push_back({{"name", op.name}, {"along", text(op, m, s)}});
      continue;
    }
    for (int a = 0; a < m.count(); ++a)
      along.push_back(s[a] == unsplit        ? "none"
                      : s[a] == pass_partial ? "partial"
                                             : op.loops.loops[static_cast<std::size_t>(s[a])].axis);
    j["operators"].push_back({{"name", op.name}, {"along", along}});
  }
  j["seal"] = std::to_string(seal_of(nlohmann::json(j)));
  return j;
}

/// Reads a plan for this graph and mesh. Fails with a sentence where the text is damaged, of another version, or made for
/// another graph or mesh, or names a strategy that an operator does not have. Costs are computed afresh, and a plan that
/// was edited by hand loses its proof.
inline plan plan_from_json(const std::string& text, const std::string& source, setting& s) {
  const auto j = detail::parsed_json(text);
  const auto damaged = [&](const auto&... why) { fail("the plan in ", source, " ", why..., "; make it again with --save-plan"); };
  if (j.is_discarded() || !j.is_object()) damaged("is not whole JSON: it is cut or damaged");
  const auto get = [&](const nlohmann::json& in, const char* key) -> const nlohmann::json& {
    if (!in.is_object() || !in.contains(key)) damaged("has no entry '", key, "'");
    return in[key];
  };
  const auto& version = get(j, "mmr_plan");
  if (!version.is_number_integer() || version.get<std::int64_t>() != plan_format_version)
    damaged("has format version ", version.dump(), " and this program reads ", plan_format_version);
  const auto& axes = get(j, "mesh");
  std::string made_for;
  bool same_mesh = axes.is_array() && axes.size() == s.m.axes.size();
  if (axes.is_array())
    for (std::size_t a = 0; a < axes.size(); ++a) {
      const auto& name = get(axes[a], "name");
      const auto& size = get(axes[a], "size");
      if (!name.is_string() || !size.is_number_integer()) damaged("has a damaged mesh");
      made_for += (a ? "," : "") + name.get<std::string>() + "=" + size.dump();
      same_mesh = same_mesh && name == s.m.axes[a].name && size == s.m.axes[a].size;
    }
  if (!same_mesh) damaged("is for the mesh ", made_for, " and not for ", s.m.text());
  const auto& made_of = get(j, "graph");
  if (made_of != std::to_string(fingerprint(s.g)))
    damaged("is for another model: other layers, sizes, optimizer or number type");
  const auto& ops = get(j, "operators");
  if (!ops.is_array() || ops.size() != static_cast<std::size_t>(s.g.ops()))
    damaged("has ", ops.is_array() ? ops.size() : 0, " operators where the model has ", s.g.ops());
  plan p;
  for (const char* key : {"name", "objective"})
    if (!get(j, key).is_string()) damaged("has a damaged entry '", key, "'");
  p.name = j["name"];
  p.objective = j["objective"];
  if (!get(j, "lower_bound").is_number() || !get(j, "proved").is_boolean()) damaged("has a damaged bound");
  p.lower_bound = j["lower_bound"];
  // Plans were once saved without the unit; of those, only the one called memory was bounded in bytes.
  const auto unit = j.value("lower_bound_unit", nlohmann::json(unit_of(p.name == "memory" ? goal::memory : goal::time)));
  p.minimised = unit == unit_of(goal::memory) ? goal::memory : goal::time;
  if (unit != unit_of(p.minimised)) damaged("has the lower bound in ", unit.dump(), ", which is neither bytes nor seconds");
  // Plans were once saved as proved where only their first goal was; the fixed schemes have no other.
  const auto least = j.value("least_proved", j["proved"]);
  if (!least.is_boolean()) damaged("has a damaged entry 'least_proved'");
  p.least = least;
  p.proved = j["proved"] && p.least &&
             (j.contains("least_proved") || std::find(scheme_names.begin(), scheme_names.end(), p.name) != scheme_names.end());
  for (op_id o = 0; o < s.g.ops(); ++o) {
    const auto& op = s.g.op(o);
    const auto& entry = ops[static_cast<std::size_t>(o)];
    const auto& along = get(entry, "along");
    if (get(entry, "name") != op.name) damaged("has a damaged entry for operator '", op.name, "'");
    const auto all = strategies_of(op, s.m);
    const auto refuse = [&] { damaged("gives operator '", op.name, "' the strategy ", along.dump(), ", which it does not have"); };
    if (along == "kept" || along == "absent") {
      const auto kind = along == "kept" ? presence::keep : presence::absent;
      if (std::none_of(all.begin(), all.end(), [&](const strategy& c) { return c.kind == kind; })) refuse();
      p.strategies.push_back(kind == presence::keep ? keeping(op, s.m, p.strategies[static_cast<std::size_t>(op.again)])
                                                    : strategy{.kind = kind});
      continue;
    }
    if (!along.is_array() || along.size() != s.m.axes.size()) damaged("has a damaged entry for operator '", op.name, "'");
    // Loops are matched by name; an axis that two loops walk is written once, for the one that may be split.
    const auto matches = [&](const strategy& c) {
      if (!c.runs()) return false;
      for (int a = 0; a < s.m.count(); ++a) {
        const auto name = c[a] == unsplit        ? std::string("none")
                          : c[a] == pass_partial ? std::string("partial")
                                                 : op.loops.loops[static_cast<std::size_t>(c[a])].axis;
        if (along[static_cast<std::size_t>(a)] != name) return false;
      }
      return true;
    };
    const auto found = std::find_if(all.begin(), all.end(), matches);
    if (found == all.end()) refuse();
    p.strategies.push_back(*found);
  }
  if (const auto why = contradiction(s, p.strategies); !why.empty()) damaged("cannot be run: ", why);
  // An edited plan runs, but nothing is proved of it any more.
  if (get(j, "seal") != std::to_string(seal_of(j))) {
    p.name += " (edited)";
    p.objective = "as edited by hand";
    p.least = p.proved = false;
    p.lower_bound = 0;
  }
  assess(s, p);
  return p;
}

inline void save_plan(const plan& p, const graph& g, const mesh& m, const std::filesystem::path& path) {
  write_text_file(path, to_json(p, g, m).dump(1) + "\n");
}
inline plan load_plan(const std::filesystem::path& path, setting& s) {
  return plan_from_json(read_text_file(path), path.string(), s);
}

}  // namespace mmr
