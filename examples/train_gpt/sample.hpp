// Generates text from a model in training.
#pragma once

#include "options.hpp"

#include <cmath>
#include <string>
#include <vector>

template <class T, mmr::communicator C>
std::string generate(mmr::trainer<C>& trained, const mmr::gpt::config& trained_config, std::int64_t length,
                     std::uint64_t seed) {
  using namespace mmr;
  auto config = trained_config;
  config.batch = 1;
  config.dropout = 0;
  declaration m;
  const auto g = m.inference(gpt::logits<T>(m, config));
  evaluation model(g, trained.run());

  std::vector<std::int32_t> window{'\n'};
  std::string text;
  const auto fill = [&](const tensor_info&, std::span<const interval> box, const step_info&, void* data) {
    auto* tokens = static_cast<std::int32_t*>(data);
    for (std::int64_t row = 0; row < box[0].size; ++row)
      for (std::int64_t i = 0; i < box[1].size; ++i) {
        const auto at = static_cast<std::size_t>(box[1].begin + i);
        *tokens++ = at < window.size() ? window[at] : 0;
      }
  };
  for (std::int64_t n = 0; n < length; ++n) {
    // Every rank draws the same byte: the logits and the random number are the same everywhere.
    const auto* row = model.template result<T>(fill).data() + static_cast<std::int64_t>(window.size() - 1) * config.vocab;
    const auto words = std::min<std::int64_t>(config.vocab, 256);
    constexpr double temperature = 0.8;
    double most = -1e300, sum = 0;
    for (std::int64_t v = 0; v < words; ++v) most = std::max(most, static_cast<double>(row[v]));
    std::vector<double> weight;
    for (std::int64_t v = 0; v < words; ++v) {
      weight.push_back(std::exp((static_cast<double>(row[v]) - most) / temperature));
      sum += weight.back();
    }
    double left = sum * static_cast<double>(detail::mixed(seed ^ detail::mixed(static_cast<std::uint64_t>(n))) >> 11) * 0x1p-53;
    std::int32_t next = 0;
    while (next + 1 < words && (left -= weight[static_cast<std::size_t>(next)]) > 0) ++next;
    text += static_cast<char>(next);
    window.push_back(next);
    if (static_cast<std::int64_t>(window.size()) > config.seq) window.erase(window.begin());
  }
  return text;
}

/// Text that a terminal shows: other bytes become '?'.
inline std::string printable(std::string text) {
  for (char& c : text)
    if ((c < 32 && c != '\n' && c != '\t') || c == 127 || static_cast<unsigned char>(c) > 127) c = '?';
  return text;
}
