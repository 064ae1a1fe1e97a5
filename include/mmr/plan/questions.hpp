// The questions that a request puts to the solver, each asked from the best choice known.
#pragma once

#include <mmr/plan/apart_bound.hpp>
#include <mmr/plan/request.hpp>
#include <mmr/solve/solve.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace mmr::detail {

/// One request's questions: what is known, and what was spent.
class questions {
 public:
  /// `found_earlier`: the planner's plans, to which what is found is added.
  questions(setting& where, const plan_request& request, std::vector<std::vector<strategy>>& found_earlier)
      : s(where), r(request), earlier(found_earlier), f(formulated(s, r, repeated::again_in_classes)) {}

  /// Plans of restrictions of this request are choices of it.
  void learn(const std::vector<std::vector<strategy>>& plans) {
    for (const auto& strategies : plans)
      if (auto choice = choice_of(strategies); !choice.empty()) known.push_back(std::move(choice));
  }

  /// What the solver says, with the strategies that it chose of the problem that it was asked.
  struct answer : solve::result {
    std::vector<strategy> strategies;
  };

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
      for (const auto& strategies : earlier)
        if (const auto choice = choice_of(strategies); !choice.empty()) improve(x, q, choice);
    if (x.choice.empty()) return {std::move(x), {}};
    known.push_back(x.choice);
    auto strategies = f.chosen(x.choice);
    remember(strategies);
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
      x.bound = x.choice.empty() ? 0 : bound_apart(s, allowed_by(r, s), f, q, x);
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

 protected:
  setting& s;
  const plan_request& r;
  std::vector<std::vector<strategy>>& earlier;
  formulation f;
  solve::problem& p = f.problem;
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  double work = 0;                                        ///< spent so far
  std::vector<std::vector<int>> known{cheapest_alone()};  ///< choices of this problem
  bool split = false;                                     ///< layers into classes

 private:
  /// From here on each class of layers goes its own way. What is known stays known.
  void split_layers() {
    split = true;
    std::vector<std::vector<strategy>> plans;
    for (const auto& choice : known) plans.push_back(f.chosen(choice));
    f = formulated(s, r, repeated::in_classes);
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

  void remember(std::vector<strategy> strategies) {
    if (std::find(earlier.begin(), earlier.end(), strategies) == earlier.end()) earlier.push_back(std::move(strategies));
  }
};

}  // namespace mmr::detail
