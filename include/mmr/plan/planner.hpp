// From a question (least memory, memory within a slowdown, least time within a budget, a known scheme) to a plan.
#pragma once

#include <mmr/plan/questions.hpp>

#include <chrono>
#include <cmath>
#include <iomanip>
#include <list>
#include <memory>
#include <sstream>

namespace mmr {

namespace detail {

/// "its peak is at step 3 of 9, 'op', where the largest items are a 12 bytes, b 3 bytes", of rank 0.
inline std::string largest_items(setting& s, const std::vector<strategy>& chosen, std::size_t count) {
  const program run(s, chosen, 0);
  const auto live = run.live_bytes();
  const int peak = static_cast<int>(std::max_element(live.begin(), live.end()) - live.begin());
  std::vector<const buffer*> at;
  for (const auto& b : run.buffers)
    if (b.life.begin <= peak && peak < b.life.end) at.push_back(&b);
  std::stable_sort(at.begin(), at.end(), [](auto* a, auto* b) { return a->bytes > b->bytes; });
  std::ostringstream text;
  text << "its peak is at step " << peak + 1 << " of " << live.size() << ", '" << s.g.op(s.live.schedule[static_cast<std::size_t>(peak)]).name
       << "', where the largest items are ";
  for (std::size_t i = 0; i < std::min(count, at.size()); ++i) {
    const auto& b = *at[i];
    text << (i ? ", " : "") << (b.tensor < 0 ? "workspace of " + s.g.op(b.op).name : s.g.tensor_of(b.tensor).name)
         << (b.transient && b.tensor >= 0 ? " (gathered)" : "") << " " << b.bytes << " bytes";
  }
  return text.str();
}

}  // namespace detail

/// Plans for one graph on one mesh. Keeps what several plans share.
class planner {
 public:
  planner(const graph& g, const mesh& m) : s_(std::make_unique<setting>(g, m)) {}

  setting& where() { return *s_; }

  /// Fails with a sentence where it is proved that no plan keeps the budget (saying the least that would do, and what
  /// takes it), where none that does was found in time, or where the pins leave nothing. Where the time runs out, the plan
  /// is no worse than the schemes, nor than what this planner found before.
  plan make(const plan_request& r) {
    if (r.slowdown && !(*r.slowdown >= 0 && *r.slowdown < 1e6))
      fail("the slowdown is ", *r.slowdown, "; give 0 to 1000000 (0.05 is 5%)");
    if (r.budget && *r.budget < 1) fail("the budget is ", *r.budget, " bytes; give at least 1");
    search find(*this, r);
    if (r.scheme.empty()) find.learn_from_schemes();
    plan p = r.scheme.empty() && r.minimise == goal::memory ? find.least_memory() : find.least_time();
    p.solve_seconds = find.seconds();
    p.solve_work = find.spent();
    assess(*s_, p);
    // The bound was summed in another order than the value, which may put it a rounding above.
    p.lower_bound = std::min(p.lower_bound, p.minimised == goal::memory ? static_cast<double>(peak_bytes(p)) : p.step_seconds);
    return p;
  }

  /// The problem of a request, for those who want to solve it themselves.
  formulation formulated(const plan_request& r, repeated repetitions = repeated::again_in_classes) {
    return mmr::formulated(*s_, r, repetitions);
  }

 private:
  /// One request on its way to a plan.
  struct search : detail::questions {
    planner& owner;

    search(planner& of, const plan_request& request) : questions(*of.s_, request, of.earlier_), owner(of) {}

    void learn_from_schemes() { learn(owner.scheme_plans(r)); }

    double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); }
    double spent() const { return work; }

    plan least_memory() {
      const bool slower = r.slowdown.has_value();
      const auto fastest = slower ? found(ask_closer(0.3, solve::goal::cost, solve::infinity, solve::no_peak_limit)) : answer{};
      const bool fastest_proved = !slower || fastest.outcome == solve::status::optimal;
      const auto limit = slower ? (1 + *r.slowdown) * fastest.cost : solve::infinity;
      auto peak = found(ask_closer(0.7, solve::goal::peak, limit, solve::no_peak_limit));
      if (peak.peak > budget()) {
        if (!slower) refuse(peak, "");
        const auto quickest = quickest_within_budget(" at any slowdown");
        if (quickest.cost > limit * (1 + solve::cost_tolerance)) refuse_within_slowdown(peak, fastest, quickest);
        peak = found(ask_closer(0.7, solve::goal::peak, limit, solve::no_peak_limit));  // now that one is known
      }
      // Among the plans of least memory, the quickest.
      const auto quick = ask(1, solve::goal::cost, limit, peak.peak);
      std::ostringstream words;
      words << "least peak memory";
      if (slower) words << " within " << 100 * *r.slowdown << "% of the fastest plan" << (fastest_proved ? "" : " found");
      words << ", then least time";
      const bool least = peak.outcome == solve::status::optimal;
      return finish("memory", words.str(), quick, goal::memory, peak, least,
                    least && fastest_proved && quick.outcome == solve::status::optimal);
    }

    /// The least time that keeps the budget, if there is one. Refuses, with the words `within`, where nothing keeps it.
    answer quickest_within_budget(const std::string& within) {
      auto time = ask_closer(0.7, solve::goal::cost, solve::infinity, budget());
      if (!time.choice.empty()) return time;
      const bool ruled_out = time.outcome == solve::status::infeasible;
      auto lean = found(ask_closer(ruled_out ? 1 : 0.7, solve::goal::peak, solve::infinity, solve::no_peak_limit));
      if (lean.peak <= budget()) return found(ask_closer(0.7, solve::goal::cost, solve::infinity, budget()));
      // It was ruled out for plans with layers alike.
      const auto above = static_cast<double>(budget()) + 1;
      if (ruled_out && !r.scheme.empty()) lean.bound = std::max(lean.bound, above);
      if (ruled_out && r.scheme.empty()) lean.bound = detail::raised_by_room(s, allowed_by(r, s), f, lean.bound, above);
      refuse(lean, within);
    }

    plan least_time() {
      const auto time = quickest_within_budget(r.scheme.empty() ? "" : " within the scheme '" + r.scheme + "'");
      const bool least = time.outcome == solve::status::optimal;
      // A fixed scheme leaves nothing worth a second search.
      if (!r.scheme.empty())
        return finish(scheme_name(), "least time within the scheme", time, goal::time, time, least, least);
      // Among the quickest plans, the one of least memory.
      const auto lean = ask(1, solve::goal::peak, time.cost, budget());
      const char* words = r.budget ? "least time within the byte budget, then least memory" : "least time, then least memory";
      return finish("time", words, lean, goal::time, time, least, least && lean.outcome == solve::status::optimal);
    }

    /// Along a mesh axis of one rank Megatron-LM splits nothing: what is left of it is data parallelism.
    std::string scheme_name() const {
      const auto& m = s.m;
      const bool alone = is_megatron(r.scheme) && m.count() > 0 && m.axis(model_axis(m)).size == 1;
      const int stage = zero_stage(r.scheme);
      return r.scheme + (!alone ? "" : stage > 0 ? " (= zero" + std::to_string(stage) + ")" : " (= ddp)");
    }

    /// Says what is known of plans that do not keep the budget, from the least peak found and its bound over all plans.
    [[noreturn]] void refuse(const answer& least, const std::string& within, const std::string& or_else = "") const {
      const auto proved_bytes = static_cast<std::int64_t>(least.bound);
      const bool is_least = least.outcome == solve::status::optimal && proved_bytes >= least.peak;
      const auto limit = " the budget of " + std::to_string(*r.budget) + " bytes a rank" + within;
      const auto known_bytes = " " + std::to_string(least.peak) + " bytes";
      const auto needed = "at least " + std::to_string(proved_bytes) +
                          " bytes are proved to be needed, and the best plan found takes" + known_bytes;
      if (proved_bytes <= *r.budget)
        fail("no plan that keeps", limit, " was found in ", means(), ", and none is proved to be impossible: ", needed,
             "; give the solver more time, or raise the budget", or_else);
      fail("no plan keeps", limit, ": ", is_least ? "the least that would do is" + known_bytes : needed, "; ",
           detail::largest_items(s, least.strategies, 3), blamed_pins(), "; raise the budget, use more ranks or a smaller batch", or_else);
    }

    /// Which pins stand between the request and its budget: those without which, one alone or all together, it is kept.
    std::string blamed_pins() const {
      const auto least_with = [&](const pins& fixed) {
        auto q = r;
        q.fixed = fixed;
        search other(owner, q);
        if (q.scheme.empty()) other.learn_from_schemes();
        return other.ask_closer(0.5, solve::goal::peak, solve::infinity, solve::no_peak_limit).peak;
      };
      if (r.fixed.empty()) return "";
      if (const auto free = least_with({}); free > *r.budget) return "";
      std::string blamed;
      for (std::size_t i = 0; i < r.fixed.size(); ++i)
        if (const auto bytes = least_with(r.fixed.without(i)); bytes <= *r.budget)
          blamed += "; the budget clashes with the pin " + r.fixed.text(i, s.g) + ", without which " + std::to_string(bytes) +
                    " bytes do";
      return blamed.empty() ? "; the budget clashes with several of the pins, without which it is kept" : blamed;
    }

    [[noreturn]] void refuse_within_slowdown(const answer& least, const answer& fastest, const answer& slower) const {
      std::ostringstream within, or_else;
      within << " within the slowdown of " << *r.slowdown;
      // Rounded up, so that it will do.
      or_else << ", or allow a slowdown of " << std::fixed << std::setprecision(4)
              << std::ceil(1e4 * (slower.cost / fastest.cost - 1)) / 1e4 << ", with which it is kept";
      refuse(least, within.str(), or_else.str());
    }

    plan finish(std::string name, std::string objective, const answer& x, goal minimised,
                const answer& bounded, bool least, bool proved) const {
      plan out;
      out.name = std::move(name);
      out.objective = std::move(objective);
      out.strategies = x.strategies;
      out.minimised = minimised;
      out.lower_bound = bounded.bound;
      out.least = least;
      out.proved = proved;
      out.unfolded = f.unfolded;
      out.folded = bounded.before;
      out.reduced = bounded.reduced;
      return out;
    }
  };

  static constexpr double scheme_work = 2e7;

  /// What the schemes do under the pins of a request, each at its quickest and at its leanest. Made once: a scheme leaves
  /// little to choose and takes milliseconds and little work, which it is given even where the request has less.
  const std::vector<std::vector<strategy>>& scheme_plans(const plan_request& r) {
    for (const auto& made : schemes_)
      if (made.fixed == r.fixed && made.axes == r.axes && (made.proved || (made.seconds >= r.seconds && made.work >= r.work)))
        return made.plans;
    auto& made = schemes_.emplace_back(scheme_set{r.fixed, r.axes, r.seconds, r.work, true, {}});
    for (const auto name : scheme_names) {
      if (is_megatron(name) && r.axes.tensor.empty()) continue;
      plan_request q{.scheme = std::string(name), .axes = r.axes, .fixed = r.fixed, 
                     .work = std::max(0.02 * r.work, scheme_work), .seconds = std::max(0.02 * r.seconds, 0.2)};
      std::optional<search> within;
      try {
        within.emplace(*this, q);
      } catch (const error&) {
        continue;  // the pins leave nothing of this scheme
      }
      for (const auto goal : {solve::goal::cost, solve::goal::peak}) {
        const auto x = within->ask(0.5, goal, solve::infinity, solve::no_peak_limit);
        made.proved = made.proved && x.outcome == solve::status::optimal;
        if (!x.choice.empty()) made.plans.push_back(x.strategies);
      }
    }
    return made.plans;
  }

  struct scheme_set {
    pins fixed;
    scheme_axes axes;
    double seconds, work;
    bool proved;
    std::vector<std::vector<strategy>> plans;
  };

  std::unique_ptr<setting> s_;
  std::list<scheme_set> schemes_;
  std::vector<std::vector<strategy>> earlier_;  ///< all that were found so far
};

}  // namespace mmr
