// A folder of its own for each test, removed afterwards, and a way to make the disk full.
#pragma once

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

struct scratch {
  std::filesystem::path folder;

  scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "mmr-io-XXXXXX").string();
    folder = ::mkdtemp(name.data());
  }
  ~scratch() { std::filesystem::remove_all(folder); }
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;

  std::filesystem::path operator/(const char* name) const { return folder / name; }
  auto files() const {
    return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
  }
};

/// Writes a file without the library, and without waiting for the disk.
inline void put(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// While it lives, no file may grow beyond `bytes`: writes fail as on a full disk, for root as well.
class full_disk {
 public:
  explicit full_disk(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~full_disk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }
  full_disk(const full_disk&) = delete;
  full_disk& operator=(const full_disk&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};
