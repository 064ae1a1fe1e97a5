// The graph of a training step: its order, its live intervals, where updates stand, repeated blocks, and what a
// declaration refuses.
#include <functional>
#include <map>
#include <mmr/graph/declaration.hpp>
#include <mmr/graph/liveness.hpp>
#include <mmr/op/add.hpp>
#include <mmr/op/bias.hpp>
#include <mmr/op/contract.hpp>
#include <mmr/op/dropout.hpp>
#include <mmr/op/gelu.hpp>
#include <mmr/op/layer_norm.hpp>
#include <mmr/op/softmax.hpp>
#include <set>

#include "catch.hpp"
#include "refusal.hpp"

// Nothing runs here.
template <class Op>
struct mmr::kernel<mmr::cpu_device, Op> {
  template <class T>
  static void run(const Op&, const mmr::kernel_args&) {}
};

namespace {

struct Batch : mmr::axis<"batch"> {};
struct In : mmr::axis<"in"> {};
struct Hidden : mmr::axis<"hidden"> {};
struct Three : mmr::axis<"three", 3> {};

/// A tower of `layers` residual blocks, with a table used at both ends.
template <class Optimizer>
mmr::graph tower(int layers, int microbatches, const Optimizer& optimizer) {
  mmr::declaration m{mmr::size<Batch>(4), mmr::size<In>(6), mmr::size<Hidden>(8)};
  m.set_microbatches(microbatches);
  auto x = m.input<float, Batch, In>("x");
  const auto shared = m.parameter<float, In>("shared", mmr::init::ones());
  x = mmr::bias(x, shared);
  for (int l = 0; l < layers; ++l) {
    const mmr::declaration::block in_layer(m, "h", l);
    const auto g = m.parameter<float, In>("g", mmr::init::ones());
    const auto b = m.parameter<float, In>("b", mmr::init::zeros());
    const auto w = m.parameter<float, In, Hidden>("w", mmr::init::normal(1));
    const auto a = m.parameter<float, Hidden>("a", mmr::init::zeros());
    const auto u = m.parameter<float, Hidden, In>("u", mmr::init::normal(1));
    const auto h = mmr::bias_gelu(mmr::linear(mmr::layer_norm<In>(x, g, b), w), a);
    x = mmr::bias_dropout_add(mmr::linear(h, u), b, x, 0.1) + x;
  }
  const auto y = mmr::softmax<In>(mmr::bias(x, shared));
  return m.training_step(mmr::contract<Batch, In>(y, m.input<float, Batch, In>("t")), optimizer);
}

std::vector<mmr::graph> graphs() {
  return {tower(1, 1, mmr::sgd{}), tower(3, 1, mmr::adamw{}), tower(3, 1, mmr::adamw{.clip_norm = 1}),
          tower(2, 4, mmr::sgd{.momentum = 0.9}), tower(2, 4, mmr::sgd{.clip_norm = 1})};
}

bool is_gradient(const mmr::graph& g, mmr::op_id o) {
  return g.op(o).rules && g.op(o).rules->name() == "gradient" &&
         g.tensor_of(g.op(o).out[0]).kind == mmr::tensor_class::gradient;
}

}  // namespace

TEST_CASE("the schedule is a topological order of the DAG, which has one edge an operand") {
  for (const auto& g : graphs()) {
    CHECK(g.ordered());
    std::size_t operands = 0;
    for (mmr::op_id o = 0; o < g.ops(); ++o)
      for (auto t : g.op(o).in) {
        ++operands;
        CHECK(g.tensor_of(t).producer < o);
      }
    CHECK(boost::num_edges(g.dag()) == operands);
  }
}

TEST_CASE("live intervals of a small step, by hand") {
  mmr::declaration m{mmr::size<Batch>(2), mmr::size<In>(3)};
  const auto x = m.input<float, Batch, In>("x");
  const auto w = m.parameter<float, In>("w", mmr::init::zeros());
  const auto t = m.input<float, Batch, In>("t");
  const auto y = mmr::bias(x, w);
  const auto g = m.training_step(mmr::contract<Batch, In>(y, t), mmr::sgd{.momentum = 0.9});

  const mmr::liveness live(g);
  std::vector<std::string> order;
  std::map<std::string, std::pair<int, int>> life;
  std::map<std::string, int> reused;
  for (auto o : live.schedule) {
    const auto& op = g.op(o);
    order.emplace_back(op.rules->name());
    const auto key = std::to_string(order.size() - 1) + " " + order.back();
    const auto made = static_cast<std::size_t>(op.out[0]);
    life[key] = {live.life[made].begin, live.life[made].end};
    reused[key] = live.reused_operand[made];
    for (auto s : op.state)
      CHECK((live.life[static_cast<std::size_t>(s)].begin == 0 && live.life[static_cast<std::size_t>(s)].end == 9));
  }
  CHECK(order == std::vector<std::string>{"bias", "contract", "gradient", "report", "constant", "contract",
                                          "sum_leading", "gradient", "sgd"});
  for (const auto& source : {x.id, w.id, t.id})
    CHECK((live.life[static_cast<std::size_t>(source)].begin == 0 &&
           live.life[static_cast<std::size_t>(source)].end == 9));
  const std::map<std::string, std::pair<int, int>> by_hand{
      {"0 bias", {0, 2}},     {"1 contract", {1, 3}}, {"2 gradient", {3, 4}},  // the summed loss takes over the loss
      {"3 report", {0, 9}},                                                    // read by the host after the step
      {"4 constant", {4, 6}}, {"5 contract", {5, 7}}, {"6 sum_leading", {6, 8}},
      {"7 gradient", {8, 9}},  // takes over the sum
      {"8 sgd", {9, 9}}};      // takes over the parameter
  CHECK(life == by_hand);
  // x is there for the next step too, so bias may not overwrite it.
  CHECK(reused["0 bias"] == -1);
  CHECK(reused["2 gradient"] == 0);
  CHECK(reused["7 gradient"] == 0);
  CHECK(reused["8 sgd"] == 1);
}

TEST_CASE("an operator's whole loop does not make its result's axis whole") {
  struct Whole : mmr::axis<"whole", 4, mmr::splitting::whole> {};
  mmr::declaration m{mmr::size<Batch>(4), mmr::size<In>(6)};
  const auto x = m.parameter<float, Batch, In>("x", mmr::init::zeros());
  const auto y = mmr::linear(mmr::softmax<In>(x), m.parameter<float, In, Whole>("w", mmr::init::zeros()));
  const auto g = m.training_step(mmr::contract<Batch, Whole>(y, y), mmr::sgd{});
  for (mmr::tensor_id t = 0; t < g.tensors(); ++t)
    for (const auto& d : g.tensor_of(t).type.dims) CHECK(d.splittable == (d.axis != "whole"));
  for (mmr::op_id o = 0; o < g.ops(); ++o)
    for (const auto& l : g.op(o).loops.loops) {
      const auto name = g.op(o).rules ? g.op(o).rules->name() : "source";
      const bool row = name == "softmax" || name == "softmax_grad";
      CHECK(l.splittable == (l.axis != "whole" && !(row && l.axis == "in") && name != "report"));
    }
}

TEST_CASE("no tensor is used outside its life, and only a dying operand's buffer is taken over") {
  int taken_over = 0;
  for (const auto& g : graphs()) {
    const mmr::liveness live(g);
    std::map<mmr::tensor_id, int> last_use;
    for (auto o : live.schedule)
      for (auto t : g.op(o).in) last_use[t] = live.position[static_cast<std::size_t>(o)];
    for (auto o : live.schedule) {
      const auto& op = g.op(o);
      const int step = live.position[static_cast<std::size_t>(o)];
      for (std::size_t i = 0; i < op.in.size(); ++i) {
        const auto t = op.in[i];
        const auto& life = live.life[static_cast<std::size_t>(t)];
        CHECK((life.begin <= step && step < life.end));
        // The next microbatch adds to an accumulator; once the updates read it, the next step begins by overwriting it.
        const bool outlives = g.tensor_of(t).persistent ||
                              (g.op(g.tensor_of(t).producer).accumulates && op.when == mmr::phase::microbatch);
        if (live.dying[static_cast<std::size_t>(o)][i]) {
          CHECK(last_use[t] == step);
          CHECK_FALSE(outlives);
          CHECK(std::count(op.in.begin(), op.in.end(), t) == 1);
        }
      }
      for (auto t : op.out) {
        const int operand = live.reused_operand[static_cast<std::size_t>(t)];
        const auto& life = live.life[static_cast<std::size_t>(t)];
        if (operand < 0) {
          CHECK((life.begin == step || life.begin == 0));
          continue;
        }
        ++taken_over;
        const auto from = op.in[static_cast<std::size_t>(operand)];
        CHECK(g.tensor_of(from).type.element == g.tensor_of(t).type.element);
        CHECK(op.loops.in[static_cast<std::size_t>(operand)].loops ==
              op.loops.out[static_cast<std::size_t>(g.tensor_of(t).result)].loops);
        // The bytes pass from one to the other at the end of the step: never counted twice, never not at all.
        CHECK(life.begin == step + 1);
        if (op.writes_back >= 0)
          CHECK(op.writes_back == from);
        else
          CHECK((live.dying[static_cast<std::size_t>(o)][static_cast<std::size_t>(operand)] &&
                 live.life[static_cast<std::size_t>(from)].end == step + 1));
      }
    }
  }
  CHECK(taken_over > 20);
}

TEST_CASE("an update stands right behind its gradient") {
  for (const auto& g : {tower(3, 1, mmr::adamw{}), tower(1, 1, mmr::sgd{})}) {
    int parameters = 0, updates = 0;
    for (mmr::op_id o = 0; o < g.ops(); ++o) {
      parameters +=
          g.op(o).when == mmr::phase::source && g.tensor_of(g.op(o).out[0]).kind == mmr::tensor_class::parameter;
      if (!is_gradient(g, o)) continue;
      const auto& update = g.op(o + 1);
      CHECK(update.in.at(0) == g.op(o).out[0]);
      CHECK(update.writes_back >= 0);
      CHECK(update.when == mmr::phase::update);
      ++updates;
    }
    CHECK(updates == parameters);
  }
}

TEST_CASE("under clipping or accumulation no parameter changes before all gradients are complete") {
  for (const auto& g :
       {tower(2, 1, mmr::adamw{.clip_norm = 1}), tower(2, 4, mmr::adamw{}), tower(2, 4, mmr::sgd{.clip_norm = 1})}) {
    mmr::op_id last_gradient = -1, first_update = g.ops();
    std::set<mmr::tensor_id> updated;
    for (mmr::op_id o = 0; o < g.ops(); ++o) {
      if (is_gradient(g, o)) {
        last_gradient = o;
        // Besides the accumulators, gradients are reduced once a step where the norm needs them.
        CHECK(g.op(o).accumulates == (g.microbatches > 1 && g.op(o).when == mmr::phase::microbatch));
      }
      if (g.op(o).writes_back >= 0) {
        first_update = std::min(first_update, o);
        CHECK(updated.insert(g.op(o).writes_back).second);
      }
    }
    CHECK(last_gradient < first_update);
    CHECK(updated.size() == 11);
    // What runs once a step stands behind all that runs once a microbatch.
    bool stepping = false;
    for (mmr::op_id o = 0; o < g.ops(); ++o) {
      if (g.op(o).when == mmr::phase::update) stepping = true;
      if (g.op(o).when == mmr::phase::microbatch) CHECK_FALSE(stepping);
    }
  }
}

TEST_CASE("what is accumulated lives from the first microbatch to the last, and a gradient until its update") {
  const auto g = tower(1, 4, mmr::sgd{});
  const mmr::liveness live(g);
  int accumulators = 0, last_of_microbatch = 0;
  for (auto o : live.schedule)
    if (g.op(o).when == mmr::phase::microbatch) last_of_microbatch = live.position[static_cast<std::size_t>(o)];
  for (mmr::op_id o = 0; o < g.ops(); ++o)
    if (g.op(o).accumulates) {
      ++accumulators;
      const auto& life = live.life[static_cast<std::size_t>(g.op(o).out[0])];
      CHECK(life.begin == 0);
      CHECK(life.end > last_of_microbatch);
    }
  CHECK(accumulators == 7);  // six parameters and the loss
}

TEST_CASE("corresponding operators of repeated blocks have equal positions, others differ") {
  for (const auto& g : {tower(3, 1, mmr::adamw{}), tower(3, 2, mmr::adamw{.clip_norm = 1})}) {
    std::map<int, std::map<std::string, mmr::op_id>> at;
    for (mmr::op_id o = 0; o < g.ops(); ++o) {
      const auto& where = g.op(o).where;
      if (where.block.empty()) continue;
      CHECK(where.block == "h");
      CHECK(at[where.repetition].emplace(where.position, o).second);
    }
    REQUIRE(at.size() == 3);
    CHECK(at[0].size() > 25);
    CHECK(at[1].size() == at[0].size());
    // The gradients that meet at a block's output are summed in it; the last block's output has one use alone.
    CHECK(at[2].size() == at[0].size() - 2);
    for (int r = 1; r < 3; ++r) {
      for (const auto& [position, o] : at[r]) {
        REQUIRE(at[0].contains(position));
        const auto& one = g.op(at[0][position]);
        const auto& other = g.op(o);
        CHECK(one.loops.loops == other.loops.loops);
        CHECK(one.when == other.when);
        CHECK((one.rules == nullptr) == (other.rules == nullptr));
        if (one.rules && other.rules) CHECK(one.rules->name() == other.rules->name());
      }
    }
  }
}

TEST_CASE("extents that disagree, or are not there, are refused by name") {
  CHECK_THAT(refusal([] { mmr::declaration m{mmr::size<Batch>(0)}; }), contains("axis 'batch' has extent 0"));
  CHECK_THAT(refusal([] {
               mmr::declaration m{mmr::size<Batch>(2), mmr::size<Batch>(3)};
             }),
             contains("axis 'batch' already has extent 2 and cannot become 3"));
  CHECK_THAT(refusal([] { mmr::declaration m{mmr::size<Three>(4)}; }),
             contains("'three' is declared with the static extent 3"));
  CHECK_THAT(refusal([] {
               mmr::declaration m{mmr::size<Batch>(2)};
               m.input<float, Batch, In>("x");
             }),
             contains("axis 'in' has no extent"));
  CHECK_THAT(refusal([] {
               mmr::signature s;
               mmr::loops_over(s, {mmr::dtype::f32, {{"in", 3, true}}}, "mine");
               mmr::loops_over(s, {mmr::dtype::f32, {{"in", 4, true}}}, "mine");
             }),
             contains("mine: axis 'in' has extent 3 in one operand and 4 in another"));
  mmr::declaration m{mmr::size<Batch>(2), mmr::size<Batch>(2), mmr::size<Three>(3)};
  CHECK(m.extent<Batch>() == 2);
  CHECK(m.extent<Three>() == 3);
  CHECK_THAT(refusal([&] { m.set_microbatches(0); }), contains("0 microbatches"));
}

TEST_CASE("two parameters or inputs of one name are refused, in two blocks they are two") {
  mmr::declaration m{mmr::size<In>(3)};
  m.parameter<float, In>("w", mmr::init::zeros());
  CHECK_THAT(refusal([&] { m.parameter<float, In>("w", mmr::init::zeros()); }), contains("two tensors are named 'w'"));
  CHECK_THAT(refusal([&] { m.input<float, In>("w"); }), contains("two tensors are named 'w'"));
  for (int l = 0; l < 2; ++l) {
    const mmr::declaration::block in(m, "h", l);
    CHECK(refusal([&] { m.parameter<float, In>("w", mmr::init::zeros()); }) == "nothing was refused");
  }
}

TEST_CASE("a declaration is closed by its training step or its inference") {
  mmr::declaration m{mmr::size<In>(3)};
  const auto w = m.parameter<float, In>("w", mmr::init::zeros());
  const auto loss = mmr::contract<In>(w, m.input<float, In>("x"));
  m.training_step(loss, mmr::sgd{});
  for (const std::function<void()>& late :
       {std::function<void()>([&] { m.training_step(loss, mmr::sgd{}); }),
        std::function<void()>([&] { m.inference(loss); }), std::function<void()>([&] { m.input<float, In>("late"); }),
        std::function<void()>([&] { mmr::scale(w, 2); })})
    CHECK_THAT(refusal(late), contains("the declaration is closed"));

  mmr::declaration reader{mmr::size<In>(3)};
  const auto y = mmr::scale(reader.input<float, In>("x"), 2);
  const auto g = reader.inference(y);
  CHECK(g.tensor_of(g.loss).persistent);
  CHECK(g.ops() == 3);
  CHECK_THAT(refusal([&] { reader.input<float, In>("late"); }), contains("the declaration is closed"));
}

namespace {
struct opaque {
  static constexpr std::string_view name = "opaque";
  mmr::signature sign(const std::vector<mmr::tensor_type>& in) const { return mmr::elementwise(in, "opaque"); }
  double flops(std::span<const std::int64_t> n) const { return mmr::points(n); }
};
struct forgetful {
  static constexpr std::string_view name = "forgetful";
  mmr::signature sign(const std::vector<mmr::tensor_type>& in) const { return mmr::elementwise({in[0]}, "forgetful"); }
  double flops(std::span<const std::int64_t> n) const { return mmr::points(n); }
};
}  // namespace

TEST_CASE("misuse that types cannot see is refused by name") {
  mmr::declaration m{mmr::size<In>(3)}, other{mmr::size<In>(3)};
  const auto w = m.parameter<float, In>("w", mmr::init::zeros());
  const auto x = m.input<float, In>("x");
  for (int i = 0; i < 5; ++i) other.input<float, In>("x" + std::to_string(i));
  const auto foreign = other.input<float, In>("y");
  CHECK_THAT(refusal([&] { w + foreign; }), contains("'add' mixes tensors of two declarations"));
  CHECK_THAT(refusal([&] { mmr::tensor<float, In>() + w; }),
             contains("'add' was given a tensor that no declaration made"));
  CHECK_THAT(refusal([&] { mmr::apply<mmr::tensor<float, In>>(forgetful{}, w, x); }),
             contains("'forgetful' states 1 operands and was given 2"));
  using two = mmr::tensor<float, In>;
  CHECK_THAT(refusal([&] { mmr::apply<two, two>(opaque{}, w); }), contains("'opaque' states 1 results"));
  CHECK_THAT(refusal([&] { mmr::apply<mmr::tensor<float, Hidden>>(opaque{}, w); }),
             contains("'opaque': its typed function names other axes"));
  const auto blind = mmr::contract<In>(mmr::apply<two>(opaque{}, w), x);
  CHECK_THAT(refusal([&] { m.training_step(blind, mmr::sgd{}); }), contains("operator 'opaque' has no vjp rule"));
  CHECK_THAT(refusal([&] { other.training_step(mmr::contract<In>(foreign, foreign), mmr::sgd{}); }),
             contains("does not depend on any parameter"));
}
