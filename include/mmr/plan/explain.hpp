// Plans for people: a comparison of several, and one plan tensor by tensor with the resharding between.
#pragma once

#include <mmr/io/format.hpp>
#include <mmr/io/table.hpp>
#include <mmr/plan/plan.hpp>
#include <mmr/plan/recomputed.hpp>

#include <map>
#include <ostream>

namespace mmr {

namespace detail {
/// The unit for a table of byte counts: small models read in KiB, others in MiB.
class byte_unit {
 public:
  explicit byte_unit(std::int64_t largest) : small_(largest < 10 << 20) {}
  std::string name() const { return small_ ? "KiB" : "MiB"; }
  std::string operator()(std::int64_t bytes) const {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f", static_cast<double>(bytes) / (small_ ? 1 << 10 : 1 << 20));
    return text;
  }

 private:
  bool small_;
};
inline std::string milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", 1e3 * seconds);
  return text;
}
}  // namespace detail

/// A table of plans: bytes of the rank with the greatest peak by class, redundancy, peak, arena; modelled step time.
inline void print_comparison(std::ostream& out, const std::vector<plan>& plans) {
  std::int64_t largest = 0;
  for (const auto& p : plans) largest = std::max(largest, peak_bytes(p));
  const detail::byte_unit unit(largest);
  text_table table({{"plan", align::left}, {"params", align::right, unit.name()}, {"grads", align::right, unit.name()},
                    {"optim", align::right, unit.name()}, {"activ", align::right, unit.name()}, {"redundant", align::right, unit.name()},
                    {"peak", align::right, unit.name()}, {"arena", align::right, unit.name()}, {"step", align::right, "ms"},
                    {"sent", align::right, unit.name()}, {"proved", align::left}});
  for (const auto& p : plans) {
    const auto& r = fullest_rank(p);
    table.add_row({p.name, unit(r.parameters), unit(r.gradients), unit(r.optimizer),
                   unit(r.activations), unit(r.redundant), unit(r.peak_live),
                   unit(r.arena), detail::milliseconds(p.step_seconds), unit(p.sent_bytes),
                   proof_word(p)});
  }
  out << table;
}

/// What a plan does, tensor by tensor: placement, bytes a rank and redundancy of what is stored; then every resharding as
/// source → target with bytes sent and modelled time. Repetitions of a block that are placed alike are shown once.
inline void explain(std::ostream& out, setting& s, const plan& p) {
  out << "plan " << p.name << " (" << p.objective << "; " << proof_of(p) << ") on mesh " << s.m.text() << "\n";
  if (const auto again = recomputed_in(s, p.strategies); again.operators + again.kept > 0)
    out << again.operators << " operators run again for backward, in " << detail::milliseconds(again.seconds) << " ms of the step's "
        << detail::milliseconds(p.step_seconds) << "; results of " << again.kept << " are kept for it\n";
  const auto label = [&](const std::string& name, const block_position& where) {
    if (where.block.empty()) return name;
    const auto own = where.block + "." + std::to_string(where.repetition) + ".";
    auto text = name;
    if (const auto at = text.find(own); at != std::string::npos) text.replace(at, own.size(), where.block + ".*.");
    return text;
  };
  const auto count_up = [](auto& rows, auto& order, const std::string& key) -> auto& {
    if (!rows.contains(key)) order.push_back(key);
    return rows[key];
  };
  struct line {
    std::vector<std::string> cells;
    std::int64_t bytes = 0, redundant = 0;
    double seconds = 0;
    int times = 0;
  };
  std::map<std::string, line> tensors, moves;
  std::vector<std::string> tensor_order, move_order;
  for (tensor_id t = 0; t < s.g.tensors(); ++t) {
    if (!is_stored(s, t, &p.strategies)) continue;
    const auto& info = s.g.tensor_of(t);
    const auto& maker = s.g.op(info.producer);
    const auto place = s.made_placement(t, p.strategies[static_cast<std::size_t>(info.producer)]);
    const auto axes = axes_of(info.type);
    std::vector<std::string> cells{label(info.name, maker.where), std::string(name_of(info.kind)), text(s.m, place, axes)};
    auto& l = count_up(tensors, tensor_order, cells[0] + "|" + cells[2]);
    l.cells = std::move(cells);
    l.bytes += s.bytes(t, place, 0);
    l.redundant += static_cast<std::int64_t>(redundant_bytes(s, t, place, 0));
    ++l.times;
  }
  const program run(s, p.strategies, 0);
  for (const auto& x : run.instructions) {
    const auto& op = s.g.op(x.op);
    const auto add = [&](const transfer& t, const std::string& to) {
      if (!t.path || t.path->steps.empty()) return;
      const auto& info = s.g.tensor_of(t.tensor);
      const auto axes = axes_of(info.type);
      std::string how;
      std::int64_t sent = 0;
      for (const auto& step : t.path->steps) {
        how += (how.empty() ? "" : ", ") + std::string(name_of(step.kind)) + " over " + s.m.axis(step.axis).name;
        sent += step.sent;
      }
      std::vector<std::string> cells{label(info.name, s.g.op(info.producer).where), label(to, op.where),
                                     text(s.m, t.path->steps.front().before, axes) + " → " +
                                         text(s.m, t.path->steps.back().after, axes),
                                     how};
      auto& l = count_up(moves, move_order, cells[0] + "|" + cells[1] + "|" + cells[2]);
      l.cells = std::move(cells);
      const int times = repetitions(s.g, x.op);
      l.bytes += times * sent;
      l.seconds += times * t.path->seconds;
      l.times += times;
    };
    for (const auto& t : x.operands) add(t, op.name);
    add(x.write_back, "its own place");
  }
  const detail::byte_unit unit(peak_bytes(p));
  text_table kept({{"stored tensor", align::left}, {"class", align::left}, {"placement", align::left},
                   {"times", align::right}, {"a rank", align::right, unit.name()}, {"redundant", align::right, unit.name()}});
  for (const auto& key : tensor_order) {
    auto& l = tensors[key];
    l.cells.insert(l.cells.end(), {std::to_string(l.times), unit(l.bytes), unit(l.redundant)});
    kept.add_row(l.cells);
  }
  text_table moved({{"resharded tensor", align::left}, {"for", align::left}, {"source → target", align::left},
                    {"how", align::left}, {"times", align::right}, {"sent", align::right, unit.name()}, {"time", align::right, "ms"}});
  for (const auto& key : move_order) {
    auto& l = moves[key];
    l.cells.insert(l.cells.end(), {std::to_string(l.times), unit(l.bytes), detail::milliseconds(l.seconds)});
    moved.add_row(l.cells);
  }
  out << kept << "\n" << moved;
}

}  // namespace mmr
