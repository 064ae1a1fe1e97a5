// Draws training steps: random mixes of the built-in operators over random axes, on random meshes, under random legal
// strategies. Draws depend on their seed alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <mmr/auto_parallel.hpp>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace mmr_test {

/// Numbers that are the same on every platform, unlike those of the standard distributions.
class dice {
 public:
  explicit dice(std::uint64_t seed) : state_(mmr::detail::mixed(seed + 0x9e3779b9u)) {}
  /// 0 .. n-1.
  std::size_t below(std::size_t n) {
    state_ = mmr::detail::mixed(state_);
    return static_cast<std::size_t>((state_ >> 33) % n);
  }
  bool one_in(std::size_t n) { return below(n) == 0; }
  template <class V>
  auto pick(const V& from) {
    return from[below(from.size())];
  }
  template <class V>
  void shuffle(V& v) {
    for (std::size_t i = v.size(); i > 1; --i) std::swap(v[i - 1], v[below(i)]);
  }

 private:
  std::uint64_t state_;
};

/// A random model, closed into a training step in double.
class random_graph {
 public:
  /// Extents are drawn from `extents`; no tensor has more than `most_elements`. With `block` > 0 every so many operators
  /// are a repetition of a block, whose results may be made again for backward; the model is the same.
  random_graph(std::uint64_t seed, std::vector<std::int64_t> extents, std::int64_t most_elements, std::size_t block = 0)
      : dice_(seed), most_elements_(most_elements) {
    for (const char* name : {"a", "b", "c", "d", "e", "f"})
      axes_.push_back({name, dice_.pick(extents), !dice_.one_in(12)});
    b_.g.microbatches = dice_.one_in(2) ? 1 : 1 + static_cast<int>(dice_.below(3));
    for (std::size_t i = 0, n = 1 + dice_.below(2); i < n; ++i)
      keep(source(mmr::tensor_class::input, random_dims(3), 1));
    for (std::size_t i = 0, n = 1 + dice_.below(2); i < n; ++i) keep(parameter(random_dims(4), 1));
    if (dice_.one_in(2)) embedding();
    for (std::size_t i = 0, n = 4 + dice_.below(8); i < n; ++i) {
      if (block > 0) b_.block = "block", b_.repetition = static_cast<int>(i / block);
      add_operator();
    }
    b_.block.clear(), b_.repetition = 0;
    mmr::autodiff(b_, rule()).run(loss());
    if (block > 0) b_.g = mmr::with_recomputation(b_.g);
  }

  const mmr::graph& graph() const { return b_.g; }

 private:
  using dims = std::vector<mmr::dimension>;

  const dims& dims_of(mmr::tensor_id t) const { return b_.g.tensor_of(t).type.dims; }
  static std::int64_t count(const dims& d) { return mmr::tensor_type{mmr::dtype::f64, d}.count(); }
  static bool has(const dims& d, const std::string& axis) {
    return std::any_of(d.begin(), d.end(), [&](const auto& x) { return x.axis == axis; });
  }

  dims random_dims(std::size_t most) {
    auto all = axes_;
    dice_.shuffle(all);
    dims out;
    const auto n = 1 + dice_.below(most);
    for (const auto& a : all) {
      if (out.size() == n) break;
      out.push_back(a);
      if (count(out) > most_elements_) out.pop_back();
    }
    if (out.empty())
      out.push_back(
          *std::min_element(axes_.begin(), axes_.end(), [](auto& x, auto& y) { return x.extent < y.extent; }));
    return out;
  }

  mmr::tensor_id source(mmr::tensor_class kind, const dims& d, double deviation, mmr::dtype element = mmr::dtype::f64) {
    mmr::tensor_info t;
    t.name = (kind == mmr::tensor_class::parameter ? "p" : "x") + std::to_string(names_++);
    t.type = {element, d};
    t.kind = kind;
    t.start = mmr::init::normal(deviation);
    t.stored.name = t.name;
    t.decays = dice_.one_in(2);
    return b_.source(t);
  }
  mmr::tensor_id parameter(const dims& d, double deviation) {
    return source(mmr::tensor_class::parameter, d, deviation);
  }
  /// A parameter over the dimensions, or something that is there and has them (so that parameters are tied, and results
  /// used several times).
  mmr::tensor_id some_over(const dims& d, double deviation) {
    std::vector<mmr::tensor_id> fit;
    for (auto t : pool_)
      if (dims_of(t) == d) fit.push_back(t);
    if (!fit.empty() && dice_.one_in(2)) return dice_.pick(fit);
    const auto fresh = parameter(d, deviation);
    if (dice_.one_in(3)) keep(fresh);
    return fresh;
  }
  void keep(mmr::tensor_id t) { pool_.push_back(t); }
  template <class Op>
  void keep_results(const Op& op, const std::vector<mmr::tensor_id>& in, std::size_t results = 1) {
    const auto out = b_.emit(op, in);
    for (std::size_t r = 0; r < results; ++r) keep(out[r]);
  }

  /// Recent results more often than early ones, so that graphs grow deep; those with at least `axes` dimensions.
  mmr::tensor_id pick(std::size_t axes = 0) {
    std::vector<mmr::tensor_id> fit;
    for (auto t : pool_)
      if (dims_of(t).size() >= axes) fit.push_back(t);
    if (fit.empty()) return -1;
    const auto n = fit.size();
    return fit[dice_.one_in(2) ? n - 1 - dice_.below(std::min<std::size_t>(n, 3)) : dice_.below(n)];
  }
  dims trailing(const dims& d) {
    const auto n = 1 + dice_.below(d.size());
    return {d.end() - static_cast<std::ptrdiff_t>(n), d.end()};
  }

  void embedding() {
    auto rows = random_dims(2), table = dims{};
    for (const auto& a : axes_)
      if (!has(rows, a.axis) && table.size() < 2) table.push_back(a);
    auto whole = rows;
    whole.push_back(table[1]);
    if (count(whole) > most_elements_ || count(table) > most_elements_) return;
    const auto tokens = source(mmr::tensor_class::input, rows, 0, mmr::dtype::i32);
    words_[b_.g.tensor_of(tokens).name] = table[0].extent;
    const auto t = some_over(table, 1);
    keep_results(mmr::op::embedding{}, {tokens, t});
    if (dice_.one_in(2)) keep(t);
  }

  /// x with one to three weights over shared and new axes, in any order of dimensions; weights may be other results.
  bool contraction() {
    const auto x = pick(1);
    auto left = dims_of(x);
    std::set<std::string> summed;
    dims weight, result;
    for (const auto& d : left) {
      const auto fate = dice_.below(4);  // sum it, walk it together, or leave it to x alone
      if (fate == 0) summed.insert(d.axis), weight.push_back(d);
      if (fate == 1) weight.push_back(d);
    }
    if (weight.empty()) weight.push_back(left.back()), summed.insert(left.back().axis);
    for (const auto& a : axes_)
      if (!has(left, a.axis) && weight.size() < 4 && dice_.one_in(4)) weight.push_back(a);
    for (const auto* from : {&left, &weight})
      for (const auto& d : *from)
        if (!summed.contains(d.axis) && !has(result, d.axis)) result.push_back(d);
    if (result.size() > 4 || count(result) > most_elements_ || count(weight) > most_elements_) return false;
    dice_.shuffle(weight);
    dice_.shuffle(result);
    double n = 1;
    for (const auto& d : weight)
      if (summed.contains(d.axis)) n *= static_cast<double>(d.extent);
    std::vector<mmr::op::contract::term> terms;
    std::vector<mmr::op::contract::axis_names> results;
    std::vector<mmr::tensor_id> in{x};
    const int n_terms = dice_.one_in(2) ? 1 : 1 + static_cast<int>(dice_.below(3));
    for (int t = 0; t < n_terms; ++t) {
      auto own = weight, made = result;
      if (t > 0) {
        if (dice_.one_in(2)) dice_.shuffle(own);
        if (dice_.one_in(4)) dice_.shuffle(made);
        // As keys and values lack the groups of queries: an axis of the first weight alone.
        if (dice_.one_in(2))
          for (const auto& d : weight)
            if (!has(left, d.axis) && dice_.one_in(2))
              for (auto* of : {&own, &made}) std::erase(*of, d);
      }
      const auto w = some_over(own, 1 / std::sqrt(n));
      auto at = std::find(in.begin(), in.end(), w);
      if (at == in.end()) in.push_back(w), at = in.end() - 1;
      terms.push_back({t, 0, static_cast<int>(at - in.begin())});
      results.push_back(names_of(made));
    }
    std::vector<mmr::op::contract::axis_names> operands;
    for (auto t : in) operands.push_back(names_of(dims_of(t)));
    keep_results(mmr::op::contract::of(terms, results, operands), in, terms.size());
    return true;
  }

  static mmr::op::contract::axis_names names_of(const dims& d) {
    mmr::op::contract::axis_names names;
    for (const auto& x : d) names.push_back(x.axis);
    return names;
  }

  /// Causal or not, to its own positions or others, of queries that share keys and values or do not.
  bool attention() {
    auto q = pick(4);
    if (q < 0) return false;
    auto of_keys = dims_of(q);
    if (of_keys.size() == 5) of_keys.erase(of_keys.begin() + 3);
    if (const auto group = another(dims_of(q)); group && dims_of(q).size() == 4 && dice_.one_in(3)) {
      auto grouped = of_keys;
      grouped.insert(grouped.begin() + 3, *group);
      if (count(grouped) <= most_elements_) q = some_over(grouped, 1);
    }
    bool causal = !dice_.one_in(3);
    if (const auto keys = another(dims_of(q)); keys && dice_.one_in(3)) {
      auto cross = of_keys;
      cross[1] = *keys;
      if (count(cross) <= most_elements_) of_keys = cross, causal = false;
    }
    mmr::op::attention op{causal, {}};
    if (dice_.one_in(4)) op.scale = 0.7;
    keep_results(op, {q, some_over(of_keys, 1), some_over(of_keys, 1)});
    return true;
  }

  /// An axis that these dimensions lack.
  std::optional<mmr::dimension> another(const dims& d) {
    dims fit;
    for (const auto& a : axes_)
      if (!has(d, a.axis)) fit.push_back(a);
    if (fit.empty()) return {};
    return dice_.pick(fit);
  }

  bool turn() {
    const auto x = pick(2);
    if (x < 0 || dims_of(x).back().extent % 2 != 0) return false;
    const auto& d = dims_of(x);
    keep_results(mmr::op::rotary{d[dice_.below(d.size() - 1)].axis, 10}, {x});
    return true;
  }

  bool rename() {
    const auto x = pick(1);
    if (x < 0) return false;
    const auto from = dice_.pick(dims_of(x));
    for (const auto& to : axes_)
      if (!has(dims_of(x), to.axis) && to.extent == from.extent) {
        keep_results(mmr::op::rename{from.axis, to}, {x});
        return true;
      }
    return false;
  }

  bool distances() {
    const auto x = pick(4);
    if (x < 0 || dims_of(x).size() != 4) return false;
    const auto bucket = another(dims_of(x));
    if (!bucket || bucket->extent < 2) return false;
    mmr::distance_buckets of{.count = bucket->extent};
    of.both_ways = of.count >= 4 && of.count % 2 == 0 && dice_.one_in(2);
    of.max_distance = of.exact() + 1 + static_cast<std::int64_t>(dice_.below(6));
    const dims table{*bucket, dims_of(x)[2]};
    if (count(table) > most_elements_) return false;
    keep_results(mmr::op::relative_bias{of}, {x, some_over(table, 1)});
    return true;
  }

  /// Tokens to the slots of experts, perhaps changed there, and back.
  bool experts() {
    std::vector<mmr::tensor_id> fit;
    for (auto t : pool_)
      if (dims_of(t).size() == 3) fit.push_back(t);
    if (fit.empty()) return false;
    const auto x = dice_.pick(fit);
    const auto d = dims_of(x);  // group, position, feature
    const auto expert = *another(d);
    const auto slot = *another({d[0], d[1], d[2], expert});
    const dims choice{d[0], d[1], expert}, there{expert, d[0], slot, d[2]};
    if (count(choice) > most_elements_ || count(there) > most_elements_) return false;
    // What decides is a parameter's at least in part: experts that are equal but for rounding may be taken either way.
    const auto logits = b_.emit(mmr::op::add{}, {parameter(choice, 1), some_over(choice, 1)})[0];
    const auto probs = b_.emit(mmr::op::softmax{}, {logits})[0];
    const int top_k = 1 + static_cast<int>(dice_.below(std::min<std::size_t>(2, static_cast<std::size_t>(expert.extent))));
    const auto where = b_.emit(mmr::op::route{top_k, slot}, {probs});
    if (dice_.one_in(3)) keep(b_.emit(mmr::op::load_balance{0.5}, {probs, where[2]})[0]);
    auto z = b_.emit(mmr::op::dispatch{}, {x, where[1]})[0];
    keep(z);
    if (dice_.one_in(2)) z = b_.emit(mmr::op::multiply{}, {z, some_over(there, 1)})[0];
    keep_results(mmr::op::combine{d[1]}, {z, where[0], where[1]});
    return true;
  }

  bool normalise() {
    const auto x = pick(1);
    if (x < 0) return false;
    const dims last{dims_of(x).back()};
    keep_results(mmr::op::layer_norm{}, {x, some_over(last, 1), some_over(last, 1)});
    return true;
  }

  void add_operator() {
    for (;;)
      if (try_operator(dice_.below(27))) return;
  }
  bool try_operator(std::size_t which) {
    const auto x = pick(which >= 4 && which <= 6 ? 1 : 0);
    if (x < 0) return false;
    const auto d = dims_of(x);
    const double p = dice_.one_in(4) ? 0.0 : 0.3;
    switch (which) {
      case 0:
        return keep_results(mmr::op::add{}, {x, some_over(d, 1)}), true;
      case 1:
        return keep_results(mmr::op::multiply{}, {x, some_over(d, 1)}), true;
      case 2:
        return keep_results(mmr::op::scale{0.5 + 0.25 * static_cast<double>(dice_.below(4))}, {x}), true;
      case 3:
        return keep_results(mmr::op::gelu{}, {x}), true;
      case 4:
        return keep_results(mmr::op::bias{}, {x, some_over(trailing(d), 1)}), true;
      case 5:
        return keep_results(mmr::op::bias_gelu{}, {x, some_over(trailing(d), 1)}), true;
      case 6:
        return keep_results(mmr::op::bias_dropout_add{p, stream_++}, {x, some_over(trailing(d), 1), some_over(d, 1)}),
               true;
      case 7:
        return d.empty() ? false : (keep_results(mmr::op::softmax{}, {x}), true);
      case 8:
        return normalise();
      case 9:
        return keep_results(mmr::op::dropout{0.3, stream_++}, {x}), true;
      case 10:
      case 11:
        return attention();
      case 12:
        return d.empty() ? false : (keep_results(mmr::op::rms_norm{}, {x, some_over({d.back()}, 1)}), true);
      case 13:
        return keep_results(mmr::op::silu{}, {x}), true;
      case 14:
        return keep_results(mmr::op::swiglu{}, {x, some_over(d, 1)}), true;
      case 15:
        return turn();
      case 16: {
        if (d.empty()) return false;
        const int query = static_cast<int>(dice_.below(d.size())) - 1;
        return keep_results(mmr::op::masked_softmax{0.7, query}, {x}), true;
      }
      case 17:
        return keep_results(mmr::op::stored_dropout{0.3, stream_++}, {x}), true;
      case 18:
      case 19:
        return experts();
      case 20:
        return rename();
      case 21:
        return distances();
      default:
        return pick(1) >= 0 && contraction();
    }
  }

  /// Sum of one to three terms, so that some results matter twice and most matter at all.
  mmr::tensor_id loss() {
    mmr::tensor_id total = -1;
    std::vector<mmr::tensor_id> of;
    for (std::size_t i = 0, n = 1 + dice_.below(3); i < n; ++i) of.push_back(i == 0 ? pool_.back() : pick());
    // Something trained must stand behind the loss.
    if (std::none_of(of.begin(), of.end(), [&](auto t) { return b_.trainable(t); }))
      of.push_back(*std::find_if(pool_.begin(), pool_.end(), [&](auto t) { return b_.trainable(t); }));
    for (auto t : of) {
      const bool squared = dims_of(t).empty() || dice_.one_in(3);
      const auto one = squared ? mean_square(t) : dice_.one_in(3) ? masked_cross_entropy(t) : cross_entropy(t);
      total = total < 0 ? one : b_.emit(mmr::op::add{}, {total, one})[0];
    }
    return total;
  }
  mmr::tensor_id mean_square(mmr::tensor_id t) {
    const auto square = b_.emit(mmr::op::multiply{}, {t, t})[0];
    const auto ones = source(mmr::tensor_class::input, dims_of(t), 1);
    const auto sum = b_.emit(mmr::op::contract{{{0, 0, 1}}, {{}}}, {square, ones})[0];
    return b_.emit(mmr::op::scale{1 / static_cast<double>(count(dims_of(t)) * b_.g.microbatches)}, {sum})[0];
  }
  mmr::tensor_id cross_entropy(mmr::tensor_id logits) {
    const auto [targets, m, s, p] = terms_of_rows(logits, false);
    const double factor = 1.0 / static_cast<double>(b_.g.tensor_of(targets).type.count() * b_.g.microbatches);
    return b_.emit(mmr::op::cross_entropy{factor, logits, targets}, {m, s, p})[0];
  }
  mmr::tensor_id masked_cross_entropy(mmr::tensor_id logits) {
    const auto [targets, m, s, p] = terms_of_rows(logits, true);
    const auto n = b_.emit(mmr::op::count_targets{}, {targets})[0];
    return b_.emit(mmr::op::masked_cross_entropy{1.0 / b_.g.microbatches, logits}, {m, s, p, targets, n})[0];
  }
  std::array<mmr::tensor_id, 4> terms_of_rows(mmr::tensor_id logits, bool masked) {
    auto rows = dims_of(logits);
    const auto words = rows.back().extent;
    rows.pop_back();
    const auto targets = source(mmr::tensor_class::input, rows, 0, mmr::dtype::i32);
    words_[b_.g.tensor_of(targets).name] = masked ? -words : words;
    const auto m = b_.emit(mmr::op::row_max{}, {logits})[0], s = b_.emit(mmr::op::sum_exp{}, {logits, m})[0],
               p = b_.emit(mmr::op::pick{}, {logits, targets})[0];
    return {targets, m, s, p};
  }

  /// One of the two optimizers, chosen at run time.
  struct either {
    double clip_norm;
    std::variant<mmr::sgd, mmr::adamw> chosen;
    std::vector<mmr::tensor_id> update(auto& b, mmr::tensor_id g, mmr::tensor_id p, mmr::tensor_id scale) const {
      return std::visit([&](const auto& optimizer) { return optimizer.update(b, g, p, scale); }, chosen);
    }
  };
  either rule() {
    const double clip = dice_.one_in(3) ? 0.1 : dice_.one_in(4) ? 1e6 : 0.0;
    // Velocity keeps the gradient itself, for the comparison; a large epsilon keeps AdamW from making noise large.
    if (dice_.one_in(2)) return {clip, mmr::sgd{dice_.one_in(6) ? 0.0 : 0.9, 0.1, clip}};
    return {clip, mmr::adamw{.epsilon = 1e-4, .clip_norm = clip}};
  }

  dice dice_;
  std::int64_t most_elements_;
  dims axes_;
  mmr::graph_builder b_;
  std::vector<mmr::tensor_id> pool_;
  std::uint32_t stream_ = 1;
  int names_ = 0;

 public:
  /// Words that an integer input chooses from, by its name; negative where it may have none instead, which is -1.
  std::map<std::string, std::int64_t> words_;
};

/// One to three mesh axes of sizes 1, 2, 3 and 5, at most `most` ranks.
inline mmr::mesh random_mesh(dice& d, int most) {
  for (;;) {
    mmr::mesh m;
    const char* names[] = {"x", "y", "z"};
    for (std::size_t a = 0, n = 1 + d.below(3); a < n; ++a)
      m.axes.push_back({.name = names[a], .size = d.pick(std::vector{1, 2, 2, 3, 3, 5})});
    if (m.rank_count() > 1 && m.rank_count() <= most) return m;
  }
}

/// Makes strategies fit together where operators run again or not: what a running operator reads is made again where it
/// would not be there, and what is kept is kept as the first run left it.
inline void settle(const mmr::graph& g, const mmr::mesh& m, dice& d, std::vector<mmr::strategy>& all) {
  const auto of = [&](mmr::op_id o) -> mmr::strategy& { return all[static_cast<std::size_t>(o)]; };
  const auto draw = [&](mmr::op_id o, mmr::presence kind) {
    auto legal = mmr::strategies_of(g.op(o), m);
    std::erase_if(legal, [&](const auto& s) { return s.kind != kind; });
    of(o) = d.pick(legal);
  };
  for (auto o = g.ops() - 1; o >= 0; --o) {  // readers before what they read
    if (of(o).runs())
      for (auto t : g.op(o).in) {
        const auto& info = g.tensor_of(t);
        const auto& maker = g.op(info.producer);
        if (!mmr::is_there(maker, static_cast<std::size_t>(info.result), of(info.producer)))
          draw(info.producer, maker.rules ? mmr::presence::run : mmr::presence::keep);
      }
    if (of(o).kind == mmr::presence::keep && of(g.op(o).again).kind == mmr::presence::absent)
      draw(g.op(o).again, mmr::presence::keep);
  }
  for (mmr::op_id o = 0; o < g.ops(); ++o)
    if (of(o).kind == mmr::presence::keep) of(o) = mmr::keeping(g.op(o), m, of(g.op(o).again));
}

/// A strategy for every operator: any at all, or (`aligned`) mostly the one that gives each mesh axis to its favourite
/// axis of the model, so that data stays where it is and buffers pass from operator to operator.
inline std::vector<mmr::strategy> random_strategies(const mmr::graph& g, const mmr::mesh& m, dice& d, bool aligned) {
  std::array<std::string, mmr::mesh::max_axes> favourite;
  for (auto& f : favourite) f = std::string(1, static_cast<char>('a' + d.below(6)));
  std::vector<mmr::strategy> all;
  for (mmr::op_id o = 0; o < g.ops(); ++o) {
    const auto legal = mmr::strategies_of(g.op(o), m);
    auto s = d.pick(legal);
    if (aligned && !d.one_in(4)) {
      mmr::strategy wanted;
      for (int a = 0; a < m.count(); ++a) {
        const int l = g.op(o).loops.find_loop(favourite[static_cast<std::size_t>(a)]);
        if (l >= 0) wanted[a] = static_cast<mmr::axis_choice>(l);
      }
      if (std::find(legal.begin(), legal.end(), wanted) != legal.end()) s = wanted;
    }
    if (g.op(o).again >= 0 && d.one_in(2)) s = legal.front();  // kept or absent
    all.push_back(s);
  }
  settle(g, m, d, all);
  return all;
}

}  // namespace mmr_test
