// What the command lines of the examples share: validators that say what is wrong in one sentence, and a check that all
// outputs can be written before hours are spent on them.
#pragma once

#include <mmr/io/file.hpp>
#include <mmr/tensor/error.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

/// Takes numbers of T from `least` to `most`; all else gets one sentence. (CLI11 itself wraps -1 and cuts what is too large.)
template <class T>
CLI::Validator within(T least, T most) {
  std::ostringstream range;
  range << "from " << least << " to " << most;
  const auto check = [=, range = range.str()](const std::string& text) -> std::string {
    T value{};
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code == std::errc{} && end == text.data() + text.size() && value >= least && value <= most) return {};
    return "'" + text + "' is no " + (std::is_integral_v<T> ? "whole " : "") + "number " + range;
  };
  return {check, range.str(), "within"};
}
inline CLI::Validator whole_number(std::int64_t least, std::int64_t most) { return within(least, most); }

/// An empty text is a variable that the caller's script forgot to set, never a wish for the default.
inline CLI::Validator not_empty() {
  return {[](const std::string& text) { return text.empty() ? std::string("the value is empty; give one, or leave the option out") : std::string(); },
          "", "not_empty"};
}

/// Errors as one line, defaults in the help, and the last of an option given twice.
inline void set_manners(CLI::App& app, const std::string& program) {
  app.failure_message([program](const CLI::App*, const CLI::Error& e) { return program + ": " + e.what() + "; --help lists the options\n"; });
  app.option_defaults()->always_capture_default()->take_last();
}

/// Fails where what was printed could not be written, as to a full disk.
inline void expect_printed() {
  std::cout << std::flush;
  if (!std::cout || std::fflush(stdout) != 0 || std::ferror(stdout))
    mmr::fail("what is printed cannot be written: the output is full or closed; send it elsewhere");
}

/// The files that a program reads and will write. Fails at once where one could not be written at the end of a long run, or
/// would overwrite another.
class named_files {
 public:
  /// A file that has a name of its own.
  void take(const std::string& path) {
    std::error_code code;
    auto whole = std::filesystem::weakly_canonical(std::filesystem::absolute(mmr::without_links(path)), code);
    if (std::find(taken_.begin(), taken_.end(), whole) != taken_.end())
      mmr::fail("the file ", path, " is named twice; give each output a name of its own");
    taken_.push_back(std::move(whole));
  }
  /// An output; nothing where the path is empty. `stream`: it is written from front to back, so that a pipe will do.
  /// False where it is a pipe or device, which several outputs may share.
  bool write(const std::string& path, bool stream) {
    if (path.empty()) return false;
    std::error_code code;
    const auto status = std::filesystem::status(path, code);
    if (std::filesystem::is_directory(status)) mmr::fail("the output ", path, " is a folder; name a file");
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
      if (!stream)
        mmr::fail("the output ", path, " is a pipe or device, and safetensors are not written from front to back; name a file");
      return false;  // as /dev/stdout
    }
    const auto folder = std::filesystem::absolute(mmr::without_links(path)).parent_path();
    if (!std::filesystem::is_directory(folder, code))
      mmr::fail("the folder ", folder, " of the output ", path, " does not exist; make it first");
    take(path);
    mmr::atomic_file probe(path);  // made and thrown away: says now what would be said after the run
    return true;
  }

 private:
  std::vector<std::filesystem::path> taken_;
};
