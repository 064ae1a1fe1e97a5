// Mean squared error, from a difference and a contraction.
#pragma once

#include <mmr/op/add.hpp>
#include <mmr/op/contract.hpp>

namespace mmr {
namespace op {
/// Names the typed function `mean_squared_error` in messages.
struct mean_squared_error;
}  // namespace op

/// Mean over all elements (and over the microbatches of a step) of (y - target)^2.
template <class T, class... A, class U, class... B>
scalar<T> mean_squared_error(tensor<T, A...> y, tensor<U, B...> target) {
  require_one_dtype<op::mean_squared_error, tensor<T, A...>, tensor<U, B...>>();
  require_same_axes<op::mean_squared_error, tensor<T, A...>, tensor<U, B...>>();
  const auto e = y - target;
  const double count = static_cast<double>(y.owner->count(y.id) * y.owner->microbatches());
  return scale(contract<A...>(e, e), 1 / count);
}

}  // namespace mmr
