// What plan_model is made of: the front, the difference of two plans, the floor, ranks that are alike, configurations.
#include "catch.hpp"
#include "refusal.hpp"

#include <mmr/mesh/topology.hpp>
#include <mmr/model/config_json.hpp>
#include <mmr/plan/diff.hpp>
#include <mmr/plan/floor.hpp>
#include <mmr/plan/front.hpp>
#include <mmr/plan/report_html.hpp>

#include <nlohmann/json.hpp>

#include <set>
#include <sstream>
#include <string>

namespace {

mmr::graph small_gpt(std::int64_t layers = 2) {
  // Odd sizes, which meshes do not divide.
  return mmr::gpt::training_graph<float>({.layers = layers, .heads = 6, .embed = 30, .seq = 13, .batch = 7, .vocab = 101}, mmr::adamw{});
}
mmr::mesh gpus(const std::string& text) {
  auto m = mmr::mesh::parse(text);
  m.device = mmr::device_preset("h100").speed;
  return m;
}
mmr::plan_request request() { return {.axes = mmr::gpt::scheme()}; }

/// A plan of strategies drawn at random, which meets placements that good plans avoid.
mmr::plan drawn(mmr::planner& planner, std::uint64_t seed) {
  const auto f = planner.formulated({});
  std::vector<int> choice;
  for (const auto& n : f.problem.nodes) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    choice.push_back(static_cast<int>((seed >> 33) % n.cost.size()));
  }
  mmr::plan p;
  p.strategies = f.chosen(choice);
  mmr::assess(planner.where(), p);
  return p;
}

}  // namespace

TEST_CASE("ranks that stand for others have their memory, whatever the plan") {
  const auto g = small_gpt(1);
  std::size_t saved = 0;
  for (const auto* text : {"data=8,model=2", "a=2,b=3,c=5", "a=7,b=2,c=3", "a=16"}) {
    const auto m = gpus(text);
    mmr::planner planner(g, m);
    for (std::uint64_t seed = 1; seed < 4; ++seed) {
      const auto p = drawn(planner, seed);
      const auto alike = mmr::alike_ranks(planner.where(), p.strategies, mmr::program(planner.where(), p.strategies, 0));
      saved += alike.size() - std::set<int>(alike.begin(), alike.end()).size();
      for (int r = 0; r < m.rank_count(); ++r) {
        CAPTURE(text, seed, r);
        const auto own = mmr::measure(planner.where(), p.strategies, r);
        const auto& said = p.per_rank[static_cast<std::size_t>(r)];
        REQUIRE(mmr::to_json(own) == mmr::to_json(said));
        REQUIRE(alike[static_cast<std::size_t>(r)] <= r);
      }
    }
  }
  CHECK(saved > 50);
}

TEST_CASE("the front goes from the leanest plan to the fastest, and no plan of it is beaten") {
  const auto g = small_gpt();
  const auto m = gpus("data=3");
  mmr::planner planner(g, m);
  std::vector<int> heard;
  const auto front = mmr::pareto_front(planner, request(), 4, [&](int n) { heard.push_back(n); });
  REQUIRE(front.size() >= 2);
  CHECK(heard == std::vector<int>{1, 2, 3, 4});
  for (std::size_t i = 1; i < front.size(); ++i) {
    CHECK(mmr::peak_bytes(front[i - 1]) < mmr::peak_bytes(front[i]));
    CHECK(front[i - 1].step_seconds > front[i].step_seconds);
  }
  CHECK(mmr::peak_bytes(front.front()) == mmr::peak_bytes(planner.make(request())));
  auto fastest = request();
  fastest.minimise = mmr::goal::time;
  CHECK(front.back().step_seconds == Approx(planner.make(fastest).step_seconds));
  // Schemes are plans of the space: none lies below the front's ends.
  for (const auto* name : {"ddp", "zero3", "megatron-sp"}) {
    auto q = request();
    q.scheme = name;
    const auto p = planner.make(q);
    CHECK(mmr::peak_bytes(p) >= mmr::peak_bytes(front.front()));
    CHECK(p.step_seconds >= front.back().step_seconds * (1 - 1e-9));
  }
  auto bounded = request();
  bounded.budget = 1 << 30;
  CHECK(refusal([&] { mmr::pareto_front(planner, bounded); }) == "a front is looked for in the whole space; leave slowdown, budget and scheme out of its request");
}

TEST_CASE("of dominated plans none stays on the front, and of equal ones the first") {
  const auto plan_of = [](const char* name, std::int64_t peak, double seconds) {
    mmr::plan p;
    p.name = name;
    p.per_rank = {{.peak_live = peak}};
    p.step_seconds = seconds;
    return p;
  };
  const auto front = mmr::undominated({plan_of("slow", 10, 5), plan_of("lean", 10, 4), plan_of("twin", 10, 4), plan_of("worse", 12, 4),
                                       plan_of("fast", 20, 1), plan_of("both", 30, 2)});
  REQUIRE(front.size() == 2);
  CHECK(front[0].name == "lean");
  CHECK(front[1].name == "fast");
  CHECK(mmr::front_budgets(100, 1600, 3) == std::vector<std::int64_t>{200, 400, 800});
  CHECK(mmr::front_budgets(100, 100, 3).empty());
}

TEST_CASE("the difference of two plans is what their figures differ by") {
  const auto g = small_gpt(3);
  const auto m = gpus("data=4");
  mmr::planner planner(g, m);
  auto q = request();
  q.scheme = "ddp";
  const auto ddp = planner.make(q);
  q.scheme = "zero3";
  const auto zero3 = planner.make(q);
  const auto none = mmr::diff(planner.where(), ddp, ddp);
  CHECK(none.empty());
  CHECK(none.peak == 0);
  const auto d = mmr::diff(planner.where(), ddp, zero3);
  const auto &a = ddp.per_rank.front(), &b = zero3.per_rank.front();
  CHECK(d.peak == b.peak_live - a.peak_live);
  CHECK(d.class_bytes[static_cast<std::size_t>(mmr::tensor_class::parameter)] == b.parameters - a.parameters);
  CHECK(d.step_seconds == Approx(zero3.step_seconds - ddp.step_seconds));
  std::int64_t sent = 0, parameters = 0;
  double seconds = d.compute_seconds;
  for (std::size_t c = 0; c < mmr::tensor_classes; ++c) sent += d.class_sent[c], seconds += d.class_seconds[c];
  CHECK(sent == zero3.sent_bytes - ddp.sent_bytes);
  CHECK(seconds == Approx(d.step_seconds));
  int times = 0;
  for (const auto& c : d.changes) {
    CHECK(c.from != c.to);
    if (c.kind != mmr::tensor_class::parameter) continue;
    parameters += c.bytes;
    if (c.tensor == "h.*.mlp.c_fc.weight") times += c.times;
  }
  // ZeRO-3 stores each parameter split.
  CHECK(parameters == b.parameters - a.parameters);
  CHECK(times == 3);
  std::ostringstream out;
  mmr::print_diff(out, d, "ddp", "zero3");
  CHECK(out.str().find("h.*.mlp.c_fc.weight") != std::string::npos);
  mmr::plan foreign;
  CHECK(refusal([&] { mmr::diff(planner.where(), ddp, foreign); }).find("compare plans of one graph") != std::string::npos);
}

TEST_CASE("the floor is the peak of one device over the number of devices, and no plan is below it") {
  const auto g = small_gpt();
  const auto one = gpus("x=1");
  mmr::planner alone(g, one);
  const auto whole = mmr::zero_redundancy_floor(alone.where());
  CHECK(mmr::peak_bytes(alone.make(request())) == whole);
  for (const auto* text : {"data=2,model=3", "data=8"}) {
    const auto m = gpus(text);
    mmr::planner planner(g, m);
    const auto floor = mmr::zero_redundancy_floor(planner.where());
    CHECK(floor == (whole + m.rank_count() - 1) / m.rank_count());
    CHECK(mmr::peak_bytes(planner.make(request())) >= floor);
  }
}

TEST_CASE("a report draws what the plan says") {
  const auto g = small_gpt(3);
  const auto m = gpus("data=2,model=2");
  mmr::planner planner(g, m);
  mmr::report_subject about{.title = "a <b> & \"c\"", .facts = {"<fact>"}, .limit = {.device = 1'000'000, .budget = {}}, .plans = {}, .front = {}, .run = {}};
  about.plans = {planner.make(request())};
  auto q = request();
  q.scheme = "megatron";
  about.plans.push_back(planner.make(q));
  about.plans[0].name = "</script><i>";
  const auto j = mmr::report_json(planner.where(), about);
  for (std::size_t i = 0; i < about.plans.size(); ++i) {
    const auto& p = j["plans"][i];
    const auto& r = mmr::fullest_rank(about.plans[i]);
    CHECK(p["per_device"]["peak_live"] == r.peak_live);
    std::int64_t at_peak = 0, highest = 0;
    for (const auto& b : p["peak_classes"]) at_peak += b.get<std::int64_t>();
    CHECK(at_peak == r.peak_live);
    for (const auto& step : p["live"]["bytes"]) {
      std::int64_t sum = 0;
      for (const auto& b : step) sum += b.get<std::int64_t>();
      highest = std::max(highest, sum);
    }
    CHECK(highest == r.peak_live);
    CHECK(p["live"]["peak"] == r.peak_step);
    // Every stored parameter is on the map once a layer, with its bytes.
    std::int64_t parameters = 0;
    for (const auto& card : p["map"])
      for (const auto& row : card["rows"])
        if (row["section"] == 1)
          for (std::size_t c = 0; c < row["cells"].size(); ++c) {
            const auto& column = card["columns"][c];
            parameters += row["cells"][c]["bytes"].get<std::int64_t>() * (column["last"].get<int>() - column["first"].get<int>() + 1);
          }
    CHECK(parameters == r.parameters);
  }
  const auto page = mmr::report_page(planner.where(), about);
  CHECK(page.find("<b>") == std::string::npos);
  CHECK(page.find("a &lt;b&gt; &amp; &quot;c&quot;") != std::string::npos);
  CHECK(page.find("</script><i>") == std::string::npos);
  CHECK(page.find("\\u003c/script\\u003e\\u003ci\\u003e") != std::string::npos);
}

TEST_CASE("every model of the catalog is one, and a configuration file is read to the letter") {
  std::set<std::string_view> names;
  for (const auto& [name, config] : mmr::model::catalog()) {
    CAPTURE(std::string(name));
    CHECK(names.insert(name).second);
    CHECK_NOTHROW(std::visit([](const auto& c) { c.check(); }, config));
  }
  const auto read = [](const std::string& text) { return mmr::model::config_from_json(text, "m.json"); };
  const auto c = std::get<mmr::gpt::config>(read(R"({"family": "gpt", "layers": 3, "heads": 4, "embed": 64, "seq": 32, "vocab": 100, "dropout": 0.2})"));
  CHECK(c.layers == 3);
  CHECK(c.embed == 64);
  CHECK(c.dropout == 0.2);
  CHECK(c.batch == 8);
  const auto why = [&](const std::string& text) { return refusal([&] { read(text); }); };
  const std::string rest = R"("heads": 4, "embed": 64, "seq": 32, "vocab": 100})";
  CHECK(why("{\"family\"").find("cut or damaged") != std::string::npos);
  CHECK(why("[]").find("is array where an object belongs") != std::string::npos);
  CHECK(why("{}") == "the model in m.json has no key 'family'; it is one of gpt, llama, bert, t5, vit, moe");
  CHECK(why(R"({"family": "gtp"})") == "the model in m.json has the family \"gtp\"; it is one of gpt, llama, bert, t5, vit, moe");
  CHECK(why(R"({"family": "gpt", )" + rest) == "the model in m.json has no key 'layers', which the family \"gpt\" needs");
  CHECK(why(R"({"family": "gpt", "layers": 2, "layer": 2, )" + rest).find("has the unknown key 'layer'; those of the family \"gpt\" are ") != std::string::npos);
  CHECK(why(R"({"family": "gpt", "layers": 2, "layers": 3, )" + rest).find("has the key 'layers' twice") != std::string::npos);
  for (const auto* value : {"-1", "0", "1001", "1.5", "\"12\"", "null", "true", "99999999999999999999", "18446744073709551615", "1e300"}) {
    CAPTURE(value);
    CHECK(why(R"({"family": "gpt", "layers": )" + std::string(value) + ", " + rest).find("it is a whole number from 1 to 1000") != std::string::npos);
  }
  CHECK(why(R"({"family": "gpt", "layers": 2, "dropout": 1, )" + rest).find("has dropout 1; it is a number from 0 to 0.999") != std::string::npos);
  CHECK(why(R"({"family": "gpt", "layers": 2, "heads": 5, "embed": 64, "seq": 32, "vocab": 100})").find("not a multiple of the 5 heads") != std::string::npos);
  CHECK(refusal([] { mmr::model::find_model("gpt5"); }).find("there is no model 'gpt5'; the models are gpt2, ") == 0);
}
