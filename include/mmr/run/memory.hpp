// The arena of a rank: one mapping, made once; and what of it is really resident.
#pragma once

#include <mmr/tensor/error.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <utility>
#include <vector>

namespace mmr {

/// Zeroed host memory, page-aligned. Move-only.
class host_memory {
 public:
  host_memory() = default;
  /// Fails, naming the size, where the machine does not give that much.
  explicit host_memory(std::int64_t bytes) : bytes_(bytes) {
    if (bytes == 0) return;
    data_ = ::mmap(nullptr, size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED) {
      data_ = nullptr;
      fail("the machine does not give the arena of ", bytes, " bytes; use more ranks, a smaller batch or model, or another plan");
    }
    // Large pages spare address translation; small arenas would only be rounded up.
    if (bytes >= (std::int64_t{16} << 20)) (void)::madvise(data_, size(), MADV_HUGEPAGE);
  }
  host_memory(host_memory&& o) noexcept : data_(std::exchange(o.data_, nullptr)), bytes_(std::exchange(o.bytes_, 0)) {}
  host_memory& operator=(host_memory&& o) noexcept {
    std::swap(data_, o.data_);
    std::swap(bytes_, o.bytes_);
    return *this;
  }
  ~host_memory() {
    if (data_) (void)::munmap(data_, size());
  }

  char* data() const { return static_cast<char*>(data_); }
  std::int64_t bytes() const { return bytes_; }

  /// Bytes of it that are resident now, in whole pages.
  std::int64_t resident() const {
    if (!data_) return 0;
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> pages((size() + page - 1) / page);
    if (::mincore(data_, size(), pages.data()) != 0) return -1;
    std::int64_t count = 0;
    for (auto p : pages) count += p & 1;
    return std::min(count * static_cast<std::int64_t>(page), bytes_);
  }

 private:
  std::size_t size() const { return static_cast<std::size_t>(bytes_); }
  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

/// Bytes of this process that are resident, or -1 where the system does not say.
inline std::int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t total = 0, resident = 0;
  if (!(statm >> total >> resident)) return -1;
  return resident * ::sysconf(_SC_PAGESIZE);
}

}  // namespace mmr
