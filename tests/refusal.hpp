// What an act that should be refused says.
#pragma once

#include <functional>
#include <mmr/tensor/error.hpp>
#include <string>

inline std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const mmr::error& e) {
    return e.what();
  }
  return "nothing was refused";
}
