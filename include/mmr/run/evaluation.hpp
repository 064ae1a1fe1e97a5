// Runs a forward pass on the weights of a model in training, on the same ranks.
#pragma once

#include <mmr/plan/planner.hpp>
#include <mmr/run/executor.hpp>
#include <mmr/run/share_plan.hpp>

#include <cstring>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mmr {

/// A forward graph beside a training run. Its parameters are those of equal names in training; they stay on the ranks that
/// hold them there, and the rest is planned for least time. Its inputs may have other extents (another batch).
///
///   mmr::declaration m{...};
///   const auto forward = m.inference(logits(m));
///   mmr::evaluation test(forward, trainer.run());
///   const std::span<const float> all = test.result<float>(fill);
template <communicator C>
class evaluation {
 public:
  /// Both must outlive it; all ranks construct it together. Fails where a parameter is not there in training, or has
  /// another type.
  evaluation(const graph& forward, executor<C>& trained)
      : g_(forward), trained_(trained), pairs_(pair_up(forward, trained)),
        run_(forward, trained.where().m, plan_beside(forward, trained, pairs_), trained.world()) {}

  /// Runs the forward pass on the weights as they are now. The result is whole on every rank, dense and row-major over the
  /// axes of what was given to `declaration::inference`; it stays until the next call.
  template <class T>
  std::span<const T> result(const input_filler& fill) {
    const auto& type = g_.tensor_of(g_.loss).type;
    if (type.element != dtype_of<T>)
      fail("the result of this forward pass is ", name_of(type.element), " and was asked for as ", name_of(dtype_of<T>));
    for (const auto& [mine, theirs] : pairs_) {
      const auto& s = run_.where();
      const auto bytes = s.bytes(mine, run_.place(mine), run_.rank());
      std::memcpy(run_.data(mine), trained_.data(theirs), static_cast<std::size_t>(bytes));
    }
    run_.step({}, fill);
    return {static_cast<const T*>(run_.data(g_.loss)), static_cast<std::size_t>(type.count())};
  }

 private:
  using pairs = std::vector<std::pair<tensor_id, tensor_id>>;  // parameter of the forward graph, and of training

  static pairs pair_up(const graph& forward, executor<C>& trained) {
    const graph& training = trained.where().g;
    std::map<std::string, tensor_id> known;
    for (auto t : parameters_of(training)) known[training.tensor_of(t).name] = t;
    pairs all;
    for (auto t : parameters_of(forward)) {
      const auto& info = forward.tensor_of(t);
      const auto found = known.find(info.name);
      if (found == known.end())
        fail("the forward pass has a parameter '", info.name, "' that training does not; declare both by one function");
      if (training.tensor_of(found->second).type != info.type)
        fail("parameter '", info.name, "' has other axes, extents or elements in the forward pass than in training");
      all.emplace_back(t, found->second);
    }
    return all;
  }

  static std::vector<tensor_id> parameters_of(const graph& g) {
    std::vector<tensor_id> all;
    for (tensor_id t = 0; t < g.tensors(); ++t)
      if (g.tensor_of(t).kind == tensor_class::parameter && g.tensor_of(t).persistent) all.push_back(t);
    return all;
  }

  static plan plan_beside(const graph& forward, executor<C>& trained, const pairs& parameters) {
    const mesh& m = trained.where().m;
    plan_request r;
    r.minimise = goal::time;
    for (const auto& [mine, theirs] : parameters) {
      const auto place = trained.place(theirs);
      const auto& dims = forward.tensor_of(mine).type.dims;
      for (int a = 0; a < m.count(); ++a)
        r.fixed.shard(mine, place[a] < 0 ? "" : dims[static_cast<std::size_t>(place[a])].axis, m.axis(a).name);
    }
    planner plans(forward, m);
    return share_plan(trained.world(), plans.where(), [&] { return plans.make(r); });
  }

  const graph& g_;
  executor<C>& trained_;
  pairs pairs_;
  executor<C> run_;
};

}  // namespace mmr
