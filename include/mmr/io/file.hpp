// Files read whole, and files written so that a reader never sees half of one: everything goes to a temporary name
// beside the target, and only a complete, flushed file takes the target's name.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
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
#include <vector>

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

/// Whether `name` is one that `atomic_file` gives to the temporary file of `target`: "target.tmp-PID-N".
inline bool is_temporary_of(std::string_view name, std::string_view target) {
  constexpr std::string_view mark = ".tmp-";
  if (!name.starts_with(target) || !name.substr(target.size()).starts_with(mark)) return false;
  const auto rest = name.substr(target.size() + mark.size());
  const auto dash = rest.find('-');
  const auto number = [](std::string_view s) {
    return !s.empty() && std::all_of(s.begin(), s.end(), [](char c) { return '0' <= c && c <= '9'; });
  };
  return dash != std::string_view::npos && number(rest.substr(0, dash)) && number(rest.substr(dash + 1));
}

inline std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

/// Removes the temporary files of `target` that killed processes have left. A writer holds a lock on its own, which the
/// system drops with the process: unlike a process number, it is not given to another later, and other machines see it.
inline void remove_leftovers(const std::filesystem::path& target) {
  std::error_code code;
  std::vector<std::filesystem::path> found;
  const auto name = target.filename().string();
  for (auto entry = std::filesystem::directory_iterator(folder_of(target), code);
       !code && entry != std::filesystem::directory_iterator(); entry.increment(code))
    if (is_temporary_of(entry->path().filename().string(), name)) found.push_back(entry->path());
  for (const auto& path : found) {
    const descriptor left(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
    if (left.is_open() && ::flock(left.get(), LOCK_EX | LOCK_NB) == 0) static_cast<void>(::unlink(path.c_str()));
  }
}

}  // namespace detail

/// Where a file of this name lies once symbolic links are followed, also where the last one leads to no file yet.
inline std::filesystem::path without_links(const std::filesystem::path& path) {
  auto at = path;
  for (int links = 0; links < 40; ++links) {
    std::error_code code;
    const auto next = std::filesystem::read_symlink(at, code);
    if (code) return at;  // no link, or nothing at all
    at = next.is_absolute() ? next : at.parent_path() / next;
  }
  fail("the symbolic link ", path, " leads from link to link without end; name a file or mend the link");
}

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
/// it was and no temporary file is left. What a killed process left is removed by the next that writes the same target.
/// A symbolic link is followed, not replaced; permissions of a file that is replaced are kept. A target that exists and
/// is no regular file (a pipe, a device), or that is where standard output or error goes, is written directly; "-" is
/// standard output.
class atomic_file {
 public:
  explicit atomic_file(const std::filesystem::path& path) : path_(path == "-" ? "/dev/stdout" : path) {
    struct stat info {};
    const bool exists = ::stat(path_.c_str(), &info) == 0;
    if (exists && S_ISDIR(info.st_mode)) fail("cannot write ", path_, ": it is a folder; name a file");
    if (const int stream = exists ? standard_stream(info) : -1; stream >= 0) {
      fd_ = detail::descriptor(::fcntl(stream, F_DUPFD_CLOEXEC, 0));  // after what the stream has written
    } else if (exists && !S_ISREG(info.st_mode)) {
      // Not to be resolved: a link in /proc to a pipe names no path.
      fd_ = detail::descriptor(::open(path_.c_str(), O_WRONLY | O_CLOEXEC));
    } else {
      path_ = without_links(path_);
      detail::remove_leftovers(path_);
      // A private file is never readable by others, not even for a moment.
      const mode_t mode = exists ? info.st_mode & 0777 : 0666;
      for (int attempt = 0; attempt < 100 && !make_temporary(attempt, mode); ++attempt) {}
      if (exists && fd_.is_open()) static_cast<void>(::fchmod(fd_.get(), mode));  // what the umask took away
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

  /// Brings the data to the disk: after this, only the renaming is left to `commit`.
  void flush() {
    if (flushed_) return;
    if (fd_.get() < 0) fail("cannot write ", path_, ": it was already closed");
    if (::fsync(fd_.get()) != 0 && errno != EINVAL && errno != ENOTSUP && errno != EROFS) give_up(errno);
    // The duplicate holds the lock until the file has its name.
    lock_ = detail::descriptor(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
    if (const int code = fd_.reset()) give_up(code);
    flushed_ = true;
  }

  /// Gives the flushed file a name that others can find until `commit` gives it its own.
  void stage(const std::filesystem::path& name) {
    flush();
    if (!temporary_.empty()) rename_to(name), temporary_ = name;
  }

  /// Flushes the data to the disk, then gives the file its name.
  void commit() {
    flush();
    if (!temporary_.empty()) rename_to(path_), temporary_.clear();
    lock_.reset();
    flushed_ = false;
  }

  /// Removes what was written. Without effect after `commit`.
  void discard() noexcept {
    if (!temporary_.empty()) static_cast<void>(::unlink(temporary_.c_str()));
    temporary_.clear();
    fd_.reset();
    lock_.reset();
    flushed_ = false;
  }

 private:
  /// The descriptor of standard output or error where that is this file, else -1.
  static int standard_stream(const struct stat& file) {
    for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
      struct stat info {};
      if (::fstat(stream, &info) == 0 && info.st_dev == file.st_dev && info.st_ino == file.st_ino) return stream;
    }
    return -1;
  }

  /// False where the name is taken, and the next is to be tried.
  bool make_temporary(int attempt, mode_t mode) {
    temporary_ = path_;
    temporary_ += ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(attempt);
    fd_ = detail::descriptor(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (!fd_.is_open()) return errno != EEXIST;
    // A file system without locks is written all the same: its leftovers stay. Another process may have taken the file
    // for a leftover between the two calls, and removed it.
    struct stat info {};
    const bool taken = ::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    return !taken && !(::fstat(fd_.get(), &info) == 0 && info.st_nlink == 0);
  }

  void rename_to(const std::filesystem::path& name) {
    if (std::rename(temporary_.c_str(), name.c_str()) != 0) give_up(errno);
    // The new name is a change of the folder; losing it in a crash leaves the old file, which is whole too.
    const detail::descriptor parent(::open(detail::folder_of(name).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (parent.get() >= 0) static_cast<void>(::fsync(parent.get()));
  }

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
  detail::descriptor lock_;
  bool flushed_ = false;
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
