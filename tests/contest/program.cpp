// The program that solves an instance, as a process: its last line is the choice, [] where there is none, and bad input
// gets one sentence.
#ifdef MMR_SOLVE_IOPDDL
#include <sys/wait.h>

#include <array>
#include <cstdio>

#include "catch.hpp"
#include "contest/instances.hpp"

namespace {

struct answer {
  int status = -1;
  std::string said, last;  ///< both streams; the last line of standard output
};

answer run(const std::string& words) {
  const auto read = [](const std::string& command, int& status) {
    std::string text;
    auto* pipe = ::popen(command.c_str(), "r");
    REQUIRE(pipe);
    std::array<char, 4096> part;
    while (const auto n = std::fread(part.data(), 1, part.size(), pipe)) text.append(part.data(), n);
    const int code = ::pclose(pipe);
    status = WIFEXITED(code) ? WEXITSTATUS(code) : -1;
    return text;
  };
  answer a;
  int unused = 0;
  const auto command = std::string(MMR_SOLVE_IOPDDL) + " " + words;
  a.said = read(command + " 2>&1", unused);
  auto out = read(command + " 2>/dev/null", a.status);
  if (!out.empty() && out.back() == '\n') out.pop_back();
  a.last = out.substr(out.rfind('\n') == std::string::npos ? 0 : out.rfind('\n') + 1);
  return a;
}

}  // namespace

TEST_CASE("the last line is the best choice") {
  const scratch s;
  const auto solved = [&](const nlohmann::json& j) { return run(s.put_gzip("x.json.gz", j.dump()) + " 10"); };
  const auto a = solved(chain());
  CHECK(a.status == 0);
  CHECK(a.last == "[1, 1, 0]");
  CHECK_THAT(a.said, contains("cost 10, bound 10"));
  // One byte less does not do for the best.
  const auto tight = solved(chain_with("/usage_limit", 15));
  CHECK(tight.last == "[1, 0, 0]");
  CHECK_THAT(tight.said, contains("cost 18, bound 18"));
  CHECK(run(s.put("x.json", chain_with("/usage_limit", 7).dump()) + " 10").last == "[0, 0, 0]");
  CHECK(solved(chain_with("/usage_limit", nullptr)).last == "[1, 1, 0]");
}

TEST_CASE("where there is no choice the last line is [], with a sentence") {
  const scratch s;
  const auto solved = [&](const nlohmann::json& j) { return run(s.put("x.json", j.dump()) + " 10"); };
  for (const auto& j : {chain_with("/usage_limit", 6), chain_with("/nodes/costs/1", {1e18, 1e18})}) {
    const auto a = solved(j);
    CHECK(a.last == "[]");
    CHECK_THAT(a.said, contains("no choice keeps the usage limit and all that is forbidden; this is proved"));
  }
  for (const auto& path :
       {s / "none.json", s.put("cut.gz", bytes_of(s.put_gzip("whole.gz", chain().dump())).substr(0, 40)),
        s.put("text.json", "no JSON"), s.put("empty.json", chain_with("/nodes/costs", nlohmann::json::array()).dump()),
        s.put("sign.json", chain_with("/nodes/costs/0/0", -3).dump()),
        s.put("deep.json", R"({"problem": {"name": )" + std::string(200000, '[') + std::string(200000, ']') + "}}")}) {
    INFO(path);
    const auto a = run(path + " 10");
    CHECK(a.status == 1);
    CHECK(a.last == "[]");
    CHECK_THAT(a.said, contains("solve_iopddl: "));
    CHECK(std::count(a.said.begin(), a.said.end(), '\n') == 2);
  }
}

TEST_CASE("the same work gives the same answer, and a full output is an error") {
  const scratch s;
  const auto path = s.put("x.json", chain().dump());
  CHECK(run(path + " 10 --work 1").last == run(path + " 10 --work 1").last);
  CHECK(run(path + " 10 > /dev/full").status == 1);
}

TEST_CASE("a command line that is none is refused") {
  const scratch s;
  const auto path = s.put("x.json", chain().dump());
  for (const auto* words :
       {" -1", " nan", " abc", " 10 more", " 10 --sed 3", " 10 --work nan", " 10 --work 0", " 10 --seed -1"}) {
    INFO(words);
    const auto a = run(path + words);
    CHECK(a.status != 0);
    CHECK(a.last.find('[') == std::string::npos);
  }
}
#endif
