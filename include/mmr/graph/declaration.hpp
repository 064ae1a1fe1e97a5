// The user's side of the graph: extents, parameters, inputs, repeated blocks; `training_step` closes it.
#pragma once

#include <mmr/graph/autodiff.hpp>
#include <mmr/graph/recompute.hpp>

#include <algorithm>
#include <optional>
#include <string>

namespace mmr {

/// AdamW settings. States are float for bf16 parameters: 18 bytes a parameter with gradients in float, 16 with bf16 ones.
/// As usual, weight decay applies to tensors of two or more dimensions as stored in a checkpoint.
struct adamw {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.01;
  double clip_norm = 0;
  std::optional<dtype> gradients{};  ///< kept in this type; in the parameter's own where empty, in float for bf16
  std::vector<tensor_id> update(auto& b, tensor_id g, tensor_id p, tensor_id scale) const {
    const op::adamw made{beta1, beta2, epsilon, b.g.tensor_of(p).decays ? weight_decay : 0.0};
    return b.emit(made, scale < 0 ? std::vector{g, p} : std::vector{g, p, scale});
  }
};

/// SGD settings.
struct sgd {
  double momentum = 0, weight_decay = 0;
  double clip_norm = 0;
  std::optional<dtype> gradients{};  ///< kept in this type; in the parameter's own where empty, in float for bf16
  std::vector<tensor_id> update(auto& b, tensor_id g, tensor_id p, tensor_id scale) const {
    const op::sgd made{momentum, b.g.tensor_of(p).decays ? weight_decay : 0.0};
    return b.emit(made, scale < 0 ? std::vector{g, p} : std::vector{g, p, scale});
  }
};

/// A model being declared. Handles of its tensors stay valid while it lives; it does not move.
///
///   mmr::declaration m{mmr::size<Batch>(8), mmr::size<In>(784), mmr::size<Out>(10)};
///   auto x = m.input<float, Batch, In>("x");
///   auto w = m.parameter<float, In, Out>("w", mmr::init::normal(0.02));
class declaration {
 public:
  template <axis_type... A>
  explicit declaration(size<A>... extents) {
    (set(extents), ...);
  }
  declaration(const declaration&) = delete;
  declaration& operator=(const declaration&) = delete;

  /// Gives an axis its extent. Fails for an extent below 1, or one that contradicts a static or earlier extent.
  template <axis_type A>
  void set(size<A> extent) {
    if (extent.value < 1) fail("axis '", A::name, "' has extent ", extent.value, "; an extent is at least 1");
    if (A::extent != dynamic && A::extent != extent.value)
      fail("axis '", A::name, "' is declared with the static extent ", A::extent, " and cannot become ", extent.value);
    const auto [known, fresh] = extents_.try_emplace(std::string(A::name), extent.value);
    if (!fresh && known->second != extent.value)
      fail("axis '", A::name, "' already has extent ", known->second, " and cannot become ", extent.value);
  }
  template <axis_type A>
  std::int64_t extent() const {
    if (A::extent != dynamic) return A::extent;
    const auto known = extents_.find(std::string(A::name));
    if (known == extents_.end())
      fail("axis '", A::name, "' has no extent; pass mmr::size<...>(n) for it to the declaration before using it");
    return known->second;
  }

  /// A tensor that the host fills before each microbatch.
  template <class T, axis_type... A>
  tensor<T, A...> input(const std::string& name) {
    return {this, add_source({.name = name, .type = type<T, A...>(), .kind = tensor_class::input})};
  }

  /// A trained tensor. `stored` says where a checkpoint keeps it, where that is not a tensor of its own under its name.
  template <class T, axis_type... A>
  tensor<T, A...> parameter(const std::string& name, initial start, stored_as stored = {}) {
    static_assert(is_floating(dtype_of<T>), "mmr: parameters are floating point");
    tensor_info t{.name = name, .type = type<T, A...>(), .kind = tensor_class::parameter};
    t.start = start;
    t.stored = std::move(stored);
    if (t.stored.name.empty()) t.stored.name = name;
    t.stored.name = builder_.prefix + t.stored.name;
    t.decays = start.kind == initial::law::normal;
    return {this, add_source(std::move(t))};
  }

  /// While it lives, names start with "prefix.N." and what is declared is repetition N of the block `prefix`: the planner
  /// gives corresponding operators of all repetitions one strategy.
  class block {
   public:
    block(declaration& d, const std::string& name, int repetition) : d_(d), before_(d.builder_.prefix) {
      d.builder_.block = name;
      d.builder_.repetition = repetition;
      d.builder_.prefix += name + '.' + std::to_string(repetition) + '.';
    }
    ~block() {
      d_.builder_.block.clear();
      d_.builder_.repetition = 0;
      d_.builder_.prefix = before_;
    }
    block(const block&) = delete;
    block& operator=(const block&) = delete;

   private:
    declaration& d_;
    std::string before_;
  };

  /// Microbatches of a step: gradients and the loss are means over all of them. Set before the loss is declared.
  void set_microbatches(int n) {
    if (n < 1) fail("a step has ", n, " microbatches; it needs at least 1");
    builder_.g.microbatches = n;
  }
  int microbatches() const { return builder_.g.microbatches; }

  /// Lets plans choose, for the operators of repeated blocks, between keeping results for backward and making them again.
  void allow_recomputation() { recomputes_ = true; }

  /// Adds backward and update passes for the loss and gives the finished graph; the declaration is closed by it.
  template <class T, optimizer_rule Optimizer>
  graph training_step(scalar<T> loss, const Optimizer& optimizer) {
    open();
    closed_ = true;
    autodiff(builder_, optimizer).run(loss.id);
    return recomputes_ ? with_recomputation(builder_.g) : builder_.g;
  }

  /// The graph of a forward pass alone, which brings `result` to every rank; the declaration is closed by it. The result
  /// is the graph's `loss`.
  template <class T, class... A>
  graph inference(tensor<T, A...> result) {
    open();
    closed_ = true;
    builder_.g.loss = builder_.emit(op::report{}, {result.id})[0];
    builder_.g.tensor_of(builder_.g.loss).persistent = true;
    return builder_.g;
  }

  // ---- for operators -------------------------------------------------------------------------------------------
  template <class Op>
  std::vector<tensor_id> emit(const Op& op, const std::vector<tensor_id>& in) {
    open();
    return builder_.emit(op, in);
  }
  std::int64_t count(tensor_id t) const { return builder_.g.tensor_of(t).type.count(); }
  std::uint32_t next_stream() { return stream_++; }
  void check_axes(tensor_id t, const std::vector<std::string_view>& names, std::string_view op) const {
    const auto& dims = builder_.g.tensor_of(t).type.dims;
    if (!std::equal(dims.begin(), dims.end(), names.begin(), names.end(),
                    [](const dimension& d, std::string_view n) { return d.axis == n; }))
      fail("operator '", op, "': its typed function names other axes for a result than its signature gives");
  }

 private:
  template <class T, axis_type... A>
  tensor_type type() const {
    return {dtype_of<T>, {dimension{std::string(A::name), extent<A>(), A::splittable}...}};
  }
  tensor_id add_source(tensor_info t) {
    open();
    return builder_.source(std::move(t));
  }
  void open() const {
    if (closed_) fail("the declaration is closed: its training step has been built; declare a new one");
  }

  graph_builder builder_;
  std::map<std::string, std::int64_t> extents_;
  std::uint32_t stream_ = 1;
  bool closed_ = false, recomputes_ = false;
};

}  // namespace mmr
