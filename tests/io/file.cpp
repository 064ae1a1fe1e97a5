#include <sys/sysmacros.h>

#include <mmr/io/file.hpp>

#include "catch.hpp"
#include "refusal.hpp"
#include "scratch.hpp"

namespace fs = std::filesystem;

TEST_CASE("a file is read as it was written, zero bytes and all") {
  const scratch dir;
  const std::string text("a\0b\n\xff", 5);
  mmr::write_text_file(dir / "a", text);
  CHECK(mmr::read_text_file(dir / "a") == text);
  mmr::write_text_file(dir / "a", "");
  CHECK(mmr::read_text_file(dir / "a").empty());
  CHECK(dir.files() == 1);
}

TEST_CASE("a file keeps its old content until the new one is complete") {
  const scratch dir;
  mmr::write_text_file(dir / "a", "old");
  {
    mmr::atomic_file file(dir / "a");
    file.append("new");
    CHECK(mmr::read_text_file(dir / "a") == "old");
    CHECK(dir.files() == 2);
  }
  CHECK(mmr::read_text_file(dir / "a") == "old");
  CHECK(dir.files() == 1);
}

TEST_CASE("a full disk leaves the old file and no temporary one") {
  const scratch dir;
  mmr::write_text_file(dir / "a", "old");
  {
    const full_disk limit(4096);
    const std::string message = refusal([&] { mmr::write_text_file(dir / "a", std::string(10000, 'x')); });
    CHECK_THAT(message, contains("a\"") && contains("free some space"));
  }
  CHECK(mmr::read_text_file(dir / "a") == "old");
  CHECK(dir.files() == 1);
}

TEST_CASE("what is no regular file is written in place, never replaced") {
  const scratch dir;
  REQUIRE(::mkfifo((dir / "pipe").c_str(), 0600) == 0);
  const mmr::detail::descriptor reader(::open((dir / "pipe").c_str(), O_RDONLY | O_NONBLOCK));
  mmr::write_text_file(dir / "pipe", "text");
  CHECK(fs::is_fifo(dir / "pipe"));
  std::string got(8, ' ');
  REQUIRE(::read(reader.get(), got.data(), got.size()) == 4);
  CHECK(got.substr(0, 4) == "text");
  CHECK(dir.files() == 1);
}

TEST_CASE("a device that is full says so") {
  const scratch dir;
  // Root could replace the machine's own device if the library were wrong, so root uses a copy; others cannot.
  fs::path device = "/dev/full";
  if (::geteuid() == 0) {
    device = dir / "full";
    if (::mknod(device.c_str(), S_IFCHR | 0600, ::makedev(1, 7)) != 0) return;
  }
  if (!mmr::detail::descriptor(::open(device.c_str(), O_WRONLY)).is_open()) return;
  CHECK_THAT(refusal([&] { mmr::write_text_file(device, "text"); }), contains("No space left on device"));
  CHECK(fs::is_character_file(device));
}

TEST_CASE("a symbolic link is followed, not replaced") {
  const scratch dir;
  mmr::write_text_file(dir / "real", "old");
  fs::create_symlink("real", dir / "link");
  mmr::write_text_file(dir / "link", "new");
  CHECK(fs::is_symlink(dir / "link"));
  CHECK(mmr::read_text_file(dir / "real") == "new");
}

TEST_CASE("a symbolic link to a file that is still to come, over others, leads there") {
  const scratch dir;
  fs::create_directory(dir / "there");
  fs::create_symlink("there/real", dir / "second");
  fs::create_symlink(dir / "second", dir / "link");
  mmr::write_text_file(dir / "link", "new");
  CHECK(fs::is_symlink(dir / "link"));
  CHECK(fs::is_symlink(dir / "second"));
  CHECK(mmr::read_text_file(dir / "there/real") == "new");
  fs::create_symlink("ring", dir / "gnir");
  fs::create_symlink("gnir", dir / "ring");
  CHECK_THAT(refusal([&] { mmr::write_text_file(dir / "ring", "new"); }), contains("ring\"") && contains("without end"));
}

TEST_CASE("a link in /proc that names no path is written through") {
  const scratch dir;
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const mmr::detail::descriptor reader(ends[0]);
  mmr::detail::descriptor writer(ends[1]);
  fs::create_symlink("/dev/fd/" + std::to_string(writer.get()), dir / "link");
  for (const auto& path : {fs::path("/dev/fd/" + std::to_string(writer.get())), dir / "link"}) {
    mmr::write_text_file(path, "text");
    std::string got(8, ' ');
    REQUIRE(::read(reader.get(), got.data(), got.size()) == 4);
    CHECK(got.substr(0, 4) == "text");
  }
  CHECK(dir.files() == 1);
}

TEST_CASE("a file that is replaced keeps its permissions") {
  const scratch dir;
  const auto mode = [&] {
    struct stat info {};
    REQUIRE(::stat((dir / "a").c_str(), &info) == 0);
    return info.st_mode & 0777;
  };
  mmr::write_text_file(dir / "a", "old");
  for (const mode_t wanted : {0600, 0666, 0640}) {
    REQUIRE(::chmod((dir / "a").c_str(), wanted) == 0);
    mmr::write_text_file(dir / "a", "new");
    CHECK(mode() == wanted);
  }
}

TEST_CASE("what a killed process left is removed, and what another is writing is not") {
  const scratch dir;
  put(dir / "a.tmp-1-0", "left by a process whose number another has now");
  put(dir / "a.tmp-4000000-7", "left");
  put(dir / "a.tmp-1-0-x", "another's");
  put(dir / "a.tmp-", "another's");
  put(dir / "b.tmp-1-0", "of another target");
  mmr::atomic_file slow(dir / "a");
  slow.append("slow");
  mmr::atomic_file flushed(dir / "a");
  flushed.append("flushed");
  flushed.flush();
  mmr::write_text_file(dir / "a", "quick");
  CHECK(dir.files() == 3 + 2 + 1);
  slow.commit();
  CHECK(mmr::read_text_file(dir / "a") == "slow");
  flushed.commit();
  CHECK(mmr::read_text_file(dir / "a") == "flushed");
  CHECK(dir.files() == 3 + 1);
}

TEST_CASE("a staged file is found under the given name, and then under its own") {
  const scratch dir;
  mmr::write_text_file(dir / "a", "old");
  {
    mmr::atomic_file file(dir / "a");
    file.append("new");
    file.stage(dir / "next");
    CHECK(mmr::read_text_file(dir / "a") == "old");
    CHECK(mmr::read_text_file(dir / "next") == "new");
    CHECK(dir.files() == 2);
    file.commit();
  }
  CHECK(mmr::read_text_file(dir / "a") == "new");
  CHECK(dir.files() == 1);
}

TEST_CASE("paths that cannot be read or written are named") {
  const scratch dir;
  CHECK_THAT(refusal([&] { mmr::read_text_file(dir / "missing"); }), contains("missing") && contains("No such file"));
  CHECK_THAT(refusal([&] { mmr::read_text_file(dir.folder); }), contains("not a regular file"));
  // A pipe that nobody writes to is refused at once.
  REQUIRE(::mkfifo((dir / "pipe").c_str(), 0600) == 0);
  CHECK_THAT(refusal([&] { mmr::read_text_file(dir / "pipe"); }), contains("not a regular file"));
  CHECK_THAT(refusal([&] { mmr::write_text_file(dir / "no/such/folder", ""); }), contains("No such file"));
  CHECK_THAT(refusal([&] { mmr::write_text_file(dir.folder, ""); }), contains("it is a folder"));
}

TEST_CASE("reading beyond the end of a file that shrank is an error") {
  const scratch dir;
  mmr::write_text_file(dir / "a", "0123456789");
  const mmr::input_file file(dir / "a");
  fs::resize_file(dir / "a", 4);
  std::string buffer(10, ' ');
  CHECK_THAT(refusal([&] { file.read(0, buffer.data(), buffer.size()); }), contains("ends at byte 4"));
}
