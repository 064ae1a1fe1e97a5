// What is shown to people: numbers with units, tables, progress.
#include <mmr/io/format.hpp>
#include <mmr/io/progress.hpp>
#include <mmr/io/table.hpp>
#include <sstream>

#include "catch.hpp"
#include "refusal.hpp"
#include "scratch.hpp"

namespace {

/// Advances by one millisecond whenever it is asked, so that no test depends on real time.
struct ticking_clock {
  using duration = std::chrono::milliseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<ticking_clock>;
  static constexpr bool is_steady = true;
  static time_point now() {
    static thread_local rep ticks = 0;
    return time_point(duration(++ticks));
  }
};

auto lines_of(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

}  // namespace

TEST_CASE("bytes are decimal, with three digits") {
  CHECK(mmr::format_bytes(0) == "0 B");
  CHECK(mmr::format_bytes(999) == "999 B");
  CHECK(mmr::format_bytes(1000) == "1 kB");
  CHECK(mmr::format_bytes(1536) == "1.54 kB");
  CHECK(mmr::format_bytes(31.4e9) == "31.4 GB");
  CHECK(mmr::format_bytes(999999) == "1.00 MB");
  CHECK(mmr::format_bytes(120e9) == "120 GB");
  CHECK(mmr::format_bytes(-2500) == "-2.50 kB");
}

TEST_CASE("seconds take the unit that suits them") {
  CHECK(mmr::format_seconds(0) == "0 s");
  CHECK(mmr::format_seconds(250e-9) == "250 ns");
  CHECK(mmr::format_seconds(0.0015) == "1.50 ms");
  CHECK(mmr::format_seconds(12.34) == "12.3 s");
  CHECK(mmr::format_seconds(125) == "2 min 05 s");
  CHECK(mmr::format_seconds(3599.9) == "1 h 00 min");
  CHECK(mmr::format_seconds(12000) == "3 h 20 min");
  CHECK(mmr::format_seconds(INFINITY) == "unknown");
}

TEST_CASE("bytes are parsed in decimal and binary units, and anything else is refused") {
  CHECK(mmr::parse_bytes("1500000") == 1500000);
  CHECK(mmr::parse_bytes("1.5MB") == 1500000);
  CHECK(mmr::parse_bytes("512 MiB") == 536870912);
  CHECK(mmr::parse_bytes("2G") == 2000000000);
  CHECK(mmr::parse_bytes("1ki") == 1024);
  CHECK(mmr::parse_bytes("7b") == 7);
  for (const char* bad : {"", "MB", "-5", "0", "0.5", "12 apples", "1.5.5MB", "nan", "inf", "3Mx"}) {
    INFO(bad);
    CHECK_THAT(refusal([&] { mmr::parse_bytes(bad); }), contains("is no number of bytes"));
  }
  for (const char* much : {"1e30", "9223372036854775807", "10000PB"})
    CHECK_THAT(refusal([&] { mmr::parse_bytes(much); }), contains("is more than can be counted"));
}

TEST_CASE("table columns line up, with units and rules, and letters beyond ASCII") {
  mmr::text_table table(
      {{"plan", mmr::align::left}, {"peak", mmr::align::right, "MB"}, {"step", mmr::align::right, "ms"}});
  table.add_row({"ddp", "120.5", "33.1"});
  table.add_rule();
  table.add_row({"größe", "9", ""});
  std::ostringstream out;
  out << table;
  CHECK(out.str() ==
        "plan    peak  step\n"
        "          MB    ms\n"
        "-----  -----  ----\n"
        "ddp    120.5  33.1\n"
        "-----  -----  ----\n"
        "größe      9\n");
  CHECK_THAT(refusal([&] { table.add_row({"one"}); }), contains("1 cells") && contains("3 columns"));
}

TEST_CASE("in a log, progress is about ten lines and says when it is done") {
  std::ostringstream out;
  {
    mmr::basic_progress<ticking_clock> progress("train", 1000, "steps", out, false);
    for (int step = 1; step <= 1000; ++step) progress.update(step, "loss 2.5");
    progress.update(1000);
  }
  CHECK(lines_of(out.str()) == 10);
  CHECK_THAT(out.str(), contains("train 100/1000 steps") && contains("train 1000/1000 steps") && contains("loss 2.5"));
  CHECK_THAT(out.str(), !contains("\r"));
  // one step a millisecond
  CHECK_THAT(out.str(), contains("1000 steps/s, 900 ms left"));
}

TEST_CASE("short work prints one line a step at most, and none is no trouble") {
  std::ostringstream out;
  mmr::basic_progress<ticking_clock> three("a", 3, "steps", out, false);
  for (int step = 1; step <= 3; ++step) three.update(step);
  CHECK(lines_of(out.str()) == 3);
  mmr::basic_progress<ticking_clock> none("b", 0, "steps", out, false);
  none.update(0);
  CHECK_THAT(out.str(), contains("b 0/0 steps"));
}

TEST_CASE("on a terminal, one line redraws itself, not too often, and covers what a longer one left") {
  std::ostringstream out;
  {
    mmr::basic_progress<ticking_clock> progress("t", 1000, "steps", out, true);
    progress.update(1, "a long text");
    for (int step = 2; step <= 1000; ++step) progress.update(step, step < 1000 ? "a long text" : "");
  }
  const std::string text = out.str();
  CHECK(lines_of(text) == 1);
  CHECK(text.back() == '\n');
  CHECK(std::count(text.begin(), text.end(), '\r') == 11);
  CHECK_THAT(text, contains("[========================] 1000/1000 steps"));
  const auto last = text.substr(text.rfind('\r') + 1);
  const auto before = text.substr(0, text.rfind('\r'));
  const auto shown = before.substr(before.rfind('\r') + 1);
  CHECK(last.size() - 1 > shown.find_last_not_of(' '));
}

TEST_CASE("work that stops early leaves the cursor on a new line") {
  std::ostringstream out;
  {
    mmr::basic_progress<ticking_clock> progress("t", 10, "steps", out, true);
    progress.update(3);
  }
  CHECK(out.str().back() == '\n');
  CHECK_THAT(out.str(), contains("3/10"));
}
