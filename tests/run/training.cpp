// Whole runs of a small GPT: the same losses under every plan, resuming from checkpoints, and how runs end that fail.
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "catch.hpp"
#include "io/scratch.hpp"
#include "refusal.hpp"
#include "run/sanitized.hpp"
#include "run/small_gpt.hpp"

namespace {

using namespace mmr_test;
using mmr::mesh;

double worst_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = a.size() == b.size() ? 0 : 1e300;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double d = std::abs(a[i] - b[i]) / std::abs(b[i]);
    if (!(d <= worst)) worst = std::isnan(d) ? 1e300 : d;
  }
  return worst;
}

constexpr int steps = MMR_TEST_SANITIZED ? 8 : 50;
// Nothing that the meshes divide: heads, batch, sequence and words are 3, 3, 17 and 257.
const mmr::gpt::config odd{.layers = 4, .heads = 3, .embed = 24, .seq = 17, .batch = 3, .vocab = 257};
const mmr::gpt::config even{.layers = 4, .heads = 4, .embed = 32, .seq = 16, .batch = 4, .vocab = 256};

/// Runs a model on a mesh under each plan and compares its losses with those of one rank.
template <class T>
void same_losses(const mmr::gpt::config& c, const std::string& spec, const std::vector<std::string>& plans,
                 double tolerance, int most_steps = steps) {
  const mmr::adamw optimizer{.weight_decay = 0.1, .clip_norm = c.microbatches > 1 ? 1.0 : 0.0};
  const auto g = mmr::gpt::training_graph<T>(c, optimizer);
  const auto one = mesh::parse("one=1");
  auto keeping = c;
  keeping.recompute = false;
  const auto plain = mmr::gpt::training_graph<T>(keeping, optimizer);
  const auto want = losses(keeping, plain, one, make_plan(plain, one, "single"), most_steps);
  CHECK(want.back() < want.front() - (most_steps >= 50 ? 1.0 : 0.0));
  const auto m = mesh::parse(spec);
  mmr::planner planner(g, m);
  for (const auto& name : plans) {
    INFO(name << " on " << spec << " in " << mmr::name_of(mmr::dtype_of<T>));
    const auto begin = std::chrono::steady_clock::now();
    const auto p = planner.make(named(name));
    const auto planned = std::chrono::steady_clock::now();
    std::vector<std::int64_t> arena(static_cast<std::size_t>(m.rank_count()));
    const auto got = losses(c, g, m, p, most_steps, {}, [&](trainer& t) {
      arena[static_cast<std::size_t>(t.run().rank())] = t.run().arena_bytes();
    });
    for (std::size_t r = 0; r < arena.size(); ++r) CHECK(arena[r] == p.per_rank[r].arena);
    const double worst = worst_difference(got, want);
    CHECK(worst <= tolerance);
    if (std::getenv("MMR_TIMES"))
      std::cout << spec << ' ' << name << ' ' << mmr::name_of(mmr::dtype_of<T>) << ": worst " << worst << ", plan "
                << std::chrono::duration<double>(planned - begin).count() << " s, run "
                << std::chrono::duration<double>(std::chrono::steady_clock::now() - planned).count() << " s\n"
                << std::flush;
  }
}

const std::vector<std::string> all_plans = {"single",   "ddp",         "zero1", "zero2", "zero3",
                                            "megatron", "megatron-sp", "time",  "memory"};

}  // namespace

TEST_CASE("every plan gives the losses of one rank on 1 rank") {
  same_losses<double>(odd, "data=1", all_plans, 1e-10);
}
TEST_CASE("every plan gives the losses of one rank on 2 ranks") {
  same_losses<double>(odd, "data=2", all_plans, 1e-10);
}
TEST_CASE("every plan gives the losses of one rank on 3 ranks") {
  same_losses<double>(odd, "data=3", all_plans, 1e-10);
}
TEST_CASE("every plan gives the losses of one rank on 4 ranks") {
  same_losses<double>(odd, "data=4", all_plans, 1e-10);
}
TEST_CASE("every plan gives the losses of one rank on 8 ranks") {
  same_losses<double>(odd, "data=8", all_plans, 1e-10);
}
TEST_CASE("every plan gives the losses of one rank on 2 x 2") {
  same_losses<double>(odd, "data=2,model=2", all_plans, 1e-10);
}
TEST_CASE("every plan gives the losses of one rank on 2 x 2 x 2") {
  same_losses<double>(odd, "pod=2,data=2,model=2", all_plans, 1e-10);
}
TEST_CASE("extents that the mesh divides, and microbatches with a clipped norm, give the losses of one rank too") {
  same_losses<double>(even, "data=2,model=2", {"zero3", "megatron-sp", "memory"}, 1e-10);
  auto accumulated = even;
  accumulated.microbatches = 3;
  same_losses<double>(accumulated, "data=2,model=2", {"zero2", "megatron-sp", "memory"}, 1e-10, 15);
}
TEST_CASE("plans that make activations again give the losses of one rank that keeps them") {
  auto again = odd;
  again.recompute = true;
  for (const auto* spec : {"data=1", "data=2", "data=3", "data=4", "data=2,model=2"})
    same_losses<double>(again, spec, {"memory", "megatron-sp+"}, 1e-10, 10);
  again = even;
  again.recompute = true;
  again.microbatches = 3;
  again.store_scores = true;
  for (const auto* spec : {"data=1", "data=3", "data=2,model=2"})
    same_losses<double>(again, spec, {"time+", "zero3+", "megatron-sp", "memory"}, 1e-10, 6);
}
TEST_CASE("in float the losses agree to 1e-4") {
  same_losses<float>(odd, "data=2,model=2", {"zero2", "megatron-sp", "memory"}, 1e-4);
  same_losses<float>(odd, "data=3", {"zero3", "time"}, 1e-4);
}

// ---- checkpoints ----------------------------------------------------------------------------------------------------

namespace {

const mmr::gpt::config saved{.layers = 2, .heads = 3, .embed = 24, .seq = 17, .batch = 3, .vocab = 257};

struct resumable {
  mmr::graph g = mmr::gpt::training_graph<double>(saved, mmr::adamw{.weight_decay = 0.1});
  mesh one = mesh::parse("one=1"), three = mesh::parse("data=3"), four = mesh::parse("data=2,model=2");
  std::vector<double> run(const mesh& m, const std::string& plan, int count,
                          const std::function<void(trainer&)>& before = {},
                          const std::function<void(trainer&)>& after = {}) const {
    return losses(saved, g, m, make_plan(g, m, plan), count, before, after);
  }
};

std::function<void(trainer&)> load(const std::filesystem::path& path) {
  return [=](trainer& t) { t.load(path); };
}
std::function<void(trainer&)> save(const std::filesystem::path& path) {
  return [=](trainer& t) { t.save(path); };
}

std::vector<double> tail(const std::vector<double>& all, std::size_t from) {
  return {all.begin() + static_cast<std::ptrdiff_t>(from), all.end()};
}

}  // namespace

TEST_CASE("a run resumes under another plan and number of ranks with the losses of the uninterrupted run") {
  const scratch dir;
  const resumable r;
  const auto whole = r.run(r.one, "single", 12);
  const auto path = dir / "model.safetensors";
  CHECK(worst_difference(r.run(r.three, "zero2", 5, {}, save(path)), {whole.begin(), whole.begin() + 5}) <= 1e-12);
  CHECK(dir.files() == 2);
  std::int64_t resumed_at = -1;
  const auto after = r.run(
      r.four, "memory", 4,
      [&](trainer& t) {
        t.load(path);
        if (t.run().rank() == 0) resumed_at = t.steps_done();
      },
      save(path));
  CHECK(resumed_at == 5);
  CHECK(worst_difference(after, {whole.begin() + 5, whole.begin() + 9}) <= 1e-12);
  CHECK(worst_difference(r.run(r.one, "single", 3, load(path)), tail(whole, 9)) <= 1e-12);

  SECTION("what is saved are the tensors of Hugging Face's GPT-2, whole") {
    const mmr::safetensors_file file(path);
    CHECK(file.tensors().size() == 4 + 12 * 2);
    CHECK(file.info("wte.weight").shape == std::vector<std::int64_t>{257, 24});
    CHECK(file.info("h.1.attn.c_attn.weight").shape == std::vector<std::int64_t>{24, 72});
    CHECK(file.info("h.0.attn.c_proj.weight").shape == std::vector<std::int64_t>{24, 24});
    CHECK(file.info("h.0.attn.c_attn.bias").shape == std::vector<std::int64_t>{72});
  }
  SECTION("weights alone load into a fresh optimizer") {
    const auto weights = dir / "weights.safetensors";
    std::filesystem::copy_file(path, weights);
    std::int64_t steps_done = -1;
    const auto fresh = r.run(r.three, "zero1", 2, [&](trainer& t) {
      t.load(weights);
      if (t.run().rank() == 0) steps_done = t.steps_done();
    });
    CHECK(steps_done == 0);
    CHECK(worst_difference(fresh, r.run(r.one, "single", 2, load(weights))) <= 1e-12);
    CHECK(fresh[0] < whole[0] - 0.1);  // they are the trained ones
  }
  SECTION("a file that is no checkpoint of this model gives one error on any rank") {
    const auto refused = [&](const std::filesystem::path& at) {
      return refusal([&] { r.run(r.four, "zero3", 1, load(at)); });
    };
    const auto content = mmr::read_text_file(path);
    const auto bad = dir / "bad.safetensors";
    put(bad, content.substr(0, content.size() / 2));
    CHECK_THAT(refused(bad), contains("bad.safetensors") && contains("not a whole safetensors file"));
    put(bad, content.substr(0, 5));
    CHECK_THAT(refused(bad), contains("not a whole safetensors file"));
    auto flipped = content;
    flipped[12] = '\0';
    put(bad, flipped);
    CHECK_THAT(refused(bad), contains("not a whole safetensors file"));
    put(bad, "");
    CHECK_THAT(refused(bad), contains("bad.safetensors"));
    CHECK_THAT(refused(dir / "missing.safetensors"), contains("cannot open") && contains("missing.safetensors"));

    auto other = saved;
    other.vocab = 300;
    const auto g = mmr::gpt::training_graph<double>(other, mmr::adamw{});
    losses(other, g, r.one, make_plan(g, r.one, "single"), 0, {}, save(bad));
    CHECK_THAT(refused(bad), contains("wte.weight") && contains("another model"));
    other = saved;
    other.layers = 1;
    const auto shallow = mmr::gpt::training_graph<double>(other, mmr::adamw{});
    losses(other, shallow, r.one, make_plan(shallow, r.one, "single"), 0, {}, save(bad));
    CHECK_THAT(refused(bad), contains("h.1.") && contains("another model"));

    // Weights of one moment beside the optimizer of another.
    std::filesystem::remove(mmr::optimizer_path(bad));
    std::filesystem::copy_file(path, bad, std::filesystem::copy_options::overwrite_existing);
    r.run(r.one, "single", 1, load(path), save(dir / "later.safetensors"));
    std::filesystem::copy_file(mmr::optimizer_path(dir / "later.safetensors"), mmr::optimizer_path(bad));
    CHECK_THAT(refused(bad), contains("not one checkpoint") && contains("or remove"));
    // The same step of another run.
    const auto decayed = mmr::gpt::training_graph<double>(saved, mmr::adamw{.weight_decay = 0.2});
    losses(saved, decayed, r.one, make_plan(decayed, r.one, "single"), 9, {}, save(dir / "later.safetensors"));
    std::filesystem::copy_file(mmr::optimizer_path(dir / "later.safetensors"), mmr::optimizer_path(bad),
                               std::filesystem::copy_options::overwrite_existing);
    CHECK_THAT(refused(bad), contains("of step 9, were not saved together") && contains("or remove"));
    auto cut = mmr::read_text_file(mmr::optimizer_path(path));
    put(mmr::optimizer_path(bad), cut.substr(0, cut.size() - 8));
    CHECK_THAT(refused(bad), contains("bad.optimizer.safetensors") && contains("not a whole safetensors file"));
  }
}

TEST_CASE("a checkpoint that does not fit on the disk leaves nothing behind, and an older one as it was") {
  const scratch dir;
  const resumable r;
  const auto path = dir / "model.safetensors";
  const auto weights_bytes = [&] {
    r.run(r.one, "single", 1, {}, save(path));
    return std::filesystem::file_size(path);
  }();
  const auto before = mmr::read_text_file(path), optimizer_before = mmr::read_text_file(mmr::optimizer_path(path));
  for (const auto& [plan, m] : {std::pair{"zero3", r.three}, {"megatron", r.four}})
    for (const auto limit : {weights_bytes / 2, weights_bytes + 1000}) {  // neither fits; only the weights fit
      std::string problem;
      const auto p = make_plan(r.g, m, plan);
      {
        const full_disk full(static_cast<rlim_t>(limit));
        problem = refusal([&] { losses(saved, r.g, m, p, 1, {}, save(path)); });
      }
      CHECK_THAT(problem, contains("rank 0") && contains("cannot write") && contains("safetensors"));
      CHECK(dir.files() == 2);
      CHECK(mmr::read_text_file(path) == before);
      CHECK(mmr::read_text_file(mmr::optimizer_path(path)) == optimizer_before);
    }
  CHECK_THAT(refusal([&] { r.run(r.three, "zero1", 0, {}, save(dir / "no-such-folder/model.safetensors")); }),
             contains("cannot write") && contains("no-such-folder"));
}

TEST_CASE("what a save that is killed leaves is a pair, at every point") {
  const scratch dir;
  const resumable r;
  const auto path = dir / "model.safetensors", state = mmr::optimizer_path(path), next = mmr::detail::next_optimizer_path(path);
  const auto whole = r.run(r.one, "single", 8);
  r.run(r.one, "single", 2, {}, save(path));
  const auto old_weights = mmr::read_text_file(path), old_state = mmr::read_text_file(state);
  r.run(r.three, "zero2", 2, load(path), save(path));
  const auto weights = mmr::read_text_file(path), new_state = mmr::read_text_file(state);
  const auto resumes_after = [&](std::size_t step) {
    CHECK(worst_difference(r.run(r.four, "zero3", 2, load(path)), {whole.begin() + std::ptrdiff_t(step), whole.begin() + std::ptrdiff_t(step) + 2}) <= 1e-12);
  };
  const auto saves_over_it = [&](std::size_t step) {
    r.run(r.one, "single", 2, load(path), save(path));
    CHECK(!std::filesystem::exists(next));
    resumes_after(step + 2);
  };
  SECTION("the state is staged, the weights are the old ones") {
    put(path, old_weights), put(state, old_state), put(next, new_state);
    resumes_after(2);
    saves_over_it(2);
  }
  SECTION("the weights are the new ones, the state is still staged") {
    put(path, weights), put(state, old_state), put(next, new_state);
    resumes_after(4);
    SECTION("and the next save is killed while it is staged") {
      // What a save that fails here leaves: its first rename has made the pair whole.
      std::string problem;
      {
        const full_disk full(static_cast<rlim_t>(weights.size() / 2));
        problem = refusal([&] { r.run(r.one, "single", 2, load(path), save(path)); });
      }
      CHECK_THAT(problem, contains("cannot write"));
      resumes_after(4);
    }
    saves_over_it(4);
  }
  SECTION("a save of equal weights writes equal bytes, under any sharding that computes them") {
    const auto again = dir / "again.safetensors";
    put(path, weights), put(state, new_state);
    r.run(r.four, "zero3", 0, load(path), save(again));
    CHECK(mmr::read_text_file(again) == weights);
    CHECK(mmr::read_text_file(mmr::optimizer_path(again)) == new_state);
  }
}

TEST_CASE("through a symbolic link weights and state go to one place, and are found there") {
  const scratch dir;
  const resumable r;
  std::filesystem::create_directory(dir / "disk");
  std::filesystem::create_symlink("disk/step.safetensors", dir / "latest.safetensors");
  const auto whole = r.run(r.one, "single", 3, {}, {});
  r.run(r.one, "single", 1, {}, save(dir / "latest.safetensors"));
  CHECK(std::filesystem::is_symlink(dir / "latest.safetensors"));
  CHECK(std::filesystem::exists(dir / "disk/step.optimizer.safetensors"));
  CHECK(dir.files() == 2);
  CHECK(worst_difference(r.run(r.one, "single", 2, load(dir / "latest.safetensors")), tail(whole, 1)) <= 1e-12);
}

TEST_CASE("values that are not finite are neither saved over a checkpoint nor loaded") {
  const scratch dir;
  const resumable r;
  const auto path = dir / "model.safetensors";
  r.run(r.three, "zero2", 1, {}, save(path));
  const auto weights = mmr::read_text_file(path), state = mmr::read_text_file(mmr::optimizer_path(path));
  for (const auto& kind : {mmr::tensor_class::parameter, mmr::tensor_class::optimizer}) {
    const auto t = mmr::detail::kept_tensors(r.g, kind)[5];
    const auto name = r.g.tensor_of(t).name;
    const auto spoil = [&](trainer& trained) {
      const bool last = trained.run().rank() == trained.run().world().size() - 1;
      if (last) *static_cast<double*>(trained.run().data(t)) = -std::numeric_limits<double>::infinity();
    };
    const auto problem = refusal([&] { r.run(r.three, "zero3", 1, {}, [&](trainer& trained) { spoil(trained), trained.save(path); }); });
    CHECK_THAT(problem, contains("'" + name + "'") && contains("not finite after step 1") && contains("nothing is saved"));
    CHECK(dir.files() == 2);
    CHECK(mmr::read_text_file(path) == weights);
    CHECK(mmr::read_text_file(mmr::optimizer_path(path)) == state);
  }
  for (const auto& [file, content] : {std::pair{path, weights}, {mmr::optimizer_path(path), state}}) {
    auto broken = content;
    const double nan = std::numeric_limits<double>::quiet_NaN();
    std::memcpy(broken.data() + broken.size() - 3 * sizeof nan, &nan, sizeof nan);
    put(file, broken);
    CHECK_THAT(refusal([&] { r.run(r.four, "megatron", 1, load(path)); }),
               contains(file.filename().string()) && contains("tensor '") && contains("not finite") && contains("file is at fault"));
    put(file, content);
  }
}

TEST_CASE("a head in a weights file is the embedding, or the file is refused") {
  const scratch dir;
  const resumable r;
  const auto path = dir / "model.safetensors", with_head = dir / "head.safetensors";
  r.run(r.one, "single", 1, {}, save(path));
  const auto losses_from = [&](const std::string& prefix, double first, std::int64_t rows, const std::string& head = "lm_head.weight") {
    const mmr::safetensors_file from(path);
    mmr::safetensors_writer to(with_head);
    for (const auto& [name, info] : from.tensors()) to.add(prefix + name, mmr::dtype::f64, info.shape);
    to.add(head, mmr::dtype::f64, {rows, 24});
    for (const auto& [name, info] : from.tensors()) {
      std::vector<double> data(static_cast<std::size_t>(info.elements()));
      from.read<double>(name, data);
      to.write<double>(prefix + name, data);
      if (name != "wte.weight") continue;
      data.resize(static_cast<std::size_t>(rows * 24));
      data.back() += first;
      to.write<double>(head, data);
    }
    to.commit();
    return r.run(r.three, "zero3", 2, load(with_head));
  };
  std::filesystem::remove(mmr::optimizer_path(path));
  const auto want = r.run(r.one, "single", 2, load(path));
  CHECK(worst_difference(losses_from("", 0, 257), want) <= 1e-12);
  CHECK(worst_difference(losses_from("transformer.", 0, 257), want) <= 1e-12);
  CHECK_THAT(refusal([&] { losses_from("", 1e-9, 257); }), contains("'lm_head.weight' is not equal to 'wte.weight'") && contains("tied"));
  CHECK_THAT(refusal([&] { losses_from("transformer.", 1, 257); }), contains("not equal to 'transformer.wte.weight'"));
  CHECK_THAT(refusal([&] { losses_from("", 0, 256); }), contains("'lm_head.weight' is not equal"));
  CHECK_THAT(refusal([&] { losses_from("", 0, 257, "head.weight"); }), contains("that this model does not have"));
}

TEST_CASE("optimizer state of other settings says that it may be left out, which is true") {
  const scratch dir;
  const resumable r;
  const auto path = dir / "model.safetensors";
  r.run(r.one, "single", 1, {}, save(path));
  auto shorter = saved;
  shorter.seq = 8;
  const auto resume = [&](const auto& optimizer) {
    const auto g = mmr::gpt::training_graph<double>(shorter, optimizer);
    return losses(shorter, g, r.one, make_plan(g, r.one, "single"), 1, load(path));
  };
  CHECK_THAT(refusal([&] { resume(mmr::adamw{}); }), contains("or remove") && contains("model.optimizer.safetensors"));
  CHECK_THAT(refusal([&] { resume(mmr::sgd{}); }), contains("or remove") && contains("model.optimizer.safetensors"));
  std::filesystem::remove(mmr::optimizer_path(path));
  CHECK(resume(mmr::adamw{}).size() == 1);
  CHECK(resume(mmr::sgd{}).size() == 1);
}

TEST_CASE("optimizer state is not replaced where the weights beside it cannot be") {
  const scratch dir;
  const resumable r;
  const auto path = dir / "model.safetensors";
  std::filesystem::create_directory(path);  // weights cannot have this name; the optimizer's file could
  CHECK_THAT(refusal([&] { r.run(r.three, "zero1", 1, {}, save(path)); }), contains("it is a folder"));
  CHECK(dir.files() == 1);
}

// ---- runs that fail -------------------------------------------------------------------------------------------------

namespace {

/// A run that is expected to fail: its error, and the losses of the steps before.
struct failed_run {
  std::string problem;
  std::vector<double> before;
};

failed_run failing(const mmr::gpt::config& c, const mmr::graph& g, const mesh& m, const std::string& plan,
                   double peak_rate, const std::function<void(trainer&, int step)>& sabotage) {
  failed_run f;
  const auto p = make_plan(g, m, plan);
  f.problem = refusal([&] {
    mmr::run_ranks(m.rank_count(), [&](mmr::thread_communicator& world) {
      trainer t(g, m, p, world, 17);
      const auto fill = feed(c);
      for (int i = 0; i < 20; ++i) {
        sabotage(t, i);
        const double loss = t.step({.peak = peak_rate}, fill);
        if (world.rank() == 0) f.before.push_back(loss);
      }
    });
  });
  return f;
}

mmr::tensor_id tensor_named(const mmr::graph& g, const std::string& name) {
  for (mmr::tensor_id t = 0; t < g.tensors(); ++t)
    if (g.tensor_of(t).name == name) return t;
  return -1;
}

}  // namespace

TEST_CASE("a loss that is not finite stops all ranks, naming the step and the parameter or operator") {
  const auto g = mmr::gpt::training_graph<double>(saved, mmr::adamw{});
  const auto weight = tensor_named(g, "h.1.mlp.c_fc.weight");
  REQUIRE(weight >= 0);
  for (const auto& [spec, plan] :
       {std::pair{"data=3", "ddp"}, {"data=3", "zero3"}, {"data=2,model=2", "megatron-sp"}}) {
    INFO(plan << " on " << spec);
    const auto m = mesh::parse(spec);
    const auto f = failing(saved, g, m, plan, 1e-3, [&](trainer& t, int step) {
      if (step == 2 && t.run().rank() == m.rank_count() - 1)
        static_cast<double*>(t.run().data(weight))[0] = std::numeric_limits<double>::quiet_NaN();
    });
    CHECK(f.before.size() == 2);
    CHECK_THAT(f.problem, contains("at step 3:") && contains("parameter 'h.1.mlp.c_fc.weight', which operator '"));
  }
  SECTION("nothing is updated in the step that fails") {
    std::vector<double> table, then;
    const auto m = mesh::parse("data=2");
    const auto p = make_plan(g, m, "zero3");
    const auto wte = tensor_named(g, "wte.weight");
    CHECK_THROWS(mmr::run_ranks(2, [&](mmr::thread_communicator& world) {
      trainer t(g, m, p, world, 17);
      const auto copy = [&] {
        const auto* data = static_cast<const double*>(t.run().data(wte));
        return std::vector<double>(
            data, data + mmr::local_count(m, mmr::extents_of(g.tensor_of(wte).type), t.run().place(wte), world.rank()));
      };
      if (world.rank() == 1) static_cast<double*>(t.run().data(weight))[0] = std::numeric_limits<double>::infinity();
      const auto before = copy();
      try {
        t.step({.peak = 1e-3}, feed(saved));
      } catch (...) {
        if (world.rank() == 0) table = before, then = copy();
        throw;
      }
    }));
    CHECK(!table.empty());
    CHECK(table == then);
  }
}

TEST_CASE("a learning rate that is far too large is found at the first loss that is not finite") {
  const auto g = mmr::gpt::training_graph<float>(saved, mmr::sgd{});
  for (const auto& [spec, plan] : {std::pair{"data=1", "single"}, {"data=3", "zero2"}}) {
    const auto f = failing(saved, g, mesh::parse(spec), plan, 1e30, [](trainer&, int) {});
    INFO(plan << " on " << spec << ": " << f.problem);
    REQUIRE(!f.before.empty());
    for (double loss : f.before) CHECK(std::isfinite(loss));
    CHECK_THAT(f.problem,
               contains("at step " + std::to_string(f.before.size() + 1) + ":") && contains("lower the learning rate"));
    CHECK_THAT(f.problem, contains("operator '"));
  }
}

namespace {

/// The identity, but for a rank that does not hold the first element.
struct fragile {
  static constexpr std::string_view name = "fragile";
  mmr::signature sign(const std::vector<mmr::tensor_type>& in) const { return mmr::elementwise(in, "fragile"); }
  double flops(std::span<const std::int64_t> n) const { return mmr::points(n); }
  void vjp(auto& c) const { c.add_grad(c.in(0), c.grad()); }
};

struct Rows : mmr::axis<"rows"> {};
struct Columns : mmr::axis<"columns"> {};

}  // namespace

template <>
struct mmr::kernel<mmr::cpu_device, fragile> {
  template <class T>
  static void run(const fragile&, const kernel_args& args) {
    if (args.step->step == 1 && args.loops[0].begin > 0) fail("the kernel gave up");
    std::copy_n(args.input<T>(0), args.in[0].count(), args.output<T>(0));
  }
};

TEST_CASE("what one rank throws ends all ranks with that error") {
  mmr::declaration d{mmr::size<Rows>(6), mmr::size<Columns>(5)};
  const auto w = d.parameter<double, Rows, Columns>("w", mmr::init::normal(1));
  const auto x = d.input<double, Rows, Columns>("x");
  const auto y = mmr::apply<mmr::tensor<double, Rows, Columns>>(fragile{}, mmr::multiply(x, w));
  const auto g = d.training_step(mmr::contract<Rows, Columns>(y, y), mmr::sgd{});
  const auto m = mesh::parse("data=3");
  mmr::plan_request r;
  r.fixed.split("fragile", "rows", "data");
  const auto p = mmr::planner(g, m).make(r);
  const auto run = [&](int ranks, bool bad_filler) {
    return refusal([&] {
      mmr::run_ranks(ranks, [&](mmr::thread_communicator& world) {
        trainer t(g, m, p, world, 1);
        const mmr::input_filler fill = [&](const mmr::tensor_info&, std::span<const mmr::interval> box,
                                           const mmr::step_info& step, void* to) {
          if (bad_filler && world.rank() == 1 && step.step == 0)
            throw std::runtime_error("the file of rank 1 has ended");
          std::fill_n(static_cast<double*>(to), box[0].size * box[1].size, 0.5);
        };
        for (int i = 0; i < 3; ++i) t.step({.peak = 1e-3}, fill);
      });
    });
  };
  SECTION("a filler") {
    CHECK(run(3, true) == "rank 1: the file of rank 1 has ended");
  }
  SECTION("a kernel") {
    CHECK_THAT(run(3, false), contains("rank ") && contains("the kernel gave up"));
  }
  SECTION("a mesh that does not fit the ranks") {
    for (int ranks : {1, 2, 4})
      CHECK_THAT(run(ranks, false),
                 contains("the mesh data=3 has 3 ranks but " + std::to_string(ranks) + " are running"));
  }
}
