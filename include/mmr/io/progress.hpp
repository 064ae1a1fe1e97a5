// The progress of long work: a bar that redraws itself on a terminal, about ten lines in a log.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <mmr/io/format.hpp>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace mmr {

/// Shows how much of `total` units is done, the rate, the time left, and a text of the caller's (say the loss). `Clock`
/// is replaced in tests.
template <class Clock = std::chrono::steady_clock>
class basic_progress {
 public:
  /// On standard error.
  basic_progress(std::string title, std::int64_t total, std::string unit = "steps")
      : basic_progress(std::move(title), total, std::move(unit), std::cerr, ::isatty(STDERR_FILENO) == 1) {}

  basic_progress(std::string title, std::int64_t total, std::string unit, std::ostream& out, bool terminal)
      : title_(std::move(title)), unit_(std::move(unit)), total_(total), out_(out), terminal_(terminal) {}
  basic_progress(const basic_progress&) = delete;
  basic_progress& operator=(const basic_progress&) = delete;
  /// Work that stops early still leaves the cursor on a new line.
  ~basic_progress() {
    if (drawn_length_ > 0) out_ << std::endl;
  }

  /// `done` units are finished. Draws at most ten times a second on a terminal, else once every tenth of the work.
  void update(std::int64_t done, std::string_view text = {}) {
    const auto now = Clock::now();
    const bool last = done >= total_;
    if (terminal_) {
      if (!last && drawn_any_ && now - drawn_at_ < std::chrono::milliseconds(100)) return;
    } else {
      const std::int64_t tenth = total_ > 0 ? done * 10 / total_ : 10;
      if (tenth <= tenth_ && !(last && !finished_)) return;
      tenth_ = tenth;
    }
    if (last && std::exchange(finished_, true)) return;
    drawn_any_ = true;
    drawn_at_ = now;
    draw(done, std::chrono::duration<double>(now - begun_).count(), text, last);
  }

 private:
  void draw(std::int64_t done, double elapsed, std::string_view text, bool last) {
    const double share = total_ > 0 ? std::min(1.0, static_cast<double>(done) / static_cast<double>(total_)) : 1.0;
    std::string line = title_ + " ";
    if (terminal_) {
      constexpr std::size_t width = 24;
      const auto full = static_cast<std::size_t>(share * width);
      line += "[" + std::string(full, '=') + std::string(width - full, ' ') + "] ";
    }
    line += std::to_string(done) + "/" + std::to_string(total_) + " " + unit_;
    if (elapsed > 0 && done > 0) {
      const double rate = static_cast<double>(done) / elapsed;
      line += ", " + detail::three_digits(rate) + " " + unit_ + "/s, ";
      line += last ? format_seconds(elapsed) : format_seconds(static_cast<double>(total_ - done) / rate) + " left";
    }
    if (!text.empty()) line += ", " + std::string(text);

    if (!terminal_) {
      out_ << line << std::endl;
      return;
    }
    // Blanks cover what a longer line has left.
    const std::size_t length = line.size();
    line.resize(std::max(length, drawn_length_), ' ');
    out_ << '\r' << line;
    drawn_length_ = last ? 0 : length;
    if (last) out_ << '\n';
    out_.flush();
  }

  std::string title_;
  std::string unit_;
  std::int64_t total_;
  std::ostream& out_;
  bool terminal_;
  typename Clock::time_point begun_ = Clock::now();
  typename Clock::time_point drawn_at_{};
  std::size_t drawn_length_ = 0;  // of the line that the cursor stands on; 0: on an empty one
  std::int64_t tenth_ = 0;
  bool drawn_any_ = false;
  bool finished_ = false;
};

using progress = basic_progress<>;

}  // namespace mmr
