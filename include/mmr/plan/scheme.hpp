// The schemes that people use today, as restrictions of the one space: what the planner may still choose is chosen for
// least time, by the same program.
#pragma once

#include <mmr/plan/formulate.hpp>
#include <mmr/plan/scheme_axes.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace mmr {

/// Megatron-LM's with "-zero1" are those with its distributed optimizer: the update is split over data parallelism too.
inline constexpr std::array<std::string_view, 9> scheme_names = {
    "single", "ddp", "zero1", "zero2", "zero3", "megatron", "megatron-zero1", "megatron-sp", "megatron-sp-zero1"};

/// "single, ddp, ... and megatron-sp-zero1", for messages.
inline std::string scheme_list() {
  std::string text;
  for (const auto& name : scheme_names)
    text += (text.empty() ? "" : name == scheme_names.back() ? " and " : ", ") + std::string(name);
  return text;
}

namespace detail {

enum class role { parameter, gradient, update, other };

inline role role_of(const op_info& op, const graph& g) {
  if (op.when == phase::source)
    return g.tensor_of(op.out[0]).kind == tensor_class::parameter ? role::parameter : role::other;
  if (op.writes_back >= 0) return role::update;
  if (!op.out.empty() && g.tensor_of(op.out[0]).kind == tensor_class::gradient && op.rules->name() == "gradient")
    return role::gradient;
  return role::other;
}

/// The first loop among `names` that may be split, or unsplit.
inline axis_choice loop_named(const op_info& op, const std::vector<std::string>& names) {
  for (const auto& name : names)
    for (std::size_t l = 0; l < op.loops.loops.size(); ++l) {
      const auto& loop = op.loops.loops[l];
      if (loop.axis == name && loop.splittable && loop.extent > 1) return static_cast<axis_choice>(l);
    }
  return unsplit;
}

/// Splits over parameter-shaped operators: ZeRO splits a state along whichever axis it likes.
inline bool is_split(const op_info& op, axis_choice c) {
  bool splittable = false;
  for (const auto& l : op.loops.loops) splittable = splittable || (l.splittable && l.extent > 1);
  return c >= 0 || !splittable;
}

/// ZeRO-`stage` (Rajbhandari et al., arXiv 1910.02054) along one mesh axis; stage 0 is plain data parallelism.
inline bool zero_allows(int stage, role r, const op_info& op, axis_choice c, const scheme_axes& axes) {
  switch (r) {
    case role::parameter: return stage >= 3 ? is_split(op, c) : c == unsplit;
    case role::update: return stage >= 1 ? is_split(op, c) : c == unsplit;
    // Unsharded gradients may be summed over microbatches before they are reduced.
    case role::gradient: return stage >= 2 ? is_split(op, c) : c == unsplit || c == pass_partial;
    case role::other: break;
  }
  const auto batch = loop_named(op, {axes.batch});
  // Operators on parameter-shaped tensors (sums of gradients, norms) follow the tensors that they work on.
  if (batch == unsplit) return true;
  return c == batch;
}

/// Megatron-LM's tensor parallelism (Shoeybi et al., arXiv 1909.08053), with sequence parallelism where `sequence` is set
/// (Korthikanti et al., arXiv 2205.05198).
inline bool megatron_allows(bool sequence, role r, const op_info& op, axis_choice c, const scheme_axes& axes) {
  const auto tensor = loop_named(op, axes.tensor);
  if (tensor != unsplit) return c == tensor;
  if (r != role::other) return c == unsplit || (r == role::gradient && c == pass_partial);
  const auto seq = loop_named(op, axes.sequence);
  if (loop_named(op, {axes.batch}) == unsplit && seq == unsplit) return true;
  return sequence && seq != unsplit ? c == seq : c == unsplit;
}

}  // namespace detail

inline bool is_megatron(std::string_view scheme) { return scheme.starts_with("megatron"); }

/// The stage of ZeRO that a scheme runs along the mesh axes of data parallelism; 0: none.
inline int zero_stage(std::string_view scheme) {
  const auto at = scheme.find("zero");
  return at == std::string_view::npos ? 0 : scheme[at + 4] - '0';
}

/// The mesh axis of Megatron-LM's tensor parallelism: "model", or the last one where none has that name. The other axes
/// carry data parallelism.
inline int model_axis(const mesh& m) { return m.find("model") >= 0 ? m.find("model") : m.count() - 1; }

/// The restriction of a scheme on a mesh. The schemes keep what backward reads; with `recomputes`, they may make it again.
inline restriction scheme_restriction(std::string_view name, const graph& g, const mesh& m, const scheme_axes& axes,
                                      bool recomputes = false) {
  if (std::find(scheme_names.begin(), scheme_names.end(), name) == scheme_names.end())
    fail("'", name, "' is no plan; the fixed ones are ", scheme_list());
  const bool megatron = is_megatron(name);
  if (megatron && axes.tensor.empty()) fail("the plan '", name, "' needs to know the tensor axes of the model: set scheme_axes::tensor");
  const int model = megatron ? model_axis(m) : -1;
  const bool sequence = name.find("-sp") != std::string_view::npos, single = name == "single";
  const int stage = zero_stage(name);
  return [=, &g, count = m.count()](op_id, const op_info& op, const strategy& s) {
    if (op.again >= 0 && !(recomputes && s.runs())) return !s.runs();
    const auto r = detail::role_of(op, g);
    for (int a = 0; a < count; ++a) {
      if (m.axis(a).size == 1) continue;
      if (single       ? s[a] != unsplit
          : a == model ? !detail::megatron_allows(sequence, r, op, s[a], axes)
                       : !detail::zero_allows(stage, r, op, s[a], axes))
        return false;
    }
    return true;
  };
}

}  // namespace mmr
