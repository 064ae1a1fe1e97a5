// Turns an operator's type into a vertex of the graph: the one place where types end.
#pragma once

#include <mmr/graph/graph.hpp>

#include <map>
#include <optional>

namespace mmr {

/// Gives an operator's vjp rule its operands, results and their gradients, and takes new operators and gradients.
class vjp_context {
 public:
  vjp_context(class graph_builder& builder, const op_info& op, std::vector<tensor_id> out_grads)
      : builder_(builder), op_(op), out_grads_(std::move(out_grads)) {}

  tensor_id in(std::size_t i) const { return op_.in[i]; }
  tensor_id out(std::size_t r) const { return op_.out[r]; }
  std::size_t in_count() const { return op_.in.size(); }
  std::size_t out_count() const { return op_.out.size(); }
  /// Gradient of the loss with respect to result r, or -1 where nothing depends on it.
  tensor_id grad(std::size_t r = 0) const { return out_grads_[r]; }
  /// Whether anything trainable stands behind a tensor.
  bool needs(tensor_id t) const;
  bool needs_in(std::size_t i) const { return needs(in(i)); }
  const tensor_type& type(tensor_id t) const;
  /// Adds an operator of the backward pass; returns its results.
  template <class Op>
  std::vector<tensor_id> emit(const Op& op, const std::vector<tensor_id>& in);
  /// Adds `g` to the gradient of tensor `t`.
  void add_grad(tensor_id t, tensor_id g);

 private:
  graph_builder& builder_;
  const op_info& op_;
  std::vector<tensor_id> out_grads_;
};

template <class Op>
class op_model final : public op_rules {
 public:
  explicit op_model(Op op) : op_(std::move(op)) {}
  std::string_view name() const override { return Op::name; }
  double flops(std::span<const std::int64_t> sizes) const override { return op_.flops(sizes); }
  bool matrix() const override {
    if constexpr (requires { Op::matrix; }) return Op::matrix;
    return false;
  }
  std::int64_t workspace(dtype element, const signature& shape, std::span<const loop_range> ranges) const override {
    // A hook that is there but takes other arguments must not compile, rather than count as absent.
    if constexpr (requires { &kernel<cpu_device, Op>::template workspace<float>; })
      return element == dtype::f64 ? kernel<cpu_device, Op>::template workspace<double>(op_, shape, ranges)
                                   : kernel<cpu_device, Op>::template workspace<float>(op_, shape, ranges);
    else
      return 0;
  }
  void run(dtype element, const kernel_args& args) const override {
    if (element == dtype::f64)
      kernel<cpu_device, Op>::template run<double>(op_, args);
    else
      kernel<cpu_device, Op>::template run<float>(op_, args);
  }
  void vjp(vjp_context& context) const override {
    if constexpr (requires { op_.vjp(context); })
      op_.vjp(context);
    else
      fail("operator '", Op::name, "' has no vjp rule, so nothing behind it can be trained; give it a member vjp");
  }

 private:
  Op op_;
};

/// One named static_assert for each member that an operator's type must have.
template <class Op>
consteval void check_operator() {
  if constexpr (!requires { std::string_view{Op::name}; })
    static_assert(mistake::operator_lacks_name<Op>,
                  "mmr: operator_lacks_name<operator>: give it `static constexpr std::string_view name`");
  if constexpr (!requires(const Op& op, const std::vector<tensor_type>& in) {
                  { op.sign(in) } -> std::same_as<signature>;
                })
    static_assert(mistake::operator_lacks_sign<Op>,
                  "mmr: operator_lacks_sign<operator>: give it `signature sign(const std::vector<tensor_type>&) const`, its "
                  "loops, operands and results");
  if constexpr (!requires(const Op& op, std::span<const std::int64_t> sizes) {
                  { op.flops(sizes) } -> std::convertible_to<double>;
                })
    static_assert(mistake::operator_lacks_flops<Op>,
                  "mmr: operator_lacks_flops<operator>: give it `double flops(std::span<const std::int64_t> loop_sizes) const`");
  if constexpr (!has_kernel<cpu_device, Op>)
    static_assert(mistake::operator_has_no_kernel_for_device<Op, cpu_device>,
                  "mmr: operator_has_no_kernel_for_device<operator, device>: specialise mmr::kernel<device, operator>");
}

/// Builds the graph: knows the block and phase in which operators are being added.
class graph_builder {
 public:
  graph g;

  /// Adds an operator on plain tensors and returns its results.
  template <class Op>
  std::vector<tensor_id> emit(const Op& op, const std::vector<tensor_id>& in) {
    check_operator<Op>();
    std::vector<tensor_type> types;
    for (auto t : in) types.push_back(g.tensor_of(t).type);
    op_info info;
    info.rules = std::make_shared<op_model<Op>>(op);
    info.loops = op.sign(types);
    if (info.loops.in.size() != in.size())
      fail("operator '", Op::name, "' states ", info.loops.in.size(), " operands and was given ", in.size());
    info.loops.reuse.resize(info.loops.out.size(), -1);
    info.in = in;
    return add(std::move(info), Op::name);
  }

  /// Adds a tensor that is there before the step: a parameter or an input.
  tensor_id source(tensor_info t) {
    check_size(t.name, t.type);
    op_info info;
    info.when = phase::source;
    access a{t.type.element, {}};
    for (const auto& d : t.type.dims) a.loops.push_back(info.loops.add_loop(d));
    info.loops.out = {a};
    info.loops.reuse = {-1};
    info.element = t.type.element;
    info.where = position(t.name);
    t.name = prefix + t.name;
    for (tensor_id o = 0; o < g.tensors(); ++o)
      if (g.tensor_of(o).persistent && g.tensor_of(o).name == t.name)
        fail("two tensors are named '", t.name, "'; give each its own name");
    info.name = t.name;
    t.persistent = true;
    t.forward = true;
    const auto id = g.add_tensor(std::move(t));
    info.out = {id};
    g.add_op(std::move(info));
    trainable_.push_back(g.tensor_of(id).kind == tensor_class::parameter);
    return id;
  }

  bool trainable(tensor_id t) const { return trainable_[static_cast<std::size_t>(t)]; }

  // Where operators added now belong.
  phase when = phase::microbatch;
  bool forward = true;
  std::string block;        // name of the repeated block, or empty
  int repetition = 0;
  std::string prefix;       // of names
  std::string origin;       // the forward operator or parameter that backward and update operators serve
  tensor_class makes = tensor_class::activation;

 private:
  /// Byte counts must add up without overflow, so a tensor has at most 2^46 elements.
  static void check_size(const std::string& name, const tensor_type& t) {
    double elements = 1;
    for (const auto& d : t.dims) elements *= static_cast<double>(d.extent);
    if (elements > 0x1p46) fail("tensor '", name, "' would have ", elements, " elements; a tensor has at most 2^46: make the model smaller");
  }

  block_position position(const std::string& what) {
    // Positions count within one repetition, so that equal repetitions get equal positions.
    auto& n = counts_[block + '#' + std::to_string(repetition) + '|' + origin + '|' + what];
    return {block, repetition, origin + '|' + what + '#' + std::to_string(n++)};
  }

  // That a loop must stay whole is the operator's affair: whether its result may be split is the axis's, as operands say.
  tensor_type made_type(const op_info& info, const access& a) const {
    auto type = info.loops.type_of(a);
    for (auto& made : type.dims)
      for (auto t : info.in)
        for (const auto& known : g.tensor_of(t).type.dims)
          if (known.axis == made.axis) made.splittable = known.splittable;
    return type;
  }

  std::vector<tensor_id> add(op_info info, std::string_view name) {
    info.when = when;
    info.where = position(std::string(name));
    info.name = prefix + std::string(name);
    std::optional<dtype> element;
    for (const auto* group : {&info.loops.out, &info.loops.in})
      for (const auto& a : *group)
        if (is_floating(a.element) && !element) element = a.element;
    info.element = element.value_or(dtype::f32);
    for (const auto& out : info.loops.out) check_size(info.name, info.loops.type_of(out));
    bool trains = false;
    for (auto t : info.in) trains = trains || trainable(t);
    for (std::size_t r = 0; r < info.loops.out.size(); ++r) {
      info.out.push_back(g.add_tensor({.name = info.name + (r ? "." + std::to_string(r) : ""),
                                       .type = made_type(info, info.loops.out[r]),
                                       .kind = makes,
                                       .forward = forward}));
      trainable_.push_back(trains && forward);
    }
    for (std::size_t s = 0; s < info.loops.state.size(); ++s) {
      info.state.push_back(g.add_tensor({.name = prefix + "state." + std::to_string(s),
                                         .type = made_type(info, info.loops.state[s]),
                                         .kind = tensor_class::optimizer,
                                         .persistent = true}));
      trainable_.push_back(false);
    }
    const auto id = g.add_op(std::move(info));
    return g.op(id).out;
  }

  std::vector<bool> trainable_;  // by tensor: a parameter stands behind it
  std::map<std::string, int> counts_;

 public:
  std::map<tensor_id, std::vector<tensor_id>> grads;  // contributions so far, during autodiff
};

inline bool vjp_context::needs(tensor_id t) const { return builder_.trainable(t); }
inline const tensor_type& vjp_context::type(tensor_id t) const { return builder_.g.tensor_of(t).type; }
inline void vjp_context::add_grad(tensor_id t, tensor_id g) {
  if (needs(t)) builder_.grads[t].push_back(g);
}
template <class Op>
std::vector<tensor_id> vjp_context::emit(const Op& op, const std::vector<tensor_id>& in) {
  return builder_.emit(op, in);
}

}  // namespace mmr
