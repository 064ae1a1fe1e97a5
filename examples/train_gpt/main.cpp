// Trains a GPT on text across ranks, under a plan that an integer program proved minimal in memory, beside the plans that
// people use today. `train_gpt --help` lists the options.
#include "plans.hpp"
#include "sample.hpp"

#include <mmr/io/text.hpp>
#include <mmr/plan/front.hpp>
#include <mmr/plan/report_html.hpp>

#ifdef MMR_EXAMPLE_WITH_MPI
#include <mmr/mpi.hpp>
#endif

#include <chrono>
#include <csignal>
#include <iostream>

namespace {

struct outcome {
  std::vector<double> losses;
  double tokens_per_s = 0;
  std::vector<std::int64_t> measured;  // resident bytes of each rank's arena
  std::vector<std::int64_t> allocated;
  std::int64_t gained = 0;             // resident bytes that this process gained
  std::string text;
};

/// Feeds a rank's part of the batches.
mmr::input_filler feed(const mmr::byte_dataset& data, const options& o) {
  std::vector<std::int32_t> tokens, targets;
  return [=, &data](const mmr::tensor_info& input, std::span<const mmr::interval> box, const mmr::step_info& step, void* to) mutable {
    const auto count = static_cast<std::size_t>(box[0].size * box[1].size);
    tokens.resize(count);
    targets.resize(count);
    data.batch(static_cast<std::uint64_t>(step.step * step.microbatches + step.microbatch), {o.model.batch, o.model.seq, o.seed},
               {box[0].begin, box[0].begin + box[0].size, box[1].begin, box[1].begin + box[1].size}, tokens, targets);
    std::copy_n((input.name == "tokens" ? tokens : targets).data(), count, static_cast<std::int32_t*>(to));
  };
}

void save_tokens(const mmr::byte_dataset& data, const options& o, std::int64_t first) {
  mmr::safetensors_writer file(o.save_tokens);
  const auto rows = o.model.batch * o.model.microbatches;
  const auto count = static_cast<std::size_t>(o.model.batch * o.model.seq);
  for (auto s = first; s < first + o.steps; ++s)
    for (const char* name : {"tokens.", "targets."}) file.add(name + std::to_string(s), mmr::dtype::i32, {rows, o.model.seq});
  std::vector<std::int32_t> tokens(count), targets(count);
  for (auto s = first; s < first + o.steps; ++s)
    for (int micro = 0; micro < o.model.microbatches; ++micro) {
      data.batch(static_cast<std::uint64_t>(s * o.model.microbatches + micro), {o.model.batch, o.model.seq, o.seed}, tokens, targets);
      const std::vector<std::int64_t> start{micro * o.model.batch, 0}, extent{o.model.batch, o.model.seq};
      file.write_box<std::int32_t>("tokens." + std::to_string(s), start, extent, tokens);
      file.write_box<std::int32_t>("targets." + std::to_string(s), start, extent, targets);
    }
  file.commit();
}

template <class T, mmr::communicator C>
void train(C& world, const mmr::graph& g, const mmr::mesh& m, const mmr::plan& p, const options& o,
           const mmr::byte_dataset& data, outcome& out) {
  using clock = std::chrono::steady_clock;
  const bool first = world.rank() == 0;
  const auto before = mmr::resident_bytes();
  mmr::trainer<C> trainer(g, m, p, world, o.seed);
  if (!o.weights.empty()) {
    trainer.load(o.weights);
    if (first && trainer.steps_done() > 0) std::cout << "resumes after step " << trainer.steps_done() << "\n" << std::flush;
    if (first && trainer.steps_done() == 0) std::cout << "starts from " << o.weights << " with a fresh optimizer\n" << std::flush;
  }
  if (trainer.steps_done() > 0 && o.decay != "none" && !o.decay_steps)
    mmr::fail("this run resumes after step ", trainer.steps_done(), ", and where its --decay ends is not known; give --decay-steps, "
              "the same as in the run that is resumed (there it was --steps where it was not given)");
  if (first && !o.save_tokens.empty()) save_tokens(data, o, trainer.steps_done());
  const auto fill = feed(data, o);
  std::optional<mmr::progress> bar;
  if (first && o.steps > 0) bar.emplace("training", o.steps);
  std::map<std::string, std::pair<double, double>> profile;
  auto begin = clock::now();
  std::int64_t timed = 0;
  for (std::int64_t s = 0; s < o.steps; ++s) {
    if (s == 1) begin = clock::now(), timed = 0;  // the first step touches the memory
    if (first && o.profile && s == 1)
      trainer.run().observer = [&](const mmr::op_info& op, double compute, double moving) {
        auto& sum = profile[std::string(op.rules->name())];
        sum.first += compute, sum.second += moving;
      };
    const double loss = trainer.step(o.rate(), fill);
    ++timed;
    if (first) {
      out.losses.push_back(loss);
      char text[32];
      std::snprintf(text, sizeof text, "loss %.4f", loss);
      bar->update(s + 1, text);
    }
  }
  const std::chrono::duration<double> elapsed = clock::now() - begin;
  const auto tokens = static_cast<double>(o.model.batch * o.model.seq * o.model.microbatches);
  world.barrier();
  if (first) {
    out.tokens_per_s = timed > 0 ? tokens * static_cast<double>(timed) / elapsed.count() : 0;
    out.gained = mmr::resident_bytes() - before;
    for (const auto& [name, seconds] : profile)
      std::cout << "  " << name << std::string(22 - std::min<std::size_t>(21, name.size()), ' ')
                << mmr::detail::milliseconds(seconds.first / static_cast<double>(timed)) << " ms, moving "
                << mmr::detail::milliseconds(seconds.second / static_cast<double>(timed)) << " ms a step\n";
  }
  trainer.run().observer = nullptr;
  // Each rank's figures to rank 0: as two halves of 30 bits, the integers that communicators carry.
  const auto collect = [&](std::int64_t mine, std::vector<std::int64_t>& all) {
    const auto n = static_cast<std::size_t>(world.size());
    std::vector<std::int32_t> halves(2 * n, 0);
    halves[2 * static_cast<std::size_t>(world.rank())] = static_cast<std::int32_t>(mine & 0x3fffffff);
    halves[2 * static_cast<std::size_t>(world.rank()) + 1] = static_cast<std::int32_t>(mine >> 30);
    world.all_reduce(halves.data(), halves.data(), static_cast<std::int64_t>(halves.size()), mmr::dtype::i32, mmr::reduction::sum);
    if (!first) return;
    for (std::size_t r = 0; r < n; ++r)
      all.push_back(halves[2 * r] + (static_cast<std::int64_t>(halves[2 * r + 1]) << 30));
  };
  collect(trainer.run().resident_arena_bytes(), out.measured);
  collect(trainer.run().arena_bytes(), out.allocated);
  if (!o.save.empty()) trainer.save(o.save);
  if (o.sample > 0) {
    trainer.expect_finite("no text is sampled from it");
    const auto text = generate<T>(trainer, o.model, o.sample, o.seed);
    if (first) out.text = text;
  }
}

void write_json(const options& o, const planned& plans, const outcome& out) {
  nlohmann::ordered_json j;
  j["loss"] = out.losses;
  j["tokens_per_s"] = out.tokens_per_s;
  j["solve_s"] = plans.solve_seconds;
  const auto& p = plans.run;
  j["plan"] = {{"name", p.name}, {"objective", p.objective}, {"lower_bound", p.lower_bound},
               {"lower_bound_unit", mmr::unit_of(p.minimised)}, {"least_proved", p.least}, {"proved", p.proved},
               {"step_time_s", p.step_seconds}};
  for (std::size_t r = 0; r < p.per_rank.size(); ++r) {
    auto rank = mmr::to_json(p.per_rank[r]);
    rank["allocated"] = out.allocated[r];
    rank["measured_peak"] = out.measured[r];
    j["plan"]["per_rank"].push_back(rank);
  }
  j["resident_gained"] = out.gained;
  for (const auto& t : plans.table) {
    auto entry = mmr::to_json(mmr::fullest_rank(t));
    entry["name"] = t.name;
    entry["step_time_s"] = t.step_seconds;
    entry["sent_bytes"] = t.sent_bytes;
    entry["least_proved"] = t.least;
    entry["proved"] = t.proved;
    entry["solve_s"] = t.solve_seconds;
    j["plans"].push_back(entry);
  }
  std::fflush(stdout);  // the JSON may go there too
  mmr::write_text_file(o.json, j.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

void show(const options& o, const planned& plans, mmr::planner& planner) {
  if (!o.no_table) mmr::print_comparison(std::cout, plans.table);
  if (o.explain) mmr::explain(std::cout, planner.where(), plans.run);
  std::cout << "\nrunning plan '" << plans.run.name << "': " << plans.run.objective << " ("
            << mmr::proof_of(plans.run) << ", solved in " << mmr::format_seconds(plans.solve_seconds)
            << ")\n"
            << std::flush;
}

/// The same report as plan_model's, with what was measured.
void write_report(const options& o, const planned& plans, const outcome& out, mmr::planner& planner) {
  mmr::report_subject about;
  about.title = "train_gpt on " + planner.where().m.text();
  about.facts = {std::to_string(o.model.layers) + " layers", "hidden " + std::to_string(o.model.embed),
                 "sequence " + std::to_string(o.model.seq), "batch " + std::to_string(o.model.batch), o.precision,
                 "runs plan " + plans.run.name + ": " + plans.run.objective + " (" + std::string(mmr::proof_of(plans.run)) + ")"};
  if (!o.budget.empty()) about.limit.budget = static_cast<std::int64_t>(mmr::parse_bytes(o.budget));
  about.plans = plans.table;
  // The plan that is run is shown first.
  const auto run = std::find_if(about.plans.begin(), about.plans.end(), [&](auto& p) { return p.strategies == plans.run.strategies; });
  if (run != about.plans.end()) std::rotate(about.plans.begin(), run, run + 1);
  about.front = mmr::undominated(about.plans);
  about.run = mmr::report_run{about.plans.front().name, out.losses, {}, out.allocated, out.measured, out.tokens_per_s};
  for (const auto& r : plans.run.per_rank) about.run->predicted.push_back(r.arena);
  mmr::save_report(planner.where(), about, o.report);
}

void finish(const options& o, const planned& plans, const outcome& out, mmr::planner& planner) {
  if (!out.losses.empty())
    std::printf("loss %.4f -> %.4f, %.0f tokens/s\n", out.losses.front(), out.losses.back(), out.tokens_per_s);
  const auto& r = plans.run.per_rank.front();
  std::printf("rank 0: arena predicted %lld, allocated %lld, resident %lld bytes; the process gained %lld bytes\n",
              static_cast<long long>(r.arena), static_cast<long long>(out.allocated[0]), static_cast<long long>(out.measured[0]),
              static_cast<long long>(out.gained));
  if (!out.text.empty()) std::cout << "--- a sample:" << printable(out.text) << "\n---\n";
  if (!o.json.empty()) write_json(o, plans, out);
  if (!o.report.empty()) write_report(o, plans, out, planner);
}

template <class T>
int run(const options& o, int argc, char** argv) {
  o.check();
  const auto m = o.device_mesh();
  const auto data = mmr::byte_dataset::from_path(o.data);
  data.expect(o.model.seq, o.model.vocab);
  const auto g = mmr::gpt::training_graph<T>(o.model, o.optimizer());
  outcome out;
  if (o.comm == "threads") {
    mmr::planner planner(g, m);
    const auto plans = make_plans(o, planner);
    if (!o.save_plan.empty()) mmr::save_plan(plans.run, g, m, o.save_plan);
    show(o, plans, planner);
    mmr::run_ranks(m.rank_count(), [&](mmr::thread_communicator& world) { train<T>(world, g, m, plans.run, o, data, out); });
    finish(o, plans, out, planner);
    return 0;
  }
#ifdef MMR_EXAMPLE_WITH_MPI
  return mmr::run_mpi(argc, argv, [&](mmr::mpi_communicator& world) {
    if (world.size() != m.rank_count())
      mmr::fail("the mesh ", m.text(), " has ", m.rank_count(), " ranks but mpirun started ", world.size(), "; make them equal");
    mmr::planner planner(g, m);
    planned plans;
    const auto p = mmr::share_plan(world, planner.where(), [&] {
      plans = make_plans(o, planner);
      if (!o.save_plan.empty()) mmr::save_plan(plans.run, g, m, o.save_plan);
      show(o, plans, planner);
      return plans.run;
    });
    train<T>(world, g, m, p, o, data, out);
    if (world.rank() == 0) finish(o, plans, out, planner);
    return 0;
  });
#else
  (void)argc, (void)argv;
  mmr::fail("this train_gpt was built without MPI; install Open MPI and build it again, or use --comm threads");
#endif
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that reaches its limit is then an error like a full disk
  options o;
  CLI::App app("Trains a GPT on text under a memory-minimal parallel plan.");
  o.declare(app);
  CLI11_PARSE(app, argc, argv);
  try {
    const int status = o.precision == "double" ? run<double>(o, argc, argv) : run<float>(o, argc, argv);
    expect_printed();
    return status;
  } catch (const std::exception& problem) {
    std::cerr << "train_gpt: " << problem.what() << "\n";
    return 1;
  }
}
