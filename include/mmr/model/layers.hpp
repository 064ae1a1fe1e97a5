// What ready models share: linear layers and norms as PyTorch and Hugging Face store them, and checks of
// configurations.
#pragma once

#include <cstdint>
#include <mmr/declare.hpp>
#include <string>

namespace mmr::model {

/// Stops with one sentence unless 1 <= n <= most.
inline void check_extent(const char* model, const char* what, std::int64_t n, std::int64_t most = 1'000'000'000) {
  if (n < 1) fail(model, ": ", what, " is ", n, "; give at least 1");
  if (n > most) fail(model, ": ", what, " is ", n, "; give at most ", most);
}

/// Stops unless the probability is in [0, 1).
inline void check_dropout(const char* model, double p) {
  if (!(p >= 0 && p < 1)) fail(model, ": the dropout is ", p, "; it must be in [0, 1)");
}

/// Stops unless the hidden size falls into whole heads.
inline void check_heads(const char* model, std::int64_t embed, std::int64_t heads) {
  if (embed % heads != 0)
    fail(model, ": the hidden size ", embed, " is not a multiple of the ", heads, " heads; change one of them");
}

/// A tensor from `In...` to `Out...`, stored in checkpoints as torch.nn.Linear does: "name.weight", [out, in].
template <class T, class... Out, class... In>
tensor<T, Out..., In...> weight(declaration& m, const std::string& name, axes<Out...>, axes<In...>,
                                initial start = init::normal(0.02)) {
  return m.parameter<T, Out..., In...>(name + ".weight", start,
                                       {.name = name + ".weight", .rows = static_cast<int>(sizeof...(Out))});
}

/// "name.bias", over the axes that a linear layer gives.
template <class T, class... Out>
tensor<T, Out...> offset(declaration& m, const std::string& name, axes<Out...>) {
  return m.parameter<T, Out...>(name + ".bias", init::zeros(), {.name = name + ".bias", .rows = 0});
}

/// Weight and bias of a linear layer.
template <class T, class Out, class In>
struct dense {
  decltype(weight<T>(std::declval<declaration&>(), "", Out{}, In{})) w;
  tensor_over<T, Out> b;
  dense(declaration& m, const std::string& name) : w(weight<T>(m, name, Out{}, In{})), b(offset<T>(m, name, Out{})) {}
};

/// Layer normalisation over `Over`, the last axis of x, with parameters "name.weight" and "name.bias".
template <class Over, class T, class... A>
tensor<T, A...> normalised(declaration& m, const std::string& name, tensor<T, A...> x, double epsilon) {
  const auto gain = m.parameter<T, Over>(name + ".weight", init::ones());
  return layer_norm<Over>(x, gain, m.parameter<T, Over>(name + ".bias", init::zeros()), epsilon);
}

}  // namespace mmr::model
