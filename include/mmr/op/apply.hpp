// How a typed function adds its operator: the last line of every operator's typed declaration.
#pragma once

#include <mmr/op/kernel.hpp>
#include <mmr/op/signature.hpp>
#include <mmr/tensor/tensor.hpp>

#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace mmr {

/// Product of the loop sizes.
inline double points(std::span<const std::int64_t> sizes) {
  double n = 1;
  for (auto s : sizes) n *= static_cast<double>(s);
  return n;
}

namespace detail {
template <class T, class... A>
constexpr std::vector<std::string_view> axis_names(const tensor<T, A...>*) {
  return {A::name...};
}
}  // namespace detail

/// Adds operator `op` on the given handles to their declaration and returns its results: one handle, or a tuple.
template <class... Results, class Op, class First, class... Rest>
auto apply(const Op& op, First first, Rest... rest) {
  auto* owner = first.owner;
  if (!owner) fail("operator '", Op::name, "' was given a tensor that no declaration made");
  (..., (rest.owner == owner ? void() : fail("operator '", Op::name, "' mixes tensors of two declarations")));
  const auto out = owner->emit(op, std::vector<tensor_id>{first.id, rest.id...});
  if (out.size() < sizeof...(Results))
    fail("operator '", Op::name, "' states ", out.size(), " results where its typed function names ", sizeof...(Results));
  std::size_t r = 0;
  (owner->check_axes(out[r++], detail::axis_names(static_cast<const Results*>(nullptr)), Op::name), ...);
  r = 0;
  std::tuple<Results...> handles{Results{owner, out[r++]}...};
  if constexpr (sizeof...(Results) == 1)
    return std::get<0>(handles);
  else
    return handles;
}

}  // namespace mmr
