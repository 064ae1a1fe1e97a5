// Which plans train_gpt makes: the one it runs, and those it compares with.
#pragma once

#include "options.hpp"

#include <iostream>
#include <vector>

struct planned {
  mmr::plan run;
  std::vector<mmr::plan> table;  ///< all plans side by side, the one that is run among them
  double solve_seconds = 0;
};

inline mmr::plan_request request_for(const options& o, const std::string& name) {
  mmr::plan_request r;
  r.axes = mmr::gpt::scheme();
  r.work = o.solve_work;
  r.seconds = o.solve_seconds;
  if (name == "time") r.minimise = mmr::goal::time;
  if (name != "memory" && name != "time") r.scheme = name;
  return r;
}

inline planned make_plans(const options& o, mmr::planner& planner) {
  planned out;
  const bool from_file = o.plan_is_file();
  std::vector<std::string> names;
  if (!o.no_table) {
    names.assign(mmr::scheme_names.begin(), mmr::scheme_names.end());
    names.insert(names.end(), o.searched.begin(), o.searched.end());
  }
  // The plan that is run counts too: it may take the longest.
  mmr::progress bar("planning", 1 + static_cast<std::int64_t>(names.size()), "plans");
  std::int64_t done = 0;
  if (from_file) {
    std::error_code code;
    if (!std::filesystem::exists(o.plan, code))
      mmr::fail("'", o.plan, "' is no plan and no file: give memory, time, or the file of a saved plan, or one of ",
                mmr::scheme_list());
    if (o.slowdown || !o.budget.empty()) mmr::fail("--slowdown and --budget ask for a new plan; leave them out with --plan ", o.plan);
    out.run = mmr::load_plan(o.plan, planner.where());
  } else {
    auto r = request_for(o, o.plan);
    r.slowdown = o.slowdown;
    if (!o.budget.empty()) r.budget = static_cast<std::int64_t>(mmr::parse_bytes(o.budget));
    if (o.slowdown && o.plan != "memory") mmr::fail("--slowdown bounds the memory plan; use it with --plan memory");
    bar.update(done, o.plan);
    out.run = planner.make(r);
    out.solve_seconds = out.run.solve_seconds;
  }
  bar.update(++done, o.plan);
  if (o.no_table) {
    out.table = {out.run};
    return out;
  }
  const bool bounded = o.slowdown || !o.budget.empty();
  for (const auto& name : names) {
    out.table.push_back(name == o.plan && !bounded ? out.run : planner.make(request_for(o, name)));
    bar.update(++done, name);
  }
  if (from_file || bounded) {
    out.table.push_back(out.run);
    out.table.back().name += from_file ? " (file)" : " (bounded)";
  }
  return out;
}
