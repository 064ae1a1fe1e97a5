// Combinations of model, mesh, precision and objective, as bench/grid asks them by the thousand: each gives a plan or a
// clear refusal, twice the same, never worse than a fixed scheme; and an evaluator that reads only what is written of
// the plan agrees with every figure.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <grid/ask.hpp>
#include <mmr/mesh/topology.hpp>
#include <mmr/plan/description.hpp>

#include "catch.hpp"
#include "models.hpp"

namespace {

namespace fs = std::filesystem;

class scratch {
 public:
  scratch() : path_(fs::temp_directory_path() / ("mmr_grid_" + std::to_string(::getpid()))) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  fs::path operator/(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

struct shell_answer {
  int status = -1;
  std::string text;
};

shell_answer shell(const std::string& command) {
  shell_answer out;
  auto* pipe = ::popen((command + " 2>&1").c_str(), "r");
  REQUIRE(pipe);
  char part[4096];
  while (const auto n = std::fread(part, 1, sizeof part, pipe)) out.text.append(part, n);
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) out.status = WEXITSTATUS(status);
  return out;
}

/// Runs the evaluator on files; nothing where there is no python3.
std::optional<shell_answer> evaluated(const std::string& arguments) {
#ifdef MMR_PYTHON3
  return shell(std::string(MMR_PYTHON3) + " " + MMR_EVALUATE_PLAN + " " + arguments);
#else
  WARN("python3 was not found: " << arguments << " is not evaluated");
  return std::nullopt;
#endif
}

struct combination {
  const char* model;
  const char* precision;
  int microbatches;
  const char* mesh;
  const char* device;
};
constexpr combination combinations[] = {
    {"gpt", "fp32", 1, "data=1", "cpu-rank"},         {"gpt", "bf16", 4, "data=2", "a100-80g"},
    {"gpt", "fp32", 1, "data=2,model=2", "cpu-rank"}, {"gpt-odd", "pure-bf16", 1, "model=3", "h100"},
    {"gpt-odd", "fp32", 4, "data=4", "cpu-rank"},     {"gpt-again", "bf16", 1, "data=2", "a100-80g"},
    {"t5", "fp32", 1, "data=3", "v100-32g"},
};

mmr::mesh lay(const std::string& spec, const std::string& device) {
  const auto m = mmr::mesh::parse(spec);
  return device == "cpu-rank" ? m : mmr::cluster{mmr::device_preset(device), 1, m.rank_count()}.lay(m);
}

std::string described(const grid::place& at, const mmr::plan& p, const fs::path& file) {
  mmr::setting s(at.g, at.m);
  mmr::save_description(p, s, file);
  return file.string() + " ";
}

}  // namespace

TEST_CASE(
    "every combination gives a plan or a clear refusal, twice the same, never behind a scheme, and the evaluator "
    "agrees") {
  const scratch folder;
  std::string files;
  int asked = 0, plans = 0, refused = 0;
  for (const auto& c : combinations) {
    const auto g = models::make(c.model, c.precision, c.microbatches);
    const grid::place at{g, lay(c.mesh, c.device)};
    const mmr::plan_request base{.axes = models::axes(c.model)};
    const auto schemes = grid::scheme_plans(at, base);
    int described_schemes = 0;
    for (const auto& s : schemes)
      files += described(at, s, folder / (std::to_string(asked) + "-" + std::to_string(described_schemes++) + ".json"));

    const auto ask = [&](const grid::question& q, double quickest) {
      INFO(c.model << " " << c.precision << " x" << c.microbatches << " on " << c.mesh << ": " << q.objective);
      const auto first = grid::ask_afresh(at, q.request), second = grid::ask_afresh(at, q.request);
      CHECK(grid::is_proved(first));
      CHECK(grid::text_of(at, first) == grid::text_of(at, second));
      CHECK(grid::broken_promise(q, first, schemes, quickest) == "");
      ++asked;
      first.plan ? ++plans : ++refused;
      if (first.plan) files += described(at, *first.plan, folder / (std::to_string(asked) + ".json"));
      return first;
    };
    auto r = base;
    const auto lean = ask({"memory", r}, 0);
    r.minimise = mmr::goal::time;
    const auto fast = ask({"time", r}, 0);
    REQUIRE((lean.plan && fast.plan));
    const bool narrowly = asked % 4 == 0;
    for (const auto& q : grid::questions_within(base, lean.peak(), narrowly ? 1.0 : 1.25, narrowly))
      CHECK(grid::contradiction(q, ask(q, fast.step()), lean.peak(), true) == "");
  }
  CHECK(asked == 42);
  CHECK(plans >= 28);
  CHECK(refused >= 7);
  if (const auto said = evaluated(files)) {
    INFO(said->text);
    CHECK(said->status == 0);
  }
}

TEST_CASE("the evaluator sees whatever is changed in a description") {
  const scratch folder;
  const auto g = models::make("gpt", "bf16", 4);
  const grid::place at{g, lay("data=2,model=2", "a100-80g")};
  const auto p = grid::ask_afresh(at, {.slowdown = 1.0, .axes = models::axes("gpt")});
  REQUIRE(p.plan);
  if (const auto said = evaluated("--self-test " + described(at, *p.plan, folder / "plan.json"))) {
    INFO(said->text);
    CHECK(said->status == 0);
    CHECK_THAT(said->text, contains("changes seen"));
  }
}

TEST_CASE("a plan that is worse than a scheme, or breaks its limits, is called so") {
  const auto g = models::make("gpt");
  const grid::place at{g, mmr::mesh::parse("data=2")};
  const mmr::plan_request r{.axes = models::axes("gpt")};
  const auto schemes = grid::scheme_plans(at, r);
  const auto last = [&](auto before) {
    return grid::answer{*std::max_element(schemes.begin(), schemes.end(), before), ""};
  };
  const auto fattest = last([](auto& a, auto& b) { return mmr::peak_bytes(a) < mmr::peak_bytes(b); });
  const auto slowest = last([](auto& a, auto& b) { return a.step_seconds < b.step_seconds; });
  auto time = r;
  time.minimise = mmr::goal::time;
  auto tight = time;
  tight.budget = fattest.peak() - 1;
  CHECK_THAT(grid::broken_promise({"memory", r}, fattest, schemes, 0), contains(" bytes and "));
  CHECK_THAT(grid::broken_promise({"time", time}, slowest, schemes, 0), contains(" s and "));
  CHECK_THAT(grid::broken_promise({"budget", tight}, fattest, schemes, 0), contains("of a budget of"));
  CHECK_THAT(grid::broken_promise({"budget", tight}, {std::nullopt, "no plan keeps it"}, schemes, 0),
             contains("keeps its limits"));
  CHECK_THAT(grid::broken_promise({"time", time}, {std::nullopt, "no plan"}, schemes, 0), contains("without a budget"));
}
