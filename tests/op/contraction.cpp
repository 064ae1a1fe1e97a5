// General contraction: any orders and groups of loops against plain loops, and the orders of a transformer as single
// large products.
#include "harness.hpp"

using namespace mmr_test;
namespace op = mmr::op;

namespace {

mmr::tensor_type type(const std::string& axes, const std::vector<std::int64_t>& extents, dtype element) {
  mmr::tensor_type t{element, {}};
  for (char a : axes) t.dims.push_back({std::string(1, a), extents[static_cast<std::size_t>(a - 'a')], true});
  return t;
}

op::contract::axis_names names(const std::string& axes) {
  op::contract::axis_names all;
  for (char a : axes) all.emplace_back(1, a);
  return all;
}

op::contract contraction(const std::vector<std::string>& results, std::vector<op::contract::term> terms,
                         const std::vector<std::string>& operands) {
  std::vector<op::contract::axis_names> of_results, of_operands;
  for (const auto& r : results) of_results.push_back(names(r));
  for (const auto& o : operands) of_operands.push_back(names(o));
  return op::contract::of(std::move(terms), of_results, of_operands);
}

/// Each term sums over its own loops only.
oracle contracted(const op::contract& c) {
  return nest([c](const point& p) {
    for (const auto& t : c.terms) {
      const auto l = static_cast<std::size_t>(t.lhs), r = static_cast<std::size_t>(t.rhs),
                 o = static_cast<std::size_t>(t.result);
      bool mine = true;
      for (std::size_t i = 0; i < p.at.size(); ++i) {
        const auto walks = [&](const mmr::access& a) {
          return std::find(a.loops.begin(), a.loops.end(), static_cast<int>(i)) != a.loops.end();
        };
        mine = mine && (p.at[i] == 0 || walks(p.shape.in[l]) || walks(p.shape.in[r]) || walks(p.shape.out[o]));
      }
      if (mine) p.out(o) += p.in(l)*p.in(r);
    }
  });
}

}  // namespace

TEST_CASE("contraction over random orders and groups of loops") {
  std::mt19937 random(17);
  const auto any = [&](int below) { return std::uniform_int_distribution<>(0, below - 1)(random); };
  for (int draw = 0; draw < 200; ++draw) {
    const int axes = 1 + any(5), operands = 2 + any(2);
    std::vector<std::int64_t> extents;
    for (int a = 0; a < axes; ++a) extents.push_back(any(3) == 0 ? 1 : 2 + any(4));
    const int results = 1 + any(2);
    // Any axis may be in any operand and in any result: rows, columns, depth, batch, and axes of one operand alone.
    std::vector<std::string> of(static_cast<std::size_t>(operands)), result(static_cast<std::size_t>(results));
    for (int a = 0; a < axes; ++a) {
      const char name = static_cast<char>('a' + a);
      bool used = false;
      for (auto& o : of)
        if (any(3) != 0) o += name, used = true;
      for (auto& r : result)
        if (used && any(2)) r += name;
    }
    for (auto& o : of) std::shuffle(o.begin(), o.end(), random);
    for (auto& r : result) std::shuffle(r.begin(), r.end(), random);
    std::vector<op::contract::term> terms;
    for (int t = 0; t < results + any(2); ++t)
      terms.push_back({t < results ? t : any(results), any(operands), any(operands)});
    const auto c = contraction(result, terms, of);
    const dtype element = draw % 4 ? dtype::f64 : dtype::f32;
    std::vector<mmr::tensor_type> in;
    std::string said;
    for (const auto& r : result) said += r + " ";
    said += "from";
    for (const auto& o : of) {
      in.push_back(type(o, extents, element));
      said += " " + o;
    }
    INFO("draw " << draw << ": " << said);
    check(bound_operator(c, in), in, contracted(c), {}, 3);
  }
}

TEST_CASE("contraction of sizes that pass register tiles and packed blocks") {
  // Axes: a 2, b 11, c 35, d 300.
  const std::vector<std::int64_t> extents = {2, 11, 35, 300};
  for (auto element : {dtype::f64, dtype::f32})
    for (const auto& [l, r, o] : std::vector<std::tuple<std::string, std::string, std::string>>{{"abd", "dc", "abc"},
                                                                                                {"abd", "cd", "abc"},
                                                                                                {"dab", "dc", "abc"},
                                                                                                {"abd", "abc", "dc"},
                                                                                                {"bad", "dc", "abc"}}) {
      const auto c = contraction({o}, {{0, 0, 1}}, {l, r});
      const std::vector<mmr::tensor_type> in = {type(l, extents, element), type(r, extents, element)};
      INFO(o << " from " << l << " " << r);
      check(bound_operator(c, in), in, contracted(c), {}, 1);
    }
}

TEST_CASE("the contractions of a transformer are single products, whole and on shards") {
  // b batch, s positions, e embedding, h heads, d features, v words.
  struct one {
    const char *lhs, *rhs, *result;
    std::vector<char> rows, cols, depth;
  };
  const std::vector<one> all = {
      {"bse", "ehd", "bshd", {'b', 's'}, {'h', 'd'}, {'e'}},  // queries, keys, values
      {"bshd", "ehd", "bse", {'b', 's'}, {'e'}, {'h', 'd'}},  // their gradient to x
      {"bse", "bshd", "ehd", {'e'}, {'h', 'd'}, {'b', 's'}},  // and to the weight
      {"bshd", "bse", "ehd", {'e'}, {'h', 'd'}, {'b', 's'}},
      {"bshd", "hde", "bse", {'b', 's'}, {'e'}, {'h', 'd'}},  // projection of the heads
      {"bse", "hde", "bshd", {'b', 's'}, {'h', 'd'}, {'e'}},
      {"bshd", "bse", "hde", {'h', 'd'}, {'e'}, {'b', 's'}},
      {"bse", "ve", "bsv", {'b', 's'}, {'v'}, {'e'}},  // logits from the tied embedding
      {"bsv", "ve", "bse", {'b', 's'}, {'e'}, {'v'}},
      {"bsv", "bse", "ve", {'v'}, {'e'}, {'b', 's'}},
      {"bse", "bsv", "ve", {'v'}, {'e'}, {'b', 's'}},
      {"bse", "ev", "bsv", {'b', 's'}, {'v'}, {'e'}},  // the layers of the MLP
      {"bsv", "ev", "bse", {'b', 's'}, {'e'}, {'v'}},
      {"bse", "bsv", "ev", {'e'}, {'v'}, {'b', 's'}},
  };
  for (const std::string& kept : {std::string("none"), std::string("b"), std::string("s"), std::string("e"),
                                  std::string("h"), std::string("v"), std::string("d")})
    for (const auto& c : all) {
      const auto extent = [&](char a) -> std::int64_t {
        const std::int64_t whole = a == 'b' ? 4 : a == 's' ? 6 : a == 'e' ? 10 : a == 'h' ? 3 : a == 'd' ? 5 : 13;
        return kept[0] == a ? whole / 2 : whole;
      };
      std::vector<std::int64_t> extents;
      for (char a = 'a'; a <= 'z'; ++a) extents.push_back(extent(a));
      const auto o = contraction({c.result}, {{0, 0, 1}}, {c.lhs, c.rhs});
      const auto shape = o.sign({type(c.lhs, extents, dtype::f32), type(c.rhs, extents, dtype::f32)});
      const mmr::cpu::contraction_walk walk(shape, o.terms[0], whole_ranges(shape));
      const auto product = [&](const std::vector<char>& group) {
        std::int64_t n = 1;
        for (char a : group) n *= extent(a);
        return n;
      };
      INFO(c.result << " from " << c.lhs << " " << c.rhs);
      CHECK(walk.products() == 1);
      // The product may be of the transposes.
      const bool plain = walk.rows() == product(c.rows) && walk.cols() == product(c.cols);
      const bool swapped = walk.rows() == product(c.cols) && walk.cols() == product(c.rows);
      CHECK((plain || swapped));
      CHECK(walk.depth() == product(c.depth));
    }
}

TEST_CASE("a loop that a term lacks does not multiply its work, and splits of it leave that work undivided") {
  // b batch, e embedding, k heads, g group: queries have the group, keys have not.
  const auto c = contraction({"bkg", "bk"}, {{0, 0, 1}, {1, 0, 2}}, {"be", "ekg", "ek"});
  const auto flops = [&](double b, double e, double k, double g) {
    const std::vector<std::int64_t> sizes{static_cast<std::int64_t>(b), static_cast<std::int64_t>(e),
                                          static_cast<std::int64_t>(k), static_cast<std::int64_t>(g)};
    return c.flops(sizes);
  };
  CHECK(flops(3, 5, 7, 4) == 2 * 3 * 5 * 7 * (4 + 1));
  CHECK(flops(3, 5, 7, 2) == 2 * 3 * 5 * 7 * (2 + 1));
  CHECK(flops(3, 5, 7, 0) == 0);
  // Results over equal axes, as in attention without groups, cost what two contractions do.
  CHECK(
      contraction({"bk", "bk"}, {{0, 0, 1}, {1, 0, 2}}, {"be", "ek", "ek"}).flops(std::vector<std::int64_t>{3, 5, 7}) ==
      2 * 2 * 3 * 5 * 7);
}
