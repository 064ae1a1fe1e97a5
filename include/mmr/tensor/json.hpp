// JSON from outside: damaged text and text nested without end are one and the same, no value.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace mmr::detail {

/// Parses `text`; the result is discarded where it is not whole, or nested deeper than any file of ours: copies and texts of
/// such values would need a stack without end.
inline nlohmann::json parsed_json(const std::string& text, const nlohmann::json::parser_callback_t& watch = nullptr) {
  constexpr int deepest = 32;
  bool deep = false;
  auto j = nlohmann::json::parse(
      text,
      [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& value) {
        deep = deep || depth > deepest;
        return !deep && (!watch || watch(depth, event, value));  // what is nested deeper is dropped as it is read
      },
      false);
  return deep ? nlohmann::json(nlohmann::json::value_t::discarded) : j;
}

}  // namespace mmr::detail
