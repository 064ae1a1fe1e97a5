// From a question (least memory, memory within a slowdown, least time within a budget, a known scheme) to a plan.
#pragma once

#include <mmr/plan/pin.hpp>
#include <mmr/plan/plan.hpp>
#include <mmr/solve/solve.hpp>

#include <chrono>
#include <iomanip>
#include <memory>
#include <sstream>

namespace mmr {

struct plan_request {
  goal minimise = goal::memory;
  std::optional<double> slowdown{};      ///< memory: at most (1 + slowdown) x the time of the fastest plan
  std::optional<std::int64_t> budget{};  ///< peak live bytes a rank; the arena adds alignment to them
  std::string scheme{};                  ///< a fixed scheme instead of the whole space; least time within it
  scheme_axes axes{};                    ///< of the model, for the schemes
  pins fixed{};
  double seconds = 60;                   ///< of solving, at most, for all questions that the plan takes
};

/// Plans for one graph on one mesh. Keeps what several plans share.
class planner {
 public:
  planner(const graph& g, const mesh& m) : s_(std::make_unique<setting>(g, m)) {}

  setting& where() { return *s_; }

  /// Fails with a sentence where no plan keeps the budget (saying the least that would do, and what takes it), or where
  /// the pins leave nothing.
  plan make(const plan_request& r) {
    if (r.slowdown && !(*r.slowdown >= 0 && *r.slowdown < 1e6)) fail("the slowdown is ", *r.slowdown, "; give 0 or more (0.05 is 5%)");
    if (r.budget && *r.budget < 1) fail("the budget is ", *r.budget, " bytes; give at least 1");
    const search find{*this, r, formulated(r)};
    const auto begin = std::chrono::steady_clock::now();
    plan p = r.scheme.empty() && r.minimise == goal::memory ? find.least_memory() : find.least_time();
    p.solve_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    assess(*s_, p);
    return p;
  }

  /// The tied problem of a request, for those who want to solve it themselves.
  solve::problem problem(const plan_request& r) { return tied(formulated(r)); }
  static solve::problem tied(const formulation& f) { return solve::tie(f.full, f.groups); }

  formulation formulated(const plan_request& r) {
    restriction scheme, pinned;
    if (!r.scheme.empty()) scheme = scheme_restriction(r.scheme, s_->g, s_->m, r.axes);
    if (!r.fixed.empty()) pinned = r.fixed.as_restriction(s_->g, s_->m);
    if (!scheme && !pinned) return formulate(*s_);
    return formulate(*s_, [=](op_id o, const op_info& op, const strategy& c) {
      return (!scheme || scheme(o, op, c)) && (!pinned || pinned(o, op, c));
    });
  }

 private:
  struct search {
    planner& owner;
    const plan_request& r;
    formulation f;
    solve::problem p = tied(f);
    std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();

    /// Asks the solver, with this share of the time that is left: a question that is asked for the sake of a later one
    /// must leave it some.
    solve::result ask(double share, solve::goal goal, double cost_limit, std::int64_t peak_limit,
                      const std::vector<int>& start) const {
      solve::request q;
      q.minimise = goal;
      q.cost_limit = cost_limit;
      q.peak_limit = peak_limit;
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
      q.seconds = std::max(share * (r.seconds - spent.count()), 0.05 * r.seconds);
      return solve::minimise(p, q, start);
    }
    std::int64_t budget() const { return r.budget.value_or(solve::no_peak_limit); }

    plan least_memory() const {
      const auto limit = r.slowdown ? (1 + *r.slowdown) * found(ask(0.3, solve::goal::cost, solve::infinity, solve::no_peak_limit, {})).cost
                                    : solve::infinity;
      const auto peak = found(ask(0.7, solve::goal::peak, limit, solve::no_peak_limit, {}));
      if (peak.peak > budget()) refuse(peak);
      // Among the plans of least memory, the quickest.
      auto quick = ask(1, solve::goal::cost, limit, peak.peak, peak.choice);
      if (quick.choice.empty()) quick = peak;
      std::ostringstream words;
      words << "least peak memory";
      if (r.slowdown) words << " within " << 100 * *r.slowdown << "% of the fastest plan";
      words << ", then least time";
      return finish("memory", words.str(), quick, goal::memory, peak.bound, peak.outcome);
    }

    plan least_time() const {
      const auto time = ask(0.7, solve::goal::cost, solve::infinity, budget(), {});
      if (time.outcome == solve::status::infeasible || time.choice.empty())
        refuse(ask(1, solve::goal::peak, solve::infinity, solve::no_peak_limit, {}));
      // Among the quickest plans, the one of least memory. A fixed scheme leaves nothing worth the search.
      auto lean = r.scheme.empty() ? ask(1, solve::goal::peak, time.cost, budget(), time.choice) : time;
      if (lean.choice.empty()) lean = time;
      return finish(r.scheme.empty() ? "time" : r.scheme,
                    r.scheme.empty() ? (r.budget ? "least time within the byte budget, then least memory" : "least time, then least memory")
                                     : "least time within the scheme",
                    lean, goal::time, time.bound, time.outcome);
    }

    const solve::result& found(const solve::result& x) const {
      if (x.choice.empty())
        fail("no plan was found within ", r.seconds, " seconds (", solve::name_of(x.outcome), "); give the solver more time");
      return x;
    }

    [[noreturn]] void refuse(const solve::result& least) const {
      found(least);
      const auto chosen = f.chosen(solve::expand(least.choice, f.groups));
      fail("no plan keeps the budget of ", *r.budget, " bytes a rank: the least that would do is ", least.peak,
           " bytes; its largest items are ", owner.largest_items(chosen, 3), "; raise the budget, use more ranks or a smaller batch");
    }

    plan finish(std::string name, std::string objective, const solve::result& x, goal minimised, double bound,
                solve::status outcome) const {
      plan out;
      out.name = std::move(name);
      out.objective = std::move(objective);
      out.strategies = f.chosen(solve::expand(x.choice, f.groups));
      out.minimised = minimised;
      out.lower_bound = bound;
      out.proved = outcome == solve::status::optimal;
      return out;
    }
  };

  /// "a 12 MB, b 3 MB" for the largest things live at the peak of rank 0.
  std::string largest_items(const std::vector<strategy>& chosen, std::size_t count) {
    const program run(*s_, chosen, 0);
    const auto live = run.live_bytes();
    const int peak = static_cast<int>(std::max_element(live.begin(), live.end()) - live.begin());
    std::vector<const buffer*> at;
    for (const auto& b : run.buffers)
      if (b.life.begin <= peak && peak < b.life.end) at.push_back(&b);
    std::stable_sort(at.begin(), at.end(), [](auto* a, auto* b) { return a->bytes > b->bytes; });
    std::ostringstream s;
    for (std::size_t i = 0; i < std::min(count, at.size()); ++i) {
      const auto& b = *at[i];
      s << (i ? ", " : "") << (b.tensor < 0 ? "workspace of " + s_->g.op(b.op).name : s_->g.tensor_of(b.tensor).name)
        << (b.transient && b.tensor >= 0 ? " (gathered)" : "") << " " << b.bytes << " bytes";
    }
    return s.str();
  }

  std::unique_ptr<setting> s_;
};

}  // namespace mmr
