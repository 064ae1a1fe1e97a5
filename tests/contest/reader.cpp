// The reader of the contest's instances: what it takes, and one sentence for each thing that it refuses.
#include "catch.hpp"
#include "contest/instances.hpp"
#include "refusal.hpp"

namespace {

std::string refused(const nlohmann::json& j) {
  return refusal([&] { read(j); });
}

}  // namespace

TEST_CASE("an instance is read as it stands") {
  const auto x = read(chain());
  CHECK(x.name == "chain");
  CHECK(x.costs == std::vector<std::vector<std::int64_t>>{{8, 3}, {6, 2}, {4}});
  CHECK(x.usages == std::vector<std::vector<std::int64_t>>{{4, 9}, {3, 7}, {1000}});
  CHECK(x.edges == std::vector<std::pair<int, int>>{{0, 1}, {2, 1}});
  CHECK(x.edge_costs == std::vector<std::vector<std::int64_t>>{{0, 5, 2, 1}, {3, 0}});
  CHECK(x.usage_limit == 16);
  CHECK((x.intervals[1].begin == 2 && x.intervals[1].end == 5));

  auto bare = chain();
  bare["problem"].erase("usage_limit");
  bare["problem"].erase("name");
  CHECK_FALSE(read(bare).usage_limit);
  CHECK(read(bare).name == "unnamed");
  CHECK_FALSE(read(chain_with("/usage_limit", nullptr)).usage_limit);
  CHECK(read(chain_with("/usage_limit", 0)).usage_limit == 0);
}

TEST_CASE("numbers are taken as they are written, and from 10^18 on they forbid") {
  const auto cost = [](const nlohmann::json& n) { return read(chain_with("/nodes/costs/0/1", n)).costs[0][1]; };
  CHECK(cost(999'999'999'999'999'999) == contest::forbidden - 1);
  CHECK(cost(1'000'000'000'000'000'000) == contest::forbidden);
  CHECK(cost(18'446'744'073'709'551'615u) == contest::forbidden);
  CHECK(cost(1e18) == contest::forbidden);
  CHECK(cost(1e300) == contest::forbidden);
  CHECK(cost(7.0) == 7);
  CHECK(cost(0) == 0);
  // More than 64 bits are a float to JSON.
  auto text = chain().dump();
  text.replace(text.find("[8,3]"), 5, "[8,99999999999999999999999]");
  CHECK(contest::parse(text).costs[0][1] == contest::forbidden);
  CHECK(read(chain_with("/usage_limit", 1e30)).usage_limit == std::numeric_limits<std::int64_t>::max());
}

TEST_CASE("plain and packed files give the same text") {
  const scratch s;
  std::string text = chain().dump();
  CHECK(contest::unpacked(s.put("a.json", text)) == text);
  CHECK(contest::unpacked(s.put_gzip("a.json.gz", text)) == text);
  // Longer than one buffer of the reader.
  text += std::string(3'000'000, ' ');
  CHECK(contest::unpacked(s.put("b.json", text)) == text);
  CHECK(contest::unpacked(s.put_gzip("b.json.gz", text)) == text);
}

TEST_CASE("files that cannot be read are refused by name") {
  const scratch s;
  CHECK_THAT(refusal([&] { contest::unpacked(s / "none.json"); }), contains("cannot open") && contains("none.json\": No such file"));
  CHECK_THAT(refusal([&] { contest::unpacked(s / ""); }), contains("is not a regular file"));  // a folder

  const auto whole = bytes_of(s.put_gzip("whole.gz", chain().dump()));
  for (std::size_t kept = 2; kept < whole.size(); ++kept) {
    INFO("cut to " << kept << " of " << whole.size() << " bytes");
    const auto path = s.put("cut.gz", whole.substr(0, kept));
    CHECK_THAT(refusal([&] { contest::parse(contest::unpacked(path)); }), contains("cut.gz' is damaged"));
  }
  int spoilt = 0;
  for (std::size_t at = 10; at < whole.size(); ++at) {  // the ten bytes of the header say little
    auto bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x5a);
    const auto path = s.put("spoilt.gz", bytes);
    spoilt += refusal([&] { contest::unpacked(path); }) != "nothing was refused";
  }
  CHECK(spoilt == static_cast<int>(whole.size()) - 10);
}

TEST_CASE("text that is no instance is refused") {
  for (const char* text : {"", "   ", "null", "17", "[]", "{}", R"({"problem": 3})", R"({"problem": {}})", "\x1f",
                           "no JSON", R"({"problem": {"name": "\xff"}})"}) {
    INFO(text);
    CHECK_THAT(refusal([&] { contest::parse(text); }), contains("this is no instance of the contest: "));
  }
  const auto whole = chain().dump();
  for (std::size_t kept = 0; kept < whole.size(); ++kept) {
    INFO(whole.substr(0, kept));
    CHECK_THAT(refusal([&] { contest::parse(whole.substr(0, kept)); }), contains("this is no instance"));
  }
  for (const char* key :
       {"/nodes", "/edges", "/nodes/intervals", "/nodes/costs", "/nodes/usages", "/edges/nodes", "/edges/costs"}) {
    INFO(key);
    auto j = chain();
    const nlohmann::json::json_pointer at("/problem" + std::string(key));
    j[at.parent_pointer()].erase(at.back());
    CHECK_THAT(refused(j), contains("this is no instance"));
    CHECK_THAT(refused(chain_with(key, 3)), contains(" "));
    CHECK(refused(chain_with(key, "text")) != "nothing was refused");
  }
}

TEST_CASE("damaged numbers are refused with what they are") {
  const nlohmann::json huge = nlohmann::json::array({1, 2});
  for (const auto& [where, what] : {std::pair{"/nodes/costs/0/0", "costs"},
                                    {"/nodes/usages/1/0", "usages"},
                                    {"/nodes/intervals/0/0", "intervals"},
                                    {"/nodes/intervals/0/1", "intervals"},
                                    {"/edges/nodes/0/1", "edges"},
                                    {"/edges/costs/1/0", "edge costs"},
                                    {"/usage_limit", "usage_limit"}}) {
    INFO(where);
    const std::string damaged = std::string("the instance is damaged: ") + what + " holds ";
    CHECK(refused(chain_with(where, -1)) == damaged + "-1; it needs 0 or more");
    CHECK(refused(chain_with(where, -1e19)) == damaged + "-1e+19; it needs 0 or more");
    CHECK(refused(chain_with(where, 1.5)) == damaged + "1.5; it needs a whole number");
    CHECK(refused(chain_with(where, "7")) == damaged + "\"7\"; it needs a number");
    CHECK(refused(chain_with(where, true)) == damaged + "true; it needs a number");
    CHECK(refused(chain_with(where, huge)) == damaged + "a list; it needs a number");
    if (std::string(where) != "/usage_limit")
      CHECK_THAT(refused(chain_with(where, nullptr)), contains("null; it needs a number"));
  }
  CHECK_THAT(refused(chain_with("/nodes/costs/0/0", std::string(1000, 'x'))), contains("xxx...; it needs"));
  CHECK_THAT(refused(chain_with("/nodes/usages/0/0", 1e19)), contains("usages holds 1e+19; it needs less than 2^63"));
}

TEST_CASE("tables that do not fit the nodes are refused") {
  CHECK_THAT(refused(chain_with("/nodes/costs", nlohmann::json::array())), contains("'chain' has no nodes"));
  CHECK_THAT(refused(chain_with("/nodes/costs/1", nlohmann::json::array())), contains("node 1 has no strategies"));
  CHECK_THAT(refused(chain_with("/nodes/usages/1", {3})), contains("node 1 has 2 costs but 1 usages"));
  CHECK_THAT(refused(chain_with("/nodes/costs", {{8, 3}, {6, 2}})),
             contains("2 nodes have costs, 3 intervals and 3 usages"));
  CHECK_THAT(refused(chain_with("/edges/costs/0", {0, 5, 2})), contains("edge 0 has 3 costs; its nodes need 4"));
  CHECK_THAT(refused(chain_with("/edges/costs", {{0, 5, 2, 1}})), contains("2 edges have 1 cost tables"));
  CHECK_THAT(refused(chain_with("/edges/nodes/1", {2, 3})), contains("edge 1 joins 2 and 3 but there are 3 nodes"));
  // An index must not come round to a node that is there.
  for (const std::int64_t index : {3LL, 4294967296LL, 4294967297LL, 9223372036854775806LL}) {
    INFO(index);
    CHECK_THAT(refused(chain_with("/edges/nodes/1/1", index)), contains("edge 1 joins 2 and "));
  }
  CHECK_THAT(refused(chain_with("/edges/nodes/1", {2, 1, 0})),
             contains("edges hold a list of 3 numbers; each needs two"));
  CHECK_THAT(refused(chain_with("/nodes/intervals/0", {2})), contains("intervals hold a list of 1 numbers"));
  CHECK_THAT(refused(chain_with("/nodes/costs/2", 4)), contains("costs holds 4; it needs a list"));
}
