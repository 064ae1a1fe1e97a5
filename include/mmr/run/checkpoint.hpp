// Checkpoints in safetensors: whole tensors under the names of the model's checkpoint, whatever the sharding, with the
// optimizer's state in a second file beside. A run resumes under any plan and number of ranks.
#pragma once

#include <mmr/io/safetensors.hpp>
#include <mmr/run/executor.hpp>

#include <mmr/tensor/hash.hpp>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <type_traits>

namespace mmr {

/// "model.optimizer.safetensors" beside "model.safetensors"; where that is a symbolic link, beside what it leads to.
inline std::filesystem::path optimizer_path(const std::filesystem::path& weights) {
  auto path = without_links(weights);
  const auto extension = path.extension();
  return without_links(path.replace_extension("optimizer" + extension.string()));
}

namespace detail {

/// Where a save keeps the optimizer's state for the moment in which the weights take their name.
inline std::filesystem::path next_optimizer_path(const std::filesystem::path& weights) {
  auto path = optimizer_path(weights);
  const auto extension = path.extension();
  return path.replace_extension("next" + extension.string());
}

/// How a box of a tensor lies in the tensor as stored: two (or one) stored dimensions, of which `parts` share the last.
class stored_layout {
 public:
  stored_layout(const tensor_info& t, bool whole_name) {
    for (const auto& d : t.type.dims) extents_.push_back(d.extent);
    if (whole_name) {
      merged_ = false;
      shape_ = extents_;
      return;
    }
    merged_ = t.stored.rows >= 0;
    rows_ = static_cast<std::size_t>(std::max(t.stored.rows, 0));
    part_ = t.stored.part;
    parts_ = t.stored.parts;
    if (!merged_) {
      shape_ = extents_;
      return;
    }
    if (rows_ > 0) shape_.push_back(product(0, rows_));
    width_ = product(rows_, extents_.size());
    shape_.push_back(width_ * parts_);
  }
  const std::vector<std::int64_t>& shape() const { return shape_; }

  /// Calls f(start, extent, local offset, count) for pieces of the box that are boxes of the stored tensor too.
  template <class F>
  void for_each_piece(std::span<const interval> box, F f) const {
    std::int64_t count = 1;
    for (const auto& i : box) count *= i.size;
    if (count == 0) return;
    if (!merged_) {
      std::vector<std::int64_t> start, extent;
      for (const auto& i : box) start.push_back(i.begin), extent.push_back(i.size);
      return f(start, extent, 0, count);
    }
    // Runs that lie side by side both in the box and in the stored rows.
    std::int64_t run = 1;
    std::size_t d = extents_.size();
    while (d > rows_) {
      --d;
      run *= box[d].size;
      if (box[d].size != extents_[d]) break;
    }
    for (std::int64_t at = 0; at < count; at += run) {
      std::int64_t rest = at, row = 0, column = 0, scale = 1;
      for (std::size_t k = extents_.size(); k-- > 0;) {
        if (k + 1 == rows_) scale = 1;
        (k < rows_ ? row : column) += scale * (box[k].begin + rest % box[k].size);
        rest /= box[k].size;
        scale *= extents_[k];
      }
      column += part_ * width_;
      if (rows_ > 0)
        f(std::vector{row, column}, std::vector<std::int64_t>{1, run}, at, run);
      else
        f(std::vector{column}, std::vector{run}, at, run);
    }
  }

 private:
  std::int64_t product(std::size_t from, std::size_t to) const {
    std::int64_t n = 1;
    for (std::size_t d = from; d < to; ++d) n *= extents_[d];
    return n;
  }
  std::vector<std::int64_t> extents_, shape_;
  bool merged_ = false;
  std::size_t rows_ = 0;
  std::int64_t part_ = 0, parts_ = 1, width_ = 0;
};

inline std::string stored_name(const tensor_info& t, bool whole_name) { return whole_name ? t.name : t.stored.name; }

/// Persistent tensors of a class that the step keeps.
inline std::vector<tensor_id> kept_tensors(const graph& g, tensor_class kind) {
  std::vector<tensor_id> all;
  for (tensor_id t = 0; t < g.tensors(); ++t)
    if (g.tensor_of(t).kind == kind && g.tensor_of(t).persistent) all.push_back(t);
  return all;
}

template <class F>
void with_element(dtype t, F f) {
  if (t == dtype::f64)
    f(double{});
  else
    f(float{});
}

/// Of the ranks that hold equal copies of a part, the one that speaks for them.
inline bool has_first_copy(const mesh& m, const placement& place, int rank) {
  bool first = true;
  for (int a = 0; a < m.count(); ++a) first = first && (place[a] >= 0 || m.coordinate(rank, a) == 0);
  return first;
}

/// Of a sequence that is dense over a box of a tensor: the first element that is not finite, or -1.
template <class T>
std::int64_t first_not_finite(const T* data, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    if (!std::isfinite(data[i])) return i;
  return -1;
}

/// Elements of a box, each mixed with its place in the whole tensor, summed: parts add up to the same whatever the cut.
template <class T>
std::uint64_t sum_of_hashes(const T* data, std::span<const interval> box, std::span<const std::int64_t> extents,
                            std::uint64_t h) {
  using bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  std::int64_t count = 1;
  for (const auto& i : box) count *= i.size;
  const std::int64_t run = box.empty() ? 1 : box.back().size;
  std::uint64_t sum = 0;
  for (std::int64_t at = 0; at < count; at += run) {
    std::int64_t rest = at, place = 0, scale = 1;
    for (std::size_t d = box.size(); d-- > 0;) {
      place += scale * (box[d].begin + rest % box[d].size);
      rest /= box[d].size;
      scale *= extents[d];
    }
    for (std::int64_t i = 0; i < run; ++i)
      sum += mixed(mixed(h + static_cast<std::uint64_t>(place + i)) ^ std::bit_cast<bits>(data[at + i]));
  }
  return sum;
}

/// A hash of the parameters and moments that no sharding changes, the same on all ranks, which call it together. Fails
/// where one of them is not finite; `remedy` says what is not done with them then.
template <communicator C>
std::uint64_t hash_of_finite(executor<C>& run, std::int64_t step, const std::string& remedy) {
  auto& s = run.where();
  const auto tensors = static_cast<std::int32_t>(s.g.tensors());
  std::int32_t worst = 0;  // tensors - t: the maximum over the ranks is the first
  std::uint64_t sum = 0;
  for (const auto kind : {tensor_class::parameter, tensor_class::optimizer})
    for (auto t : kept_tensors(s.g, kind)) {
      const auto& info = s.g.tensor_of(t);
      const auto place = run.place(t);
      if (!has_first_copy(s.m, place, run.rank())) continue;
      const auto& extents = s.extents[static_cast<std::size_t>(t)];
      const auto count = local_count(s.m, extents, place, run.rank());
      with_element(info.type.element, [&](auto element) {
        const auto* data = static_cast<const decltype(element)*>(run.data(t));
        if (first_not_finite(data, count) >= 0) worst = std::max(worst, tensors - static_cast<std::int32_t>(t));
        sum += sum_of_hashes(data, run.box(t), extents, hash_of(info.name));
      });
    }
  // Communicators carry integers of 32 bits: four parts of 16 leave room for the sums of 32767 ranks.
  std::array<std::int32_t, 4> parts{};
  for (std::size_t i = 0; i < 4; ++i) parts[i] = static_cast<std::int32_t>(sum >> (16 * i) & 0xffff);
  auto& world = run.world();
  world.all_reduce(parts.data(), parts.data(), 4, dtype::i32, reduction::sum);
  world.all_reduce(&worst, &worst, 1, dtype::i32, reduction::max);
  if (worst > 0)
    fail("'", s.g.tensor_of(tensors - worst).name, "' holds a value that is not finite after step ", step, ": ", remedy,
         "; lower the learning rate, or clip gradients");
  sum = 0;
  for (std::size_t i = 0; i < 4; ++i) sum += static_cast<std::uint64_t>(parts[i]) << (16 * i);
  return sum;
}

/// A metadata entry, or nothing where the file has none.
inline std::string entry_of(const safetensors_file& file, const std::string& key) {
  const auto found = file.metadata().find(key);
  return found == file.metadata().end() ? std::string() : found->second;
}

/// Whether both files exist, are whole, and carry the mark of one save.
inline bool are_a_pair(const std::filesystem::path& weights, const std::filesystem::path& state) {
  try {
    const safetensors_file a(weights), b(state);
    return !entry_of(a, "mmr_id").empty() && entry_of(a, "mmr_id") == entry_of(b, "mmr_id");
  } catch (const error&) {
    return false;
  }
}

/// Rank 0 writes the file and gets it, still to be committed; the ranks that hold a first copy of a part send it.
template <communicator C>
std::unique_ptr<safetensors_writer> write_class(executor<C>& run, tensor_class kind, const std::filesystem::path& path,
                const std::map<std::string, std::string>& metadata) {
  auto& s = run.where();
  auto& world = run.world();
  const bool whole_name = kind != tensor_class::parameter;
  const auto tensors = kept_tensors(s.g, kind);
  std::unique_ptr<safetensors_writer> file;
  if (run.rank() == 0) {
    file = std::make_unique<safetensors_writer>(path);
    for (const auto& [key, text] : metadata) file->set_metadata(key, text);
    std::map<std::string, bool> added;
    for (auto t : tensors) {
      const auto& info = s.g.tensor_of(t);
      if (std::exchange(added[stored_name(info, whole_name)], true)) continue;
      file->add(stored_name(info, whole_name), info.type.element, stored_layout(info, whole_name).shape());
    }
  }
  std::vector<char> staging;
  for (auto t : tensors) {
    const auto& info = s.g.tensor_of(t);
    const auto place = run.place(t);
    for (int from = 0; from < world.size(); ++from) {
      if (!has_first_copy(s.m, place, from)) continue;
      const auto box = local_box(s.m, s.extents[static_cast<std::size_t>(t)], place, from);
      const auto count = local_count(s.m, s.extents[static_cast<std::size_t>(t)], place, from);
      if (from == run.rank() && from != 0) world.send(run.data(t), count, info.type.element, 0, 0);
      if (run.rank() != 0) continue;
      const void* data = run.data(t);
      if (from != 0) {
        staging.resize(static_cast<std::size_t>(count) * size_of(info.type.element));
        world.recv(staging.data(), count, info.type.element, from, 0);
        data = staging.data();
      }
      with_element(info.type.element, [&](auto element) {
        using T = decltype(element);
        stored_layout(info, whole_name).for_each_piece(box, [&](const auto& start, const auto& extent, std::int64_t at, std::int64_t n) {
          file->write_box<T>(stored_name(info, whole_name), start, extent,
                             std::span(static_cast<const T*>(data) + at, static_cast<std::size_t>(n)));
        });
      });
    }
  }
  return file;
}

/// Attention masks, which Hugging Face's GPT-2 files hold beside the parameters.
inline bool is_mask(const std::string& name) { return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias"); }

/// Whether two tensors of a file are equal, element by element.
inline bool equal_tensors(const safetensors_file& file, const std::string& a, const std::string& b) {
  const auto& shape = file.info(a).shape;
  if (shape.empty() || shape != file.info(b).shape) return false;
  auto start = std::vector<std::int64_t>(shape.size(), 0);
  auto extent = shape;
  extent[0] = 1;
  std::size_t row = 1;
  for (std::size_t d = 1; d < shape.size(); ++d) row *= static_cast<std::size_t>(shape[d]);
  std::vector<double> left(row), right(row);
  for (; start[0] < shape[0]; ++start[0]) {
    file.read_box<double>(a, start, extent, left);
    file.read_box<double>(b, start, extent, right);
    if (left != right) return false;
  }
  return true;
}

/// Hugging Face's GPT-2 files may hold the head beside the embedding that it is tied to: then it is that embedding.
inline void expect_tied(const safetensors_file& file, const std::string& head, const std::string& embedding) {
  if (!equal_tensors(file, head, embedding))
    fail(file.path(), ": tensor '", head, "' is not equal to '", embedding,
         "', and this model has no head but that embedding; use weights of a model whose head is tied to it");
}

/// Every rank reads its own part. Fails where the file holds more than the model: it belongs to another one.
template <communicator C>
void load_class(executor<C>& run, tensor_class kind, const safetensors_file& file) {
  auto& s = run.where();
  const bool whole_name = kind != tensor_class::parameter;
  std::set<std::string> read;
  for (auto t : kept_tensors(s.g, kind)) {
    const auto& info = s.g.tensor_of(t);
    auto name = stored_name(info, whole_name);
    if (!file.contains(name) && file.contains("transformer." + name)) name = "transformer." + name;
    read.insert(name);
    const stored_layout layout(info, whole_name);
    // A checkpoint may know more positions than this run uses; every other extent must agree.
    const auto& stored = file.info(name).shape;
    auto needed = layout.shape();
    if (info.stored.may_be_longer && stored.size() == needed.size() && stored[0] > needed[0]) needed[0] = stored[0];
    file.expect_shape(name, needed);
    with_element(info.type.element, [&](auto element) {
      using T = decltype(element);
      auto* data = static_cast<T*>(run.data(t));
      layout.for_each_piece(run.box(t), [&](const auto& start, const auto& extent, std::int64_t at, std::int64_t n) {
        file.read_box<T>(name, start, extent, std::span(data + at, static_cast<std::size_t>(n)));
        if (first_not_finite(data + at, n) >= 0)
          fail(file.path(), ": tensor '", name, "' holds a value that is not finite as ", name_of(info.type.element),
               ": the file is at fault, not this run; use an earlier checkpoint");
      });
    });
  }
  for (const auto& name : file.names()) {
    if (read.contains(name) || is_mask(name)) continue;
    const std::string embedding = read.contains("transformer.wte.weight") ? "transformer.wte.weight" : "wte.weight";
    if (name == "lm_head.weight" && read.contains(embedding))
      expect_tied(file, name, embedding);
    else
      fail(file.path(), " holds a tensor '", name, "' that this model does not have: it belongs to another model, perhaps a deeper one");
  }
}

}  // namespace detail

/// Saves weights and optimizer state after `step` steps; all ranks call it together. The two files carry the hash of what
/// they hold together, and only files with the same hash are loaded as a pair. A process that is killed leaves a pair:
///   while both are written and flushed         the old one; the temporary files are removed by the next save
///   after the state is staged as ".next"       the old one; the staged file belongs to no weights, and is replaced later
///   after the weights have taken their name    the new one: the state is found as ".next", whose hash is that of the weights
///   after the state has taken its name         the new one
template <communicator C>
void save_checkpoint(executor<C>& run, const std::filesystem::path& weights, std::int64_t step) {
  const auto hash = detail::hash_of_finite(run, step, "nothing is saved, and an older checkpoint is as it was");
  std::array<char, 17> id{};
  std::snprintf(id.data(), id.size(), "%016llx",
                static_cast<unsigned long long>(detail::mixed(hash ^ static_cast<std::uint64_t>(step))));
  const std::map<std::string, std::string> metadata{
      {"format", "pt"}, {"mmr_step", std::to_string(step)}, {"mmr_id", id.data()}};
  const auto beside = optimizer_path(weights), next = detail::next_optimizer_path(weights);
  const auto state = detail::write_class(run, tensor_class::optimizer, beside, metadata);
  const auto parameters = detail::write_class(run, tensor_class::parameter, weights, metadata);
  if (state && parameters) {
    state->flush();
    parameters->flush();
    // A save that was killed between its last two renames has left the only state of the weights here.
    std::error_code code;
    if (detail::are_a_pair(weights, next)) std::filesystem::rename(next, beside, code);
    if (code) fail("cannot rename ", next, " to ", beside, ": ", code.message(), "; nothing is saved; rename it yourself");
    state->stage(next);
    parameters->commit();
    state->commit();
  }
  run.world().barrier();
}

/// Loads weights, and optimizer state where its file lies beside them; returns the steps that the checkpoint has behind it
/// (0 without optimizer state). Fails where a file is damaged, or belongs to another model, another run or another step.
template <communicator C>
std::int64_t load_checkpoint(executor<C>& run, const std::filesystem::path& weights) {
  const safetensors_file file(weights);
  const auto step_in = [](const safetensors_file& f) -> std::int64_t {
    const auto text = detail::entry_of(f, "mmr_step");
    if (!f.metadata().contains("mmr_step")) return -1;
    std::int64_t step = -1;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), step);
    if (end.ec != std::errc{} || end.ptr != text.data() + text.size() || step < 0 ||
        step > (std::int64_t{1} << 53))
      fail(f.path(), ": its metadata gives the step '", text, "', which is no number of steps; save the checkpoint again");
    return step;
  };
  detail::load_class(run, tensor_class::parameter, file);
  const auto step = step_in(file);
  const auto next = detail::next_optimizer_path(weights);
  const auto beside = detail::are_a_pair(weights, next) ? next : optimizer_path(weights);
  std::error_code code;
  if (step < 0 || !std::filesystem::exists(beside, code)) return 0;
  try {
    const safetensors_file state(beside);
    if (step_in(state) != step || detail::entry_of(state, "mmr_id") != detail::entry_of(file, "mmr_id"))
      fail(beside, ", of step ", step_in(state), ", and ", weights, ", of step ", step,
           ", were not saved together: they are not one checkpoint");
    detail::load_class(run, tensor_class::optimizer, state);
  } catch (const error& problem) {
    // The weights are read and fit.
    fail(problem.what(), "; or remove ", beside, " to start from these weights with a fresh optimizer");
  }
  return step;
}

}  // namespace mmr
