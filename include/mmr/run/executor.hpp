// Runs a plan on one rank: allocates the arena once, then walks the program: reshard operands, call the kernel, write new
// parameters back. Nothing is allocated in a step.
#pragma once

#include <mmr/plan/arena.hpp>
#include <mmr/plan/plan.hpp>
#include <mmr/run/memory.hpp>
#include <mmr/run/resharder.hpp>

#include <chrono>
#include <cmath>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace mmr {

/// Fills a rank's part of an input: `box` is the part, one interval a dimension; `data` is dense, row-major.
using input_filler = std::function<void(const tensor_info&, std::span<const interval> box, const step_info&, void* data)>;

template <communicator C>
class executor {
 public:
  /// `graph` and `mesh` are those of the plan. All ranks construct it together.
  executor(const graph& g, const mesh& m, const plan& p, C& world)
      : s_(g, m), strategies_(p.strategies), world_(world), groups_(s_.m, world), run_(s_, strategies_, world.rank()),
        layout_(lay_out(run_)), memory_(layout_.bytes) {
    for (tensor_id t = 0; t < g.tensors(); ++t)
      if (g.tensor_of(t).type.element == dtype::bf16)
        fail("tensor '", g.tensor_of(t).name, "' is bfloat16, which CPU ranks have no kernels for; plan with it, and run in float32");
    for (const auto& x : run_.instructions)
      if (x.runs) prepare_instruction(x);
    for (tensor_id t = 0; t < g.tensors(); ++t)
      if (g.tensor_of(t).kind == tensor_class::input) inputs_.push_back({t, box(t)});
  }
  executor(const executor&) = delete;

  int rank() const { return world_.rank(); }
  C& world() { return world_; }
  setting& where() { return s_; }
  std::int64_t arena_bytes() const { return memory_.bytes(); }
  std::int64_t resident_arena_bytes() const { return memory_.resident(); }
  std::int64_t bytes_sent() const { return groups_.bytes_sent(); }

  /// Placement in which a tensor is made.
  placement place(tensor_id t) const {
    return s_.made_placement(t, strategies_[static_cast<std::size_t>(s_.g.tensor_of(t).producer)]);
  }
  std::vector<interval> box(tensor_id t) const {
    return local_box(s_.m, s_.extents[static_cast<std::size_t>(t)], place(t), rank());
  }
  /// Local data of a tensor. Meaningful between steps for persistent tensors only.
  void* data(tensor_id t) { return pointer(run_.buffer_of[static_cast<std::size_t>(t)]); }
  /// The same by handle: this rank's part, dense and row-major over box(t.id).
  template <class T, class... A>
  std::span<T> data(tensor<T, A...> t) {
    const auto count = local_count(s_.m, s_.extents[static_cast<std::size_t>(t.id)], place(t.id), rank());
    return {static_cast<T*>(data(t.id)), static_cast<std::size_t>(count)};
  }

  /// One training step: all microbatches, then the updates. Returns the loss, the same on every rank.
  double step(step_info info, const input_filler& fill) {
    info.microbatches = s_.g.microbatches;
    step_ = info;
    for (std::int64_t micro = 0; micro < info.microbatches; ++micro) {
      step_.microbatch = micro;
      load(fill);
      // With one microbatch an update follows its gradient at once; with several, updates wait for the last one.
      run_phase([&](phase p) { return p == phase::microbatch || info.microbatches == 1; });
    }
    if (info.microbatches > 1) run_phase([](phase p) { return p == phase::update; });
    return loss();
  }

  /// Called after each operator with its name and seconds, when set: for profiles.
  std::function<void(const op_info&, double compute, double moving)> observer;

 private:
  struct ready {
    const op_info* op;
    std::vector<prepared_step> before, after;
    std::vector<loop_range> ranges;
    std::vector<std::vector<std::int64_t>> sizes;
    std::vector<tensor_view> in, out, state;
    void* workspace = nullptr;
    bool reports_loss = false;
  };

  struct input_part {
    tensor_id tensor;
    std::vector<interval> box;
  };

  char* pointer(int b) {
    const auto offset = b < 0 ? -1 : layout_.offset[static_cast<std::size_t>(b)];
    return memory_.data() + std::max<std::int64_t>(offset, 0);
  }

  void add_steps(std::vector<prepared_step>& to, const transfer& x) {
    if (!x.path) return;
    for (std::size_t i = 0; i < x.path->steps.size(); ++i) {
      auto p = prepare(s_, x.tensor, x.path->steps[i], rank());
      p.source = pointer(i == 0 ? x.source : x.fill[i - 1]);
      p.target = pointer(x.fill[i]);
      to.push_back(std::move(p));
    }
  }

  void prepare_instruction(const instruction& x) {
    const auto& op = s_.g.op(x.op);
    const auto& mine = strategies_[static_cast<std::size_t>(x.op)];
    ready r{.op = &op, .before = {}, .after = {}, .ranges = local_ranges(op, s_.m, mine, rank()),
            .sizes = {}, .in = {}, .out = {}, .state = {}};
    for (const auto& t : x.operands) add_steps(r.before, t);
    add_steps(r.after, x.write_back);
    auto sizes = [&](const access& a) {
      std::vector<std::int64_t> n;
      for (int l : a.loops) n.push_back(r.ranges[static_cast<std::size_t>(l)].size);
      return n;
    };
    // All sizes first: the views point into them.
    for (const auto* group : {&op.loops.in, &op.loops.out, &op.loops.state})
      for (const auto& a : *group) r.sizes.push_back(sizes(a));
    std::size_t at = 0;
    for (std::size_t i = 0; i < op.in.size(); ++i)
      r.in.push_back({pointer(x.operands[i].result()), op.loops.in[i].element, r.sizes[at++]});
    for (std::size_t i = 0; i < op.out.size(); ++i) r.out.push_back({pointer(x.out[i]), op.loops.out[i].element, r.sizes[at++]});
    for (std::size_t i = 0; i < op.state.size(); ++i)
      r.state.push_back({pointer(x.state[i]), op.loops.state[i].element, r.sizes[at++]});
    r.workspace = pointer(x.workspace);
    r.reports_loss = !op.out.empty() && op.out[0] == s_.g.loss;
    ready_.push_back(std::move(r));
  }

  void load(const input_filler& fill) {
    for (const auto& x : inputs_) fill(s_.g.tensor_of(x.tensor), x.box, step_, data(x.tensor));
  }

  double loss() {
    const auto& info = s_.g.tensor_of(s_.g.loss);
    return info.type.element == dtype::f64 ? *static_cast<double*>(data(s_.g.loss)) : *static_cast<float*>(data(s_.g.loss));
  }

  /// The first element of the loss, or of the result of a forward pass, that is not finite; where all are, the first.
  double worst_of_loss() {
    const auto& type = s_.g.tensor_of(s_.g.loss).type;
    const auto worst = [&](const auto* x) {
      for (std::int64_t i = 0; i < type.count(); ++i)
        if (!std::isfinite(x[i])) return static_cast<double>(x[i]);
      return loss();
    };
    void* x = data(s_.g.loss);
    return type.element == dtype::f64 ? worst(static_cast<double*>(x)) : worst(static_cast<float*>(x));
  }

  template <class Wanted>
  void run_phase(Wanted wanted) {
    for (auto& r : ready_)
      if (wanted(r.op->when)) {
        run_one(r);
        if (r.reports_loss && !std::isfinite(worst_of_loss())) explain_loss();
      }
  }

  void run_one(ready& r) {
    using clock = std::chrono::steady_clock;
    const auto begin = observer ? clock::now() : clock::time_point{};
    for (const auto& p : r.before) run(p, groups_);
    const auto middle = observer ? clock::now() : clock::time_point{};
    kernel_args args{.loops = r.ranges, .in = r.in, .out = r.out, .state = r.state,
                     .workspace = r.workspace, .step = &step_, .shape = &r.op->loops};
    r.op->rules->run(r.op->element, args);
    const auto end = observer ? clock::now() : clock::time_point{};
    for (const auto& p : r.after) run(p, groups_);
    if (observer) {
      const std::chrono::duration<double> compute = end - middle, moving = (middle - begin) + (clock::now() - end);
      observer(*r.op, compute.count(), moving.count());
    }
  }

  static bool finite(const tensor_view& v) {
    const auto all = [&](const auto* x) {
      for (std::int64_t i = 0; i < v.count(); ++i)
        if (!std::isfinite(x[i])) return false;
      return true;
    };
    if (v.element == dtype::f32) return all(v.as<float>());
    if (v.element == dtype::f64) return all(v.as<double>());
    return true;
  }

  // The loss is not finite, on every rank alike. Nothing has been updated yet: run forward again and look at each result.
  [[noreturn]] void explain_loss() {
    observer = nullptr;
    std::int32_t first = 0;  // minus what is found; all ranks take the earliest
    const auto sources = static_cast<std::int32_t>(s_.g.tensors());
    std::int32_t found = -2 * sources;
    for (tensor_id t = 0; t < s_.g.tensors() && found == -2 * sources; ++t) {
      const auto& info = s_.g.tensor_of(t);
      if (info.kind != tensor_class::parameter || s_.g.op(info.producer).when != phase::source) continue;
      const auto b = box(t);
      std::vector<std::int64_t> sizes;
      for (const auto& i : b) sizes.push_back(i.size);
      if (!finite({data(t), info.type.element, sizes})) found = -t;
    }
    for (auto& r : ready_) {
      run_one(r);
      for (std::size_t i = 0; i < r.out.size() && found == -2 * sources; ++i)
        // A row maximum over no columns is -inf until it is reduced.
        if (r.op->loops.reduce == reduction::sum && !finite(r.out[i])) found = -sources - r.op->out[i];
      if (r.reports_loss) break;
    }
    world_.all_reduce(&found, &first, 1, dtype::i32, reduction::max);
    first = -first;
    const auto operator_text = [&](tensor_id t) {
      const auto& op = s_.g.op(s_.g.tensor_of(t).producer);
      std::string text = "operator '" + op.name + "'";
      for (std::size_t i = 0; i < op.in.size(); ++i)
        text += (i == 0 ? " of '" : i + 1 < op.in.size() ? ", '" : " and '") + s_.g.tensor_of(op.in[i]).name + "'";
      return text;
    };
    std::string updated;  // by which operator, where the parameter is trained
    bool training = false;
    for (const auto& r : ready_) {
      training = training || r.op->writes_back >= 0;
      if (first < sources && r.op->writes_back == first) updated = ", which operator '" + r.op->name + "' updates,";
    }
    const std::string where =
        first < sources       ? "parameter '" + s_.g.tensor_of(first).name + "'" + updated + " holds a value that is not"
        : first < 2 * sources ? operator_text(first - sources) + " is the first whose result is not"
                              : operator_text(s_.g.loss) + " is the only one whose result is seen not to be";
    const double worst = worst_of_loss();
    const char* value = std::isnan(worst) ? "nan" : worst > 0 ? "inf" : "-inf";
    if (!training)
      fail("the result of the forward pass holds ", value, ": ", where,
           " finite; train at a lower learning rate, or use an earlier checkpoint");
    fail("the loss is ", value, " at step ", step_.step + 1, ": ", where,
         " finite; nothing was updated in this step; lower the learning rate, or clip gradients");
  }

  setting s_;
  std::vector<strategy> strategies_;
  C& world_;
  axis_groups<C> groups_;
  program run_;
  arena layout_;
  host_memory memory_;
  std::vector<ready> ready_;
  std::vector<input_part> inputs_;
  step_info step_;
};

}  // namespace mmr
