// Text as training data: every byte is a token, and a batch is the same on every rank that asks for a part of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <mmr/io/file.hpp>
#include <mmr/tensor/error.hpp>
#include <mmr/tensor/hash.hpp>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace mmr {

/// The whole batch: `batch` rows of `seq` tokens, drawn with `seed`.
struct batch_shape {
  std::int64_t batch;
  std::int64_t seq;
  std::uint64_t seed = 0;
};

/// The rows and columns of a batch that one rank holds, as half-open ranges.
struct batch_part {
  std::int64_t row_begin;
  std::int64_t row_end;
  std::int64_t column_begin;
  std::int64_t column_end;
};

/// Tokens 0 to 255 from a text.
class byte_dataset {
 public:
  /// `name` is what errors call the text. An empty text is an error.
  explicit byte_dataset(std::string text, std::string name = "the text")
      : text_(std::move(text)), name_(std::move(name)) {
    if (text_.empty()) fail(name_, " is empty: name a file with text");
    for (const char c : text_) largest_ = std::max<std::int32_t>(largest_, static_cast<unsigned char>(c));
  }

  /// A file, or a folder: then all regular files below it, in the order of their names.
  static byte_dataset from_path(const std::filesystem::path& path) {
    std::error_code code;
    if (!std::filesystem::exists(path, code)) fail("there is no text file ", path, ": check the path");
    if (!std::filesystem::is_directory(path, code)) return byte_dataset(read_text_file(path), path.string());

    std::vector<std::filesystem::path> files;
    for (auto entry = std::filesystem::recursive_directory_iterator(path, code);
         !code && entry != std::filesystem::recursive_directory_iterator(); entry.increment(code)) {
      if (entry->is_regular_file(code)) files.push_back(entry->path());
    }
    if (code) fail("cannot list the folder ", path, ": ", code.message());
    std::sort(files.begin(), files.end());
    std::string text;
    for (const auto& file : files) text += read_text_file(file);
    return byte_dataset(std::move(text), path.string());
  }

  std::size_t size() const { return text_.size(); }
  std::string_view text() const { return text_; }
  const std::string& name() const { return name_; }
  std::int32_t largest_token() const { return largest_; }

  /// Throws unless windows of seq + 1 tokens exist and a model of `vocab` words knows every token.
  void expect(std::int64_t seq, std::int64_t vocab) const {
    expect_length(seq);
    if (vocab <= largest_)
      fail(name_, " holds the byte ", largest_, ", beyond a vocabulary of ", vocab, ": use one of at least ",
           largest_ + 1, " words (256 hold every byte)");
  }

  /// Fills `part` of the batch of this `step`, row-major: the tokens, and for each the token that follows it. Every row
  /// is a window of the text at a place that depends on seed, step and row alone, never on the part.
  void batch(std::uint64_t step, const batch_shape& shape, const batch_part& part, std::span<std::int32_t> tokens,
             std::span<std::int32_t> targets) const {
    expect_length(shape.seq);
    const bool inside = 0 <= part.row_begin && part.row_begin <= part.row_end && part.row_end <= shape.batch &&
                        0 <= part.column_begin && part.column_begin <= part.column_end && part.column_end <= shape.seq;
    if (!inside)
      fail("rows ", part.row_begin, " to ", part.row_end, " and columns ", part.column_begin, " to ", part.column_end,
           " do not lie in a batch of ", shape.batch, " rows of ", shape.seq, " tokens");
    const auto columns = static_cast<std::size_t>(part.column_end - part.column_begin);
    const std::size_t count = static_cast<std::size_t>(part.row_end - part.row_begin) * columns;
    if (tokens.size() != count || targets.size() != count)
      fail("a part of ", count, " tokens does not fit buffers of ", tokens.size(), " tokens and ", targets.size(),
           " targets");

    std::size_t out = 0;
    for (std::int64_t row = part.row_begin; row < part.row_end; ++row) {
      const std::size_t from = start(step, row, shape) + static_cast<std::size_t>(part.column_begin);
      for (std::size_t i = 0; i < columns; ++i, ++out) {
        tokens[out] = token(from + i);
        targets[out] = token(from + i + 1);
      }
    }
  }

  /// All rows and columns.
  void batch(std::uint64_t step, const batch_shape& shape, std::span<std::int32_t> tokens,
             std::span<std::int32_t> targets) const {
    batch(step, shape, {0, shape.batch, 0, shape.seq}, tokens, targets);
  }

  /// The first token of a row's window.
  std::size_t start(std::uint64_t step, std::int64_t row, const batch_shape& shape) const {
    const std::uint64_t windows = text_.size() - static_cast<std::size_t>(shape.seq);
    const auto of_step = detail::mixed(detail::mixed(shape.seed) + step);
    return static_cast<std::size_t>(detail::mixed(of_step + static_cast<std::uint64_t>(row)) % windows);
  }

 private:
  std::int32_t token(std::size_t i) const { return static_cast<unsigned char>(text_[i]); }

  void expect_length(std::int64_t seq) const {
    if (seq < 1) fail("a sequence of ", seq, " tokens cannot be trained on: use at least 1");
    if (text_.size() <= static_cast<std::size_t>(seq))
      fail(name_, " has ", text_.size(), " bytes, and a sequence of ", seq, " tokens with its next one takes ", seq + 1,
           ": use a longer text or a shorter sequence");
  }

  std::string text_;
  std::string name_;
  std::int32_t largest_ = 0;
};

}  // namespace mmr
