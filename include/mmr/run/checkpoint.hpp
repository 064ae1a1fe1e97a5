// Checkpoints in safetensors: whole tensors under the names of the model's checkpoint, whatever the sharding, with the
// optimizer's state in a second file beside. A run resumes under any plan and number of ranks.
#pragma once

#include <mmr/io/safetensors.hpp>
#include <mmr/run/executor.hpp>

#include <charconv>
#include <filesystem>
#include <map>
#include <set>
#include <memory>
#include <string>

namespace mmr {

/// "model.optimizer.safetensors" beside "model.safetensors".
inline std::filesystem::path optimizer_path(std::filesystem::path weights) {
  const auto extension = weights.extension();
  return weights.replace_extension("optimizer" + extension.string());
}

namespace detail {

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
      bool first = true;
      for (int a = 0; a < s.m.count(); ++a) first = first && (place[a] >= 0 || s.m.coordinate(from, a) == 0);
      if (!first) continue;
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

/// Tensors that Hugging Face's GPT-2 files hold beside the parameters: attention masks, and the head that is tied to wte.
inline bool is_known_extra(const std::string& name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") || name == "lm_head.weight";
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
      });
    });
  }
  for (const auto& name : file.names())
    if (!read.contains(name) && !is_known_extra(name))
      fail(file.path(), " holds a tensor '", name, "' that this model does not have: it belongs to another model, perhaps a deeper one");
}

}  // namespace detail

/// Saves weights and optimizer state after `step` steps. Both files appear whole or not at all; all ranks call it together.
template <communicator C>
void save_checkpoint(executor<C>& run, const std::filesystem::path& weights, std::int64_t step) {
  const std::map<std::string, std::string> metadata{{"format", "pt"}, {"mmr_step", std::to_string(step)}};
  const auto state = detail::write_class(run, tensor_class::optimizer, optimizer_path(weights), metadata);
  const auto parameters = detail::write_class(run, tensor_class::parameter, weights, metadata);
  // Both are on the disk before either takes its name.
  if (state) state->commit();
  if (parameters) parameters->commit();
  run.world().barrier();
}

/// Loads weights, and optimizer state where its file lies beside them; returns the steps that the checkpoint has behind it
/// (0 without optimizer state). Fails where a file is damaged, or belongs to another model or another step.
template <communicator C>
std::int64_t load_checkpoint(executor<C>& run, const std::filesystem::path& weights) {
  const safetensors_file file(weights);
  const auto step_in = [](const safetensors_file& f) -> std::int64_t {
    const auto found = f.metadata().find("mmr_step");
    if (found == f.metadata().end()) return -1;
    std::int64_t step = -1;
    const auto& text = found->second;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), step);
    if (end.ec != std::errc{} || end.ptr != text.data() + text.size() || step < 0 ||
        step > (std::int64_t{1} << 53))
      fail(f.path(), ": its metadata gives the step '", text, "', which is no number of steps; save the checkpoint again");
    return step;
  };
  detail::load_class(run, tensor_class::parameter, file);
  std::error_code code;
  const auto beside = optimizer_path(weights);
  const auto step = step_in(file);
  if (step < 0 || !std::filesystem::exists(beside, code)) return 0;
  const safetensors_file state(beside);
  if (step_in(state) != step)
    fail(beside, " belongs to step ", step_in(state), " and ", weights, " to step ", step,
         "; they are not one checkpoint: remove the first to start with a fresh optimizer");
  detail::load_class(run, tensor_class::optimizer, state);
  return step;
}

}  // namespace mmr
