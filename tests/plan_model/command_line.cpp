// plan_model as a user meets it: a process with a command line. Bad input gets one line and leaves nothing behind; what is
// printed, saved and drawn are the same figures.
#include "catch.hpp"

#include <mmr/plan/comparison.hpp>

#include <nlohmann/json.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

/// A folder of its own for each test, gone afterwards.
class scratch {
 public:
  scratch() : path_(fs::temp_directory_path() / ("mmr_plan_model_" + std::to_string(::getpid()))) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string put(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
    return *this / name;
  }
  std::size_t files() const { return static_cast<std::size_t>(std::distance(fs::directory_iterator(path_), {})); }

 private:
  fs::path path_;
};

std::string read(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct answer {
  int status;
  std::string out, err;
};

answer plan_model(const scratch& s, const std::string& arguments) {
  const auto errors = s / "errors";
  auto* pipe = ::popen((std::string(MMR_PLAN_MODEL) + " " + arguments + " 2> " + errors).c_str(), "r");
  REQUIRE(pipe);
  answer a{};
  std::array<char, 4096> part;
  while (const auto n = std::fread(part.data(), 1, part.size(), pipe)) a.out.append(part.data(), n);
  const int status = ::pclose(pipe);
  a.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  a.err = read(errors);
  fs::remove(errors);
  return a;
}

/// One line that holds `words`, status 1 or more, nothing printed and nothing written.
void require_refused(const scratch& s, const std::string& arguments, const std::string& words) {
  const auto before = s.files();
  const auto a = plan_model(s, arguments + " --json " + (s / "out.json") + " --report " + (s / "out.html"));
  CAPTURE(arguments, a.out, a.err);
  CHECK(a.status > 0);
  CHECK(a.out.empty());
  // Progress is no error.
  std::string complaint;
  std::istringstream lines(a.err);
  for (std::string line; std::getline(lines, line);)
    if (line.rfind("planning ", 0) != 0) complaint += line + "\n";
  CHECK(std::count(complaint.begin(), complaint.end(), '\n') == 1);
  CHECK(complaint.rfind("plan_model: ", 0) == 0);
  CHECK(complaint.find(words) != std::string::npos);
  CHECK(s.files() == before);
}

/// A model that is planned in a moment.
std::string tiny(const scratch& s) {
  return "--model " + s.put("tiny.json", R"({"family": "gpt", "layers": 3, "heads": 4, "embed": 64, "seq": 32, "vocab": 257})") + " ";
}

/// Whether markup is whole: every element that begins ends, in order, and no text holds a bare '<' or '&'.
bool is_whole(const std::string& text) {
  std::vector<std::string> open;
  std::size_t at = text.find("<html");
  while (at < text.size()) {
    if (text.compare(at, 9, "<![CDATA[") == 0) {
      at = text.find("]]>", at);
      if (at == std::string::npos) return false;
      at += 3;
      continue;
    }
    if (text[at] == '&') {
      if (!std::regex_search(text.substr(at, 8), std::regex("^&(amp|lt|gt|quot);"))) return false;
    } else if (text[at] == '<') {
      std::smatch m;
      const auto end = text.find('>', at);
      if (end == std::string::npos) return false;
      const auto tag = text.substr(at, end + 1 - at);
      if (std::regex_match(tag, m, std::regex("<([a-z0-9]+)( [a-zA-Z-]+=\"[^\"<]*\")*(/?)>"))) {
        if (m[3].length() == 0) open.push_back(m[1]);
      } else if (std::regex_match(tag, m, std::regex("</([a-z0-9]+)>"))) {
        if (open.empty() || open.back() != m[1]) return false;
        open.pop_back();
      } else {
        return false;
      }
      at = end;
    }
    ++at;
  }
  return open.empty();
}

nlohmann::json without_times(nlohmann::json j) {
  j.erase("solve_s");
  for (auto& p : j["plans"]) p.erase("solve_s");
  return j;
}

}  // namespace

TEST_CASE("what is printed, saved and drawn are the same figures, twice the same") {
  const scratch s;
  const auto run = [&](const std::string& name) {
    return plan_model(s, tiny(s) + "--mesh data=4 --device cpu-rank --batch 6 --microbatches 2 --front 2 --budget 1.3MB --slowdown 0.2 --json " +
                             (s / (name + ".json")) + " --report " + (s / (name + ".html")));
  };
  const auto a = run("a");
  CAPTURE(a.out, a.err);
  REQUIRE(a.status == 0);
  const auto j = nlohmann::json::parse(read(s / "a.json"));
  const auto page = read(s / "a.html");
  CHECK(is_whole(page));
  CHECK_FALSE(is_whole(page + "<b>"));
  std::int64_t largest = 0;
  for (const auto& p : j["plans"]) largest = std::max(largest, p["per_device"]["peak_live"].get<std::int64_t>());
  const mmr::detail::decimal_unit unit(largest);
  REQUIRE(j["plans"].size() == 4 + mmr::scheme_names.size());
  for (const auto& p : j["plans"]) {
    const auto name = p["name"].get<std::string>();
    CAPTURE(name);
    std::istringstream lines(a.out);
    std::string line;
    while (std::getline(lines, line) && line.rfind(name + " ", 0) != 0) {
    }
    REQUIRE(line.rfind(name + " ", 0) == 0);
    std::istringstream cells(line.substr(name.size()));
    std::string cell;
    for (const char* key : {"parameters", "gradients", "optimizer", "activations", "redundant", "peak_live", "arena"}) {
      cells >> cell;
      CHECK(cell == unit(p["per_device"][key].get<std::int64_t>()));
    }
    cells >> cell;
    CHECK(cell == mmr::detail::fixed(1e3 * p["step_time_s"].get<double>(), 3));
    cells >> cell;
    CHECK(cell == unit(p["comm_bytes"].get<std::int64_t>()));
    cells >> cell;
    CHECK(cell == (p["fits"].get<bool>() ? "yes" : "no"));
    CHECK(p["fits"].get<bool>() == (p["per_device"]["peak_live"] <= 1'300'000));
    CHECK(page.find("<td>" + name + "</td>") != std::string::npos);
  }
  CHECK(j["plans"][0]["name"] == "memory, slowdown 0.2, budget 1.3MB");
  CHECK(j["lower_bound"].get<double>() <= j["plans"][0]["per_device"]["peak_live"].get<double>());
  CHECK(j["lower_bound_unit"] == "bytes");
  CHECK(j["zero_redundancy_floor"] <= j["plans"][0]["per_device"]["peak_live"]);
  CHECK(j["solve_s"].get<double>() > 0);
  // Only what is proved is the same every time.
  for (const auto& p : j["plans"]) REQUIRE(p["proved"] == true);
  for (const auto& p : j["front"]) REQUIRE(p["proved"] == true);
  CHECK(j["problem"]["unfolded"]["nodes"] > j["problem"]["folded"]["nodes"]);
  CHECK(j["problem"]["folded"]["strategies"] >= j["problem"]["reduced"]["strategies"]);
  REQUIRE(j["front"].size() >= 2);
  for (std::size_t i = 1; i < j["front"].size(); ++i) {
    CHECK(j["front"][i - 1]["peak_live"] < j["front"][i]["peak_live"]);
    CHECK(j["front"][i - 1]["step_time_s"] > j["front"][i]["step_time_s"]);
  }
  // The page asks for nothing from outside.
  for (const char* asks : {"src=", "href=", "@import", "url(http", "fetch("}) CHECK(page.find(asks) == std::string::npos);

  REQUIRE(run("b").status == 0);
  CHECK(without_times(j) == without_times(nlohmann::json::parse(read(s / "b.json"))));
  const std::regex times("\"solve_s\":[0-9.e+-]+");
  CHECK(std::regex_replace(page, times, "") == std::regex_replace(read(s / "b.html"), times, ""));
}

TEST_CASE("no row loses to another in what it was asked, however little the work") {
  const scratch s;
  for (const char* work : {"1e5", "1e6", "1e7"}) {
    const auto a = plan_model(s, tiny(s) + "--mesh data=2,model=3 --device cpu-rank --batch 6 --compare all --front 2 --slowdown 0.02 --solve-work " +
                                     work + " --json -");
    CAPTURE(work, a.err);
    REQUIRE(a.status == 0);
    CHECK(s.files() == 1);  // the model's own
    const auto j = nlohmann::json::parse(a.out.substr(a.out.find("\n{") + 1));
    const auto peak = [](const nlohmann::json& p) { return p["per_device"]["peak_live"].get<std::int64_t>(); };
    const auto step = [](const nlohmann::json& p) { return p["step_time_s"].get<double>(); };
    for (const auto& p : j["plans"])
      for (const auto& q : j["plans"]) {
        CAPTURE(p["name"], q["name"]);
        if (p["name"] == "memory") CHECK(peak(p) <= peak(q));
        if (p["name"] == "time") CHECK(step(p) <= step(q));
      }
    for (const auto& q : j["plans"])
      CHECK(std::any_of(j["front"].begin(), j["front"].end(), [&](const auto& f) {
        return f["peak_live"].template get<std::int64_t>() <= peak(q) && step(f) <= step(q);
      }));
  }
}

TEST_CASE("every family is planned, in both precisions, with recomputation") {
  const scratch s;
  const std::string models[] = {
      R"({"family": "llama", "layers": 2, "heads": 4, "kv_heads": 2, "embed": 32, "hidden": 88, "seq": 16, "vocab": 128})",
      R"({"family": "bert", "layers": 2, "heads": 4, "embed": 32, "hidden": 64, "seq": 16, "vocab": 128})",
      R"({"family": "t5", "layers": 1, "decoder_layers": 2, "heads": 4, "embed": 32, "hidden": 64, "source": 16, "seq": 8, "vocab": 128})",
      R"({"family": "vit", "layers": 2, "heads": 4, "embed": 32, "hidden": 64, "patches": 16, "pixels": 12, "classes": 10})",
      R"({"family": "moe", "layers": 2, "heads": 4, "embed": 32, "hidden": 64, "experts": 4, "seq": 16, "vocab": 128})"};
  for (const auto& model : models)
    for (const std::string how : {"--precision fp32", "--precision bf16 --recompute"}) {
      CAPTURE(model, how);
      const auto a = plan_model(s, "--model " + s.put("m.json", model) + " --mesh data=2 --front 0 --compare zero3 " + how + " --json " + (s / "m.out"));
      CAPTURE(a.out, a.err);
      REQUIRE(a.status == 0);
      const auto j = nlohmann::json::parse(read(s / "m.out"));
      CHECK(j["plans"][0]["per_device"]["peak_live"] <= j["plans"][2]["per_device"]["peak_live"]);
      CHECK(j["plans"][1]["step_time_s"].get<double>() <= j["plans"][2]["step_time_s"].get<double>() * (1 + 1e-9));
    }
}

TEST_CASE("a saved plan is compared with, and only where it belongs") {
  const scratch s;
  const auto plan = s / "plan.json";
  REQUIRE(plan_model(s, tiny(s) + "--mesh data=2 --front 0 --compare none --save-plan " + plan).status == 0);
  const auto same = plan_model(s, tiny(s) + "--mesh data=2 --front 0 --compare none --diff " + plan);
  CAPTURE(same.out, same.err);
  CHECK(same.status == 0);
  CHECK(same.out.find("every tensor lies alike") != std::string::npos);
  const auto other = plan_model(s, tiny(s) + "--mesh data=2 --front 0 --compare none --objective time --explain --diff " + plan);
  CHECK(other.out.find("to plan 'time'") != std::string::npos);
  CHECK(other.out.find("h.*.mlp.c_fc.weight") != std::string::npos);
  require_refused(s, tiny(s) + "--mesh data=4 --diff " + plan, "is for the mesh data=2 and not for data=4");
  require_refused(s, tiny(s) + "--mesh data=2 --batch 4 --diff " + plan, "is for another model");
}

TEST_CASE("a calibration takes the place of a device") {
  const scratch s;
  const std::string measured = R"({"mmr_mesh": 1, "device": {"name": "mine", "cpu": true, "matrix_flops": {"float64": 1e10, "float32": 2e10, "bfloat16": 2e10},
    "other_flops": {"float64": 1e9, "float32": 2e9, "bfloat16": 2e9}, "memory_bytes_per_second": 1e10, "launch_seconds": 1e-6},
    "axes": [{"name": "data", "size": 4, "latency_seconds": 1e-5, "seconds_per_byte": 1e-9}]})";
  const auto calibration = s.put("c.json", measured);
  const auto a = plan_model(s, tiny(s) + "--calibration " + calibration + " --front 0 --compare none");
  CAPTURE(a.out, a.err);
  CHECK(a.status == 0);
  CHECK(a.out.find("4 x mine, measured as data=4") != std::string::npos);
  require_refused(s, tiny(s) + "--mesh data=8 --calibration " + calibration, "measured the mesh data=4, not data=8");
  require_refused(s, tiny(s) + "--device h100 --calibration " + calibration, "--device excludes --calibration");
  require_refused(s, tiny(s) + "--calibration " + s.put("cut.json", measured.substr(0, 200)), "cut or damaged");
}

TEST_CASE("bad input gets one line, and nothing is written") {
  const scratch s;
  const auto t = tiny(s);
  require_refused(s, "--model gpt5", "there is no model 'gpt5'; the models are gpt2, ");
  require_refused(s, "--mesh data=2", "--model is required");
  require_refused(s, "--model " + (s / "none.json"), "none.json");
  require_refused(s, "--model " + s.put("cut.json", "{\"family\": \"gp"), "is not whole JSON");
  require_refused(s, "--model " + s.put("deep.json", R"({"family": )" + std::string(100000, '[') + std::string(100000, ']') + "}"), "is not whole JSON");
  require_refused(s, "--model " + s.put("key.json", R"({"family": "gpt", "layers": 2, "size": 3})"), "");
  require_refused(s, "--model " + s.put("sign.json", R"({"family": "gpt", "layers": -2, "heads": 4, "embed": 64, "seq": 32, "vocab": 257})"),
                  "has layers -2; it is a whole number from 1 to 1000");
  require_refused(s, "--model " + s.put("huge.json", R"({"family": "gpt", "layers": 2, "heads": 1, "embed": 1000000000, "seq": 1000000, "vocab": 1000000000})"),
                  "");
  require_refused(s, t + "--seq 1000000 --batch 1000000 --microbatches 1000000", "");
  require_refused(s, t + "--batch 100000000 --microbatches 1000000", "100 PB can be planned");
  require_refused(s, t + "--device a100", "there is no device 'a100'; the devices are v100-16g, ");
  require_refused(s, t + "--mesh data=3,model=5 --nodes 2", "15 ranks, but 2 nodes of 8 have 16 devices");
  require_refused(s, t + "--mesh data=12", "give mesh axes whose sizes multiply to that");
  require_refused(s, t + "--mesh data=0", "a size is at least 1");
  require_refused(s, t + "--mesh nonsense", "is no mesh");
  require_refused(s, t + "--mesh data=99999,b=99999", "more ranks than an int can count");
  require_refused(s, t + "--mesh data=1048576", "");
  require_refused(s, t + "--mesh data=2 --nodes 0", "--nodes: '0' is no whole number from 1 to 1048576");
  require_refused(s, t + "--mesh data=2 --budget 1KB", "the least that would do is");
  require_refused(s, t + "--budget -3", "'-3' is no number of bytes");
  require_refused(s, t + "--budget 1e30GB", "is more than can be counted");
  require_refused(s, t + "--slowdown 0.1 --objective time", "leave it out with --objective time");
  require_refused(s, t + "--slowdown -1", "--slowdown: '-1' is no number from 0 to 100000");
  require_refused(s, t + "--objective speed", "--objective");
  require_refused(s, t + "--precision fp16", "--precision");
  require_refused(s, t + "--compare ddp,zero4", "'zero4' is no scheme; give all or none alone, or some of single, ");
  require_refused(s, t + "--compare ddp,ddp", "--compare names ddp twice");
  require_refused(s, "--model vit-b --seq 12", "--seq is of models that read sequences");
  require_refused(s, t + "--calibration " + (s / "none.json"), "none.json");
  require_refused(s, t + "--diff " + (s / "none.json"), "none.json");
  require_refused(s, t + "--save-plan " + (s / "no/folder.json"), "does not exist; make it first");
  require_refused(s, t + "--save-plan " + (s / "out.json"), "is named twice");
  for (const std::string option : {"--seq", "--batch", "--microbatches", "--front", "--nodes", "--devices-per-node"})
    for (const std::string value : {"-1", "1.5", "99999999999999999999", "many"})
      require_refused(s, t + option + " " + value, option + ": '" + value + "' is no whole number from ");
  for (const std::string option : {"--model", "--mesh", "--device", "--budget", "--objective", "--precision", "--compare", "--diff", "--calibration"})
    require_refused(s, t + option + " ''", option + ": the value is empty; give one, or leave the option out");
}
