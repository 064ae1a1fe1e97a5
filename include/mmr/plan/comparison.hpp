// Plans side by side, with the memory that there is: what is printed and what is saved are the same figures.
#pragma once

#include <mmr/io/table.hpp>
#include <mmr/plan/json.hpp>
#include <mmr/plan/plan.hpp>

#include <nlohmann/json.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace mmr {

/// What a plan must keep to.
struct memory_limit {
  std::optional<std::int64_t> device{};  ///< bytes of a device: the arena must fit in
  std::optional<std::int64_t> budget{};  ///< bytes that may be live at any step

  /// Whether a plan keeps to both; nothing where there is no limit.
  std::optional<bool> kept_by(const plan& p) const {
    if (!device && !budget) return std::nullopt;
    std::int64_t arena = 0;
    for (const auto& r : p.per_rank) arena = std::max(arena, r.arena);
    return (!device || arena <= *device) && (!budget || peak_bytes(p) <= *budget);
  }
  /// The lower of the two; 0 where there is none.
  std::int64_t bytes() const {
    if (device && budget) return std::min(*device, *budget);
    return device.value_or(budget.value_or(0));
  }
};

namespace detail {
/// The decimal unit in which a table of byte counts is read best, and figures with three decimals in it.
class decimal_unit {
 public:
  explicit decimal_unit(std::int64_t largest) {
    for (const auto& [unit, scale] : {std::pair{"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}})
      if (name_.empty() && static_cast<double>(largest) >= scale) name_ = unit, scale_ = scale;
    if (name_.empty()) name_ = "B", scale_ = 1;
  }
  const std::string& name() const { return name_; }
  std::string operator()(std::int64_t bytes) const {
    std::array<char, 48> text{};
    std::snprintf(text.data(), text.size(), "%.*f", scale_ > 1 ? 3 : 0, static_cast<double>(bytes) / scale_);
    return text.data();
  }

 private:
  std::string name_;
  double scale_ = 1;
};

inline std::string fixed(double x, int decimals) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", decimals, x);
  return text.data();
}
inline std::string yes_no(std::optional<bool> x) { return !x ? "-" : *x ? "yes" : "no"; }
}  // namespace detail

/// A table of plans: bytes by class of the device with the greatest peak, redundancy, peak, arena; modelled milliseconds of
/// a step, bytes that a device sends in it, and whether the plan fits.
inline void print_plans(std::ostream& out, const std::vector<plan>& plans, const memory_limit& limit) {
  std::int64_t largest = 0;
  for (const auto& p : plans) largest = std::max(largest, peak_bytes(p));
  const detail::decimal_unit unit(largest);
  text_table table({{"plan", align::left}, {"params", align::right, unit.name()}, {"grads", align::right, unit.name()},
                    {"optim", align::right, unit.name()}, {"activ", align::right, unit.name()},
                    {"redundant", align::right, unit.name()}, {"peak", align::right, unit.name()},
                    {"arena", align::right, unit.name()}, {"step", align::right, "ms"}, {"sent", align::right, unit.name()},
                    {"fits", align::left}, {"proved", align::left}});
  for (const auto& p : plans) {
    const auto& r = fullest_rank(p);
    table.add_row({p.name, unit(r.parameters), unit(r.gradients), unit(r.optimizer), unit(r.activations), unit(r.redundant),
                   unit(r.peak_live), unit(r.arena), detail::fixed(1e3 * p.step_seconds, 3), unit(p.sent_bytes),
                   detail::yes_no(limit.kept_by(p)), proof_word(p)});
  }
  out << table;
}

/// The front as a table: each plan's peak and time, beside those of the ends.
inline void print_front(std::ostream& out, const std::vector<plan>& front, const memory_limit& limit) {
  if (front.empty()) return;
  const detail::decimal_unit unit(peak_bytes(front.back()));
  text_table table({{"peak", align::right, unit.name()}, {"arena", align::right, unit.name()}, {"step", align::right, "ms"},
                    {"over the fastest", align::right, "%"}, {"fits", align::left}, {"proved", align::left}});
  for (const auto& p : front)
    table.add_row({unit(peak_bytes(p)), unit(fullest_rank(p).arena), detail::fixed(1e3 * p.step_seconds, 3),
                   detail::fixed(100 * (p.step_seconds / front.back().step_seconds - 1), 2), detail::yes_no(limit.kept_by(p)),
                   proof_word(p)});
  out << table;
}

namespace detail {
inline nlohmann::ordered_json as_json(std::optional<bool> x) {
  return x ? nlohmann::ordered_json(*x) : nlohmann::ordered_json(nullptr);
}
}  // namespace detail

/// {"name", "fits", "step_time_s", "comm_bytes", "per_device": {...}, ...}: bytes of the device with the greatest peak.
inline nlohmann::ordered_json figures_json(const plan& p, const memory_limit& limit) {
  nlohmann::ordered_json j;
  j["name"] = p.name;
  j["objective"] = p.objective;
  j["fits"] = detail::as_json(limit.kept_by(p));
  j["step_time_s"] = p.step_seconds;
  j["comm_bytes"] = p.sent_bytes;
  j["per_device"] = to_json(fullest_rank(p));
  j["lower_bound"] = p.lower_bound;
  j["lower_bound_unit"] = unit_of(p.minimised);
  j["least_proved"] = p.least;
  j["proved"] = p.proved;
  j["solve_s"] = p.solve_seconds;
  return j;
}

/// A point of the front.
inline nlohmann::ordered_json point_json(const plan& p, const memory_limit& limit) {
  const auto& r = fullest_rank(p);
  return {{"peak_live", r.peak_live}, {"arena", r.arena}, {"step_time_s", p.step_seconds}, {"comm_bytes", p.sent_bytes},
          {"fits", detail::as_json(limit.kept_by(p))}, {"proved", p.proved}};
}

}  // namespace mmr
