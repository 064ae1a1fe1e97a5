// The typed handle that operators take and return. It owns nothing: it names a tensor of the declaration it came from.
#pragma once

#include <mmr/tensor/axis.hpp>
#include <mmr/tensor/dtype.hpp>

namespace mmr {

class declaration;

/// Index of a tensor in its graph.
using tensor_id = int;

/// A tensor of elements `T` over the named axes, slowest first: `tensor<float, Batch, Seq, Embed>`.
template <class T, axis_type... Axes>
struct tensor {
  static_assert(all_distinct<Axes...>, "mmr: an axis stands twice in one tensor; name the second one apart");
  using element = T;
  using axis_list = axes<Axes...>;

  declaration* owner = nullptr;
  tensor_id id = -1;
};

/// `tensor_over<float, axes<Batch, Seq>>` is `tensor<float, Batch, Seq>`.
template <class T, class List>
struct tensor_over_list;
template <class T, class... A>
struct tensor_over_list<T, axes<A...>> {
  using type = tensor<T, A...>;
};
template <class T, class List>
using tensor_over = typename tensor_over_list<T, List>::type;

/// A zero-dimensional tensor.
template <class T>
using scalar = tensor<T>;

namespace mistake {
// Instantiated only to be named by the compiler: the operator and the axis stand in the template arguments.
template <class Operator, class Axis, class... Operand>
inline constexpr bool operand_lacks_axis = false;
template <class Operator, class... Operands>
inline constexpr bool operands_mix_dtypes = false;
template <class Operator, class... Operands>
inline constexpr bool operands_have_different_axes = false;
template <class Operator, class Device>
inline constexpr bool operator_has_no_kernel_for_device = false;
}  // namespace mistake

/// Stops compilation unless the operand has the axis, naming operator and axis.
template <class Operator, class Axis, class Tensor>
consteval void require_axis() {
  if constexpr (!contains<typename Tensor::axis_list, Axis>)
    static_assert(mistake::operand_lacks_axis<Operator, Axis, Tensor>,
                  "mmr: operand_lacks_axis<operator, axis, operand>: this operator needs an axis that its operand lacks");
}

/// Stops compilation unless all operands have one element type, naming the operator.
template <class Operator, class First, class... Rest>
consteval void require_one_dtype() {
  if constexpr (!(std::same_as<typename First::element, typename Rest::element> && ...))
    static_assert(mistake::operands_mix_dtypes<Operator, First, Rest...>,
                  "mmr: operands_mix_dtypes<operator, operands...>: the operands of this operator differ in element type");
}

/// Stops compilation unless all operands have the same axes in the same order, naming the operator.
template <class Operator, class First, class... Rest>
consteval void require_same_axes() {
  if constexpr (!(std::same_as<typename First::axis_list, typename Rest::axis_list> && ...))
    static_assert(mistake::operands_have_different_axes<Operator, First, Rest...>,
                  "mmr: operands_have_different_axes<operator, operands...>: this operator needs operands over equal axes");
}

}  // namespace mmr
