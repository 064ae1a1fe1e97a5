// Plans a model for devices that nobody needs to have: does it fit, where do the bytes go, what would be faster.
// `plan_model --help` lists the options; `--report FILE.html` is the answer to look at.
#include "plans.hpp"

#include <mmr/plan/diff.hpp>
#include <mmr/plan/explain.hpp>
#include <mmr/plan/floor.hpp>
#include <mmr/plan/report_html.hpp>

#include <csignal>
#include <iostream>

namespace {

/// Sums of bytes and of what is sent must not overflow 64 bits.
void check_size(const mmr::graph& g) {
  double bytes = 0;
  for (mmr::tensor_id t = 0; t < g.tensors(); ++t)
    bytes += static_cast<double>(mmr::size_of(g.tensor_of(t).type.element)) * static_cast<double>(g.tensor_of(t).type.count());
  if (bytes * g.microbatches > 1e17)
    mmr::fail("the tensors of a step have ", mmr::format_bytes(bytes * g.microbatches),
              " together, and 100 PB can be planned; make the model, the batch or the number of microbatches smaller");
}

double parameters(const mmr::graph& g) {
  double n = 0;
  for (mmr::tensor_id t = 0; t < g.tensors(); ++t)
    if (g.tensor_of(t).kind == mmr::tensor_class::parameter && g.op(g.tensor_of(t).producer).when == mmr::phase::source)
      n += static_cast<double>(g.tensor_of(t).type.count());
  return n;
}

/// "175 billion".
std::string count_text(double n) {
  if (n >= 1e9) return mmr::detail::three_digits(n / 1e9) + " billion";
  if (n >= 1e6) return mmr::detail::three_digits(n / 1e6) + " million";
  return mmr::detail::three_digits(n);
}

std::string size_text(const mmr::solve::sizes& n) {
  return std::to_string(n.nodes) + " nodes, " + std::to_string(n.strategies) + " strategies, " + std::to_string(n.variables) + " variables";
}
nlohmann::ordered_json size_json(const mmr::solve::sizes& n) {
  return {{"nodes", n.nodes}, {"strategies", n.strategies}, {"edges", n.edges}, {"variables", n.variables}};
}

void write_json(const options& o, const devices& d, const mmr::memory_limit& limit, const planned& plans, std::int64_t floor,
                double parameter_count) {
  nlohmann::ordered_json j;
  j["model"] = o.model;
  j["parameters"] = parameter_count;
  j["precision"] = o.precision_name;
  j["mesh"] = d.mesh.text();
  j["device"] = d.mesh.device.name;
  j["devices"] = d.mesh.rank_count();
  if (limit.device) j["device_bytes"] = *limit.device;
  if (limit.budget) j["budget"] = *limit.budget;
  for (const auto& p : plans.table) j["plans"].push_back(mmr::figures_json(p, limit));
  for (const auto& p : plans.front) j["front"].push_back(mmr::point_json(p, limit));
  j["lower_bound"] = plans.asked.lower_bound;
  j["lower_bound_unit"] = mmr::unit_of(plans.asked.minimised);
  j["zero_redundancy_floor"] = floor;
  j["problem"] = {{"unfolded", size_json(plans.asked.unfolded)}, {"folded", size_json(plans.asked.folded)},
                  {"reduced", size_json(plans.asked.reduced)}};
  j["solve_s"] = plans.seconds;
  std::fflush(stdout);  // the JSON may go there too
  mmr::write_text_file(o.json, j.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

int run(const options& o, bool mesh_given) {
  o.check();
  const auto d = find_devices(o, mesh_given);
  const auto config = o.config();
  mmr::memory_limit limit{.device = d.memory, .budget = o.budget_bytes()};
  const auto g = std::visit([&](const auto& c) { return training_graph(c, o.precision_name == "bf16", o.optimizer()); }, config);
  check_size(g);
  mmr::planner planner(g, d.mesh);
  std::optional<mmr::plan> other;
  if (!o.diff.empty()) other = mmr::load_plan(o.diff, planner.where());
  const auto plans = make_plans(o, planner, mmr::model::scheme_of(config), limit);
  const auto floor = mmr::zero_redundancy_floor(planner.where());
  const auto count = parameters(g);

  std::cout << o.model << ", " << count_text(count) << " parameters, " << o.precision_name << ", on " << d.text << " as "
            << d.mesh.text() << "\n";
  if (d.memory) std::cout << "each with " << mmr::format_bytes(static_cast<double>(*d.memory)) << "; ";
  std::cout << "without a redundant byte a device would hold " << mmr::format_bytes(static_cast<double>(floor)) << "\n\n";
  mmr::print_plans(std::cout, plans.table, limit);
  std::cout << "\nthe front of memory against time:\n";
  mmr::print_front(std::cout, plans.front, limit);
  const auto& asked = plans.asked;
  std::cout << "\nasked for '" << asked.name << "': " << asked.objective << " (" << mmr::proof_of(asked) << "; at least "
            << (asked.minimised == mmr::goal::memory ? mmr::format_bytes(asked.lower_bound) : mmr::format_seconds(asked.lower_bound))
            << " is proved), all plans in " << mmr::format_seconds(plans.seconds) << "\n";
  std::cout << "the problem: " << size_text(asked.unfolded) << "; equal layers as one: " << size_text(asked.folded)
            << "; reduced: " << size_text(asked.reduced) << "\n";
  if (o.explain) mmr::explain(std::cout << "\n", planner.where(), asked);
  if (other) mmr::print_diff(std::cout << "\n", mmr::diff(planner.where(), *other, asked), other->name + " (" + o.diff + ")", asked.name);
  std::cout << std::flush;
  if (!o.save_plan.empty()) mmr::save_plan(asked, g, d.mesh, o.save_plan);
  if (!o.json.empty()) write_json(o, d, limit, plans, floor, count);
  if (!o.report.empty()) {
    mmr::report_subject about{.title = o.model + " on " + d.text, .facts = {}, .limit = limit, .plans = plans.table, .front = plans.front, .run = {}};
    about.facts = {count_text(count) + " parameters", o.precision_name, "mesh " + d.mesh.text(),
                   std::to_string(g.microbatches) + (g.microbatches == 1 ? " microbatch" : " microbatches") + " a step",
                   "asked for: " + asked.objective + " (" + std::string(mmr::proof_of(asked)) + ")",
                   "without redundancy: " + mmr::format_bytes(static_cast<double>(floor)) + " a device"};
    mmr::save_report(planner.where(), about, o.report);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that reaches its limit is then an error like a full disk
  options o;
  CLI::App app("Plans a model for devices that need not be there: bytes a device, step time, and what would fit.");
  o.declare(app);
  CLI11_PARSE(app, argc, argv);
  try {
    const int status = run(o, app.count("--mesh") > 0);
    expect_printed();
    return status;
  } catch (const std::exception& problem) {
    std::cerr << "plan_model: " << problem.what() << "\n";
    return 1;
  }
}
