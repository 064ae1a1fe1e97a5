#include "models.hpp"

#include <mmr/model/gpt.hpp>
#include <mmr/model/t5.hpp>

namespace models {

mmr::graph make(const std::string& name, const std::string& precision, int microbatches) {
  mmr::adamw optimizer{.clip_norm = microbatches > 1 ? 1.0 : 0.0};
  if (precision == "pure-bf16") optimizer.gradients = mmr::dtype::bf16;
  if (name == "t5")
    return mmr::t5::training_graph<float>({.layers = 1,
                                           .decoder_layers = 1,
                                           .heads = 3,
                                           .embed = 12,
                                           .hidden = 10,
                                           .source = 9,
                                           .seq = 7,
                                           .batch = 4,
                                           .vocab = 31,
                                           .microbatches = microbatches},
                                          optimizer);
  mmr::gpt::config c{
      .layers = 2, .heads = 2, .embed = 16, .seq = 8, .batch = 4, .vocab = 31, .microbatches = microbatches};
  if (name == "gpt-odd")
    c = {.layers = 1, .heads = 3, .embed = 12, .seq = 7, .batch = 5, .vocab = 50257, .microbatches = microbatches};
  c.recompute = name == "gpt-again";
  return precision == "fp32" ? mmr::gpt::training_graph<float>(c, optimizer)
                             : mmr::gpt::training_graph<mmr::bf16>(c, optimizer);
}

mmr::scheme_axes axes(const std::string& name) {
  return name == "t5" ? mmr::t5::scheme() : mmr::gpt::scheme();
}

}  // namespace models
