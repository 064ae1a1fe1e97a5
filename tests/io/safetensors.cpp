#include <cmath>
#include <mmr/io/safetensors.hpp>
#include <numeric>

#include "catch.hpp"
#include "refusal.hpp"
#include "scratch.hpp"

using Catch::Matchers::StartsWith;

namespace {

template <class T>
std::vector<T> counting(std::size_t n) {
  std::vector<T> v(n);
  std::iota(v.begin(), v.end(), T(1));
  return v;
}

/// A file of this header and these data, whatever they say.
void write_raw(const std::filesystem::path& path, const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  std::string text(reinterpret_cast<const char*>(&length), sizeof length);
  put(path, text + header + data);
}

template <class T>
std::vector<T> read(const mmr::safetensors_file& file, const std::string& name) {
  std::vector<T> out(static_cast<std::size_t>(file.info(name).elements()));
  file.read<T>(name, out);
  return out;
}

}  // namespace

TEST_CASE("what is written is read back, with names, shapes and metadata") {
  const scratch dir;
  const auto weights = counting<float>(12);
  const auto moments = counting<double>(3);
  const std::vector<std::int32_t> steps{-7};
  {
    mmr::safetensors_writer writer(dir / "a.safetensors");
    writer.set_metadata("format", "pt");
    writer.add("h.0.weight", mmr::dtype::f32, {3, 4});
    writer.add("step", mmr::dtype::i32, {});
    writer.add("moments", mmr::dtype::f64, {3});
    writer.add("nothing", mmr::dtype::f32, {0, 5});
    writer.write<double>("moments", moments);
    writer.write<float>("h.0.weight", weights);
    writer.write<std::int32_t>("step", steps);
    CHECK_FALSE(std::filesystem::exists(dir / "a.safetensors"));
    writer.commit();
  }
  CHECK(dir.files() == 1);

  const mmr::safetensors_file file(dir / "a.safetensors");
  CHECK(file.names() == std::vector<std::string>{"h.0.weight", "moments", "nothing", "step"});
  CHECK(file.metadata() == std::map<std::string, std::string>{{"format", "pt"}});
  CHECK(file.info("h.0.weight").shape == std::vector<std::int64_t>{3, 4});
  CHECK(file.info("h.0.weight").type == "F32");
  CHECK(read<float>(file, "h.0.weight") == weights);
  CHECK(read<double>(file, "moments") == moments);
  CHECK(read<std::int32_t>(file, "step") == steps);
  CHECK(read<float>(file, "nothing").empty());
  CHECK(read<double>(file, "h.0.weight") == counting<double>(12));
  CHECK(read<float>(file, "moments") == counting<float>(3));
  for (const auto& [name, info] : file.tensors()) CHECK(info.begin % 4 == 0);
  CHECK(file.info("moments").begin % 8 == 0);
}

TEST_CASE("a writer converts between float and double, beyond one buffer") {
  const scratch dir;
  const std::size_t n = 2 * mmr::detail::safetensors_chunk + 17;
  mmr::safetensors_writer writer(dir / "a");
  writer.add("a", mmr::dtype::f32, {static_cast<std::int64_t>(n)});
  writer.add("b", mmr::dtype::f64, {static_cast<std::int64_t>(n)});
  writer.write<double>("a", counting<double>(n));
  writer.write<float>("b", counting<float>(n));
  writer.commit();
  const mmr::safetensors_file file(dir / "a");
  CHECK(read<double>(file, "a") == counting<double>(n));
  CHECK(read<float>(file, "b") == counting<float>(n));
}

TEST_CASE("every box of a tensor equals the same box of the whole, read and written") {
  const scratch dir;
  const std::vector<std::int64_t> shape{3, 4, 5};
  const auto whole = counting<float>(60);
  mmr::safetensors_writer whole_writer(dir / "whole");
  whole_writer.add("t", mmr::dtype::f32, shape);
  whole_writer.write<float>("t", whole);
  whole_writer.commit();
  const mmr::safetensors_file file(dir / "whole");

  std::vector<std::int64_t> start(3), extent(3);
  for (start[0] = 0; start[0] < 3; ++start[0])
    for (start[1] = 0; start[1] < 4; ++start[1])
      for (start[2] = 0; start[2] < 5; ++start[2])
        for (extent[0] = 0; extent[0] <= 3 - start[0]; ++extent[0])
          for (extent[1] = 0; extent[1] <= 4 - start[1]; ++extent[1])
            for (extent[2] = 0; extent[2] <= 5 - start[2]; ++extent[2]) {
              std::vector<double> expected;
              for (auto i = start[0]; i < start[0] + extent[0]; ++i)
                for (auto j = start[1]; j < start[1] + extent[1]; ++j)
                  for (auto k = start[2]; k < start[2] + extent[2]; ++k)
                    expected.push_back(static_cast<double>(whole[static_cast<std::size_t>(i * 20 + j * 5 + k)]));
              std::vector<double> converted(expected.size());
              std::vector<float> direct(expected.size());
              file.read_box<double>("t", start, extent, converted);
              file.read_box<float>("t", start, extent, direct);
              REQUIRE(converted == expected);
              REQUIRE(std::equal(direct.begin(), direct.end(), expected.begin()));
            }

  // Shards of unequal size along two axes, as ranks hold them, make the whole again.
  mmr::safetensors_writer writer(dir / "shards");
  writer.add("t", mmr::dtype::f32, shape);
  for (const std::vector<std::int64_t>& rows : {std::vector<std::int64_t>{0, 3}, std::vector<std::int64_t>{3, 1}})
    for (const std::vector<std::int64_t>& columns :
         {std::vector<std::int64_t>{2, 3}, std::vector<std::int64_t>{0, 2}}) {
      std::vector<double> shard(static_cast<std::size_t>(3 * rows[1] * columns[1]));
      file.read_box<double>("t", {0, rows[0], columns[0]}, {3, rows[1], columns[1]}, shard);
      writer.write_box<double>("t", {0, rows[0], columns[0]}, {3, rows[1], columns[1]}, shard);
    }
  writer.commit();
  CHECK(read<float>(mmr::safetensors_file(dir / "shards"), "t") == whole);
}

TEST_CASE("half precision and bfloat16 are read exactly") {
  const scratch dir;
  // 1, -2, largest, smallest subnormal, smallest normal, infinity, -0, a third
  const std::vector<std::uint16_t> half{0x3C00, 0xC000, 0x7BFF, 0x0001, 0x0400, 0x7C00, 0x8000, 0x3555};
  const std::vector<float> half_values{1,        -2,    65504,          std::ldexp(1.0F, -24), std::ldexp(1.0F, -14),
                                       INFINITY, -0.0F, 0.333251953125F};
  const std::vector<std::uint16_t> brain{0x3F80, 0xC000, 0x3EAB, 0x7F80};
  const std::vector<float> brain_values{1, -2, 0.333984375F, INFINITY};
  std::string data(24, '\0');
  std::memcpy(data.data(), half.data(), 16);
  std::memcpy(data.data() + 16, brain.data(), 8);
  write_raw(
      dir / "a",
      R"({"h":{"dtype":"F16","shape":[8],"data_offsets":[0,16]},"b":{"dtype":"BF16","shape":[2,2],"data_offsets":[16,24]}})",
      data);
  const mmr::safetensors_file file(dir / "a");
  CHECK(read<float>(file, "h") == half_values);
  CHECK(std::signbit(read<float>(file, "h")[6]));
  CHECK(read<float>(file, "b") == brain_values);
  CHECK(std::isnan(mmr::detail::float_of_f16(0x7E00)));
  CHECK_THAT(refusal([&] { read<std::int32_t>(file, "h"); }), contains("'h' holds F16") && contains("int32"));
}

TEST_CASE("other types are accepted in a file, and refused when read") {
  const scratch dir;
  write_raw(dir / "a", R"({"mask":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}}   )", "abc");
  const mmr::safetensors_file file(dir / "a");
  CHECK(file.info("mask").type == "BOOL");
  CHECK_THAT(refusal([&] { read<float>(file, "mask"); }), contains("'mask' holds BOOL"));
}

TEST_CASE("a file that is damaged anywhere is refused, and the sentence says where") {
  const scratch dir;
  const auto path = dir / "bad.safetensors";
  const auto refused = [&](const std::string& header, const std::string& data, const std::string& reason) {
    write_raw(path, header, data);
    INFO(header);
    const std::string message = refusal([&] { mmr::safetensors_file file(path); });
    CHECK_THAT(message, contains("bad.safetensors") && contains(reason) && contains("fetch it again"));
  };
  const std::string eight(8, 'x');

  refused("", "", "no valid JSON");
  refused("[]", "", "no JSON object");
  refused(R"({"a":)", "", "no valid JSON");
  refused("{\"\xff\":1}", "", "no valid JSON");
  refused(R"({"a":7})", "", "'a' is described by no JSON object");
  refused(R"({"a":{"shape":[2],"data_offsets":[0,8]}})", eight, "'a' has no dtype");
  refused(R"({"a":{"dtype":"F32","data_offsets":[0,8]}})", eight, "'a' has no shape");
  refused(R"({"a":{"dtype":"F32","shape":[2]}})", eight, "'a' has no data_offsets");
  refused(R"({"a":{"dtype":32,"shape":[2],"data_offsets":[0,8]}})", eight, "a dtype that is no string");
  refused(R"({"a":{"dtype":"F31","shape":[2],"data_offsets":[0,8]}})", eight, "unknown dtype 'F31'");
  refused(R"({"a":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})", eight, "a shape that is no array");
  refused(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", eight, "the extent -2");
  refused(R"({"a":{"dtype":"F32","shape":[2.5],"data_offsets":[0,8]}})", eight, "the extent 2.5");
  refused(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}})", eight, "beyond any memory");
  refused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", eight, "not two natural numbers");
  refused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,-8]}})", eight, "not two natural numbers");
  refused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", eight, "ends at byte 0 before it begins");
  refused(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", eight, "F32 of shape [3] takes 12");
  refused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", eight.substr(1), "only 7 data bytes");
  refused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", eight + "x", "1 bytes after its last tensor");
  refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", eight, "no tensor owns its data bytes 0 to 4");
  refused(
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
      eight, "'b' overlaps");
  refused(
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
      eight, "names 'a' twice");
  refused(R"({"a":{"dtype":"F32","dtype":"F64","shape":[1],"data_offsets":[0,8]}})", eight, "names 'dtype' twice");
  refused(R"({"__metadata__":7})", "", "__metadata__ is no JSON object");
  refused(R"({"__metadata__":{"a":7}})", "", "__metadata__ entry 'a' is no string");

  put(path, "1234567");
  CHECK_THAT(refusal([&] { mmr::safetensors_file file(path); }), contains("it has 7 bytes"));
  put(path, std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10));
  CHECK_THAT(refusal([&] { mmr::safetensors_file file(path); }), contains("of 10 bytes"));
}

TEST_CASE("a file cut at any byte is refused") {
  const scratch dir;
  {
    mmr::safetensors_writer writer(dir / "a");
    writer.add("a", mmr::dtype::f32, {2, 2});
    writer.add("b", mmr::dtype::f64, {2});
    writer.write<float>("a", counting<float>(4));
    writer.write<double>("b", counting<double>(2));
    writer.commit();
  }
  const std::string whole = mmr::read_text_file(dir / "a");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    put(dir / "cut", whole.substr(0, length));
    INFO(length << " of " << whole.size() << " bytes");
    REQUIRE_THROWS_AS(mmr::safetensors_file(dir / "cut"), mmr::error);
  }
}

TEST_CASE("a header with any byte changed is read or refused with mmr::error, never worse") {
  const scratch dir;
  write_raw(dir / "a", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", std::string(8, 'x'));
  const std::string whole = mmr::read_text_file(dir / "a");
  for (std::size_t i = 0; i < whole.size() - 8; ++i)
    for (const char c : {'\0', '9', '"', '}', '[', '\xff'}) {
      std::string changed = whole;
      changed[i] = c;
      put(dir / "changed", changed);
      try {
        const mmr::safetensors_file file(dir / "changed");
        for (const auto& [name, info] : file.tensors()) REQUIRE(info.end - info.begin == 8);
      } catch (const mmr::error& e) {
        REQUIRE_THAT(e.what(), contains("changed"));
      }
    }
}

TEST_CASE("asking for what a file does not hold is refused") {
  const scratch dir;
  mmr::safetensors_writer writer(dir / "a");
  writer.add("a", mmr::dtype::f32, {2, 3});
  writer.write<float>("a", counting<float>(6));
  writer.commit();
  const mmr::safetensors_file file(dir / "a");
  std::vector<float> six(6), two(2);
  CHECK_THAT(refusal([&] { file.info("b"); }), contains("no tensor 'b'"));
  CHECK_THAT(refusal([&] { file.read<float>("a", two); }), contains("buffer of 2") && contains("6 elements"));
  CHECK_THAT(refusal([&] { file.expect_shape("a", {3, 2}); }), contains("[2, 3]") && contains("[3, 2]"));
  CHECK_NOTHROW(file.expect_shape("a", {2, 3}));
  CHECK_THAT(refusal([&] { file.read_box<float>("a", {0, 2}, {1, 2}, two); }), contains("does not lie in"));
  CHECK_THAT(refusal([&] { file.read_box<float>("a", {-1, 0}, {1, 2}, two); }), contains("does not lie in"));
  CHECK_THAT(refusal([&] { file.read_box<float>("a", {0}, {2}, two); }), contains("does not lie in"));
}

TEST_CASE("a writer refuses what would make a wrong file, and leaves none") {
  const scratch dir;
  const auto one = counting<float>(1);
  {
    mmr::safetensors_writer writer(dir / "a");
    writer.add("a", mmr::dtype::f32, {1});
    writer.add("b", mmr::dtype::i32, {1});
    CHECK_THAT(refusal([&] { writer.add("a", mmr::dtype::f32, {1}); }), contains("'a' was already added"));
    CHECK_THAT(refusal([&] { writer.add("c", mmr::dtype::f32, {-1}); }), contains("[-1]"));
    CHECK_THAT(refusal([&] { writer.add("__metadata__", mmr::dtype::f32, {1}); }), contains("rename it"));
    CHECK_THAT(refusal([&] { writer.write<float>("z", one); }), contains("'z' is written, but was never added"));
    CHECK_THAT(refusal([&] { writer.write<float>("b", one); }), contains("announced as I32"));
    writer.write<float>("a", one);
    CHECK_THAT(refusal([&] { writer.add("c", mmr::dtype::f32, {1}); }), contains("add everything first"));
    CHECK_THAT(refusal([&] { writer.commit(); }), contains("'b' has 1 elements and 0 were written"));
  }
  CHECK(dir.files() == 0);
}

TEST_CASE("a full disk during saving leaves the older file and nothing else") {
  const scratch dir;
  put(dir / "a", "older");
  {
    const full_disk limit(20000);
    const std::string message = refusal([&] {
      mmr::safetensors_writer writer(dir / "a");
      writer.add("a", mmr::dtype::f32, {10000});
      writer.write<float>("a", counting<float>(10000));
      writer.commit();
    });
    CHECK_THAT(message, StartsWith("cannot write") && contains("free some space"));
  }
  CHECK(mmr::read_text_file(dir / "a") == "older");
  CHECK(dir.files() == 1);
}
