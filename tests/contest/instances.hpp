// Small instances of the contest, written out, and ways to spoil them.
#pragma once

#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "solve_iopddl/contest.hpp"

/// Three nodes in a chain, two of them alive together. Without a limit [1, 1, 0] is best, at 3 + 2 + 4 + 1 + 0 = 10; it
/// holds 9 + 7 bytes at step 2. The least that any choice holds there is 4 + 3.
inline nlohmann::json chain() {
  return nlohmann::json::parse(R"({"problem": {
    "name": "chain",
    "nodes": {"intervals": [[0, 3], [2, 5], [7, 7]],
              "costs": [[8, 3], [6, 2], [4]],
              "usages": [[4, 9], [3, 7], [1000]]},
    "edges": {"nodes": [[0, 1], [2, 1]],
              "costs": [[0, 5, 2, 1], [3, 0]]},
    "usage_limit": 16}})");
}

/// The same with one value replaced, by its JSON pointer under "problem".
inline nlohmann::json chain_with(const std::string& where, const nlohmann::json& value) {
  auto j = chain();
  j[nlohmann::json::json_pointer("/problem" + where)] = value;
  return j;
}

inline contest::instance read(const nlohmann::json& j) { return contest::parse(j.dump()); }

/// A folder of its own for each test, gone afterwards.
class scratch {
 public:
  scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "mmr-contest-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;

  std::string operator/(const std::string& name) const { return (folder_ / name).string(); }
  /// Writes the bytes and returns the file's path.
  std::string put(const std::string& name, const std::string& bytes) const {
    std::ofstream(*this / name, std::ios::binary) << bytes;
    return *this / name;
  }
  std::string put_gzip(const std::string& name, const std::string& bytes) const {
    const auto path = *this / name;
    const auto file = ::gzopen(path.c_str(), "wb");
    ::gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    ::gzclose(file);
    return path;
  }

 private:
  std::filesystem::path folder_;
};

inline std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
