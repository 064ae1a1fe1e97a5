// Mean over one axis, as a contraction with equal weights: it may be split like any other, and needs no kernel.
#pragma once

#include <mmr/op/contract.hpp>
#include <mmr/op/gradient.hpp>

namespace mmr {
namespace op {
/// Names the typed function `mean` in messages.
struct mean;
}  // namespace op

/// Mean of x over the axis `Over`, wherever it stands: the result has the other axes.
template <axis_type Over, class T, class... A>
auto mean(tensor<T, A...> x) {
  require_axis<op::mean, Over, tensor<T, A...>>();
  auto* const owner = x.owner;
  if (!owner) fail("operator 'mean' was given a tensor that no declaration made");
  const auto n = owner->template extent<Over>();
  const tensor_type weights{dtype_of<T>, {{std::string(Over::name), n, Over::splittable}}};
  const auto equal = owner->emit(op::constant{1 / static_cast<double>(n), weights}, {});
  return contract<Over>(x, tensor<T, Over>{owner, equal[0]});
}

}  // namespace mmr
