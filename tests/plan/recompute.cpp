// Recomputation: which operators may run again, that keeping and making again are one choice of the one program, and that
// what is known of it comes out.
#include <mmr/plan/explain.hpp>
#include <mmr/plan/json.hpp>
#include <mmr/plan/planner.hpp>
#include <mmr/solve/brute_force.hpp>
#include <set>
#include <sstream>

#include "catch.hpp"
#include "draw.hpp"
#include "models.hpp"
#include "refusal.hpp"

using namespace models;
using mmr::goal;
using mmr::presence;

namespace {

constexpr double seconds = 20;

gpt_size with(gpt_size size) {
  size.recompute = true;
  return size;
}
const gpt_size usual{.layers = 4, .heads = 4, .embed = 64, .seq = 32, .batch = 8, .vocab = 100, .dropout = 0.1};

mmr::op_id op_named(const mmr::graph& g, const std::string& name) {
  for (mmr::op_id o = 0; o < g.ops(); ++o)
    if (g.op(o).name == name) return o;
  mmr::fail("the graph has no operator '", name, "'");
}

bool runs_late(const mmr::graph& g, mmr::op_id o) {
  const auto& op = g.op(o);
  return op.again < 0 && op.when == mmr::phase::microbatch && !op.out.empty() && !g.tensor_of(op.out[0]).forward;
}

}  // namespace

TEST_CASE("again-operators are added to the step as it was, right before the backward pass of their repetition") {
  const auto size = gpt_size{.layers = 3, .dropout = 0.1, .microbatches = 2};
  const auto plain = gpt(size), g = gpt(with(size));
  REQUIRE(g.ordered());
  for (mmr::tensor_id t = 0; t < plain.tensors(); ++t) REQUIRE(g.tensor_of(t).name == plain.tensor_of(t).name);
  CHECK(g.loss == plain.loss);
  CHECK(g.microbatches == 2);
  std::vector<std::string> names;
  std::set<int> begun;
  for (mmr::op_id o = 0; o < g.ops(); ++o) {
    const auto& op = g.op(o);
    const auto r = op.where.repetition;
    if (op.again >= 0) {
      CHECK_FALSE(begun.contains(r));
      CHECK(op.again < o);
      CHECK(g.op(op.again).where.repetition == r);
      CHECK(g.op(op.again).name + ".again" == op.name);
      continue;
    }
    names.push_back(op.name);
    if (op.where.block.empty() || !runs_late(g, o)) continue;
    begun.insert(r);
    // Of its own layer backward reads nothing that was made before; of others, the layer's input.
    for (auto t : op.in) {
      const auto& maker = g.op(g.tensor_of(t).producer);
      if (g.tensor_of(t).forward && maker.when != mmr::phase::source && maker.where.block == "h")
        CHECK(maker.where.repetition == r - 1);
    }
  }
  REQUIRE(static_cast<int>(names.size()) == plain.ops());
  for (mmr::op_id o = 0; o < plain.ops(); ++o) CHECK(names[static_cast<std::size_t>(o)] == plain.op(o).name);
  // Thirteen operators a layer; the last two only make what the next layer reads.
  CHECK(g.ops() - plain.ops() == 3 * 11);
}

TEST_CASE("what only again-operators read of another repetition is held, and each hold goes on from the one before") {
  const auto g = skipping(4);
  REQUIRE(g.ordered());
  mmr::setting s(g, mmr::mesh::parse("data=1"));
  std::vector<mmr::op_id> holds;
  for (mmr::op_id o = 0; o < g.ops(); ++o)
    if (g.op(o).again >= 0 && !g.op(o).rules) holds.push_back(o);
  REQUIRE(holds.size() == 3);
  const auto first = g.op(holds[0]).again;
  CHECK(g.op(first).where.block.empty());
  CHECK(g.op(holds[1]).again == holds[0]);
  CHECK(g.op(holds[2]).again == holds[1]);
  auto end = s.live.life[static_cast<std::size_t>(g.op(first).out[0])].end;
  for (auto o : holds) {
    const auto& kept = s.live.kept[static_cast<std::size_t>(g.op(o).out[0])];
    CHECK(kept.begin == end);
    CHECK(kept.end > kept.begin);
    end = kept.end;
  }
}

TEST_CASE("to keep all that backward reads costs what it costs without the choice, and is what the schemes do") {
  const auto plain = gpt(usual), g = gpt(with(usual));
  for (const auto* spec : {"data=2", "data=3", "data=2,model=2"})
    for (const auto name : mmr::scheme_names) {
      INFO(name << " on " << spec);
      mmr::planner before(plain, mmr::mesh::parse(spec)), after(g, mmr::mesh::parse(spec));
      const mmr::plan_request r{.scheme = std::string(name), .axes = gpt_axes(), .seconds = seconds};
      const auto a = before.make(r), made = after.make(r);
      CHECK(made.step_seconds == Approx(a.step_seconds).epsilon(1e-12));
      CHECK(mmr::recomputed_in(after.where(), made.strategies).operators == 0);
      // Where a scheme leaves equals to choose from, the two may choose differently: the same strategies are compared.
      mmr::plan b;
      for (mmr::op_id o = 0, of_plain = 0; o < g.ops(); ++o) {
        const auto& op = g.op(o);
        const bool keeps = std::count(op.keepable.begin(), op.keepable.end(), true) > 0;
        b.strategies.push_back(op.again < 0 ? a.strategies[static_cast<std::size_t>(of_plain++)]
                               : keeps      ? mmr::keeping(op, after.where().m, b.strategies[static_cast<std::size_t>(op.again)])
                                            : mmr::strategy{.kind = presence::absent});
      }
      mmr::assess(after.where(), b);
      CHECK(b.step_seconds == Approx(a.step_seconds).epsilon(1e-12));
      CHECK(b.sent_bytes == a.sent_bytes);
      for (std::size_t i = 0; i < a.per_rank.size(); ++i) {
        CHECK(b.per_rank[i].peak_live == a.per_rank[i].peak_live);
        CHECK(b.per_rank[i].activations == a.per_rank[i].activations);
        CHECK(b.per_rank[i].redundant == a.per_rank[i].redundant);
      }
    }
}

TEST_CASE("what to keep and what to make again equals exhaustive search") {
  const auto check = [](const mmr::graph& g, const std::string& spec, const mmr::pins& fixed) {
    mmr::planner plans(g, mmr::mesh::parse(spec));
    const auto p = plans.formulated({.fixed = fixed}).problem;
    double choices = 1;
    for (const auto& n : p.nodes) choices *= static_cast<double>(n.cost.size());
    INFO(choices << " choices");
    REQUIRE(choices > 1000);
    REQUIRE(choices < 50'000);
    const auto best = [&](mmr::solve::goal what, double cost_limit, std::int64_t peak_limit) {
      return mmr::solve::brute_force(p, {.minimise = what, .cost_limit = cost_limit, .peak_limit = peak_limit});
    };
    const auto quickest = best(mmr::solve::goal::cost, mmr::solve::infinity, mmr::solve::no_peak_limit);
    const auto leanest = best(mmr::solve::goal::peak, mmr::solve::infinity, mmr::solve::no_peak_limit);
    const auto lean = plans.make({.minimise = goal::memory, .fixed = fixed, .seconds = seconds});
    CHECK(lean.proved);
    CHECK(mmr::peak_bytes(lean) == leanest.peak);
    std::int64_t last = 0;
    for (double slowdown : {0.0, 0.05, 0.1, 0.2}) {
      const auto limit = (1 + slowdown) * quickest.cost;
      const auto within = plans.make({.minimise = goal::memory, .slowdown = slowdown, .fixed = fixed, .seconds = seconds});
      CHECK(mmr::peak_bytes(within) == best(mmr::solve::goal::peak, limit, mmr::solve::no_peak_limit).peak);
      CHECK(within.step_seconds <= limit * (1 + 1e-8));
      if (slowdown > 0) CHECK(mmr::peak_bytes(within) <= last);
      last = mmr::peak_bytes(within);
    }
    const auto budget = (leanest.peak + quickest.peak) / 2;
    const auto kept = plans.make({.minimise = goal::time, .budget = budget, .fixed = fixed, .seconds = seconds});
    CHECK(mmr::peak_bytes(kept) <= budget);
    CHECK(kept.step_seconds == Approx(best(mmr::solve::goal::cost, mmr::solve::infinity, budget).cost).epsilon(1e-8));
    CHECK(mmr::recomputed_in(plans.where(), kept.strategies).operators > 0);
  };
  // On one rank all that is left to choose is what to keep.
  mmr::pins some;
  for (const auto* again : {"layer_norm", "bias_gelu", "attention"}) some.recompute_operator(again);
  some.recompute_operator("bias_dropout_add", false);
  check(gpt(with({.layers = 3, .heads = 4, .embed = 32, .seq = 64, .batch = 4, .vocab = 20, .microbatches = 2})), "data=1", some);
  check(skipping(3), "data=1", mmr::pins().recompute_operator("gelu"));
}

TEST_CASE("with recomputation a plan needs less memory; a plan that may not be slower does not recompute") {
  const auto plain = gpt(usual), g = gpt(with(usual));
  for (const auto* spec : {"data=1", "data=2", "data=2,model=2"}) {
    INFO(spec);
    mmr::planner before(plain, mmr::mesh::parse(spec)), after(g, mmr::mesh::parse(spec));
    const auto kept = before.make({.seconds = seconds}), again = after.make({.seconds = seconds});
    CHECK(static_cast<double>(mmr::peak_bytes(again)) < 0.8 * static_cast<double>(mmr::peak_bytes(kept)));
    CHECK(again.step_seconds > kept.step_seconds);
    CHECK(mmr::recomputed_in(after.where(), again.strategies).operators >= 4 * 6);
    CHECK(again.per_rank[0].activations < kept.per_rank[0].activations);
    for (const auto& p : {after.make({.minimise = goal::time, .seconds = seconds}),
                          after.make({.slowdown = 0, .seconds = seconds})}) {
      CHECK(mmr::recomputed_in(after.where(), p.strategies).operators == 0);
      CHECK(p.step_seconds == Approx(before.make({.minimise = goal::time, .seconds = seconds}).step_seconds).epsilon(1e-8));
    }
  }
}

// Korthikanti et al., arXiv 2205.05198, section 5: with full recomputation a layer keeps its input alone, 2 s b h bytes at
// 16 bit; tensor parallelism does not divide it, and sequence parallelism does.
TEST_CASE("full recomputation keeps the input of each layer and nothing else between the layers") {
  auto size = with({.layers = 5, .heads = 4, .embed = 16, .seq = 8, .batch = 4, .vocab = 20, .dropout = 0.1});
  size.bf16 = true;
  const auto g = gpt(size);
  const auto input = 2 * size.seq * size.batch * size.embed;
  for (const auto& [scheme, parts] : {std::pair{"single", 1}, {"megatron", 1}, {"megatron-sp", 4}}) {
    INFO(scheme);
    mmr::planner plans(g, mmr::mesh::parse("model=4"));
    mmr::pins fixed;
    fixed.recompute();
    const auto p = plans.make({.scheme = scheme, .axes = gpt_axes(), .fixed = fixed, .seconds = seconds});
    const mmr::program run(plans.where(), p.strategies, 0);
    const int between = plans.where().live.position[static_cast<std::size_t>(g.tensor_of(g.loss).producer)];
    std::int64_t kept = 0;
    for (const auto& b : run.buffers)
      if (b.life.begin <= between && between < b.life.end && b.kind == mmr::tensor_class::activation && b.op >= 0 &&
          g.op(b.op).where.block == "h")
        kept += b.bytes;
    // The last layer's result is the input of the last normalisation, the first one's is the embedding outside the block.
    CHECK(kept == size.layers * input / parts);
    int stored = 0;
    for (mmr::tensor_id t = 0; t < g.tensors(); ++t) {
      const auto& info = g.tensor_of(t);
      if (info.kind == mmr::tensor_class::activation && g.op(info.producer).where.block == "h")
        stored += mmr::is_stored(plans.where(), t, &p.strategies);
    }
    CHECK(stored == size.layers);
  }
}

TEST_CASE("pins say what runs again") {
  const auto g = gpt(with(usual));
  mmr::planner plans(g, mmr::mesh::parse("data=2"));
  const auto made = [&](const mmr::pins& fixed, goal minimise = goal::memory) {
    return plans.make({.minimise = minimise, .fixed = fixed, .seconds = seconds}).strategies;
  };
  const auto figures = [&](const std::vector<mmr::strategy>& s) { return mmr::recomputed_in(plans.where(), s); };
  CHECK(figures(made(mmr::pins().recompute(false))).operators == 0);
  CHECK(figures(made(mmr::pins().recompute_block("h", false))).operators == 0);
  CHECK(figures(made(mmr::pins().recompute(), goal::time)).kept == 0);
  const auto attention = made(mmr::pins().recompute_operator("attention"), goal::time);
  CHECK(figures(attention).operators == 4);
  for (int l = 0; l < 4; ++l)
    CHECK(attention[static_cast<std::size_t>(op_named(g, "h." + std::to_string(l) + ".attention.again"))].runs());
  const auto others = made(mmr::pins().recompute_operator("attention", false));
  CHECK(others[static_cast<std::size_t>(op_named(g, "h.2.attention.again"))].kind == presence::keep);
  CHECK(figures(others).operators > 0);

  CHECK_THAT(refusal([&] { made(mmr::pins().recompute().recompute(false)); }), contains(".again' no strategy"));
  CHECK_THAT(refusal([&] { made(mmr::pins().recompute_block("g")); }), contains("operators in block 'g' run again, and the graph has"));
  CHECK_THAT(refusal([&] { made(mmr::pins().recompute_operator("report")); }), contains("operator 'report' run again"));
  const auto plain = gpt(usual);
  CHECK_THAT(refusal([&] { mmr::pins().recompute().check(plain, mmr::mesh::parse("data=2")); }),
             contains("allow recomputation where the model is declared"));
}

TEST_CASE("a plan that recomputes comes back as it was saved, and says what runs again") {
  const auto g = gpt(with({.layers = 2, .heads = 2, .embed = 6, .seq = 5, .batch = 3, .vocab = 7, .dropout = 0.1}));
  for (const auto* spec : {"data=1", "data=3", "data=2,model=2"}) {
    mmr::setting s(g, mmr::mesh::parse(spec));
    const auto f = mmr::formulate(s);
    std::mt19937 random(3);
    mmr::plan p;
    p.name = p.objective = "drawn";
    p.strategies = f.chosen(any_choice(s, f, random));
    mmr::assess(s, p);
    const auto again = mmr::recomputed_in(s, p.strategies);
    REQUIRE(again.operators > 0);
    REQUIRE(again.kept > 0);
    const auto text = mmr::to_json(p, g, s.m).dump();
    const auto back = mmr::plan_from_json(text, "plan.json", s);
    CHECK(back.strategies == p.strategies);
    CHECK(back.name == "drawn");
    std::ostringstream out;
    mmr::explain(out, s, p);
    CHECK_THAT(out.str(), contains(std::to_string(again.operators) + " operators run again for backward, in ") &&
                              contains("results of " + std::to_string(again.kept) + " are kept for it"));
  }
}

TEST_CASE("a saved plan whose recomputation was damaged is refused by name") {
  const auto g = gpt(with({.layers = 2, .dropout = 0.1}));
  mmr::planner plans(g, mmr::mesh::parse("data=2,model=2"));
  auto& s = plans.where();
  const auto damaged = [&](const mmr::pins& fixed, const std::string& name, const std::string& along) {
    auto j = mmr::to_json(plans.make({.minimise = goal::time, .fixed = fixed, .seconds = seconds}), g, s.m);
    j["operators"][static_cast<std::size_t>(op_named(g, name))]["along"] = nlohmann::json::parse(along);
    return refusal([&] { mmr::plan_from_json(j.dump(), "plan.json", s); });
  };
  const auto all = mmr::pins().recompute(), none = mmr::pins().recompute(false);
  CHECK_THAT(damaged(none, "h.0.bias_gelu.again", "\"absent\""),
             contains("gives operator 'h.0.bias_gelu.again' the strategy \"absent\", which it does not have"));
  CHECK_THAT(damaged(none, "h.0.bias_gelu", "\"kept\""), contains("'h.0.bias_gelu' the strategy \"kept\", which it does not"));
  CHECK_THAT(damaged(none, "h.0.bias_gelu.again", "\"forgotten\""), contains("damaged entry for operator 'h.0.bias_gelu.again'"));
  CHECK_THAT(damaged(none, "h.0.bias_gelu.again", "[\"none\"]"), contains("damaged entry for operator 'h.0.bias_gelu.again'"));
  // Queries, keys and values before their biases are there only where they are made again.
  CHECK_THAT(damaged(all, "h.0.contract.again", "\"kept\""), contains("'h.0.contract.again' the strategy \"kept\""));
  CHECK_THAT(damaged(all, "h.0.contract.again", "\"absent\""),
             contains("plan.json cannot be run: operator 'h.0.bias.again' reads 'h.0.contract") &&
                 contains("which is neither kept nor made again"));
  // What is kept may be made again instead: another plan, of which nothing is proved.
  auto j = mmr::to_json(plans.make({.minimise = goal::time, .fixed = none, .seconds = seconds}), g, s.m);
  j["operators"][static_cast<std::size_t>(op_named(g, "h.0.bias_gelu.again"))]["along"] = {"none", "none"};
  const auto edited = mmr::plan_from_json(j.dump(), "plan.json", s);
  CHECK(edited.name == "time (edited)");
  CHECK_FALSE(edited.proved);
  CHECK(mmr::recomputed_in(s, edited.strategies).operators == 1);
}
