// Configurations of the ready models as JSON: {"family": "gpt", "layers": 24, ...} with the fields of the family's config.
// Every key is checked: a misspelt one must not leave a default in its place.
#pragma once

#include <mmr/io/file.hpp>
#include <mmr/model/catalog.hpp>
#include <mmr/tensor/json.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <set>
#include <string>
#include <type_traits>

namespace mmr::model {

namespace detail {

inline constexpr std::int64_t most_layers = 1000, most = 1'000'000'000;
enum class given : bool { optional, always };

/// Calls see(key, value, least, most, given) for every field that a family's configuration has. A field means the same, and
/// has the same range, in all families that have it.
template <class Config, class See>
void see_fields(Config& c, See see) {
  if constexpr (requires { c.layers; }) see("layers", c.layers, std::int64_t{1}, most_layers, given::always);
  if constexpr (requires { c.decoder_layers; }) see("decoder_layers", c.decoder_layers, std::int64_t{1}, most_layers, given::always);
  if constexpr (requires { c.heads; }) see("heads", c.heads, std::int64_t{1}, most, given::always);
  if constexpr (requires { c.kv_heads; }) see("kv_heads", c.kv_heads, std::int64_t{1}, most, given::always);
  if constexpr (requires { c.embed; }) see("embed", c.embed, std::int64_t{1}, most, given::always);
  if constexpr (requires { c.hidden; }) see("hidden", c.hidden, std::int64_t{1}, most, given::always);
  if constexpr (requires { c.experts; }) see("experts", c.experts, std::int64_t{1}, std::int64_t{1'000'000}, given::always);
  if constexpr (requires { c.source; }) see("source", c.source, std::int64_t{1}, most, given::always);
  if constexpr (requires { c.seq; }) see("seq", c.seq, std::int64_t{1}, most, given::always);
  if constexpr (requires { c.vocab; }) see("vocab", c.vocab, std::int64_t{1}, most, given::always);
  if constexpr (requires { c.patches; }) see("patches", c.patches, std::int64_t{1}, most, given::always);
  if constexpr (requires { c.pixels; }) see("pixels", c.pixels, std::int64_t{1}, most, given::always);
  if constexpr (requires { c.classes; }) see("classes", c.classes, std::int64_t{1}, most, given::always);
  if constexpr (requires { c.segments; }) see("segments", c.segments, std::int64_t{1}, most, given::optional);
  if constexpr (requires { c.top_k; }) see("top_k", c.top_k, 1, 1'000'000, given::optional);
  if constexpr (requires { c.capacity_factor; }) see("capacity_factor", c.capacity_factor, 1e-6, 1e6, given::optional);
  if constexpr (requires { c.balance; }) see("balance", c.balance, 0.0, 1e6, given::optional);
  if constexpr (requires { c.batch; }) see("batch", c.batch, std::int64_t{1}, most, given::optional);
  if constexpr (requires { c.microbatches; }) see("microbatches", c.microbatches, 1, 1'000'000, given::optional);
  if constexpr (requires { c.theta; }) see("theta", c.theta, 1.0, 1e12, given::optional);
  if constexpr (requires { c.buckets; }) see("buckets", c.buckets, std::int64_t{1}, std::int64_t{1'000'000}, given::optional);
  if constexpr (requires { c.max_distance; }) see("max_distance", c.max_distance, std::int64_t{1}, most, given::optional);
  if constexpr (requires { c.dropout; }) see("dropout", c.dropout, 0.0, 0.999, given::optional);
  if constexpr (requires { c.epsilon; }) see("epsilon", c.epsilon, 0.0, 1.0, given::optional);
  if constexpr (requires { c.tied; }) see("tied", c.tied, false, true, given::optional);
  if constexpr (requires { c.store_scores; }) see("store_scores", c.store_scores, false, true, given::optional);
  if constexpr (requires { c.store_masks; }) see("store_masks", c.store_masks, false, true, given::optional);
  if constexpr (requires { c.attention_dropout; }) see("attention_dropout", c.attention_dropout, 0.0, 0.999, given::optional);
}

template <class T>
bool takes(const nlohmann::json& x, T least, T largest, T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    if (!x.is_boolean()) return false;
    value = x.get<bool>();
    return true;
  } else if constexpr (std::is_integral_v<T>) {
    // The library tells negative numbers from those that need 64 bits without a sign.
    if (x.is_number_unsigned() && x.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max()) return false;
    if (!x.is_number_integer()) return false;
    const auto n = x.get<std::int64_t>();
    if (n < std::int64_t{least} || n > std::int64_t{largest}) return false;
    value = static_cast<T>(n);
    return true;
  } else {
    if (!x.is_number()) return false;
    const auto n = x.get<double>();
    if (!(n >= least && n <= largest)) return false;
    value = n;
    return true;
  }
}

/// Parses an object whose keys are all different; `twice` is set to one that is not.
inline nlohmann::json parse_object(const std::string& text, std::string& twice) {
  std::set<std::string> seen;
  const auto watch = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    if (event == nlohmann::json::parse_event_t::key && depth == 1 && !seen.insert(parsed.get<std::string>()).second)
      twice = parsed.get<std::string>();
    return true;
  };
  return mmr::detail::parsed_json(text, watch);
}

}  // namespace detail

inline constexpr std::string_view family_names = "gpt, llama, bert, t5, vit, moe";

/// Reads a configuration. Fails with one sentence that names `source`, the key and its range where the text is cut, a key
/// is unknown, doubled or missing, or a value is of the wrong type or out of its range; and where the model is none.
inline any_config config_from_json(const std::string& text, const std::string& source) {
  const auto bad = [&](const auto&... why) { fail("the model in ", source, " ", why...); };
  std::string twice;
  const auto j = detail::parse_object(text, twice);
  if (j.is_discarded()) bad("is not whole JSON: it is cut or damaged");
  if (!j.is_object()) bad("is ", j.type_name(), " where an object belongs: {\"family\": \"gpt\", \"layers\": 24, ...}");
  if (!twice.empty()) bad("has the key '", twice, "' twice; leave one of them");
  if (!j.contains("family")) bad("has no key 'family'; it is one of ", family_names);
  const auto& family = j["family"];
  if (!family.is_string()) bad("has the family ", family.dump(), " where a text belongs, one of ", family_names);

  const auto read = [&](auto config) -> any_config {
    std::set<std::string> known{"family"};
    detail::see_fields(config, [&](const char* key, auto& value, auto least, auto largest, detail::given when) {
      using T = std::remove_reference_t<decltype(value)>;
      known.insert(key);
      if (!j.contains(key)) {
        if (when == detail::given::always) bad("has no key '", key, "', which the family ", family.dump(), " needs");
        return;
      }
      if (detail::takes<T>(j[key], least, largest, value)) return;
      const auto found = j[key].is_structured() ? std::string(j[key].type_name()) : j[key].dump();
      if constexpr (std::is_same_v<T, bool>)
        bad("has ", key, " ", found, "; it is true or false");
      else
        bad("has ", key, " ", found, "; it is a ", std::is_integral_v<T> ? "whole " : "", "number from ", least, " to ", largest);
    });
    for (const auto& [key, value] : j.items())
      if (!known.contains(key)) {
        std::string keys;
        for (const auto& k : known) keys += (keys.empty() ? "" : ", ") + k;
        bad("has the unknown key '", key, "'; those of the family ", family.dump(), " are ", keys);
      }
    config.check();
    return config;
  };
  if (family == "gpt") return read(gpt::config{.batch = 8});
  if (family == "llama") return read(llama::config{.batch = 8});
  if (family == "bert") return read(bert::config{.batch = 8});
  if (family == "t5") return read(t5::config{.batch = 8});
  if (family == "vit") return read(vit::config{.batch = 8});
  if (family == "moe") return read(moe::config{.batch = 8});
  bad("has the family ", family.dump(), "; it is one of ", family_names);
  return {};
}
inline any_config load_config(const std::filesystem::path& path) { return config_from_json(read_text_file(path), path.string()); }

}  // namespace mmr::model
