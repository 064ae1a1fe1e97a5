// The joint graph of a training step: operators are vertices of a Boost graph, tensors run along its edges.
// Plain data from here on: the types of the declaration are gone.
#pragma once

#include <mmr/op/kernel.hpp>
#include <mmr/op/signature.hpp>
#include <mmr/tensor/tensor.hpp>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/topological_sort.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mmr {

/// Index of an operator: its vertex, and its place in the schedule.
using op_id = int;

/// When an operator runs: `source` never (its result is there before the step), `microbatch` once a microbatch,
/// `update` once a step.
enum class phase : std::uint8_t { source, microbatch, update };

/// What a tensor is to the person who asks where the bytes go.
enum class tensor_class : std::uint8_t { input, parameter, gradient, optimizer, activation };

constexpr std::string_view name_of(tensor_class c) {
  constexpr std::string_view names[] = {"input", "parameter", "gradient", "optimizer", "activation"};
  return names[static_cast<std::size_t>(c)];
}

/// How a parameter begins.
struct initial {
  enum class law : std::uint8_t { zero, one, normal } kind = law::zero;
  double deviation = 0;  ///< of the normal law
};
namespace init {
inline initial zeros() { return {initial::law::zero, 0}; }
inline initial ones() { return {initial::law::one, 0}; }
inline initial normal(double deviation) { return {initial::law::normal, deviation}; }
}  // namespace init

/// Where a parameter lies in a checkpoint. With `rows` >= 0 the first `rows` dimensions are stored as one (none for 0) and
/// the others as one, of which this parameter is part `part` of `parts` side by side; otherwise it is stored as it is.
struct stored_as {
  std::string name;
  int rows = -1, part = 0, parts = 1;
  bool may_be_longer = false;  ///< the file may hold more along the first dimension (positions), which is left unread
};

struct tensor_info {
  std::string name;
  tensor_type type;
  tensor_class kind = tensor_class::activation;
  op_id producer = -1;
  int result = 0;            ///< which result (or state) of the producer
  bool forward = false;      ///< made before the loss
  bool persistent = false;   ///< lives from step to step
  initial start{};           ///< parameters only
  stored_as stored{};        ///< parameters only
  bool decays = false;       ///< whether weight decay applies
};

/// What the rest of the library sees of an operator's type.
class op_rules {
 public:
  virtual ~op_rules() = default;
  virtual std::string_view name() const = 0;
  /// Floating point operations over the given local loop sizes.
  virtual double flops(std::span<const std::int64_t> sizes) const = 0;
  /// Whether its flops run at the device's matrix rate.
  virtual bool matrix() const = 0;
  /// Bytes of workspace the CPU kernel needs over the given ranges.
  virtual std::int64_t workspace(dtype element, const signature& shape, std::span<const loop_range> ranges) const = 0;
  virtual void run(dtype element, const kernel_args& args) const = 0;
  virtual void vjp(class vjp_context& context) const = 0;
};

/// Repeated structure: operators with the same block name and position in different repetitions are alike.
struct block_position {
  std::string block;     ///< empty outside any block
  int repetition = 0;
  std::string position;  ///< unique within one repetition
};

struct op_info {
  std::string name;
  std::shared_ptr<const op_rules> rules;  ///< null for sources
  signature loops;
  std::vector<tensor_id> in, out, state;
  phase when = phase::microbatch;
  dtype element = dtype::f32;             ///< floating type that picks the kernel
  block_position where;
  tensor_id writes_back = -1;             ///< parameter that result 0 replaces
  bool accumulates = false;               ///< result 0 is kept over all microbatches
  op_id again = -1;                       ///< operator whose results this one gives once more (see recompute.hpp)
  std::vector<bool> keepable{};           ///< of such an operator: results that may be those of the first run, kept
};

/// A tensor passing from one operator to another's operand.
struct tensor_edge {
  tensor_id tensor = -1;
  int operand = 0;
};

/// The DAG of a training step. Vertices are in schedule order: an operator comes after all that it reads.
class graph {
 public:
  using boost_graph =
      boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, op_info, tensor_edge>;

  int ops() const { return static_cast<int>(boost::num_vertices(dag_)); }
  int tensors() const { return static_cast<int>(tensors_.size()); }
  const op_info& op(op_id o) const { return dag_[static_cast<std::size_t>(o)]; }
  op_info& op(op_id o) { return dag_[static_cast<std::size_t>(o)]; }
  const tensor_info& tensor_of(tensor_id t) const { return tensors_[static_cast<std::size_t>(t)]; }
  tensor_info& tensor_of(tensor_id t) { return tensors_[static_cast<std::size_t>(t)]; }
  const boost_graph& dag() const { return dag_; }

  tensor_id add_tensor(tensor_info t) {
    tensors_.push_back(std::move(t));
    return tensors() - 1;
  }
  /// Adds an operator whose operands are there; makes it the producer of its results and states.
  op_id add_op(op_info info) {
    const auto in = info.in;
    const auto v = boost::add_vertex(std::move(info), dag_);
    const auto id = static_cast<op_id>(v);
    for (std::size_t i = 0; i < in.size(); ++i)
      boost::add_edge(static_cast<std::size_t>(tensor_of(in[i]).producer), v, tensor_edge{in[i], static_cast<int>(i)},
                      dag_);
    for (const auto* made : {&op(id).out, &op(id).state})
      for (std::size_t r = 0; r < made->size(); ++r) {
        tensor_of((*made)[r]).producer = id;
        tensor_of((*made)[r]).result = static_cast<int>(r);
      }
    return id;
  }

  /// Operators of the schedule (all but sources) in order.
  std::vector<op_id> schedule() const {
    std::vector<op_id> order;
    for (op_id o = 0; o < ops(); ++o)
      if (op(o).when != phase::source) order.push_back(o);
    return order;
  }
  /// Whether the order of the vertices is a topological order of the DAG.
  bool ordered() const {
    std::vector<boost_graph::vertex_descriptor> order;
    boost::topological_sort(dag_, std::back_inserter(order));  // throws boost::not_a_dag on a cycle
    for (auto [e, end] = boost::edges(dag_); e != end; ++e)
      if (boost::source(*e, dag_) >= boost::target(*e, dag_)) return false;
    return true;
  }

  int microbatches = 1;
  tensor_id loss = -1;  ///< the scalar that a step reports

 private:
  boost_graph dag_;
  std::vector<tensor_info> tensors_;
};

/// Whether a step leaves the choice between keeping results and making them again.
inline bool recomputes(const graph& g) {
  for (op_id o = 0; o < g.ops(); ++o)
    if (g.op(o).again >= 0) return true;
  return false;
}

}  // namespace mmr
