#include <mmr/io/text.hpp>
#include <set>

#include "catch.hpp"
#include "refusal.hpp"
#include "scratch.hpp"

namespace {

struct filled {
  std::vector<std::int32_t> tokens, targets;
};

filled part_of(const mmr::byte_dataset& data, std::uint64_t step, const mmr::batch_shape& shape, mmr::batch_part part) {
  const auto n = static_cast<std::size_t>((part.row_end - part.row_begin) * (part.column_end - part.column_begin));
  filled f{std::vector<std::int32_t>(n), std::vector<std::int32_t>(n)};
  data.batch(step, shape, part, f.tokens, f.targets);
  return f;
}

}  // namespace

TEST_CASE("every row is a window of the text, and targets are the next tokens") {
  std::string text;
  for (int i = 0; i < 250; ++i) text += static_cast<char>(i);  // every byte tells its place
  const mmr::byte_dataset data(text);
  const mmr::batch_shape shape{.batch = 64, .seq = 7, .seed = 3};
  std::set<std::int32_t> starts;
  for (std::uint64_t step = 0; step < 100; ++step) {
    const filled f = part_of(data, step, shape, {0, 64, 0, 7});
    for (std::size_t row = 0; row < 64; ++row) {
      starts.insert(f.tokens[row * 7]);
      for (std::size_t i = 0; i < 7; ++i) {
        REQUIRE(f.tokens[row * 7 + i] == f.tokens[row * 7] + static_cast<std::int32_t>(i));
        REQUIRE(f.targets[row * 7 + i] == f.tokens[row * 7 + i] + 1);
      }
    }
  }
  // 6400 draws from 243 windows reach all of them, the first and the last too.
  CHECK(starts.size() == 243);
  CHECK(*starts.rbegin() == 242);
}

TEST_CASE("parts of a batch are parts of the whole, whatever the cut") {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>('a' + i * i % 23);
  const mmr::byte_dataset data(text);
  const mmr::batch_shape shape{.batch = 5, .seq = 6, .seed = 1};
  const filled whole = part_of(data, 9, shape, {0, 5, 0, 6});
  for (std::int64_t rb = 0; rb <= 5; ++rb)
    for (std::int64_t re = rb; re <= 5; ++re)
      for (std::int64_t cb = 0; cb <= 6; ++cb)
        for (std::int64_t ce = cb; ce <= 6; ++ce) {
          const filled f = part_of(data, 9, shape, {rb, re, cb, ce});
          std::size_t i = 0;
          for (auto r = rb; r < re; ++r)
            for (auto c = cb; c < ce; ++c, ++i) {
              REQUIRE(f.tokens[i] == whole.tokens[static_cast<std::size_t>(r * 6 + c)]);
              REQUIRE(f.targets[i] == whole.targets[static_cast<std::size_t>(r * 6 + c)]);
            }
        }
}

TEST_CASE("step, seed and row each change the window; the batch size does not") {
  const mmr::byte_dataset data(std::string(100000, 'a'));
  const mmr::batch_shape shape{.batch = 4, .seq = 8, .seed = 1};
  CHECK(data.start(0, 0, shape) == data.start(0, 0, shape));
  CHECK(data.start(0, 0, shape) != data.start(1, 0, shape));
  CHECK(data.start(0, 0, shape) != data.start(0, 1, shape));
  CHECK(data.start(0, 1, shape) != data.start(1, 0, shape));
  CHECK(data.start(0, 0, shape) != data.start(0, 0, {.batch = 4, .seq = 8, .seed = 2}));
  CHECK(data.start(0, 0, shape) == data.start(0, 0, {.batch = 8, .seq = 8, .seed = 1}));
}

TEST_CASE("a text of exactly seq + 1 bytes is enough, one less is not") {
  const mmr::byte_dataset data("abcd", "short.txt");
  const filled f = part_of(data, 0, {.batch = 1, .seq = 3}, {0, 1, 0, 3});
  CHECK(f.tokens == std::vector<std::int32_t>{'a', 'b', 'c'});
  CHECK(f.targets == std::vector<std::int32_t>{'b', 'c', 'd'});
  CHECK_THAT(refusal([&] { data.expect(4, 256); }), contains("short.txt has 4 bytes") && contains("takes 5"));
  CHECK_THAT(refusal([&] { part_of(data, 0, {.batch = 1, .seq = 4}, {0, 1, 0, 4}); }), contains("short.txt"));
  CHECK_THAT(refusal([&] { data.expect(0, 256); }), contains("at least 1"));
}

TEST_CASE("a vocabulary must hold the largest byte of the text") {
  const mmr::byte_dataset data("a\xff z", "latin.txt");
  CHECK(data.largest_token() == 255);
  CHECK_NOTHROW(data.expect(2, 256));
  CHECK_NOTHROW(data.expect(2, 50257));
  CHECK_THAT(refusal([&] { data.expect(2, 255); }),
             contains("latin.txt holds the byte 255") && contains("at least 256"));
}

TEST_CASE("missing and empty texts are named") {
  const scratch dir;
  put(dir / "empty.txt", "");
  CHECK_THAT(refusal([&] { mmr::byte_dataset::from_path(dir / "none.txt"); }), contains("none.txt"));
  CHECK_THAT(refusal([&] { mmr::byte_dataset::from_path(dir / "empty.txt"); }), contains("empty.txt is empty"));
  CHECK_THAT(refusal([&] { mmr::byte_dataset::from_path(dir.folder); }), contains("is empty"));
}

TEST_CASE("a folder is the text of its files in the order of their names") {
  const scratch dir;
  std::filesystem::create_directory(dir / "b");
  put(dir / "c.txt", "3");
  put(dir / "b/x.txt", "2");
  put(dir / "a.txt", "1");
  CHECK(mmr::byte_dataset::from_path(dir.folder).text() == "123");
}

TEST_CASE("a part outside its batch or a buffer of another size is refused") {
  const mmr::byte_dataset data("abcdefgh");
  std::vector<std::int32_t> three(3), four(4);
  const mmr::batch_shape shape{.batch = 2, .seq = 2};
  CHECK_THAT(refusal([&] { data.batch(0, shape, {0, 3, 0, 2}, four, four); }), contains("batch of 2 rows of 2"));
  CHECK_THAT(refusal([&] { data.batch(0, shape, {0, 2, 0, 3}, four, four); }), contains("batch of 2 rows of 2"));
  CHECK_THAT(refusal([&] { data.batch(0, shape, four, three); }), contains("4 tokens and 3 targets"));
}
