// Bytes of the known schemes against the published formulas.
#include <mmr/plan/plan.hpp>
#include <set>

#include "catch.hpp"
#include "draw.hpp"
#include "models.hpp"

using namespace models;

namespace {

/// Any plan of a scheme: the formulas hold for all of them.
std::vector<mmr::strategy> any_plan(mmr::setting& s, std::string_view scheme, unsigned seed) {
  const auto f = mmr::formulate(s, mmr::scheme_restriction(scheme, s.g, s.m, gpt_axes()));
  std::mt19937 random(seed);
  return f.chosen(any_choice(f.problem, random));
}

// Extents that 2 and 4 divide.
constexpr gpt_size even{
    .layers = 2, .heads = 4, .embed = 16, .seq = 8, .batch = 4, .vocab = 20, .dropout = 0.1, .microbatches = 2};

std::int64_t parameter_count(const mmr::graph& g) {
  std::int64_t n = 0;
  for (mmr::tensor_id t = 0; t < g.tensors(); ++t)
    if (g.tensor_of(t).persistent && g.tensor_of(t).kind == mmr::tensor_class::parameter)
      n += g.tensor_of(t).type.count();
  return n;
}

}  // namespace

// Rajbhandari et al., arXiv 1910.02054, with float32 Adam: 4 + 4 + 8 bytes a parameter, divided as the stage says.
TEST_CASE("ZeRO's stages hold the bytes of their formula") {
  const auto g = gpt(even);
  const auto parameters = parameter_count(g);
  // embedding 20 * 16, positions 8 * 16, two blocks of 12 h^2 + 13 h, and the last normalisation.
  CHECK(parameters == 20 * 16 + 8 * 16 + 2 * (12 * 16 * 16 + 13 * 16) + 2 * 16);
  for (int ranks : {2, 4}) {
    mmr::setting s(g, mmr::mesh::parse("data=" + std::to_string(ranks)));
    const std::pair<const char*, int> stages[] = {{"ddp", 0}, {"zero1", 1}, {"zero2", 2}, {"zero3", 3}};
    for (const auto& [name, stage] : stages)
      for (unsigned seed = 0; seed < 3; ++seed) {
        const auto chosen = any_plan(s, name, seed);
        for (int r = 0; r < ranks; ++r) {
          INFO(name << " rank " << r << " of " << ranks);
          const auto held = mmr::measure(s, chosen, r);
          CHECK(held.optimizer == 8 * parameters / (stage >= 1 ? ranks : 1));
          CHECK(held.gradients == 4 * parameters / (stage >= 2 ? ranks : 1));
          CHECK(held.parameters == 4 * parameters / (stage >= 3 ? ranks : 1));
        }
      }
  }
}

TEST_CASE("without accumulation few gradients are there at once") {
  auto size = even;
  size.microbatches = 1;
  const auto g = gpt(size);
  mmr::setting s(g, mmr::mesh::parse("data=2"));
  CHECK(mmr::measure(s, any_plan(s, "ddp", 0), 0).gradients < 4 * parameter_count(g) / 2);
}

// Korthikanti et al., arXiv 2205.05198: with sequence parallelism no stored activation is replicated; without it the
// inputs and results of both layer norms are (the masks of dropout are not stored here).
TEST_CASE("what tensor parallelism leaves replicated, sequence parallelism splits") {
  const auto g = gpt(even);
  mmr::setting s(g, mmr::mesh::parse("model=4"));
  const auto replicated = [&](std::string_view scheme) {
    const auto chosen = any_plan(s, scheme, 0);
    std::int64_t elements = 0;
    for (mmr::tensor_id t = 0; t < g.tensors(); ++t) {
      const auto& info = g.tensor_of(t);
      const auto& maker = g.op(info.producer);
      if (info.kind != mmr::tensor_class::activation || maker.where.block.empty() || !mmr::is_stored(s, t)) continue;
      if (mmr::shards(s.m, s.made_placement(t, chosen[static_cast<std::size_t>(info.producer)])) == 1)
        elements += info.type.count();
    }
    return elements;
  };
  const auto rows = even.seq * even.batch;
  CHECK(replicated("megatron-sp") == 0);
  // Both inputs and results, with mean and reciprocal deviation of each row.
  CHECK(replicated("megatron") == even.layers * (4 * rows * even.embed + 4 * rows));
}

TEST_CASE("redundant bytes are c |T| (r - 1) / p of what is stored") {
  const auto g = gpt(even);
  for (const auto* spec : {"a=2", "a=4", "a=2,b=2"}) {
    mmr::setting s(g, mmr::mesh::parse(spec));
    const auto f = mmr::formulate(s);
    std::mt19937 random(7);
    for (int draw = 0; draw < 5; ++draw) {
      const auto chosen = f.chosen(any_choice(f.problem, random));
      const double p = s.m.rank_count();
      double redundant = 0;
      for (mmr::tensor_id t = 0; t < g.tensors(); ++t) {
        if (!mmr::is_stored(s, t)) continue;
        const auto& info = g.tensor_of(t);
        const double r = p / static_cast<double>(mmr::shards(
                                 s.m, s.made_placement(t, chosen[static_cast<std::size_t>(info.producer)])));
        redundant +=
            static_cast<double>(mmr::size_of(info.type.element)) * static_cast<double>(info.type.count()) * (r - 1) / p;
      }
      // Within one byte a tensor: scalars are no multiple of p.
      CHECK(static_cast<double>(mmr::measure(s, chosen, 0).redundant) == Approx(redundant).margin(1));
    }
  }
}

TEST_CASE("stored is what a later pass or step reads") {
  const auto g = gpt({.layers = 1, .dropout = 0.1, .microbatches = 2});
  mmr::setting s(g, mmr::mesh::parse("a=2"));
  std::set<std::string> stored;
  for (mmr::tensor_id t = 0; t < g.tensors(); ++t)
    if (mmr::is_stored(s, t)) stored.insert(g.tensor_of(t).name);
  for (const auto* kept : {"wte.weight", "h.0.mlp.c_fc.weight", "wte.weight.gradient", "wte.weight.state.1",
                           "h.0.layer_norm", "h.0.layer_norm.1", "h.0.attention", "h.0.attention.1", "h.0.bias_gelu"})
    CHECK(stored.contains(kept));
  for (const auto* gone : {"tokens", "targets", "h.0.bias_gelu.grad/bias_gelu_grad", "embedding"})
    CHECK_FALSE(stored.contains(gone));
}
