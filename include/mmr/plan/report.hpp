// What a report shows of plans, as data: the front, memory by class, live bytes over the step, and the map of layers and
// tensors. report_html.hpp makes the page of it.
#pragma once

#include <mmr/plan/comparison.hpp>
#include <mmr/plan/diff.hpp>
#include <mmr/plan/floor.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace mmr {

/// A training run beside its plan.
struct report_run {
  std::string plan;                                   ///< name of the plan that was run
  std::vector<double> losses;                         ///< of each step
  std::vector<std::int64_t> predicted, allocated, measured;  ///< arena bytes of each rank; measured: resident
  double tokens_per_second = 0;
};

/// What a report is about.
struct report_subject {
  std::string title;                    ///< "gpt3-175b on 1024 x a100-80g"
  std::vector<std::string> facts;       ///< short sentences under the title
  memory_limit limit;
  std::vector<plan> plans;              ///< assessed; the first is shown first
  std::vector<plan> front;
  std::optional<report_run> run;
};

namespace detail {

/// Classes of a report: those of tensors, and what is there for one step only.
inline constexpr std::array<std::string_view, 6> report_classes{"parameters", "gradients",       "optimizer state",
                                                                "activations", "inputs", "copies and workspace"};
inline std::size_t report_class(tensor_class c) {
  switch (c) {
    case tensor_class::parameter: return 0;
    case tensor_class::gradient: return 1;
    case tensor_class::optimizer: return 2;
    case tensor_class::activation: return 3;
    case tensor_class::input: break;
  }
  return 4;
}
inline constexpr std::size_t passing = 5;

/// A buffer, or the part of its life in which it is one tensor.
struct live_piece {
  lifetime life;
  std::int64_t bytes;
  std::size_t kind;
  tensor_id tensor;
  op_id op;
};

inline std::vector<live_piece> live_pieces(const setting& s, const program& run) {
  std::vector<live_piece> pieces;
  std::map<int, std::size_t> last;  // piece of a buffer that is taken over
  for (std::size_t b = 0; b < run.buffers.size(); ++b) {
    const auto& x = run.buffers[b];
    last[static_cast<int>(b)] = pieces.size();
    pieces.push_back({x.life, x.bytes, x.transient || x.tensor < 0 ? passing : report_class(x.kind), x.tensor, x.op});
  }
  for (const auto& h : run.heirs) {
    auto& before = pieces[last[h.buffer]];
    auto after = before;
    after.life.begin = std::clamp(s.live.position[static_cast<std::size_t>(h.op)], before.life.begin, before.life.end);
    // Copies that are taken over count as copies for their own step.
    if (before.kind == passing) after.life.begin = std::min(after.life.begin + 1, before.life.end);
    after.kind = report_class(s.g.tensor_of(h.tensor).kind);
    after.tensor = h.tensor;
    after.op = h.op;
    before.life.end = after.life.begin;
    last[h.buffer] = pieces.size();
    pieces.push_back(after);
  }
  return pieces;
}

/// Live bytes by class over the step, thinned to the fullest of each few steps, and the largest items of the fullest of all.
inline void add_live(const setting& s, const program& run, nlohmann::ordered_json& j) {
  const auto pieces = live_pieces(s, run);
  std::vector<live_sum> sums(report_classes.size(), live_sum(run.steps));
  for (const auto& x : pieces) sums[x.kind].add(x.life, x.bytes);
  std::vector<std::vector<std::int64_t>> by_class;
  for (const auto& sum : sums) by_class.push_back(sum.at_steps());
  std::vector<std::int64_t> all(static_cast<std::size_t>(run.steps), 0);
  for (const auto& c : by_class)
    for (std::size_t t = 0; t < all.size(); ++t) all[t] += c[t];
  const auto peak = static_cast<int>(std::max_element(all.begin(), all.end()) - all.begin());

  auto& live = j["live"];
  live["steps"] = run.steps;
  live["peak"] = peak;
  live["at"] = live["ops"] = live["bytes"] = nlohmann::ordered_json::array();
  constexpr int points = 320;
  for (int k = 0; k < std::min(points, run.steps); ++k) {
    const auto part = part_of({0, run.steps}, std::min(points, run.steps), k);
    const auto first = all.begin() + part.begin;
    const auto t = std::max_element(first, first + part.size) - all.begin();
    live["at"].push_back(t);
    live["ops"].push_back(s.g.op(s.live.schedule[static_cast<std::size_t>(t)]).name);
    nlohmann::ordered_json bytes = nlohmann::ordered_json::array();
    for (const auto& c : by_class) bytes.push_back(c[static_cast<std::size_t>(t)]);
    live["bytes"].push_back(std::move(bytes));
  }
  // Where backward begins, and the first update.
  int backward = run.steps, update = run.steps;
  for (int t = run.steps - 1; t >= 0; --t) {
    const auto& op = s.g.op(s.live.schedule[static_cast<std::size_t>(t)]);
    if (op.when == phase::update) update = t;
    if (op.when == phase::microbatch && !op.out.empty() && !s.g.tensor_of(op.out[0]).forward) backward = t;
  }
  live["backward"] = backward;
  live["update"] = update;

  std::array<std::int64_t, report_classes.size()> held{}, redundant{};
  struct item {
    std::int64_t bytes = 0;
    int times = 0;
    std::size_t kind = 0;
  };
  std::map<std::string, item> items;
  for (const auto& x : pieces) {
    if (x.life.begin > peak || x.life.end <= peak || x.bytes == 0) continue;
    held[x.kind] += x.bytes;
    const bool copy = x.kind == passing;
    if (!copy) {
      const double share = static_cast<double>(s.element_bytes(x.tensor) * s.g.tensor_of(x.tensor).type.count()) / s.m.rank_count();
      redundant[x.kind] += std::max<std::int64_t>(0, x.bytes - static_cast<std::int64_t>(share + 0.5));
    }
    const auto& maker = s.g.op(x.tensor < 0 ? x.op : s.g.tensor_of(x.tensor).producer);
    const auto name = shared_name(x.tensor < 0 ? maker.name : s.g.tensor_of(x.tensor).name, maker.where);
    auto& sum = items[x.tensor < 0 ? "workspace of " + name : copy ? name + " (copy)" : name];
    sum.bytes += x.bytes;
    ++sum.times;
    sum.kind = x.kind;
  }
  j["peak_classes"] = held;
  j["peak_redundant"] = redundant;
  std::vector<std::pair<std::string, item>> largest(items.begin(), items.end());
  std::stable_sort(largest.begin(), largest.end(), [](auto& a, auto& b) { return a.second.bytes > b.second.bytes; });
  auto& list = j["peak_items"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < std::min<std::size_t>(largest.size(), 8); ++i)
    list.push_back({largest[i].first, largest[i].second.kind, largest[i].second.times, largest[i].second.bytes});
}

/// Where each tensor lies and how it is moved, layer by layer. Repetitions of a block that are alike are one column.
class placement_map {
 public:
  placement_map(setting& s, const plan& p, int rank) : s_(s), p_(p), rank_(rank), run_(s, p.strategies, rank) {
    collect_moves();
    for (tensor_id t = 0; t < s.g.tensors(); ++t) enter(t);
  }

  /// [{"block", "columns": [{"first", "last", "times"}], "rows": [{"section", "name", "times", "cells": [...]}]}]. A cell is
  /// null where a column lacks the tensor, or {"place": [[how, axis] a mesh axis], "bytes", "redundant", "moves": [...]}.
  nlohmann::ordered_json json() const {
    auto cards = nlohmann::ordered_json::array();
    for (const auto& block : order_) cards.push_back(card_json(block, blocks_.at(block)));
    return cards;
  }

 private:
  struct cell {
    nlohmann::ordered_json json;
    std::string look;  // what must be equal for cells to be alike
    bool shown = false;
  };
  struct row_key {
    int section;
    std::size_t first;  // order of appearance
    std::string position;
    auto operator<=>(const row_key&) const = default;
  };
  struct block_rows {
    std::vector<row_key> rows;
    std::map<std::string, std::size_t> index;              // by position
    std::map<std::size_t, std::string> names;
    std::map<int, std::map<std::size_t, cell>> columns;    // of each repetition: row to cell
  };

  void collect_moves() {
    for (const auto& x : run_.instructions) {
      const auto& op = s_.g.op(x.op);
      const auto times = repetitions(s_.g, x.op);
      const auto add = [&](const transfer& t, const std::string& to) {
        if (!t.path || t.path->steps.empty()) return;
        std::string how, kinds;
        std::int64_t sent = 0;
        for (const auto& step : t.path->steps) {
          how += (how.empty() ? "" : ", ") + std::string(name_of(step.kind)) + " over " + s_.m.axis(step.axis).name;
          sent += step.sent;
        }
        moves_[t.tensor].push_back({how, to, times * sent, times * t.path->seconds});
      };
      for (const auto& t : x.operands) add(t, shared_name(op.name, op.where));
      add(x.write_back, "its own place");
    }
  }

  int section_of(const tensor_info& info) const {
    switch (info.kind) {
      case tensor_class::input: return 0;
      case tensor_class::parameter: return 1;
      case tensor_class::optimizer: return 2;
      case tensor_class::gradient: return 3;
      case tensor_class::activation: break;
    }
    return info.forward ? 4 : 5;
  }

  void enter(tensor_id t) {
    const auto& info = s_.g.tensor_of(t);
    const auto& maker = s_.g.op(info.producer);
    const auto& mine = p_.strategies[static_cast<std::size_t>(info.producer)];
    if (maker.writes_back >= 0 && maker.out[0] == t && !moves_.contains(t)) return;
    if (!is_there(maker, static_cast<std::size_t>(info.result), mine)) return;
    auto& block = blocks_[maker.where.block];
    if (block.rows.empty()) order_.push_back(maker.where.block);
    const bool state = info.kind == tensor_class::optimizer;
    const auto position = maker.where.position + (state ? "~" : "") + std::to_string(info.result);
    const auto [at, fresh] = block.index.try_emplace(position, block.rows.size());
    if (fresh) {
      block.rows.push_back({section_of(info), block.rows.size(), position});
      auto name = shared_name(info.name, maker.where);
      const auto own = maker.where.block + ".*.";
      if (!maker.where.block.empty())
        if (const auto found = name.find(own); found != std::string::npos) name.erase(found, own.size());
      // States of one parameter, which mostly lie alike, are told apart by their number alone.
      if (const auto number = name.rfind(".state."); state && number != std::string::npos) name.resize(number + 6);
      block.names[at->second] = std::move(name);
    }
    const auto place = s_.made_placement(t, mine);
    cell c;
    c.json["place"] = nlohmann::ordered_json::array();
    for (int a = 0; a < s_.m.count(); ++a) {
      const auto how = place[a];
      c.json["place"].push_back(how == replicate ? "R" : how == partial ? "P" : info.type.dims[static_cast<std::size_t>(how)].axis);
    }
    const bool stored = is_stored(s_, t, &p_.strategies);
    c.json["bytes"] = s_.bytes(t, place, rank_);
    c.json["redundant"] = stored ? static_cast<std::int64_t>(redundant_bytes(s_, t, place, rank_) + 0.5) : 0;
    c.look = c.json["place"].dump();
    c.json["moves"] = nlohmann::ordered_json::array();
    if (const auto found = moves_.find(t); found != moves_.end())
      for (const auto& m : found->second) {
        c.json["moves"].push_back({m.how, m.to, m.sent, m.seconds});
        c.look += m.how + "|" + m.to + "|" + std::to_string(m.sent);
      }
    c.shown = stored || !c.json["moves"].empty();
    block.columns[maker.where.repetition][at->second] = std::move(c);
  }

  static nlohmann::ordered_json card_json(const std::string& name, const block_rows& block) {
    // Columns: runs of repetitions that are alike.
    struct column {
      int first, last;
      const std::map<std::size_t, cell>* cells;
      std::string look;
    };
    std::vector<column> columns;
    for (const auto& [repetition, cells] : block.columns) {
      std::string look;
      // What is not shown must not tell them apart.
      for (const auto& [row, c] : cells)
        if (c.shown) look += std::to_string(row) + c.look + "\n";
      if (columns.empty() || columns.back().look != look) columns.push_back({repetition, repetition, &cells, look});
      columns.back().last = repetition;
    }
    nlohmann::ordered_json j{{"block", name}};
    for (const auto& c : columns) j["columns"].push_back({{"first", c.first}, {"last", c.last}});
    // Rows, those of equal name and look together.
    auto rows = block.rows;
    std::sort(rows.begin(), rows.end());
    std::map<std::string, std::size_t> same;
    j["rows"] = nlohmann::ordered_json::array();
    for (const auto& row : rows) {
      bool shown = false;
      auto cells = nlohmann::ordered_json::array();
      auto look = std::to_string(row.section) + block.names.at(row.first);
      for (const auto& column : columns) {
        const auto at = column.cells->find(row.first);
        if (at == column.cells->end()) {
          cells.push_back(nullptr);
          look += "|-";
          continue;
        }
        shown = shown || at->second.shown;
        cells.push_back(at->second.json);
        look += "|" + at->second.look;
      }
      if (!shown) continue;
      const auto [at, fresh] = same.try_emplace(look, j["rows"].size());
      if (fresh) {
        j["rows"].push_back({{"section", row.section}, {"name", block.names.at(row.first)}, {"times", 1}, {"cells", cells}});
        continue;
      }
      auto& known = j["rows"][at->second];
      known["times"] = known["times"].get<int>() + 1;
      for (std::size_t c = 0; c < cells.size(); ++c)
        if (!cells[c].is_null())
          for (const char* key : {"bytes", "redundant"})
            known["cells"][c][key] = known["cells"][c][key].get<std::int64_t>() + cells[c][key].get<std::int64_t>();
    }
    return j;
  }

  struct move {
    std::string how, to;
    std::int64_t sent;
    double seconds;
  };
  setting& s_;
  const plan& p_;
  int rank_;
  program run_;
  std::map<tensor_id, std::vector<move>> moves_;
  std::map<std::string, block_rows> blocks_;
  std::vector<std::string> order_;
};

}  // namespace detail

/// Everything that the page draws. Bytes are those of the device with the greatest peak; seconds are modelled.
inline nlohmann::ordered_json report_json(setting& s, const report_subject& about) {
  nlohmann::ordered_json j;
  j["title"] = about.title;
  j["facts"] = about.facts;
  j["classes"] = detail::report_classes;
  j["mesh"] = nlohmann::ordered_json::array();
  for (const auto& a : s.m.axes) j["mesh"].push_back({a.name, a.size});
  j["device_bytes"] = about.limit.device ? nlohmann::ordered_json(*about.limit.device) : nlohmann::ordered_json(nullptr);
  j["budget"] = about.limit.budget ? nlohmann::ordered_json(*about.limit.budget) : nlohmann::ordered_json(nullptr);
  j["floor"] = zero_redundancy_floor(s);
  j["plans"] = j["front"] = nlohmann::ordered_json::array();
  for (const auto& p : about.plans) {
    const auto rank = static_cast<int>(&fullest_rank(p) - p.per_rank.data());
    auto x = figures_json(p, about.limit);
    x["compute_s"] = p.compute_seconds;
    x["rank"] = rank;
    detail::add_live(s, program(s, p.strategies, rank), x);
    x["map"] = detail::placement_map(s, p, rank).json();
    j["plans"].push_back(std::move(x));
  }
  for (const auto& p : about.front) j["front"].push_back(point_json(p, about.limit));
  if (about.run)
    j["run"] = {{"plan", about.run->plan}, {"losses", about.run->losses}, {"predicted", about.run->predicted},
                {"allocated", about.run->allocated}, {"measured", about.run->measured},
                {"tokens_per_second", about.run->tokens_per_second}};
  return j;
}

}  // namespace mmr
