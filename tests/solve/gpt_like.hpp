// A stand-in for the training step of a GPT on a device mesh, built without the planner: operators with loops,
// strategies that give mesh axes to loops, resharding between placements, and live intervals over forward, backward and
// update.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "mmr/solve/problem.hpp"

namespace test {

struct gpt_shape {
  int layers = 12, hidden = 256, heads = 8, words = 4096, batch = 4, seq = 64;
  std::vector<int> mesh = {2, 2};
};

struct gpt_problem {
  mmr::solve::problem p;
  std::vector<int> group;  ///< identical layers share groups
};

class gpt_builder {
 public:
  explicit gpt_builder(const gpt_shape& shape) : shape_(shape) {}

  gpt_problem build() {
    const std::string bs = "bs";
    const int embedding = parameter("wte", "vh"), positions = parameter("wpe", "sh");
    int x = op("embed", "bsh", "bsh", {{embedding, "vh"}, {positions, "sh"}}, 1);
    struct layer {
      int in, qkv_w, proj_w, fc1_w, fc2_w, ln1, qkv, attention, proj, add1, ln2, fc1, gelu, fc2, add2;
    };
    std::vector<layer> layers;
    for (int l = 0; l < shape_.layers; ++l) {
      layer_ = l;
      layer y{};
      y.in = x;
      y.qkv_w = parameter("qkv_w", "hq");
      y.proj_w = parameter("proj_w", "ah");
      y.fc1_w = parameter("fc1_w", "hf");
      y.fc2_w = parameter("fc2_w", "fh");
      y.ln1 = op("ln1", "bs", "bsh", {{x, "bsh"}}, 8);
      y.qkv = op("qkv", "bshq", "bsq", {{y.ln1, "bsh"}, {y.qkv_w, "hq"}}, 2);
      y.attention = op("attention", "bq", "bsa", {{y.qkv, "bsq"}}, 2.0 * shape_.seq / 3);
      y.proj = op("proj", "bsah", "bsh", {{y.attention, "bsa"}, {y.proj_w, "ah"}}, 2);
      y.add1 = op("add1", "bsh", "bsh", {{x, "bsh"}, {y.proj, "bsh"}}, 1);
      y.ln2 = op("ln2", "bs", "bsh", {{y.add1, "bsh"}}, 8);
      y.fc1 = op("fc1", "bshf", "bsf", {{y.ln2, "bsh"}, {y.fc1_w, "hf"}}, 2);
      y.gelu = op("gelu", "bsf", "bsf", {{y.fc1, "bsf"}}, 8);
      y.fc2 = op("fc2", "bsfh", "bsh", {{y.gelu, "bsf"}, {y.fc2_w, "fh"}}, 2);
      y.add2 = op("add2", "bsh", "bsh", {{y.add1, "bsh"}, {y.fc2, "bsh"}}, 1);
      x = y.add2;
      layers.push_back(y);
    }
    layer_ = -1;
    const int last = op("ln_f", "bs", "bsh", {{x, "bsh"}}, 8);
    const int logits = op("logits", "bshv", "bsv", {{last, "bsh"}, {embedding, "vh"}}, 2);
    const int loss = op("d_loss", "bs", "bsv", {{logits, "bsv"}}, 8);
    int d = op("d_last", "bsvh", "bsh", {{loss, "bsv"}, {embedding, "vh"}}, 2);
    const int d_words = op("dw_logits", "bsvh", "vh", {{last, "bsh"}, {loss, "bsv"}}, 2);
    d = op("d_ln_f", "bs", "bsh", {{d, "bsh"}, {x, "bsh"}}, 8);
    for (int l = shape_.layers - 1; l >= 0; --l) {
      layer_ = l;
      const auto& y = layers[static_cast<std::size_t>(l)];
      const int d_gelu = op("d_fc2", "bshf", "bsf", {{d, "bsh"}, {y.fc2_w, "fh"}}, 2);
      update("fc2_w", y.fc2_w, op("dw_fc2", "bsfh", "fh", {{y.gelu, "bsf"}, {d, "bsh"}}, 2), "fh");
      const int d_fc1 = op("d_gelu", "bsf", "bsf", {{d_gelu, "bsf"}, {y.fc1, "bsf"}}, 8);
      const int d_ln2 = op("d_fc1", "bsfh", "bsh", {{d_fc1, "bsf"}, {y.fc1_w, "hf"}}, 2);
      update("fc1_w", y.fc1_w, op("dw_fc1", "bshf", "hf", {{y.ln2, "bsh"}, {d_fc1, "bsf"}}, 2), "hf");
      const int d_add1 = op("d_ln2", "bs", "bsh", {{d_ln2, "bsh"}, {y.add1, "bsh"}}, 8);
      const int d_mid = op("d_sum1", "bsh", "bsh", {{d, "bsh"}, {d_add1, "bsh"}}, 1);
      const int d_att = op("d_proj", "bsha", "bsa", {{d_mid, "bsh"}, {y.proj_w, "ah"}}, 2);
      update("proj_w", y.proj_w, op("dw_proj", "bsah", "ah", {{y.attention, "bsa"}, {d_mid, "bsh"}}, 2), "ah");
      const int d_qkv =
          op("d_attention", "bq", "bsq", {{d_att, "bsa"}, {y.qkv, "bsq"}, {y.attention, "bsa"}}, 5.0 * shape_.seq / 3);
      const int d_ln1 = op("d_qkv", "bsqh", "bsh", {{d_qkv, "bsq"}, {y.qkv_w, "hq"}}, 2);
      update("qkv_w", y.qkv_w, op("dw_qkv", "bshq", "hq", {{y.ln1, "bsh"}, {d_qkv, "bsq"}}, 2), "hq");
      const int d_in = op("d_ln1", "bs", "bsh", {{d_ln1, "bsh"}, {y.in, "bsh"}}, 8);
      d = op("d_sum0", "bsh", "bsh", {{d_mid, "bsh"}, {d_in, "bsh"}}, 1);
    }
    layer_ = -1;
    const int d_embed = op("dw_embed", "bsh", "vh", {{d, "bsh"}}, 1);
    const int d_both = op("dw_both", "vh", "vh", {{d_words, "vh"}, {d_embed, "vh"}}, 1);
    update("wte", embedding, d_both, "vh");
    update("wpe", positions, op("dw_positions", "bsh", "sh", {{d, "bsh"}}, 1), "sh");
    for (auto& n : out_.p.nodes)
      for (auto& use : n.uses) use.end = std::max(use.end, use.begin + 1);
    for (std::size_t v = 0; v < out_.p.nodes.size(); ++v) {
      auto& use = out_.p.nodes[v].uses[0];
      if (kept_[v]) use.begin = 0;
      use.end = kept_[v] ? step_ : last_use_[v] + 1;
    }
    out_.p.steps = step_;
    return out_;
  }

 private:
  static constexpr int whole = -1, partial = -2;
  using placement = std::vector<int>;  // for each mesh axis: a letter of the loop, whole or partial

  double extent(int loop) const {
    switch (loop) {
      case 'b':
        return shape_.batch;
      case 's':
        return shape_.seq;
      case 'h':
      case 'a':
        return shape_.hidden;
      case 'q':
        return 3.0 * shape_.hidden;
      case 'f':
        return 4.0 * shape_.hidden;
      default:
        return shape_.words;
    }
  }

  double elements(const std::string& axes) const {
    double n = 1;
    for (char c : axes) n *= extent(c);
    return n;
  }

  std::int64_t local_bytes(const std::string& axes, const placement& at, double bytes_each = 4) const {
    double n = elements(axes) * bytes_each;
    for (std::size_t m = 0; m < at.size(); ++m)
      if (at[m] >= 0) n /= shape_.mesh[m];
    return static_cast<std::int64_t>(n);
  }

  std::vector<placement> assignments(const std::string& loops) const {
    std::vector<placement> out{{}};
    for (std::size_t m = 0; m < shape_.mesh.size(); ++m) {
      std::vector<placement> longer;
      for (const auto& a : out)
        for (int i = -1; i < static_cast<int>(loops.size()); ++i) {
          longer.push_back(a);
          longer.back().push_back(i < 0 ? whole : loops[static_cast<std::size_t>(i)]);
        }
      out = longer;
    }
    return out;
  }

  // Attention splits heads, which its operands name q or a.
  static bool names(const std::string& axes, int loop) {
    return axes.find(static_cast<char>(loop)) != std::string::npos;
  }
  static int as_operand(const std::string& axes, int loop) { return loop == 'q' && names(axes, 'a') ? 'a' : loop; }

  placement operand(const placement& strategy, const std::string& axes, bool result) const {
    placement out;
    for (int loop : strategy) {
      const int l = loop < 0 ? loop : as_operand(axes, loop);
      out.push_back(l < 0 ? whole : names(axes, l) ? l : result ? partial : whole);
    }
    return out;
  }

  int add_node(const std::string& name, std::size_t strategies) {
    mmr::solve::node n{
        name, std::vector<double>(strategies), {{step_, step_ + 1, std::vector<std::int64_t>(strategies)}}};
    out_.p.nodes.push_back(n);
    const auto key = layer_ < 0 ? name : "layer." + name;
    out_.group.push_back(groups_.try_emplace(key, static_cast<int>(groups_.size())).first->second);
    last_use_.push_back(step_);
    kept_.push_back(0);
    return static_cast<int>(out_.p.nodes.size()) - 1;
  }

  int parameter(const std::string& name, const std::string& axes) {
    const auto all = assignments(axes);
    const int v = add_node(name, all.size());
    auto& n = out_.p.nodes.back();
    for (std::size_t s = 0; s < all.size(); ++s) n.uses[0].bytes[s] = local_bytes(axes, all[s]);
    kept_.back() = 1;
    placements_.push_back(all);
    axes_.push_back(axes);
    return v;
  }

  int op(const std::string& name, const std::string& loops, const std::string& result,
         const std::vector<std::pair<int, std::string>>& operands, double flops_each) {
    const auto all = assignments(loops);
    const int v = add_node(name, all.size());
    auto full = loops;
    for (char c : result)
      if (!names(full, c)) full += c;
    if (names(full, 'q') && names(full, 'a')) full.erase(full.find('a'), 1);
    const double seconds = std::max(flops_each * elements(full) / 2e10, elements(result) * 4 / 1e10);
    std::vector<placement> at;
    for (std::size_t s = 0; s < all.size(); ++s) {
      double share = 1;
      for (std::size_t m = 0; m < all[s].size(); ++m) share *= all[s][m] < 0 ? 1 : shape_.mesh[m];
      auto& n = out_.p.nodes.back();
      n.cost[s] = seconds / share;
      at.push_back(operand(all[s], result, true));
      n.uses[0].bytes[s] = local_bytes(result, at.back());
    }
    placements_.push_back(at);
    axes_.push_back(result);
    for (const auto& [from, axes] : operands) {
      std::vector<placement> needs;
      for (const auto& s : all) needs.push_back(operand(s, axes, false));
      join(from, v, needs);
    }
    ++step_;
    return v;
  }

  void update(const std::string& name, int parameter, int gradient, const std::string& axes) {
    const int v = op("update_" + name, axes, axes, {{gradient, axes}, {parameter, axes}}, 10);
    auto& n = out_.p.nodes[static_cast<std::size_t>(v)];
    for (auto& b : n.uses[0].bytes) b *= 2;  // the two moments of Adam
    kept_[static_cast<std::size_t>(v)] = 1;
    // The new value goes back to where the parameter lives.
    --step_;
    join(v, parameter, placements_[static_cast<std::size_t>(parameter)]);
    ++step_;
  }

  static std::vector<int> classes(const std::vector<placement>& at, std::vector<placement>& distinct) {
    std::vector<int> out;
    for (const auto& a : at) {
      auto found = std::find(distinct.begin(), distinct.end(), a);
      if (found == distinct.end()) found = distinct.insert(distinct.end(), a);
      out.push_back(static_cast<int>(found - distinct.begin()));
    }
    return out;
  }

  double reshard(const std::string& axes, const placement& from, const placement& to) const {
    double seconds = 0, local = elements(axes) * 4;
    for (std::size_t m = 0; m < from.size(); ++m)
      if (from[m] >= 0 && to[m] == from[m]) local /= shape_.mesh[m];
    for (std::size_t m = 0; m < from.size(); ++m) {
      const double n = shape_.mesh[m], alpha = 2e-5 * static_cast<double>(m + 1),
                   beta = 1e-9 * (1 + 0.5 * static_cast<double>(m));
      if (from[m] == to[m] || (from[m] == whole && to[m] >= 0)) continue;
      const double part = local * (n - 1) / n;
      if (from[m] == partial)
        seconds += alpha + (to[m] == whole ? 2 : 1) * beta * part;
      else if (to[m] == whole)
        seconds += alpha + beta * part;
      else
        seconds += alpha + beta * part / n;
    }
    return seconds;
  }

  void join(int from, int to, const std::vector<placement>& needs) {
    mmr::solve::edge e;
    std::vector<placement> source, target;
    e.u = from;
    e.v = to;
    e.u_class = classes(placements_[static_cast<std::size_t>(from)], source);
    e.v_class = classes(needs, target);
    e.u_classes = static_cast<int>(source.size());
    e.v_classes = static_cast<int>(target.size());
    mmr::solve::edge_use copy{step_, step_ + 1, {}};
    const auto& axes = axes_[static_cast<std::size_t>(from)];
    for (const auto& a : source)
      for (const auto& b : target) {
        e.cost.push_back(reshard(axes, a, b));
        copy.bytes.push_back(a == b ? 0 : local_bytes(axes, b));
      }
    if (copy.begin < 0) copy.begin = 0;
    e.uses.push_back(copy);
    out_.p.edges.push_back(e);
    last_use_[static_cast<std::size_t>(from)] = std::max(last_use_[static_cast<std::size_t>(from)], step_);
  }

  gpt_shape shape_;
  gpt_problem out_;
  int step_ = 0, layer_ = -1;
  std::vector<std::vector<placement>> placements_;
  std::vector<std::string> axes_;
  std::vector<int> last_use_;
  std::vector<char> kept_;
  std::map<std::string, int> groups_;
};

inline gpt_problem gpt_like(const gpt_shape& shape = {}) {
  return gpt_builder(shape).build();
}

}  // namespace test
