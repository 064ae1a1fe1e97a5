// The typed handle that operators take and return. It owns nothing: it names a tensor of the declaration it came from.
#pragma once

#include <mmr/tensor/axis.hpp>
#include <mmr/tensor/dtype.hpp>

namespace mmr {

class declaration;

/// Index of a tensor in its graph.
using tensor_id = int;

namespace mistake {
// Instantiated only to be named by the compiler: the operator and the axis stand in the template arguments.
template <class Axis, class... Axes>
inline constexpr bool axis_stands_twice = false;
template <class Operator, class Axis, class... Operand>
inline constexpr bool operand_lacks_axis = false;
template <class Operator, class Axis, class Operand>
inline constexpr bool operand_must_end_with_axis = false;
template <class Operator, class Axis, class Operand>
inline constexpr bool operand_misplaces_axis = false;
template <class Operator, class Element, class Operand>
inline constexpr bool operand_must_have_dtype = false;
template <class Operator, class... Operands>
inline constexpr bool operands_mix_dtypes = false;
template <class Operator, class... Operands>
inline constexpr bool operands_have_different_axes = false;
template <class Operator>
inline constexpr bool operator_lacks_name = false;
template <class Operator>
inline constexpr bool operator_lacks_sign = false;
template <class Operator>
inline constexpr bool operator_lacks_flops = false;
template <class Operator, class Device>
inline constexpr bool operator_has_no_kernel_for_device = false;
}  // namespace mistake

namespace detail {
/// Stops compilation where two of the axes have one name, naming the axis.
template <axis_type... Axes>
consteval bool axes_are_distinct() {
  using twice = typename repeated_axis<Axes...>::type;
  if constexpr (!std::same_as<twice, void>)
    static_assert(mistake::axis_stands_twice<twice, Axes...>,
                  "mmr: axis_stands_twice<axis, axes...>: an axis stands twice in one tensor; give one of them another name");
  return true;
}
}  // namespace detail

/// A tensor of elements `T` over the named axes, slowest first: `tensor<float, Batch, Seq, Embed>`.
template <class T, axis_type... Axes>
struct tensor {
  static_assert(detail::axes_are_distinct<Axes...>());
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

/// Stops compilation unless the axis is the operand's last one, naming operator and axis.
template <class Operator, class Axis, class Tensor>
consteval void require_last_axis() {
  if constexpr (!contains<typename Tensor::axis_list, Axis>)
    require_axis<Operator, Axis, Tensor>();
  else if constexpr (!std::same_as<typename last_axis<typename Tensor::axis_list>::type, Axis>)
    static_assert(mistake::operand_must_end_with_axis<Operator, Axis, Tensor>,
                  "mmr: operand_must_end_with_axis<operator, axis, operand>: this operator runs over the last axis of its operand");
}

/// Stops compilation unless the operand has the element type, naming operator and type.
template <class Operator, class Element, class Tensor>
consteval void require_dtype() {
  if constexpr (!std::same_as<typename Tensor::element, Element>)
    static_assert(mistake::operand_must_have_dtype<Operator, Element, Tensor>,
                  "mmr: operand_must_have_dtype<operator, element, operand>: this operator takes another element type there");
}

namespace detail {
template <class Operator, class Tensor, class... A>
consteval void require_axes(axes<A...>) {
  (require_axis<Operator, A, Tensor>(), ...);
}
template <class Operator, class First, class Other>
consteval void require_equal_axes() {
  using one = typename First::axis_list;
  using two = typename Other::axis_list;
  if constexpr (axes_without<one, two>::count + axes_without<two, one>::count > 0) {
    require_axes<Operator, Other>(one{});
    require_axes<Operator, First>(two{});
  } else if constexpr (!std::same_as<one, two>) {
    static_assert(mistake::operands_have_different_axes<Operator, First, Other>,
                  "mmr: operands_have_different_axes<operator, operands...>: this operator needs its operands' axes in one order");
  }
}
}  // namespace detail

/// Stops compilation unless all operands have the same axes in the same order, naming operator and axis.
template <class Operator, class First, class... Rest>
consteval void require_same_axes() {
  (detail::require_equal_axes<Operator, First, Rest>(), ...);
}

}  // namespace mmr
