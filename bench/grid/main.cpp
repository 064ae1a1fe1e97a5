// Plans a grid of models, meshes, precisions and objectives, on devices that nobody needs to have. Every plan is made
// twice from scratch and must come out the same, and must be no worse than any fixed scheme; more devices must not need
// more memory each. What is planned is described in a folder, for bench/evaluate_plan.py to check.
//
//     bench_grid FOLDER [WORK [PART/PARTS [MODEL]]]
//
// WORK bounds each plan (plan_request::work; default: 5e8). PART of PARTS does its share of the grid, so that several
// can run side by side. Ends with status 1 where a promise was broken.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <mmr/mesh/topology.hpp>
#include <mmr/plan/description.hpp>

#include "ask.hpp"
#include "models.hpp"

namespace {

struct arguments {
  std::filesystem::path folder;
  double work = 5e8;
  int part = 0, parts = 1;
  std::string only;
};

/// CPU ranks as they are guessed, or GPUs in nodes of at most eight.
mmr::mesh lay(const std::string& spec, const std::string& device) {
  const auto m = mmr::mesh::parse(spec);
  if (device == "cpu-rank") return m;
  const int ranks = m.rank_count(), in_a_node = ranks % 8 == 0 ? 8 : ranks;
  return mmr::cluster{mmr::device_preset(device), ranks / in_a_node, in_a_node}.lay(m);
}

class run {
 public:
  explicit run(arguments a) : a_(std::move(a)) {
    std::filesystem::create_directories(a_.folder / "plans");
    lines_.open(a_.folder / ("grid-" + std::to_string(a_.part) + ".tsv"));
    if (!lines_) mmr::fail("nothing can be written to ", a_.folder.string(), "; name another folder");
  }

  /// All objectives of one model on one mesh. `turn` varies what else can be varied.
  void all_objectives(const grid::model& model, const std::string& spec, const std::string& device, int turn,
                      bool large) {
    if (!mine(model)) return;
    const std::string precision = grid::precisions[turn % 3];
    const int microbatches = turn / 3 % 2 == 0 ? 1 : 4;
    const grid::place at{graph(model, precision, microbatches), lay(spec, device)};
    where_ = model.name + '\t' + spec + '\t' + device + '\t' + precision + "\tx" + std::to_string(microbatches);
    const mmr::plan_request base{.axes = model.axes(), .work = a_.work};
    const auto schemes = grid::scheme_plans(at, base);
    describe(at, schemes[static_cast<std::size_t>(turn) % schemes.size()]);

    auto r = base;
    const auto lean = ask(at, {"memory", r}, schemes, 0);
    r.minimise = mmr::goal::time;
    const auto fast = ask(at, {"time", r}, schemes, 0);
    if (!lean.plan || !fast.plan) return;
    const double quickest = fast.plan->least ? fast.step() : fast.plan->lower_bound;
    const double factors[] = {1.0, 1.1, 1.5};
    const auto more = grid::questions_within(base, lean.peak(), factors[turn / 2 % 3], turn % 2 == 0);
    for (std::size_t i = 0; i < more.size(); ++i) {
      if (large && static_cast<int>(i) % 2 != turn % 2) continue;
      const auto given = ask(at, more[i], schemes, quickest);
      complain(grid::contradiction(more[i], given, lean.peak(), lean.plan->least), more[i].objective);
    }
  }

  /// Least memory on more and more devices.
  void more_devices(const grid::model& model, const std::vector<std::string>& specs, const std::string& device) {
    if (!mine(model)) return;
    std::int64_t before = 0;
    std::string of;
    for (const auto& spec : specs) {
      const grid::place at{graph(model, "fp32", 1), lay(spec, device)};
      where_ = model.name + '\t' + spec + '\t' + device + "\tfp32\tx1";
      const mmr::plan_request r{.axes = model.axes(), .work = a_.work};
      const auto lean = ask(at, {"memory, more devices", r}, {}, 0);
      if (!lean.plan) continue;
      if (!of.empty() && lean.peak() > before)
        complain("takes " + std::to_string(lean.peak()) + " bytes where " + of + " takes " + std::to_string(before) +
                     (lean.plan->least ? "" : " (not proved least)"),
                 "memory, more devices");
      before = lean.peak();
      of = spec;
    }
  }

  int summary() {
    if (counts_["asked"] == 0)
      mmr::fail("nothing was asked: no model of this part of the grid is called '", a_.only, "'");
    std::cout << counts_["asked"] << " combinations asked twice: " << counts_["plans"] << " plans, "
              << counts_["refusals"] << " refusals; " << counts_["proved"] << " proved, "
              << counts_["asked"] - counts_["proved"] << " ended by the work (" << counts_["not found"]
              << " of them with nothing found); " << counts_["differ"] << " came out otherwise the second time; "
              << counts_["promises broken"] << " promises broken\n";
    return counts_["promises broken"] > 0 ? 1 : 0;
  }

 private:
  bool mine(const grid::model& model) {
    if (!a_.only.empty() && model.name != a_.only) return false;
    return turn_++ % a_.parts == a_.part;
  }
  const mmr::graph& graph(const grid::model& model, const std::string& precision, int microbatches) {
    const auto key = model.name + precision + std::to_string(microbatches);
    const auto known = graphs_.find(key);
    if (known != graphs_.end()) return known->second;
    return graphs_.emplace(key, grid::graph_of(model, precision, microbatches)).first->second;
  }

  grid::answer ask(const grid::place& at, const grid::question& q, const std::vector<mmr::plan>& schemes,
                   double quickest) {
    const auto begin = std::chrono::steady_clock::now();
    const auto first = grid::ask_afresh(at, q.request), second = grid::ask_afresh(at, q.request);
    const auto took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const bool same = grid::text_of(at, first) == grid::text_of(at, second);
    const bool proved = grid::is_proved(first);
    ++counts_["asked"];
    ++counts_[first.plan ? "plans" : "refusals"];
    if (proved) ++counts_["proved"];
    if (!same) ++counts_["differ"];
    if (grid::not_found(first)) ++counts_["not found"];
    std::string file = "-", figures = first.refusal;
    if (first.plan) {
      char text[128];
      std::snprintf(text, sizeof text, "peak %lld step %.9g %s", static_cast<long long>(first.peak()), first.step(),
                    std::string(mmr::proof_of(*first.plan)).c_str());
      figures = text;
      file = describe(at, *first.plan);
    }
    lines_ << where_ << '\t' << q.objective << '\t' << (proved ? "proved" : "cut") << '\t'
           << (same ? "same" : "differs") << '\t' << took / 2 << '\t' << file << '\t' << figures << std::endl;
    if (!same) complain("comes out otherwise the second time", q.objective);
    complain(grid::broken_promise(q, first, schemes, quickest), q.objective);
    return first;
  }

  void complain(const std::string& what, const std::string& objective) {
    if (what.empty()) return;
    ++counts_["promises broken"];
    std::cout << where_ << '\t' << objective << ": " << what << std::endl;
  }

  std::string describe(const grid::place& at, const mmr::plan& p) {
    const auto name = std::to_string(a_.part) + '-' + std::to_string(described_++) + ".json";
    mmr::setting s(at.g, at.m);
    mmr::save_description(p, s, a_.folder / "plans" / name);
    return name;
  }

  arguments a_;
  std::ofstream lines_;
  std::string where_;
  int turn_ = 0, described_ = 0;
  std::map<std::string, int> counts_;
  std::map<std::string, mmr::graph> graphs_;
};

const std::vector<std::string> small_meshes{"data=1",         "data=2",         "model=3",
                                            "data=4",         "data=8",         "data=2,model=2",
                                            "data=3,model=2", "data=2,model=4", "pod=2,data=2,model=2",
                                            "data=8,model=8"};
const std::vector<std::string> devices{"cpu-rank", "a100-80g", "h100", "v100-32g"};

int plan_grid(const arguments& a) {
  run grid_run(a);
  const auto small = grid::small_models(), published = grid::published_models();
  for (std::size_t i = 0; i < small.size(); ++i)
    for (std::size_t j = 0; j < small_meshes.size(); ++j)
      grid_run.all_objectives(small[i], small_meshes[j], devices[(i + 2 * j) % devices.size()], static_cast<int>(i + j),
                              false);
  for (const auto& model : small) {
    grid_run.more_devices(model, {"data=1", "data=2", "data=3", "data=4", "data=6", "data=8"}, "cpu-rank");
    grid_run.more_devices(
        model, {"data=1,model=1", "data=2,model=1", "data=2,model=2", "data=2,model=4", "data=4,model=4"}, "a100-80g");
  }
  const std::vector<std::string> large_meshes{"data=8", "data=8,model=8", "pod=8,data=8,model=8"};
  for (std::size_t i = 0; i < published.size(); ++i)
    for (std::size_t j = 0; j < large_meshes.size(); ++j)
      if ((i + j) % 3 != 2)
        grid_run.all_objectives(published[i], large_meshes[j], devices[1 + i % 3], static_cast<int>(i + j), true);
  return grid_run.summary();
}

arguments parse(int argc, char** argv) {
  arguments a;
  if (argc > 5) mmr::fail("give FOLDER [WORK [PART/PARTS [MODEL]]]");
  a.folder = argv[1];
  if (argc > 2) a.work = std::atof(argv[2]);
  if (!(a.work > 0)) mmr::fail("'", argv[2], "' is no amount of work; give more than 0, as 5e8");
  if (argc > 3 && (std::sscanf(argv[3], "%d/%d", &a.part, &a.parts) != 2 || a.part < 0 || a.part >= a.parts))
    mmr::fail("'", argv[3], "' is no part of the grid; give 0/2 and 1/2 for halves");
  if (argc > 4) a.only = argv[4];
  return a;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 1) {  // as cmake/run.sh bench calls all benches; the grid takes half an hour
    std::cout << "bench_grid FOLDER [WORK [PART/PARTS [MODEL]]] plans a grid and describes the plans in the folder\n";
    return 0;
  }
  try {
    return plan_grid(parse(argc, argv));
  } catch (const std::exception& problem) {
    std::cerr << "bench_grid: " << problem.what() << "\n";
    return 2;
  }
}
