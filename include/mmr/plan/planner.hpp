// From a question (least memory, memory within a slowdown, least time within a budget, a known scheme) to a plan.
#pragma once

#include <mmr/plan/apart_bound.hpp>
#include <mmr/plan/pin.hpp>
#include <mmr/plan/plan.hpp>
#include <mmr/solve/solve.hpp>

#include <chrono>
#include <cmath>
#include <iomanip>
#include <list>
#include <memory>
#include <sstream>

namespace mmr {

struct plan_request {
  goal minimise = goal::memory;
  std::optional<double> slowdown{};      ///< memory: at most (1 + slowdown) x the time of the fastest plan
  std::optional<std::int64_t> budget{};  ///< peak live bytes a rank; the arena that is allocated adds alignment and gaps
  std::string scheme{};                  ///< a fixed scheme instead of the whole space; least time within it
  scheme_axes axes{};                    ///< of the model, for the schemes
  pins fixed{};
  /// What the solver may spend on all questions that the plan takes, in entries of tables that it looks at: some hundred
  /// millions a second. The plan depends on it and on nothing else,
  double work = 2e9;
  double seconds = 600;                  ///< unless it takes longer than this, which guards against a slow machine
};

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
    p.solve_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - find.begin).count();
    p.solve_work = find.work;
    assess(*s_, p);
    // The bound was summed in another order than the value, which may put it a rounding above.
    p.lower_bound = std::min(p.lower_bound, p.minimised == goal::memory ? static_cast<double>(peak_bytes(p)) : p.step_seconds);
    return p;
  }

  /// The problem of a request, for those who want to solve it themselves.
  formulation formulated(const plan_request& r, repeated repetitions = repeated::again_in_classes) {
    return formulate(*s_, allowed(r), repetitions, r.fixed.singled_out(s_->g));
  }
  /// What the scheme and the pins of a request leave.
  restriction allowed(const plan_request& r) const {
    restriction scheme, pinned;
    if (!r.scheme.empty()) scheme = scheme_restriction(r.scheme, s_->g, s_->m, r.axes, r.fixed.recomputes());
    if (!r.fixed.empty()) pinned = r.fixed.as_restriction(s_->g, s_->m);
    if (!scheme) return pinned;
    if (!pinned) return scheme;
    return [=](op_id o, const op_info& op, const strategy& c) { return scheme(o, op, c) && pinned(o, op, c); };
  }

 private:
  /// One request on its way to a plan. Every question is asked from the best choice known.
  struct search {
    planner& owner;
    const plan_request& r;
    formulation f;
    solve::problem& p = f.problem;
    std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
    double work = 0;                                        ///< spent so far
    std::vector<std::vector<int>> known{cheapest_alone()};  ///< choices of this problem
    bool split = false;                                     ///< layers into classes

    search(planner& of, const plan_request& request) : owner(of), r(request), f(of.formulated(request)) {}

    /// The schemes are restrictions of the whole space: what they do is a choice of it.
    void learn_from_schemes() {
      for (const auto& strategies : owner.scheme_plans(r))
        if (auto choice = choice_of(strategies); !choice.empty()) known.push_back(std::move(choice));
    }

    /// What the solver says, with the strategies that it chose of the problem that it was asked.
    struct answer : solve::result {
      std::vector<strategy> strategies;
    };

    /// From here on each class of layers goes its own way. What is known stays known.
    void split_layers() {
      split = true;
      std::vector<std::vector<strategy>> plans;
      for (const auto& choice : known) plans.push_back(f.chosen(choice));
      f = owner.formulated(r, repeated::in_classes);
      known = {cheapest_alone()};
      for (const auto& strategies : plans) known.push_back(choice_of(strategies));
    }

    /// The strategies that cost least, whatever they do to their neighbours: a choice without a search.
    std::vector<int> cheapest_alone() const {
      std::vector<int> choice;
      for (const auto& n : p.nodes)
        choice.push_back(static_cast<int>(std::min_element(n.cost.begin(), n.cost.end()) - n.cost.begin()));
      return choice;
    }

    /// Strategies as a choice of this problem; empty where pins or a scheme rule one of them out.
    std::vector<int> choice_of(const std::vector<strategy>& strategies) const {
      std::vector<int> choice(p.nodes.size(), -1);
      for (std::size_t o = 0; o < strategies.size(); ++o) {
        const auto group = static_cast<std::size_t>(f.groups[o]);
        const auto& all = f.choices[group];
        if (choice[group] >= 0) {
          if (all[static_cast<std::size_t>(choice[group])] != strategies[o]) return {};
          continue;
        }
        const auto at = std::find(all.begin(), all.end(), strategies[o]);
        if (at == all.end()) return {};
        choice[group] = static_cast<int>(at - all.begin());
      }
      return choice;
    }

    /// Takes `choice` for `x` where it keeps the limits and is better: in the goal, or equal in it and better else.
    void improve(solve::result& x, const solve::request& q, const std::vector<int>& choice) const {
      const auto e = solve::evaluate(p, choice);
      if (!solve::keeps(e, q)) return;
      const bool cost_first = q.minimise == solve::goal::cost;
      const auto rank = [&](double cost, std::int64_t peak) {
        const auto bytes = static_cast<double>(peak);
        return cost_first ? std::pair{cost, bytes} : std::pair{bytes, cost};
      };
      if (!x.choice.empty() && rank(x.cost, x.peak) <= rank(e.cost, e.peak)) return;
      x.choice = choice;
      x.cost = e.cost;
      x.peak = e.peak;
      if (x.outcome == solve::status::nothing_found) x.outcome = solve::status::feasible;
    }

    /// Asks the solver, with this share of the time and work that are left: a question that is asked for the sake of a later one
    /// must leave it some.
    answer ask(double share, solve::goal goal, double cost_limit, std::int64_t peak_limit) {
      solve::request q;
      q.minimise = goal;
      q.cost_limit = cost_limit;
      q.peak_limit = peak_limit;
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
      q.seconds = std::max(share * (r.seconds - spent.count()), 0.05 * r.seconds);
      if (r.work < solve::infinity) q.work = std::max(share * (r.work - work), 0.05 * r.work);
      solve::result start;
      for (const auto& choice : known) improve(start, q, choice);
      auto x = solve::minimise(p, q, start.choice);
      work += x.work;
      // Earlier plans of the planner come in only where the time ran out: proved plans are the same whatever came before.
      if (x.outcome == solve::status::feasible || x.outcome == solve::status::nothing_found)
        for (const auto& strategies : owner.earlier_)
          if (const auto choice = choice_of(strategies); !choice.empty()) improve(x, q, choice);
      if (x.choice.empty()) return {std::move(x), {}};
      known.push_back(x.choice);
      auto strategies = f.chosen(x.choice);
      owner.remember(strategies);
      return {std::move(x), std::move(strategies)};
    }
    /// The same with a bound for all plans, which need not place repeated layers alike. Where the answer stays further from it
    /// than by the share `near`, or the budget lies between the two, asks again with layers split into classes: two limits at
    /// once are mostly met best by some layers going one way and some another. Otherwise only what is proved for layers alike
    /// is a reason to split them. A scheme is fixed by what it is, and only measured against itself.
    answer ask_closer(double share, solve::goal goal, double cost_limit, std::int64_t peak_limit) {
      constexpr double near = 5e-3;
      if (!r.scheme.empty()) return ask(share, goal, cost_limit, peak_limit);
      const solve::request q{.minimise = goal, .cost_limit = cost_limit, .peak_limit = peak_limit};
      const auto ask_bounded = [&](double part) {
        auto x = ask(part, goal, cost_limit, peak_limit);
        x.bound = x.choice.empty() ? 0 : bound_apart(*owner.s_, owner.allowed(r), f, q, x);
        return x;
      };
      if (split) return by_budgets_between(ask_bounded(share), q);
      const bool for_cost = goal == solve::goal::cost;
      const auto alike = ask_bounded(share);
      const auto value = for_cost ? alike.cost : static_cast<double>(alike.peak);
      const bool open = !for_cost && alike.peak > budget() && alike.bound <= static_cast<double>(budget());
      const bool far = alike.choice.empty() || value > (1 + near) * alike.bound || open;
      const bool repeats = f.choices.size() < f.groups.size();
      if (!far || !repeats || !(solve::limits_both(q) || alike.outcome == solve::status::optimal)) return alike;
      split_layers();
      auto closer = by_budgets_between(ask_bounded(share), q);
      closer.bound = std::max(closer.bound, alike.bound);
      return closer;
    }
    /// Costs under a budget are searched better than peaks under a limit on the cost, as prices tell costs apart: where a peak
    /// stays far from its bound, budgets between the two are asked for the least cost.
    answer by_budgets_between(answer x, const solve::request& q) {
      constexpr double near = 0.02;
      constexpr int most_tries = 5;
      if (q.minimise != solve::goal::peak || !solve::limits_both(q) || x.choice.empty() || x.outcome == solve::status::optimal) return x;
      double low = x.bound;
      for (int i = 0; i < most_tries && static_cast<double>(x.peak) > (1 + near) * low; ++i) {
        const double middle = (low + static_cast<double>(x.peak)) / 2;
        const auto less = ask(0.1, solve::goal::cost, q.cost_limit, static_cast<std::int64_t>(middle));
        if (less.choice.empty()) {
          low = middle;
          continue;
        }
        x.choice = less.choice, x.strategies = less.strategies, x.cost = less.cost, x.peak = less.peak;
      }
      return x;
    }
    std::int64_t budget() const { return r.budget.value_or(solve::no_peak_limit); }

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
      if (ruled_out && r.scheme.empty()) lean.bound = detail::raised_by_room(*owner.s_, owner.allowed(r), f, lean.bound, above);
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
      const auto& m = owner.s_->m;
      const bool alone = is_megatron(r.scheme) && m.count() > 0 && m.axis(model_axis(m)).size == 1;
      const int stage = zero_stage(r.scheme);
      return r.scheme + (!alone ? "" : stage > 0 ? " (= zero" + std::to_string(stage) + ")" : " (= ddp)");
    }

    /// What the solver may spend, in words.
    std::string means() const {
      std::ostringstream text;
      text << r.seconds << " seconds";
      if (r.work < solve::infinity) text << " and a work of " << r.work;
      return text.str();
    }

    const answer& found(const answer& x) const {
      if (x.choice.empty())
        fail("no plan was found within ", means(), " (", solve::name_of(x.outcome), "); give the solver more time");
      return x;
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
           owner.largest_items(least.strategies, 3), blamed_pins(), "; raise the budget, use more ranks or a smaller batch", or_else);
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
          blamed += "; the budget clashes with the pin " + r.fixed.text(i, owner.s_->g) + ", without which " + std::to_string(bytes) +
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

  void remember(std::vector<strategy> strategies) {
    if (std::find(earlier_.begin(), earlier_.end(), strategies) == earlier_.end()) earlier_.push_back(std::move(strategies));
  }

  /// "its peak is at step 3 of 9, 'op', where the largest items are a 12 bytes, b 3 bytes", of rank 0.
  std::string largest_items(const std::vector<strategy>& chosen, std::size_t count) {
    const program run(*s_, chosen, 0);
    const auto live = run.live_bytes();
    const int peak = static_cast<int>(std::max_element(live.begin(), live.end()) - live.begin());
    std::vector<const buffer*> at;
    for (const auto& b : run.buffers)
      if (b.life.begin <= peak && peak < b.life.end) at.push_back(&b);
    std::stable_sort(at.begin(), at.end(), [](auto* a, auto* b) { return a->bytes > b->bytes; });
    std::ostringstream s;
    s << "its peak is at step " << peak + 1 << " of " << live.size() << ", '" << s_->g.op(s_->live.schedule[static_cast<std::size_t>(peak)]).name
      << "', where the largest items are ";
    for (std::size_t i = 0; i < std::min(count, at.size()); ++i) {
      const auto& b = *at[i];
      s << (i ? ", " : "") << (b.tensor < 0 ? "workspace of " + s_->g.op(b.op).name : s_->g.tensor_of(b.tensor).name)
        << (b.transient && b.tensor >= 0 ? " (gathered)" : "") << " " << b.bytes << " bytes";
    }
    return s.str();
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
