// What a model says of itself to the fixed schemes.
#pragma once

#include <string>
#include <vector>

namespace mmr {

/// Which axes of a model the fixed schemes split: `batch` for data parallelism, `sequence` and `tensor` for Megatron-LM.
struct scheme_axes {
  std::string batch = "batch";
  std::vector<std::string> sequence = std::vector<std::string>(1, "seq");  // a list in braces crashes GCC 12 at make({})
  std::vector<std::string> tensor;
  friend bool operator==(const scheme_axes&, const scheme_axes&) = default;
};

}  // namespace mmr
