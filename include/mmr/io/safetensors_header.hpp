// The header of a safetensors file, read with distrust: names, element types, shapes and byte ranges.
// Format: 8 bytes little-endian length of the header, a JSON object, then the data, without holes.
// Source: https://github.com/huggingface/safetensors (README, "Format").
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <mmr/io/file.hpp>
#include <mmr/tensor/error.hpp>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mmr {

static_assert(std::endian::native == std::endian::little,
              "mmr: safetensors data are read and written as they lie in memory");

/// One tensor of a safetensors file: its element type as the file spells it ("F32"), its shape, row-major, and where
/// its bytes lie, counted from the first byte after the header.
struct safetensors_info {
  std::string type;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  std::int64_t elements() const {
    std::int64_t n = 1;
    for (const std::int64_t extent : shape) n *= extent;
    return n;
  }
};

/// Everything before the data. `data` is the offset of the first data byte in the file.
struct safetensors_header {
  std::map<std::string, safetensors_info> tensors;
  std::map<std::string, std::string> metadata;
  std::uint64_t data = 0;
};

namespace detail {

/// Bytes of one element, or 0 for a type that the format does not have.
inline std::size_t safetensors_size(std::string_view type) {
  struct entry {
    std::string_view name;
    std::size_t bytes;
  };
  constexpr std::array<entry, 15> types{{{"F64", 8},
                                         {"F32", 4},
                                         {"F16", 2},
                                         {"BF16", 2},
                                         {"I64", 8},
                                         {"I32", 4},
                                         {"I16", 2},
                                         {"I8", 1},
                                         {"U64", 8},
                                         {"U32", 4},
                                         {"U16", 2},
                                         {"U8", 1},
                                         {"BOOL", 1},
                                         {"F8_E4M3", 1},
                                         {"F8_E5M2", 1}}};
  for (const entry& e : types) {
    if (e.name == type) return e.bytes;
  }
  return 0;
}

inline std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

/// Bytes of a tensor; false where they do not fit in 63 bits.
inline bool safetensors_bytes(const std::vector<std::int64_t>& shape, std::size_t element, std::uint64_t& bytes) {
  constexpr auto limit = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  bytes = element;
  for (const std::int64_t extent : shape) {
    const auto e = static_cast<std::uint64_t>(extent);
    if (e != 0 && bytes > limit / e) return false;
    bytes *= e;
  }
  return true;
}

/// Parses the header and checks every statement in it against the file's size.
class safetensors_parser {
 public:
  explicit safetensors_parser(const input_file& file) : file_(file) {}

  safetensors_header parse() const {
    if (file_.size() < 8) damaged("it has ", file_.size(), " bytes, and the length of its header alone takes 8");
    std::uint64_t length = 0;
    file_.read(0, &length, sizeof length);
    if (length > file_.size() - 8) damaged("its header is said to take ", length, " of ", file_.size(), " bytes");
    if (length > longest_header) damaged("its header is said to take ", length, " bytes, more than ", longest_header);

    std::string text(static_cast<std::size_t>(length), '\0');
    file_.read(8, text.data(), text.size());
    safetensors_header header;
    header.data = 8 + length;
    const auto json = parse_json(text);
    if (!json.is_object()) damaged("its header is no JSON object");
    for (const auto& [name, value] : json.items()) {
      if (name == "__metadata__") {
        header.metadata = metadata(value);
      } else {
        header.tensors.emplace(name, tensor(name, value));
      }
    }
    check_ranges(header);
    return header;
  }

 private:
  static constexpr std::uint64_t longest_header = 100'000'000;  // the limit of the reference implementation

  template <class... Parts>
  [[noreturn]] void damaged(const Parts&... parts) const {
    fail(file_.path(), " is not a whole safetensors file: ", parts..., "; save or fetch it again");
  }

  nlohmann::json parse_json(const std::string& text) const {
    using json = nlohmann::json;
    // The parser itself would silently keep the last of two equal names. seen[d]: the names of the object now open
    // at depth d.
    std::vector<std::set<std::string>> seen;
    const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
      const auto d = static_cast<std::size_t>(depth);
      if (event == json::parse_event_t::object_start) {
        seen.resize(std::max(seen.size(), d + 2));
        seen[d + 1].clear();
      } else if (event == json::parse_event_t::key && !seen[d].insert(parsed.get<std::string>()).second) {
        damaged("its header names '", parsed.get<std::string>(), "' twice");
      }
      return true;
    };
    try {
      return json::parse(text, watch);
    } catch (const json::exception& e) {
      damaged("its header is no valid JSON (", e.what(), ")");
    }
  }

  std::map<std::string, std::string> metadata(const nlohmann::json& value) const {
    if (!value.is_object()) damaged("its __metadata__ is no JSON object");
    std::map<std::string, std::string> result;
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) damaged("its __metadata__ entry '", key, "' is no string");
      result.emplace(key, text.template get<std::string>());
    }
    return result;
  }

  safetensors_info tensor(const std::string& name, const nlohmann::json& value) const {
    const auto bad = [&](const auto&... parts) { damaged("its tensor '", name, "' ", parts...); };
    if (!value.is_object()) bad("is described by no JSON object");
    for (const char* key : {"dtype", "shape", "data_offsets"}) {
      if (!value.contains(key)) bad("has no ", key);
    }
    safetensors_info info;
    if (!value["dtype"].is_string()) bad("has a dtype that is no string");
    info.type = value["dtype"].get<std::string>();
    const std::size_t element = safetensors_size(info.type);
    if (element == 0) bad("has the unknown dtype '", info.type, "'");

    const auto natural = [](const nlohmann::json& number) {
      return number.is_number_unsigned() && number.get<std::uint64_t>() <= std::uint64_t{1} << 62;
    };
    if (!value["shape"].is_array()) bad("has a shape that is no array");
    for (const auto& extent : value["shape"]) {
      if (!natural(extent)) bad("has the extent ", extent.dump(), " in its shape");
      info.shape.push_back(extent.get<std::int64_t>());
    }
    const auto& range = value["data_offsets"];
    if (!range.is_array() || range.size() != 2 || !natural(range[0]) || !natural(range[1]))
      bad("has data_offsets that are not two natural numbers");
    info.begin = range[0].get<std::uint64_t>();
    info.end = range[1].get<std::uint64_t>();
    if (info.begin > info.end) bad("ends at byte ", info.end, " before it begins at byte ", info.begin);

    std::uint64_t bytes = 0;
    if (!safetensors_bytes(info.shape, element, bytes))
      bad("has the shape ", shape_text(info.shape), ", beyond any memory");
    if (info.end - info.begin != bytes)
      bad("takes ", info.end - info.begin, " bytes, but ", info.type, " of shape ", shape_text(info.shape), " takes ",
          bytes);
    return info;
  }

  /// The data of all tensors must follow each other without overlap or hole and end where the file ends.
  void check_ranges(const safetensors_header& header) const {
    const std::uint64_t size = file_.size() - header.data;
    std::vector<const std::pair<const std::string, safetensors_info>*> order;
    for (const auto& entry : header.tensors) order.push_back(&entry);
    std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
      return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
    });
    std::uint64_t at = 0;
    for (const auto* entry : order) {
      const auto& [name, info] = *entry;
      if (info.end > size)
        damaged("its tensor '", name, "' ends at data byte ", info.end, ", but the file holds only ", size,
                " data bytes");
      if (info.begin < at) damaged("its tensor '", name, "' overlaps another at data byte ", info.begin);
      if (info.begin > at) damaged("no tensor owns its data bytes ", at, " to ", info.begin);
      at = info.end;
    }
    if (at != size) damaged("it has ", size - at, " bytes after its last tensor");
  }

  const input_file& file_;
};

}  // namespace detail
}  // namespace mmr
