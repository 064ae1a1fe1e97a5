// Files read whole, and files written so that a reader never sees half of one: everything goes to a temporary name
// beside the target, and only a complete, flushed file takes the target's name.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <mmr/tensor/error.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace mmr {

namespace detail {

inline std::string reason(int code) {
  return std::generic_category().message(code);
}

/// Owns a POSIX file descriptor.
class descriptor {
 public:
  descriptor() = default;
  explicit descriptor(int fd) : fd_(fd) {}
  descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~descriptor() { reset(); }

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  /// Closes the file. Returns 0, or the error code: some file systems report a full disk only here.
  int reset() {
    const int fd = std::exchange(fd_, -1);
    return fd >= 0 && ::close(fd) != 0 && errno != EINTR ? errno : 0;
  }

 private:
  int fd_ = -1;
};

}  // namespace detail

/// A regular file open for reading at any offset. Errors name the file.
class input_file {
 public:
  explicit input_file(std::filesystem::path path) : path_(std::move(path)) {
    // A pipe without a writer is refused below, as all pipes are, and not waited for.
    fd_ = detail::descriptor(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (fd_.get() < 0) fail("cannot open ", path_, ": ", detail::reason(errno), "; check the path and its permissions");
    struct stat info {};
    if (::fstat(fd_.get(), &info) != 0) fail("cannot examine ", path_, ": ", detail::reason(errno));
    if (!S_ISREG(info.st_mode)) fail(path_, " is not a regular file: name a file, not a folder, pipe or device");
    size_ = static_cast<std::uint64_t>(info.st_size);
  }

  const std::filesystem::path& path() const { return path_; }
  /// Bytes, as they were when the file was opened.
  std::uint64_t size() const { return size_; }

  /// Fills `out` with `bytes` bytes from `offset`. A file that has shrunk meanwhile is an error.
  void read(std::uint64_t offset, void* out, std::size_t bytes) const {
    auto* to = static_cast<char*>(out);
    while (bytes > 0) {
      const ssize_t got = ::pread(fd_.get(), to, bytes, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail("cannot read ", path_, ": ", detail::reason(errno));
      if (got == 0)
        fail(path_, " ends at byte ", offset, " while it is read: another program has cut it; read it again");
      to += got;
      offset += static_cast<std::uint64_t>(got);
      bytes -= static_cast<std::size_t>(got);
    }
  }

 private:
  std::filesystem::path path_;
  detail::descriptor fd_;
  std::uint64_t size_ = 0;
};

/// A file that appears under its name only when `commit` succeeds; before that, and after any error, the target is as
/// it was and no temporary file is left. A target that exists and is no regular file (a pipe, /dev/stdout) is written
/// directly.
class atomic_file {
 public:
  explicit atomic_file(const std::filesystem::path& path) : path_(path) {
    std::error_code ignored;
    // Renaming would replace a symbolic link, so its target is written instead.
    if (std::filesystem::is_symlink(path_, ignored)) path_ = std::filesystem::weakly_canonical(path_);
    const auto status = std::filesystem::status(path_, ignored);
    if (std::filesystem::is_directory(status)) fail("cannot write ", path_, ": it is a folder; name a file");
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
      fd_ = detail::descriptor(::open(path_.c_str(), O_WRONLY | O_CLOEXEC));
    } else {
      for (int attempt = 0; attempt < 100; ++attempt) {
        temporary_ = path_;
        temporary_ += ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(attempt);
        fd_ = detail::descriptor(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
        if (fd_.get() >= 0 || errno != EEXIST) break;
      }
    }
    if (fd_.get() < 0) {
      const int code = errno;
      temporary_.clear();
      fail("cannot write ", path_, ": ", detail::reason(code), "; choose a folder that exists and may be written to");
    }
  }
  atomic_file(const atomic_file&) = delete;
  atomic_file& operator=(const atomic_file&) = delete;
  ~atomic_file() { discard(); }

  const std::filesystem::path& path() const { return path_; }

  /// Writes after what was written last.
  void append(std::string_view bytes) {
    write_all(bytes.data(), bytes.size(),
              [this](const char* from, std::size_t n) { return ::write(fd_.get(), from, n); });
  }

  /// Writes `size` bytes at `offset`, in any order. Threads may write different places at the same time.
  void write(std::uint64_t offset, const void* data, std::size_t size) {
    write_all(static_cast<const char*>(data), size, [&](const char* from, std::size_t n) {
      const ssize_t put = ::pwrite(fd_.get(), from, n, static_cast<off_t>(offset));
      if (put > 0) offset += static_cast<std::uint64_t>(put);
      return put;
    });
  }

  /// Flushes the data to the disk, then gives the file its name.
  void commit() {
    if (fd_.get() < 0) fail("cannot write ", path_, ": it was already closed");
    if (::fsync(fd_.get()) != 0 && errno != EINVAL && errno != ENOTSUP && errno != EROFS) give_up(errno);
    if (const int code = fd_.reset()) give_up(code);
    if (temporary_.empty()) return;
    if (std::rename(temporary_.c_str(), path_.c_str()) != 0) give_up(errno);
    temporary_.clear();
    // The new name is a change of the folder; losing it in a crash leaves the old file, which is whole too.
    const auto folder = path_.has_parent_path() ? path_.parent_path() : std::filesystem::path(".");
    const detail::descriptor parent(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (parent.get() >= 0) static_cast<void>(::fsync(parent.get()));
  }

  /// Removes what was written. Without effect after `commit`.
  void discard() noexcept {
    fd_.reset();
    if (!temporary_.empty()) static_cast<void>(::unlink(temporary_.c_str()));
    temporary_.clear();
  }

 private:
  template <class Write>
  void write_all(const char* from, std::size_t size, Write write_some) {
    while (size > 0) {
      const ssize_t put = write_some(from, size);
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) give_up(put < 0 ? errno : ENOSPC);
      from += put;
      size -= static_cast<std::size_t>(put);
    }
  }

  [[noreturn]] void give_up(int code) {
    discard();
    fail("cannot write ", path_, ": ", detail::reason(code),
         "; nothing is left behind and an older file of that name is unchanged; free some space or choose another "
         "place");
  }

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  detail::descriptor fd_;
};

/// The whole file as a string of bytes.
inline std::string read_text_file(const std::filesystem::path& path) {
  const input_file file(path);
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read(0, text.data(), text.size());
  return text;
}

/// Replaces the file by `text`, or leaves it unchanged and throws.
inline void write_text_file(const std::filesystem::path& path, std::string_view text) {
  atomic_file file(path);
  file.append(text);
  file.commit();
}

}  // namespace mmr
