// Pins: what a user fixes of a plan, by type. A pin restricts one mesh axis of an operator or of a tensor, or says whether
// operators run again for backward.
#pragma once

#include <mmr/plan/formulate.hpp>
#include <mmr/tensor/tensor.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace mmr {

/// A set of pins, applied together; the order in which they were added does not matter.
///
///   mmr::pins p;
///   p.shard<Vocab>(wte, "model");            // a tensor's placement: wte must have the axis Vocab, or it does not compile
///   p.replicate(x, "data");
///   p.split<op::attention, Heads>("model");  // every operator of a type
class pins {
 public:
  template <axis_type Axis, class T, class... A>
  pins& shard(tensor<T, A...> t, const std::string& mesh_axis) {
    if constexpr (!is_one_of<Axis, A...>)
      static_assert(mistake::operand_lacks_axis<pins, Axis, tensor<T, A...>>,
                    "mmr: operand_lacks_axis<pins, axis, tensor>: a pin names an axis that the tensor does not have");
    return shard(t.id, std::string(Axis::name), mesh_axis);
  }
  template <class T, class... A>
  pins& replicate(tensor<T, A...> t, const std::string& mesh_axis) {
    return shard(t.id, "", mesh_axis);
  }
  /// Every operator of type Op that has a loop over Axis splits it along the mesh axis.
  template <class Op, axis_type Axis>
  pins& split(const std::string& mesh_axis) {
    return split(std::string(Op::name), std::string(Axis::name), mesh_axis);
  }
  /// The same by name; an empty axis means not split at all.
  pins& split(const std::string& op, const std::string& axis, const std::string& mesh_axis) {
    list_.push_back({-1, op, axis, mesh_axis});
    return *this;
  }
  pins& shard(tensor_id t, const std::string& axis, const std::string& mesh_axis) {
    list_.push_back({t, "", axis, mesh_axis});
    return *this;
  }
  /// Whether operators run again for backward, where the graph allows it: all whose results backward reads, or those of one
  /// block, or those of one type. Unless `wanted`, their results are kept.
  pins& recompute(bool wanted = true) { return recompute_some("", "", wanted); }
  pins& recompute_block(const std::string& block, bool wanted = true) { return recompute_some(block, "", wanted); }
  pins& recompute_operator(const std::string& op, bool wanted = true) { return recompute_some("", op, wanted); }
  template <class Op>
  pins& recompute_operator(bool wanted = true) {
    return recompute_some("", std::string(Op::name), wanted);
  }
  /// Whether any pin asks for recomputation.
  bool recomputes() const {
    return std::any_of(again_.begin(), again_.end(), [](const again_pin& p) { return p.wanted; });
  }

  bool empty() const { return list_.empty() && again_.empty(); }
  std::size_t size() const { return list_.size() + again_.size(); }
  /// All pins but pin i, in the order in which they are kept: of placements, then of recomputation.
  pins without(std::size_t i) const {
    auto rest = *this;
    if (i < list_.size())
      rest.list_.erase(rest.list_.begin() + static_cast<std::ptrdiff_t>(i));
    else
      rest.again_.erase(rest.again_.begin() + static_cast<std::ptrdiff_t>(i - list_.size()));
    return rest;
  }
  /// "'wte.weight' sharded over vocab along model", for messages.
  std::string text(std::size_t i, const graph& g) const {
    if (i >= list_.size()) {
      const auto& p = again_[i - list_.size()];
      return (p.op.empty() ? "all operators" : "'" + p.op + "'") + (p.block.empty() ? "" : " of block '" + p.block + "'") +
             (p.wanted ? " run again" : " kept");
    }
    const auto& p = list_[i];
    const auto along = " along " + p.mesh_axis;
    if (p.tensor < 0) return "'" + p.op + "' " + (p.axis.empty() ? "not split" : "split over " + p.axis) + along;
    return "'" + g.tensor_of(p.tensor).name + "' " + (p.axis.empty() ? "replicated" : "sharded over " + p.axis) + along;
  }
  friend bool operator==(const pins&, const pins&) = default;

  /// Fails where a pin names a mesh axis, tensor or operator that is not there, or one that its axis does not fit.
  void check(const graph& g, const mesh& m) const {
    for (const auto& p : list_) {
      if (m.find(p.mesh_axis) < 0) fail("a pin names the mesh axis '", p.mesh_axis, "'; the mesh is ", m.text());
      if (p.tensor >= g.tensors()) fail("a pin names a tensor that the graph does not have");
      if (p.tensor >= 0) continue;
      bool found = false;
      for (op_id o = 0; o < g.ops(); ++o) found = found || matches(p, g.op(o));
      if (!found) fail("a pin names operator '", p.op, "' with a loop over '", p.axis, "'; the graph has none");
    }
    for (const auto& p : again_) {
      bool found = false;
      for (op_id o = 0; o < g.ops(); ++o) found = found || matches(p, g.op(o));
      if (!found)
        fail("a pin says whether ", p.op.empty() ? "operators" : "operator '" + p.op + "'",
             p.block.empty() ? "" : " in block '" + p.block + "'", p.wanted ? " run" : " do not run",
             " again, and the graph has no choice there; allow recomputation where the model is declared");
    }
    for (op_id o = 0; o < g.ops(); ++o)
      if (touches(o, g) && !leaves_any(o, g, m)) name_clash(o, g, m);
  }

  /// Operators that make a pinned tensor, which their repetitions in other layers need not follow.
  std::vector<op_id> singled_out(const graph& g) const {
    std::vector<op_id> out;
    for (const auto& p : list_)
      if (p.tensor >= 0 && p.tensor < g.tensors()) out.push_back(g.tensor_of(p.tensor).producer);
    return out;
  }

  restriction as_restriction(const graph& g, const mesh& m) const {
    check(g, m);
    return [mine = *this, &g, m](op_id o, const op_info& op, const strategy& s) { return mine.allow(o, op, s, g, m); };
  }

 private:
  bool allow(op_id o, const op_info& op, const strategy& s, const graph& g, const mesh& m) const {
    for (const auto& p : again_)
      if (matches(p, op) && s.runs() != p.wanted) return false;
    if (!s.runs()) return true;
    for (const auto& p : list_) {
      const int a = m.find(p.mesh_axis);
      if (p.tensor >= 0) {
        const auto& t = g.tensor_of(p.tensor);
        if (t.producer != o) continue;
        const auto place = result_placement(op, static_cast<std::size_t>(t.result), s)[a];
        if (p.axis.empty() ? place != mmr::replicate
                           : place < 0 || t.type.dims[static_cast<std::size_t>(place)].axis != p.axis)
          return false;
      } else if (matches(p, op)) {
        if (p.axis.empty() ? s[a] != unsplit : s[a] != static_cast<axis_choice>(op.loops.find_loop(p.axis))) return false;
      }
    }
    return true;
  }

  bool touches(op_id o, const graph& g) const {
    const auto& op = g.op(o);
    return std::any_of(list_.begin(), list_.end(),
                       [&](const pin& p) { return p.tensor >= 0 ? g.tensor_of(p.tensor).producer == o : matches(p, op); }) ||
           std::any_of(again_.begin(), again_.end(), [&](const again_pin& p) { return matches(p, op); });
  }
  bool leaves_any(op_id o, const graph& g, const mesh& m) const {
    const auto all = strategies_of(g.op(o), m);
    return std::any_of(all.begin(), all.end(), [&](const strategy& s) { return allow(o, g.op(o), s, g, m); });
  }
  /// Takes away what is not needed for the clash, and names the rest.
  [[noreturn]] void name_clash(op_id o, const graph& g, const mesh& m) const {
    auto clash = *this;
    for (std::size_t i = clash.size(); i-- > 0;)
      if (const auto fewer = clash.without(i); !fewer.leaves_any(o, g, m)) clash = fewer;
    std::string named;
    for (std::size_t i = 0; i < clash.size(); ++i) named += (i == 0 ? "" : i + 1 < clash.size() ? ", " : " and ") + clash.text(i, g);
    fail(clash.size() == 1 ? "the pin " : "the pins ", named, clash.size() == 1 ? " leaves" : " leave", " operator '", g.op(o).name,
         "' no strategy on the mesh ", m.text(), "; take ", clash.size() == 1 ? "it" : "one of them", " away");
  }

  struct pin {
    tensor_id tensor;
    std::string op, axis, mesh_axis;
    friend bool operator==(const pin&, const pin&) = default;
  };
  struct again_pin {
    std::string block, op;
    bool wanted;
    friend bool operator==(const again_pin&, const again_pin&) = default;
  };
  pins& recompute_some(const std::string& block, const std::string& op, bool wanted) {
    again_.push_back({block, op, wanted});
    return *this;
  }
  static bool matches(const again_pin& p, const op_info& op) {
    const bool kept = std::find(op.keepable.begin(), op.keepable.end(), true) != op.keepable.end();
    return op.again >= 0 && op.rules && kept && (p.block.empty() || op.where.block == p.block) &&
           (p.op.empty() || op.rules->name() == p.op);
  }
  static bool matches(const pin& p, const op_info& op) {
    return op.rules && op.rules->name() == p.op && (p.axis.empty() || op.loops.find_loop(p.axis) >= 0);
  }
  std::vector<pin> list_;
  std::vector<again_pin> again_;
};

}  // namespace mmr
