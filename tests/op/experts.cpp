// Operators of a mixture of experts against plain loops: routing with ties and full experts, whole and in parts.
#include <set>

#include "harness.hpp"
#include "refusal.hpp"

using namespace mmr_test;
namespace op = mmr::op;

namespace {

/// Extents of one draw: groups, positions, features, experts, slots.
struct expert_extents {
  std::int64_t b, s, d, x, c;
  int top_k;
  dtype element;

  mmr::tensor_type operator()(const std::string& axes, dtype t) const {
    mmr::tensor_type made{t, {}};
    for (char a : axes) made.dims.push_back(dim(a));
    return made;
  }
  mmr::tensor_type operator()(const std::string& axes) const { return (*this)(axes, element); }
  mmr::tensor_type slots() const { return (*this)("bxc", dtype::i32); }
  mmr::dimension dim(char a) const {
    const std::int64_t n = a == 'b' ? b : a == 's' ? s : a == 'd' ? d : a == 'x' ? x : c;
    return {std::string(1, a), n, true};
  }
};

template <class F>
void for_all_expert_extents(F&& f) {
  for (auto element : {dtype::f64, dtype::f32}) {
    f(expert_extents{2, 7, 5, 3, 2, 1, element});   // full experts
    f(expert_extents{3, 9, 33, 4, 9, 2, element});  // a slot for every token
    f(expert_extents{2, 17, 16, 5, 4, 3, element});
    f(expert_extents{1, 1, 1, 1, 1, 1, element});
  }
}

/// Probabilities of few values, so that many are equal.
double coarse(std::mt19937& random) {
  return static_cast<double>(std::uniform_int_distribution<>(1, 3)(random)) / 4;
}

/// The experts of a token, best first; the lower one of two that are equal.
std::vector<std::size_t> ranked(const std::vector<double>& probs, int top_k) {
  std::vector<std::size_t> order(probs.size());
  for (std::size_t e = 0; e < order.size(); ++e) order[e] = e;
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return probs[a] > probs[b]; });
  order.resize(static_cast<std::size_t>(top_k));
  return order;
}

oracle routed(const expert_extents& t) {
  return [t](const signature&, const arrays& in, const arrays& state) {
    const auto n = [](std::int64_t i) { return static_cast<std::size_t>(i); };
    array gates{t.element, {t.b, t.x, t.c}, std::vector<double>(n(t.b * t.x * t.c), 0)};
    array slots{dtype::i32, gates.sizes, std::vector<double>(gates.values.size(), -1)};
    array load{t.element, {t.b, t.x}, std::vector<double>(n(t.b * t.x), 0)};
    for (std::size_t b = 0; b < n(t.b); ++b) {
      std::vector<std::vector<std::size_t>> taken(n(t.x));
      std::vector<std::vector<double>> probs, weight(n(t.s));
      for (std::size_t s = 0; s < n(t.s); ++s) {
        const auto row = in[0].values.begin() + static_cast<std::ptrdiff_t>((b * n(t.s) + s) * n(t.x));
        probs.emplace_back(row, row + t.x);
        load.values[b * n(t.x) + ranked(probs[s], t.top_k)[0]] += 1.0 / static_cast<double>(t.s);
      }
      for (std::size_t j = 0; j < n(t.top_k); ++j)
        for (std::size_t s = 0; s < n(t.s); ++s) {
          const auto chosen = ranked(probs[s], t.top_k);
          double sum = 0;
          for (auto e : chosen) sum += probs[s][e];
          auto& of_expert = taken[chosen[j]];
          if (of_expert.size() == n(t.c)) continue;
          const auto at = (b * n(t.x) + chosen[j]) * n(t.c) + of_expert.size();
          of_expert.push_back(s);
          slots.values[at] = static_cast<double>(s);
          gates.values[at] = t.top_k == 1 ? probs[s][chosen[j]] : probs[s][chosen[j]] / sum;
        }
    }
    return outcome{{gates, slots, load}, state};
  };
}

/// Operands that a router may give: tokens in slots, each at most once with an expert, or none (-1).
law places(const expert_extents& t) {
  return [t, seen = std::set<std::int64_t>(), left = std::int64_t{0}](std::mt19937& random) mutable {
    if (left == 0) left = t.c, seen.clear();
    --left;
    const auto s = std::uniform_int_distribution<std::int64_t>(-1, t.s - 1)(random);
    return static_cast<double>(s < 0 || seen.insert(s).second ? s : -1);
  };
}

}  // namespace

TEST_CASE("routing: best experts first, in the order of tokens, until an expert is full") {
  for_all_expert_extents([](const expert_extents& t) {
    const std::vector<mmr::tensor_type> in = {t("bsx")};
    const op::route route{t.top_k, t.dim('c')};
    check(bound_operator(route, in), in, routed(t), {coarse});
    check(bound_operator(route, in), in, routed(t), {positive});
  });
  const op::route too_many{3, {"c", 2, true}};
  CHECK_THAT(refusal([&] {
               too_many.sign({{dtype::f64, {{"b", 1}, {"s", 4}, {"x", 2}}}});
             }),
             contains("3 of 2 experts"));
}

TEST_CASE("the gradient of gates goes to the probabilities of all chosen experts") {
  for_all_expert_extents([](const expert_extents& t) {
    // Slots of a real routing: they must agree with the probabilities.
    std::mt19937 random(9);
    const auto probs = random_array(t("bsx"), positive, random);
    const auto where = routed(t)({}, {probs}, {}).out;
    const std::vector<mmr::tensor_type> in = {t("bxc"), t("bsx"), t.slots()};
    const auto replay = [](const array& a) {
      return law([a, i = std::size_t{0}](std::mt19937&) mutable { return a.values[i++]; });
    };
    check(bound_operator(op::route_grad{t.top_k}, in), in,
          [&](const signature&, const arrays& given, const arrays& state) {
            array d{t.element, probs.sizes, std::vector<double>(probs.values.size(), 0)};
            const auto nx = static_cast<std::size_t>(t.x), ns = static_cast<std::size_t>(t.s),
                       nc = static_cast<std::size_t>(t.c);
            for (std::size_t at = 0; at < where[1].values.size(); ++at) {
              if (where[1].values[at] < 0) continue;
              const auto e = at / nc % nx, row = at / nc / nx * ns + static_cast<std::size_t>(where[1].values[at]);
              const std::vector<double> p(probs.values.begin() + static_cast<std::ptrdiff_t>(row * nx),
                                          probs.values.begin() + static_cast<std::ptrdiff_t>((row + 1) * nx));
              const double dq = given[0].values[at];
              if (t.top_k == 1) {
                d.values[row * nx + e] += dq;
                continue;
              }
              // q_e = p_e / S: dq/dp_j = (e == j) / S - p_e / S^2 for every chosen j.
              double sum = 0;
              for (auto j : ranked(p, t.top_k)) sum += p[j];
              for (auto j : ranked(p, t.top_k))
                d.values[row * nx + j] += dq * ((e == j ? 1 : 0) / sum - p[e] / (sum * sum));
            }
            return outcome{{d}, state};
          },
          {normal, replay(probs), replay(where[1])});
  });
}

TEST_CASE("tokens go to slots and back") {
  for_all_expert_extents([](const expert_extents& t) {
    // Loops 0..4 of a point: group, position, feature, expert, slot.
    const auto here = [](const point& p, std::size_t slots) { return static_cast<double>(p.loop(1)) == p.in(slots); };
    const std::vector<mmr::tensor_type> go = {t("bsd"), t.slots()}, back = {t("xbcd"), t.slots()},
                                        weighted = {t("xbcd"), t("bxc"), t.slots()},
                                        slopes = {t("bsd"), t("xbcd"), t("bxc"), t.slots()};
    check(bound_operator(op::dispatch{}, go), go, nest([&](const point& p) {
            if (here(p, 1)) p.out(0) = p.in(0);
          }),
          {normal, places(t)});
    check(bound_operator(op::collect{t.dim('s')}, back), back, nest([&](const point& p) {
            if (here(p, 1)) p.out(0) += p.in(0);
          }),
          {normal, places(t)});
    check(bound_operator(op::combine{t.dim('s')}, weighted), weighted, nest([&](const point& p) {
            if (here(p, 2)) p.out(0) += p.in(0) * p.in(1);
          }),
          {normal, normal, places(t)});
    check(bound_operator(op::combine_grad{}, slopes), slopes, nest([&](const point& p) {
            if (!here(p, 3)) return;
            p.out(0) = p.in(0) * p.in(2);
            p.out(1) += p.in(0) * p.in(1);
          }),
          {normal, normal, normal, places(t)});
    const std::vector<mmr::tensor_type> balance = {t("bsx"), t("bx")}, balance_back = {t("bx"), t("")};
    check(bound_operator(op::load_balance{0.3}, balance), balance,
          nest([](const point& p) { p.out(0) += 0.3 * p.in(0) * p.in(1); }));
    check(bound_operator(op::load_balance_grad{0.3, t("bsx")}, balance_back), balance_back,
          nest([](const point& p) { p.out(0) = 0.3 * p.in(0) * p.in(1); }));
  });
}
