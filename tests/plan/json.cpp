// Plans as JSON: what was saved comes back, and a damaged file gives one clear error whatever is wrong with it.
#include <filesystem>
#include <functional>
#include <mmr/plan/json.hpp>

#include "catch.hpp"
#include "draw.hpp"
#include "models.hpp"
#include "refusal.hpp"

using namespace models;

namespace {

struct saved {
  mmr::graph g;
  mmr::setting s;
  mmr::plan p;
  std::string text;

  explicit saved(mmr::graph graph = gpt({.dropout = 0.1}), const std::string& spec = "data=2,model=2")
      : g(std::move(graph)), s(g, mmr::mesh::parse(spec)) {
    const auto f = mmr::formulate(s);
    std::mt19937 random(1);
    p.strategies = f.chosen(any_choice(s, f, random));
    p.name = "mine \"quoted\"";
    p.objective = "drawn";
    p.minimised = mmr::goal::time;
    p.lower_bound = 12.5;
    p.least = p.proved = true;
    mmr::assess(s, p);
    text = mmr::to_json(p, g, s.m).dump(1);
  }
  mmr::plan load(const std::string& from) { return mmr::plan_from_json(from, "plan.json", s); }

  /// The plan `name` as it was saved before `key` was told.
  nlohmann::json older(const std::string& key, const std::string& name) const {
    auto j = nlohmann::json::parse(text);
    j.erase(key);
    j["name"] = name;
    j["seal"] = std::to_string(mmr::seal_of(j));
    return j;
  }

  /// The sentence that a damaged text gets. Any other exception fails the test.
  std::string refusal(const std::string& from) {
    return ::refusal([&] { load(from); });
  }
  std::string refusal(const std::function<void(nlohmann::ordered_json&)>& damage) {
    auto j = nlohmann::ordered_json::parse(text);
    damage(j);
    return refusal(j.dump());
  }
};

}  // namespace

TEST_CASE("a plan comes back as it was saved") {
  for (const auto* spec : {"data=2", "data=3", "data=2,model=2"}) {
    saved x(gpt({.heads = 2, .embed = 6, .seq = 5, .batch = 3, .vocab = 7, .dropout = 0.1}), spec);
    const auto back = x.load(x.text);
    CHECK(back.strategies == x.p.strategies);
    CHECK(back.name == x.p.name);
    CHECK(back.objective == x.p.objective);
    CHECK(back.minimised == x.p.minimised);
    CHECK(back.lower_bound == x.p.lower_bound);
    CHECK(back.least == x.p.least);
    CHECK(back.proved == x.p.proved);
    CHECK(back.step_seconds == x.p.step_seconds);
    CHECK(back.sent_bytes == x.p.sent_bytes);
    REQUIRE(back.per_rank.size() == x.p.per_rank.size());
    for (std::size_t r = 0; r < back.per_rank.size(); ++r)
      CHECK(mmr::to_json(back.per_rank[r]) == mmr::to_json(x.p.per_rank[r]));
    CHECK(mmr::to_json(back, x.g, x.s.m).dump(1) == x.text);
  }
}

TEST_CASE("a plan of before the bound had a unit keeps its proof") {
  saved x;
  for (const std::string name : {"memory", "time", "zero3"}) {
    const auto j = x.older("lower_bound_unit", name);
    const auto back = x.load(j.dump());
    CHECK(back.proved);
    CHECK(back.minimised == (name == "memory" ? mmr::goal::memory : mmr::goal::time));
  }
  CHECK_FALSE(x.load([&] {
                 auto j = nlohmann::json::parse(x.text);
                 j["lower_bound_unit"] = "bytes";
                 return j.dump();
               }()).proved);
  CHECK_THAT(x.refusal([](auto& j) { j["lower_bound_unit"] = "miles"; }), contains("neither bytes nor seconds"));
}

TEST_CASE("a plan keeps which half of it is proved, and of before that was told only the first") {
  saved x;
  x.p.proved = false;
  const auto half = x.load(mmr::to_json(x.p, x.g, x.s.m).dump());
  CHECK(half.least);
  CHECK_FALSE(half.proved);
  for (const std::string name : {"memory", "zero3"}) {
    auto j = x.older("least_proved", name);
    const auto back = x.load(j.dump());
    CHECK(back.least);
    CHECK(back.proved == (name == "zero3"));  // a scheme has no second half
    j["proved"] = false;
    j["seal"] = std::to_string(mmr::seal_of(j));
    CHECK_FALSE(x.load(j.dump()).least);
  }
  // The seal covers it.
  auto j = nlohmann::json::parse(mmr::to_json(x.p, x.g, x.s.m).dump());
  j["proved"] = true;
  CHECK_FALSE(x.load(j.dump()).proved);
  j["least_proved"] = 1;
  CHECK_THAT(x.refusal(j.dump()), contains("damaged entry 'least_proved'"));
}

TEST_CASE("a plan is kept in a file") {
  saved x;
  const auto file = std::filesystem::temp_directory_path() / "mmr_test_plan_json.json";
  mmr::save_plan(x.p, x.g, x.s.m, file);
  CHECK(mmr::load_plan(file, x.s).strategies == x.p.strategies);
  std::filesystem::remove(file);
  CHECK_THROWS_AS(mmr::load_plan(file, x.s), mmr::error);
}

TEST_CASE("a plan that is cut anywhere is refused") {
  saved x;
  for (std::size_t length = 0; length < x.text.size(); length += 100) {
    INFO("cut after " << length << " bytes");
    CHECK_THAT(x.refusal(x.text.substr(0, length)), contains("the plan in plan.json is not whole JSON"));
  }
  CHECK_THAT(x.refusal(x.text + "]"), contains("is not whole JSON"));
  CHECK_THAT(x.refusal(std::string("\xff\xfe\0\1", 4)), contains("is not whole JSON"));
  CHECK_THAT(x.refusal("[1, 2]"), contains("is not whole JSON"));
}

TEST_CASE("a plan of another version, mesh or model is refused by name") {
  saved x;
  CHECK_THAT(x.refusal([](auto& j) { j["mmr_plan"] = 2; }), contains("format version 2 and this program reads 1"));
  CHECK_THAT(x.refusal([](auto& j) { j["mmr_plan"] = "1"; }), contains("format version \"1\""));
  CHECK_THAT(x.refusal([](auto& j) { j["mesh"][0]["size"] = 4; }),
             contains("is for the mesh data=4,model=2 and not for data=2,model=2"));
  CHECK_THAT(x.refusal([](auto& j) { j["mesh"][1]["name"] = "tensor"; }), contains("is for the mesh data=2,tensor=2"));
  CHECK_THAT(x.refusal([](auto& j) { j["mesh"].erase(1); }), contains("is for the mesh data=2 and"));
  for (const auto& size :
       {gpt_size{.layers = 2, .dropout = 0.1}, gpt_size{.batch = 5, .dropout = 0.1}, gpt_size{},
        gpt_size{.dropout = 0.1, .microbatches = 2}, gpt_size{.dropout = 0.1, .updates = optimizer::sgd},
        gpt_size{.dropout = 0.1, .updates = optimizer::adamw_clipped},
        gpt_size{.dropout = 0.1, .double_precision = true}})
    CHECK_THAT(saved(gpt(size)).refusal(x.text), contains("is for another model"));
}

TEST_CASE("a plan with a strategy that its operator lacks is refused by name") {
  saved x;
  const auto op = [&](const char* name) {
    for (mmr::op_id o = 0; o < x.g.ops(); ++o)
      if (x.g.op(o).name == name) return static_cast<std::size_t>(o);
    throw std::logic_error(name);
  };
  const auto at = op("h.0.layer_norm");
  for (const auto* bad : {"embed", "hidden", "partial", "", "Batch"})
    CHECK_THAT(x.refusal([&](auto& j) { j["operators"][at]["along"][0] = bad; }),
               contains("gives operator 'h.0.layer_norm' the strategy") && contains("which it does not have"));
  CHECK_THAT(x.refusal([&](auto& j) { j["operators"][at]["along"][1] = 3; }), contains("which it does not have"));
  CHECK_THAT(x.refusal([&](auto& j) { j["operators"][at]["along"].push_back("none"); }),
             contains("damaged entry for operator 'h.0.layer_norm'"));
  CHECK_THAT(x.refusal([&](auto& j) { j["operators"][at]["name"] = "other"; }),
             contains("damaged entry for operator 'h.0.layer_norm'"));
  CHECK_THAT(x.refusal([&](auto& j) { j["operators"].erase(at); }), contains("operators where the model has"));
}

TEST_CASE("a plan without one of its entries, or with one of another type, is refused") {
  saved x;
  for (const auto* key : {"mmr_plan", "name", "objective", "graph", "mesh", "lower_bound", "proved", "operators"}) {
    INFO(key);
    CHECK_THAT(x.refusal([&](auto& j) { j.erase(key); }),
               contains("the plan in plan.json has no entry '" + std::string(key) + "'"));
    for (const nlohmann::ordered_json& wrong :
         {nlohmann::ordered_json(nullptr), nlohmann::ordered_json::array(), nlohmann::ordered_json::array({1, "x"}),
          nlohmann::ordered_json::object(), nlohmann::ordered_json::array({nlohmann::ordered_json::object()})})
      CHECK_THAT(x.refusal([&](auto& j) { j[key] = wrong; }), contains("the plan in plan.json "));
  }
  for (const auto* key : {"name", "along"}) {
    CHECK_THAT(x.refusal([&](auto& j) { j["operators"][5].erase(key); }),
               contains("the plan in plan.json has no entry"));
    CHECK_THAT(x.refusal([&](auto& j) { j["operators"][5][key] = 7; }), contains("damaged entry for operator"));
  }
  for (const auto* key : {"name", "size"}) {
    CHECK_THAT(x.refusal([&](auto& j) { j["mesh"][0].erase(key); }), contains("the plan in plan.json has no entry"));
    CHECK_THAT(x.refusal([&](auto& j) { j["mesh"][0][key] = nullptr; }), contains("damaged mesh"));
  }
  CHECK_THAT(x.refusal([&](auto& j) { j["operators"][5] = "text"; }), contains("the plan in plan.json has no entry"));
}

TEST_CASE("any one byte changed gives the same plan, or one error") {
  saved x;
  std::mt19937 random(11);
  for (int draw = 0; draw < 150; ++draw) {
    auto text = x.text;
    text[std::uniform_int_distribution<std::size_t>(0, text.size() - 1)(random)] = "{}[]\",:0aZ\n\x80"[random() % 12];
    CHECK_NOTHROW(x.refusal(text));
  }
}
