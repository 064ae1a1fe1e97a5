// Weights in the safetensors format, read and written whole or shard by shard, with conversion of the element type.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <mmr/io/box_runs.hpp>
#include <mmr/io/file.hpp>
#include <mmr/io/safetensors_header.hpp>
#include <mmr/tensor/dtype.hpp>
#include <mmr/tensor/error.hpp>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mmr {

namespace detail {

/// IEEE half precision, exactly.
inline float float_of_f16(std::uint16_t h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000U) << 16;
  const std::uint32_t exponent = (h >> 10) & 0x1FU;
  const std::uint32_t fraction = h & 0x3FFU;
  if (exponent == 0) {  // zero and subnormal numbers: fraction · 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return sign ? -magnitude : magnitude;
  }
  const std::uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

inline float float_of_bf16(std::uint16_t b) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(b) << 16);
}

template <class T>
constexpr std::string_view safetensors_type = dtype_of<T> == dtype::f32   ? "F32"
                                              : dtype_of<T> == dtype::f64 ? "F64"
                                                                          : "I32";

/// Whether elements of the file's `type` may become `T`: any floating-point type becomes any other, I32 stays I32.
template <class T>
bool safetensors_converts(std::string_view type) {
  if constexpr (std::is_integral_v<T>) return type == "I32";
  return type == "F32" || type == "F64" || type == "F16" || type == "BF16";
}

template <class From, class T, class Convert>
void convert_elements(const char* from, T* out, std::size_t count, Convert convert) {
  for (std::size_t i = 0; i < count; ++i) {
    From element;
    std::memcpy(&element, from + i * sizeof(From), sizeof(From));  // a file aligns nothing
    out[i] = static_cast<T>(convert(element));
  }
}

template <class T>
void elements_from_bytes(std::string_view type, const char* from, T* out, std::size_t count) {
  const auto same = [](auto x) { return x; };
  if constexpr (std::is_integral_v<T>) {
    std::memcpy(out, from, count * sizeof(T));
  } else if (type == "F32") {
    convert_elements<float>(from, out, count, same);
  } else if (type == "F64") {
    convert_elements<double>(from, out, count, same);
  } else if (type == "F16") {
    convert_elements<std::uint16_t>(from, out, count, float_of_f16);
  } else {
    convert_elements<std::uint16_t>(from, out, count, float_of_bf16);
  }
}

/// Elements converted at a time: enough to make a system call cheap, little beside a tensor.
inline constexpr std::size_t safetensors_chunk = 65536;

/// Throws unless the box lies in the tensor and `given` is its number of elements.
inline void check_box(const std::filesystem::path& path, std::string_view name, const std::vector<std::int64_t>& shape,
                      const std::vector<std::int64_t>& start, const std::vector<std::int64_t>& extent,
                      std::size_t given) {
  bool inside = start.size() == shape.size() && extent.size() == shape.size();
  std::size_t elements = 1;
  for (std::size_t d = 0; inside && d < shape.size(); ++d) {
    inside = start[d] >= 0 && extent[d] >= 0 && start[d] <= shape[d] && extent[d] <= shape[d] - start[d];
    if (inside) elements *= static_cast<std::size_t>(extent[d]);
  }
  if (!inside)
    fail(path, ": a box from ", shape_text(start), " of ", shape_text(extent), " does not lie in tensor '", name,
         "' of shape ", shape_text(shape));
  if (elements != given)
    fail(path, ": a buffer of ", given, " elements was given for ", elements, " elements of tensor '", name, "'");
}

}  // namespace detail

/// A safetensors file, checked in full when opened. Reading needs no more memory than the caller's buffer. Several
/// threads may read from one object.
class safetensors_file {
 public:
  explicit safetensors_file(const std::filesystem::path& path)
      : file_(path), header_(detail::safetensors_parser(file_).parse()) {}

  const std::filesystem::path& path() const { return file_.path(); }
  /// The entries of `__metadata__`; empty where the file has none.
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  const std::map<std::string, safetensors_info>& tensors() const { return header_.tensors; }

  /// In alphabetical order.
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& [name, info] : header_.tensors) result.push_back(name);
    return result;
  }

  bool contains(const std::string& name) const { return header_.tensors.contains(name); }

  const safetensors_info& info(const std::string& name) const {
    const auto found = header_.tensors.find(name);
    if (found == header_.tensors.end())
      fail(path(), " has no tensor '", name, "' among its ", header_.tensors.size(), ": it belongs to another model");
    return found->second;
  }

  /// Throws unless the tensor has this shape.
  void expect_shape(const std::string& name, const std::vector<std::int64_t>& shape) const {
    if (info(name).shape != shape)
      fail(path(), ": tensor '", name, "' has shape ", detail::shape_text(info(name).shape), ", and the model needs ",
           detail::shape_text(shape), ": the file belongs to another model or other settings");
  }

  /// Reads the whole tensor into `out`, of as many elements. F32, F64, F16 and BF16 become float or double; I32 becomes
  /// int32.
  template <class T>
  void read(const std::string& name, std::span<T> out) const {
    const auto& shape = info(name).shape;
    read_box(name, std::vector<std::int64_t>(shape.size(), 0), shape, out);
  }

  /// Reads the box [start, start + extent) of the tensor, row-major, into `out`.
  template <class T>
  void read_box(const std::string& name, const std::vector<std::int64_t>& start,
                const std::vector<std::int64_t>& extent, std::span<T> out) const {
    const safetensors_info& tensor = info(name);
    detail::check_box(path(), name, tensor.shape, start, extent, out.size());
    if (!detail::safetensors_converts<T>(tensor.type))
      fail(path(), ": tensor '", name, "' holds ", tensor.type, ", which is not read as ", name_of(dtype_of<T>),
           "; convert the file first");

    const std::size_t element = detail::safetensors_size(tensor.type);
    const bool same = tensor.type == detail::safetensors_type<T>;
    std::vector<char> buffer(same ? 0 : std::min(out.size(), detail::safetensors_chunk) * element);
    detail::for_each_run(
        tensor.shape, start, extent, [&](std::int64_t offset, std::int64_t position, std::int64_t count) {
          std::uint64_t from = header_.data + tensor.begin + static_cast<std::uint64_t>(offset) * element;
          T* to = out.data() + position;
          auto left = static_cast<std::size_t>(count);
          if (same) return file_.read(from, to, left * element);
          while (left > 0) {
            const std::size_t n = std::min(left, detail::safetensors_chunk);
            file_.read(from, buffer.data(), n * element);
            detail::elements_from_bytes(tensor.type, buffer.data(), to, n);
            from += n * element;
            to += n;
            left -= n;
          }
        });
  }

 private:
  input_file file_;
  safetensors_header header_;
};

/// Writes a safetensors file: first `add` and `set_metadata`, then `write` or `write_box` in any order, then `commit`.
/// The file appears under its name only in `commit`; without it, or on any error, nothing is left behind.
class safetensors_writer {
 public:
  explicit safetensors_writer(const std::filesystem::path& path) : file_(path) {}

  /// Announces a tensor: float32, float64 or int32, row-major.
  void add(const std::string& name, dtype type, std::vector<std::int64_t> shape) {
    check_open(name);
    safetensors_info info;
    if (type == dtype::bf16 || type == dtype::u8)
      fail(file_.path(), ": tensor '", name, "' is of type ", name_of(type), "; float32, float64 and int32 can be written");
    info.type = type == dtype::f32 ? "F32" : type == dtype::f64 ? "F64" : "I32";
    info.shape = std::move(shape);
    if (name == "__metadata__") fail(file_.path(), ": a tensor may not be called __metadata__: rename it");
    std::uint64_t bytes = 0;
    if (std::any_of(info.shape.begin(), info.shape.end(), [](std::int64_t e) { return e < 0; }) ||
        !detail::safetensors_bytes(info.shape, size_of(type), bytes))
      fail(file_.path(), ": tensor '", name, "' cannot have the shape ", detail::shape_text(info.shape));
    info.end = bytes;
    if (!tensors_.emplace(name, std::move(info)).second) fail(file_.path(), ": tensor '", name, "' was already added");
  }

  void set_metadata(const std::string& key, const std::string& text) {
    check_open(key);
    metadata_[key] = text;
  }

  /// Writes the whole tensor, converting between float and double where `T` is not the announced type.
  template <class T>
  void write(const std::string& name, std::span<const T> data) {
    const auto& shape = announced(name).shape;
    write_box(name, std::vector<std::int64_t>(shape.size(), 0), shape, data);
  }

  /// Writes the box [start, start + extent) from `data`, row-major. Every element must be written once before `commit`.
  template <class T>
  void write_box(const std::string& name, const std::vector<std::int64_t>& start,
                 const std::vector<std::int64_t>& extent, std::span<const T> data) {
    const safetensors_info& tensor = announced(name);
    detail::check_box(file_.path(), name, tensor.shape, start, extent, data.size());
    if (!detail::safetensors_converts<T>(tensor.type))
      fail(file_.path(), ": tensor '", name, "' was announced as ", tensor.type, " and is given ",
           name_of(dtype_of<T>));
    begin_data();

    const std::size_t element = detail::safetensors_size(tensor.type);
    const bool same = tensor.type == detail::safetensors_type<T>;
    detail::for_each_run(tensor.shape, start, extent,
                         [&](std::int64_t offset, std::int64_t position, std::int64_t count) {
                           const std::uint64_t at = data_ + tensor.begin + static_cast<std::uint64_t>(offset) * element;
                           const T* from = data.data() + position;
                           if (same) {
                             file_.write(at, from, static_cast<std::size_t>(count) * element);
                           } else if constexpr (std::is_same_v<T, float>) {
                             write_converted<double>(at, from, static_cast<std::size_t>(count));
                           } else if constexpr (std::is_same_v<T, double>) {
                             write_converted<float>(at, from, static_cast<std::size_t>(count));
                           }
                         });
    written_[name] += static_cast<std::int64_t>(data.size());
  }

  /// Brings the complete file to the disk: after this, only the renaming is left to `commit`. Throws where a tensor was
  /// announced and not written in full.
  void flush() {
    begin_data();
    for (const auto& [name, info] : tensors_) {
      const std::int64_t written = written_[name];
      if (written != info.elements()) {
        file_.discard();
        fail(file_.path(), ": tensor '", name, "' has ", info.elements(), " elements and ", written,
             " were written; the file was not saved");
      }
    }
    file_.flush();
  }

  /// Gives the flushed file a name that others can find until `commit` gives it its own.
  void stage(const std::filesystem::path& name) {
    flush();
    file_.stage(name);
  }

  /// Makes the file appear, complete and flushed.
  void commit() {
    flush();
    file_.commit();
  }

 private:
  void check_open(const std::string& name) const {
    if (data_ != 0)
      fail(file_.path(), ": '", name, "' was added after the first tensor was written; add everything first");
  }

  const safetensors_info& announced(const std::string& name) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) fail(file_.path(), ": tensor '", name, "' is written, but was never added");
    return found->second;
  }

  /// Fixes every tensor's place and writes the header. Wider elements come first, so that all lie aligned.
  void begin_data() {
    if (data_ != 0) return;
    std::vector<std::pair<const std::string, safetensors_info>*> order;
    for (auto& entry : tensors_) order.push_back(&entry);
    std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
      return detail::safetensors_size(a->second.type) > detail::safetensors_size(b->second.type);
    });
    nlohmann::ordered_json header = nlohmann::ordered_json::object();
    if (!metadata_.empty()) header["__metadata__"] = metadata_;
    std::uint64_t at = 0;
    for (auto* entry : order) {
      auto& [name, info] = *entry;
      info.end += at - info.begin;
      info.begin = at;
      at = info.end;
      header[name] = {{"dtype", info.type}, {"shape", info.shape}, {"data_offsets", {info.begin, info.end}}};
    }
    std::string text;
    try {
      text = header.dump();
    } catch (const nlohmann::json::exception& e) {
      fail(file_.path(), ": a name or metadata entry is not UTF-8 text (", e.what(), ")");
    }
    text.resize((text.size() + 7) / 8 * 8, ' ');
    const std::uint64_t length = text.size();
    file_.write(0, &length, sizeof length);
    file_.write(sizeof length, text.data(), text.size());
    data_ = sizeof length + length;
  }

  template <class To, class T>
  void write_converted(std::uint64_t at, const T* from, std::size_t count) {
    std::vector<To> buffer(std::min(count, detail::safetensors_chunk));
    for (std::size_t done = 0; done < count; done += buffer.size()) {
      const std::size_t n = std::min(buffer.size(), count - done);
      std::transform(from + done, from + done + n, buffer.begin(), [](T x) { return static_cast<To>(x); });
      file_.write(at + done * sizeof(To), buffer.data(), n * sizeof(To));
    }
  }

  atomic_file file_;
  std::map<std::string, safetensors_info> tensors_;
  std::map<std::string, std::string> metadata_;
  std::map<std::string, std::int64_t> written_;
  std::uint64_t data_ = 0;  // offset of the first data byte; 0 until the header is written
};

}  // namespace mmr
