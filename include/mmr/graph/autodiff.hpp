// Backward and update passes: walks the forward operators in reverse, applies their vjp rules, and hands each parameter's
// gradient to its update as soon as it is complete, unless accumulation or the global norm needs it later.
#pragma once

#include <mmr/graph/emit.hpp>
#include <mmr/op/add.hpp>
#include <mmr/op/gradient.hpp>
#include <mmr/op/optimizer.hpp>

#include <concepts>

namespace mmr {

/// How parameters are updated: `clip_norm`, the global gradient norm above which gradients are scaled down (0: never), and
/// `update`, which adds the update operator for a gradient, a parameter and the clip scale (-1: none) and returns its results.
template <class Rule>
concept optimizer_rule = requires(const Rule& rule, graph_builder& b, tensor_id t) {
  { rule.clip_norm } -> std::convertible_to<double>;
  { rule.update(b, t, t, t) } -> std::same_as<std::vector<tensor_id>>;
};

/// Builder is graph_builder: a parameter, so that kernels are looked for where a model is closed and not here.
template <class Builder, optimizer_rule Rule>
class autodiff {
 public:
  autodiff(Builder& b, const Rule& rule) : b_(b), rule_(rule) {}

  /// Completes the graph of a training step that minimises the scalar `loss`.
  void run(tensor_id loss) {
    if (!b_.trainable(loss)) fail("the loss does not depend on any parameter, so there is nothing to train");
    const int forward_ops = b_.g.ops();
    for (op_id o = 0; o < forward_ops; ++o)
      for (auto t : b_.g.op(o).in) ++pending_[t];
    b_.forward = false;
    b_.block.clear(), b_.prefix.clear();
    // The loss is summed over microbatches like a gradient.
    b_.origin = "loss";
    const auto total = b_.emit(op::accumulate{b_.g.microbatches}, {loss})[0];
    mark_accumulator(total);
    b_.g.tensor_of(total).kind = tensor_class::activation;
    // Every rank sees the loss before anything is updated, so that all of them stop alike when it is not finite.
    b_.g.loss = b_.emit(op::report{}, {total})[0];
    b_.g.tensor_of(b_.g.loss).persistent = true;
    b_.grads[loss] = b_.emit(op::constant{1.0, b_.g.tensor_of(loss).type}, {});
    for (op_id o = forward_ops - 1; o >= 0; --o) back(o);
    b_.when = phase::update;
    if (rule_.clip_norm > 0 && !waiting_.empty()) clip();  // there may be no gradient at all
    for (const auto& [parameter, gradient] : waiting_) update(parameter, gradient);
  }

 private:
  // Operators added from here on serve the forward operator `info`.
  void enter(const op_info& info, const std::string& purpose) {
    b_.block = info.where.block;
    b_.repetition = info.where.repetition;
    b_.origin = info.where.position + purpose;
    b_.prefix = info.name + ".grad/";
    b_.makes = tensor_class::activation;
    b_.when = phase::microbatch;
  }

  // The sum of the contributions to a tensor's gradient, or -1.
  tensor_id summed(tensor_id t) {
    auto found = b_.grads.find(t);
    if (found == b_.grads.end() || found->second.empty()) return -1;
    auto parts = found->second;
    auto sum = parts[0];
    for (std::size_t i = 1; i < parts.size(); ++i) sum = b_.emit(op::add{}, {sum, parts[i]})[0];
    b_.grads[t] = {sum};
    return sum;
  }

  void back(op_id o) {
    const op_info info = b_.g.op(o);  // a copy: the graph grows below
    if (info.when == phase::source) return;
    enter(info, ">");
    std::vector<tensor_id> out_grads;
    bool any = false;
    for (auto t : info.out) {
      out_grads.push_back(b_.trainable(t) ? summed(t) : -1);
      any = any || out_grads.back() >= 0;
    }
    if (any) {
      vjp_context context(b_, info, out_grads);
      info.rules->vjp(context);
    }
    for (auto t : info.in)
      if (--pending_[t] == 0 && b_.g.tensor_of(t).kind == tensor_class::parameter) complete(t);
  }

  void mark_accumulator(tensor_id t) {
    b_.g.tensor_of(t).kind = tensor_class::gradient;
    b_.g.op(b_.g.tensor_of(t).producer).accumulates = b_.g.microbatches > 1;
  }

  // As the rule says; if it does not, in float where the parameter's own type is too coarse to add in.
  dtype kept_type(tensor_id parameter) const {
    const auto own = b_.g.tensor_of(parameter).type.element;
    if constexpr (requires { rule_.gradients; })
      if (rule_.gradients) return *rule_.gradients;
    return own == dtype::bf16 ? dtype::f32 : own;
  }

  void complete(tensor_id parameter) {
    const op_info source = b_.g.op(b_.g.tensor_of(parameter).producer);
    enter(source, ">");
    b_.prefix = source.name + ".";
    const auto sum = summed(parameter);
    if (sum < 0) return;
    b_.makes = tensor_class::gradient;
    const auto gradient = b_.emit(op::accumulate{b_.g.microbatches, kept_type(parameter)}, {sum})[0];
    mark_accumulator(gradient);
    if (rule_.clip_norm > 0 || b_.g.microbatches > 1)
      waiting_.emplace_back(parameter, gradient);
    else
      update(parameter, gradient);
  }

  void clip() {
    std::vector<tensor_id> squares;
    for (auto& [parameter, gradient] : waiting_) {
      const op_info source = b_.g.op(b_.g.tensor_of(parameter).producer);
      enter(source, ">norm");
      b_.when = phase::update;
      b_.prefix = source.name + ".";
      // Sums of partial gradients are reduced once, for the norm and the update both.
      b_.makes = tensor_class::gradient;
      if (b_.g.microbatches > 1) gradient = b_.emit(op::accumulate{1}, {gradient})[0];
      b_.makes = tensor_class::activation;
      squares.push_back(b_.emit(op::sum_squares{}, {gradient})[0]);
    }
    b_.block.clear(), b_.prefix.clear(), b_.origin = "clip";
    const auto total = b_.emit(op::sum_of{}, squares)[0];
    scale_ = b_.emit(op::clip_scale{rule_.clip_norm}, {total})[0];
  }

  void update(tensor_id parameter, tensor_id gradient) {
    const op_info source = b_.g.op(b_.g.tensor_of(parameter).producer);
    enter(source, ">");
    b_.prefix = source.name + ".";
    b_.when = phase::update;
    b_.makes = tensor_class::parameter;
    const auto fresh = rule_.update(b_, gradient, parameter, scale_)[0];
    b_.g.op(b_.g.tensor_of(fresh).producer).writes_back = parameter;
  }

  Builder& b_;
  const Rule& rule_;
  std::map<tensor_id, int> pending_;  // forward consumers whose vjp has not run
  std::vector<std::pair<tensor_id, tensor_id>> waiting_;
  tensor_id scale_ = -1;
};

}  // namespace mmr
