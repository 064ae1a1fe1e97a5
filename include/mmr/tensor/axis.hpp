// Named axes. An axis is a type; its extent is static, or given to the declaration at run time, as in std::extents.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mmr {

/// Marks an extent that the declaration gives at run time.
inline constexpr std::int64_t dynamic = -1;

/// Whether a mesh may split an axis: `whole` keeps every element of the axis on each device that holds any.
enum class splitting : bool { whole, allowed };

/// A string literal as a template argument.
template <std::size_t N>
struct fixed_string {
  char text[N]{};
  // Implicit, so that axis<"batch"> reads as it should.
  constexpr fixed_string(const char (&literal)[N]) { std::copy_n(literal, N, text); }  // NOLINT
};

/// Base of every axis: `struct Batch : mmr::axis<"batch"> {};` or, with a static extent, `axis<"rgb", 3>`.
template <fixed_string Name, std::int64_t Extent = dynamic, splitting Split = splitting::allowed>
struct axis {
  static constexpr auto literal = Name;
  static constexpr std::string_view name{literal.text};
  static constexpr std::int64_t extent = Extent;
  static constexpr bool splittable = Split == splitting::allowed;
};

template <class A>
concept axis_type = requires {
  { A::name } -> std::convertible_to<std::string_view>;
  { A::extent } -> std::convertible_to<std::int64_t>;
  { A::splittable } -> std::convertible_to<bool>;
};

/// A run-time extent: `size<Batch>(8)`.
template <axis_type A>
struct size {
  std::int64_t value;
  explicit constexpr size(std::int64_t extent) : value(extent) {}
};

// ---- lists of axes ---------------------------------------------------------------------------------------------

template <axis_type... A>
struct axes {
  static constexpr std::size_t count = sizeof...(A);
};

/// Whether `A` is one of `In...`.
template <class A, class... In>
inline constexpr bool is_one_of = (std::same_as<A, In> || ...);

template <class List, class A>
inline constexpr bool contains = false;
template <class... In, class A>
inline constexpr bool contains<axes<In...>, A> = is_one_of<A, In...>;

template <class A, class B>
struct concat_axes;
template <class... A, class... B>
struct concat_axes<axes<A...>, axes<B...>> {
  using type = axes<A..., B...>;
};

/// The axes of `List` that are in `Other` (Keep = true) or are not (Keep = false), in their order.
template <bool Keep, class List, class Other>
struct filter_axes {
  using type = axes<>;
};
template <bool Keep, class First, class... Rest, class Other>
struct filter_axes<Keep, axes<First, Rest...>, Other> {
  using tail = typename filter_axes<Keep, axes<Rest...>, Other>::type;
  template <bool Take, class Tail>
  struct take {
    using type = typename concat_axes<axes<First>, Tail>::type;
  };
  template <class Tail>
  struct take<false, Tail> {
    using type = Tail;
  };
  using type = typename take<contains<Other, First> == Keep, tail>::type;
};
template <class List, class Other>
using common_axes = typename filter_axes<true, List, Other>::type;
template <class List, class Other>
using axes_without = typename filter_axes<false, List, Other>::type;

/// The first axis whose name stands twice in the list, or void. Axes are told apart by name: the graph knows no types.
template <class... A>
struct repeated_axis {
  using type = void;
};
template <class First, class... Rest>
struct repeated_axis<First, Rest...> {
  template <bool Here, class Axis, class... Others>
  struct pick {
    using type = Axis;
  };
  template <class Axis, class... Others>
  struct pick<false, Axis, Others...> : repeated_axis<Others...> {};
  using type = typename pick<((First::name == Rest::name) || ...), First, Rest...>::type;
};

/// The last axis of a list; void of an empty one.
template <class List>
struct last_axis {
  using type = void;
};
template <class Only>
struct last_axis<axes<Only>> {
  using type = Only;
};
template <class First, class... Rest>
struct last_axis<axes<First, Rest...>> : last_axis<axes<Rest...>> {};

}  // namespace mmr
