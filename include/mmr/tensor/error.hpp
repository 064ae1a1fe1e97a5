// The one exception type of the library: a sentence that names the thing, the limit and the remedy.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace mmr {

/// Thrown for every bad input and every failed run. `what()` is one sentence for a person.
class error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Joins its arguments with `operator<<` and throws `mmr::error`.
template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  std::ostringstream sentence;
  (sentence << ... << parts);
  throw error(sentence.str());
}

}  // namespace mmr
