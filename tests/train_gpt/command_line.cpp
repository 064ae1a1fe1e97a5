// train_gpt as a user meets it: a process with a command line. Bad input gets one sentence and leaves nothing behind; good
// input gives the same losses on threads and MPI, and files that it takes back.
#include "catch.hpp"

#include <nlohmann/json.hpp>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace {

namespace fs = std::filesystem;

struct answer {
  int status;
  std::string text;  // both streams
};

answer shell(const std::string& command) {
  std::string text;
  auto* pipe = ::popen((command + " 2>&1").c_str(), "r");
  REQUIRE(pipe);
  std::array<char, 4096> part;
  while (const auto n = std::fread(part.data(), 1, part.size(), pipe)) text.append(part.data(), n);
  const int status = ::pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text};
}

/// A folder of its own for each test, gone afterwards.
class scratch {
 public:
  scratch() : path_(fs::temp_directory_path() / ("mmr_train_gpt_" + std::to_string(::getpid()))) {
    fs::remove_all(path_);
    fs::create_directories(path_);
    std::ofstream text(path_ / "text.txt");
    for (int i = 0; i < 400; ++i) text << "the quick brown fox " << i << " jumps over the lazy dog\n";
  }
  ~scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::size_t files() const { return static_cast<std::size_t>(std::distance(fs::directory_iterator(path_), {})); }

 private:
  fs::path path_;
};

/// A model that trains in a moment. Odd sizes, which no mesh below divides.
std::string tiny(const scratch& s) {
  return std::string(MMR_TRAIN_GPT) + " --data " + (s / "text.txt") +
         " --layers 2 --hidden 24 --heads 3 --seq 11 --batch 3 --vocab 257 --dropout 0.1 --steps 4 --sample 5 --no-table ";
}

nlohmann::json read_json(const std::string& path) {
  std::ifstream in(path);
  return nlohmann::json::parse(in);
}

std::vector<double> losses(const std::string& path) { return read_json(path)["loss"].get<std::vector<double>>(); }

void require_equal(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i, a[i], b[i]);
    REQUIRE(std::abs(a[i] - b[i]) <= tolerance * std::abs(a[i]));
  }
}

void require_refused(const std::string& command, const std::string& words) {
  const auto a = shell(command);
  CAPTURE(command, a.text);
  CHECK(a.status != 0);
  CHECK(a.status != -1);
  CHECK(a.text.find(words) != std::string::npos);
  CHECK(a.text.find("terminate") == std::string::npos);
}

}  // namespace

TEST_CASE("a run writes what the interface promises, and other plans and ranks give its losses") {
  const scratch s;
  const auto one = shell(tiny(s) + "--precision double --ranks 1 --plan single --json " + (s / "one.json"));
  CAPTURE(one.text);
  REQUIRE(one.status == 0);
  const auto j = read_json(s / "one.json");
  CHECK(j["loss"].size() == 4);
  CHECK(j["tokens_per_s"].get<double>() > 0);
  CHECK(j.contains("solve_s"));
  for (const char* key : {"name", "objective", "lower_bound", "step_time_s", "per_rank"}) CHECK(j["plan"].contains(key));
  CHECK(j["plan"]["lower_bound_unit"] == "seconds");
  for (const char* key : {"parameters", "gradients", "optimizer", "activations", "redundant", "peak_live", "arena", "measured_peak"})
    CHECK(j["plan"]["per_rank"][0].contains(key));
  for (const std::string mesh : {"--ranks 5 --plan memory", "--mesh data=2,model=2 --plan megatron-sp", "--ranks 8 --plan ddp"}) {
    const auto other = shell(tiny(s) + "--precision double --json " + (s / "b.json") + " " + mesh);
    CAPTURE(mesh, other.text);
    REQUIRE(other.status == 0);
    require_equal(losses(s / "one.json"), losses(s / "b.json"), 1e-10);
    const auto plan = read_json(s / "b.json")["plan"];
    CHECK(plan["lower_bound_unit"] == (plan["name"] == "memory" ? "bytes" : "seconds"));
    for (const auto& rank : plan["per_rank"]) CHECK(rank["arena"] == rank["allocated"]);
  }
}

TEST_CASE("what is made again in backward saves memory and changes no loss") {
  const scratch s;
  const auto kept = shell(tiny(s) + "--precision double --ranks 2 --json " + (s / "kept.json"));
  const auto again = shell(tiny(s) + "--precision double --ranks 2 --recompute --json " + (s / "again.json"));
  CAPTURE(kept.text, again.text);
  REQUIRE(kept.status == 0);
  REQUIRE(again.status == 0);
  require_equal(losses(s / "kept.json"), losses(s / "again.json"), 1e-10);
  const auto peak = [&](const char* name) { return read_json(s / name)["plan"]["per_rank"][0]["peak_live"].get<std::int64_t>(); };
  CHECK(peak("again.json") < peak("kept.json"));
}

#ifdef MMR_MPIRUN
TEST_CASE("MPI ranks give the losses of threads, and fail together with one message") {
  const scratch s;
  ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  ::setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
  ::setenv("OMPI_MCA_mpi_yield_when_idle", "1", 1);
  ::setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 1);
  const std::string run = std::string(MMR_MPIRUN) + " -n 4 ";
  REQUIRE(shell(tiny(s) + "--precision double --ranks 1 --plan single --json " + (s / "one.json")).status == 0);
  for (const std::string plan : {"memory", "zero3"}) {
    const auto a = shell(run + tiny(s) + "--precision double --comm mpi --mesh data=2,model=2 --plan " + plan + " --json " + (s / "m.json"));
    CAPTURE(plan, a.text);
    REQUIRE(a.status == 0);
    require_equal(losses(s / "one.json"), losses(s / "m.json"), 1e-10);
  }
  require_refused(run + tiny(s) + "--comm mpi --ranks 3", "mpirun started 4");
  require_refused(run + tiny(s) + "--comm mpi --ranks 4 --plan zebra", "'zebra' is no plan");
}
#endif

TEST_CASE("a run resumes under another plan and number of ranks with the same losses") {
  const scratch s;
  const std::string same = "--precision double --lr 0.01 --warmup 3 ";
  REQUIRE(shell(tiny(s) + same + "--ranks 1 --plan single --json " + (s / "whole.json") + " --steps 4").status == 0);
  REQUIRE(shell(tiny(s) + same + "--ranks 3 --plan zero3 --steps 2 --save " + (s / "half.safetensors")).status == 0);
  REQUIRE(fs::exists(s / "half.optimizer.safetensors"));
  const auto rest = shell(tiny(s) + same + "--ranks 2 --plan megatron --steps 2 --weights " + (s / "half.safetensors") + " --json " + (s / "rest.json"));
  CAPTURE(rest.text);
  REQUIRE(rest.status == 0);
  const auto whole = losses(s / "whole.json");
  require_equal({whole.begin() + 2, whole.end()}, losses(s / "rest.json"), 1e-10);
}

TEST_CASE("a run with decay resumes with the same losses where it is told when the decay ends") {
  const scratch s;
  for (const std::string decay : {"linear", "cosine"}) {
    const std::string same = "--precision double --lr 0.01 --warmup 1 --decay " + decay;
    REQUIRE(shell(tiny(s) + same + " --ranks 1 --steps 6 --json " + (s / "whole.json")).status == 0);
    REQUIRE(shell(tiny(s) + same + " --decay-steps 6 --ranks 3 --steps 2 --save " + (s / "part.safetensors")).status == 0);
    require_refused(tiny(s) + same + " --ranks 2 --steps 4 --weights " + (s / "part.safetensors"), "give --decay-steps");
    const auto rest = shell(tiny(s) + same + " --decay-steps 6 --ranks 2 --steps 4 --weights " + (s / "part.safetensors") +
                            " --json " + (s / "rest.json"));
    CAPTURE(rest.text);
    REQUIRE(rest.status == 0);
    const auto whole = losses(s / "whole.json");
    require_equal({whole.begin() + 2, whole.end()}, losses(s / "rest.json"), 1e-10);
  }
}

TEST_CASE("outputs go through pipes and links, under any name of standard output") {
  const scratch s;
  const auto piped = shell("{ " + tiny(s) + "--sample 0 --ranks 2 --json /dev/stdout; } 2> " + (s / "errors") + " | cat");
  CAPTURE(piped.text);
  const auto begin = piped.text.find("{\n");
  REQUIRE(begin != std::string::npos);
  CHECK(nlohmann::json::parse(piped.text.substr(begin))["loss"].size() == 4);
  CHECK(shell("test -s " + (s / "errors") + " && ! grep -q train_gpt: " + (s / "errors")).status == 0);
  // As a file too, after what was printed before.
  REQUIRE(shell(tiny(s) + "--sample 0 --ranks 2 --json /dev/stdout > " + (s / "out")).status == 0);
  CHECK(shell("grep -c 'running plan' " + (s / "out")).text == "1\n");
  CHECK(shell("grep -c tokens_per_s " + (s / "out")).text == "1\n");
  CHECK(shell(tiny(s) + "--ranks 2 --json /dev/null --save-plan /dev/null").status == 0);
  fs::create_symlink("ring", s / "gnir");
  fs::create_symlink("gnir", s / "ring");
  for (const std::string option : {"--json", "--save", "--save-plan", "--save-tokens"})
    require_refused(tiny(s) + option + " " + (s / "ring"), "leads from link to link without end");
}

TEST_CASE("an empty value is refused, never taken for the default") {
  const scratch s;
  for (const std::string option : {"--data", "--mesh", "--plan", "--budget", "--weights", "--save", "--save-plan", "--save-tokens",
                                   "--json", "--comm", "--decay", "--precision"}) {
    require_refused(tiny(s) + option + " ''", option + ": the value is empty; give one, or leave the option out");
    require_refused(tiny(s) + option + "=", option + ": ");
  }
}

TEST_CASE("every option has a line of help") {
  std::istringstream help(shell(std::string(MMR_TRAIN_GPT) + " --help").text);
  std::string line, before;
  int options = 0;
  for (; std::getline(help, line); before = line) {
    CAPTURE(before, line);
    const bool option = before.rfind("  --", 0) == 0;
    options += option;
    // Its text follows on the same line, or on the next.
    if (option) CHECK((before.find("  ", 4) != std::string::npos || line.rfind("      ", 0) == 0));
  }
  CHECK(options > 25);
}

TEST_CASE("a saved plan is taken back, and only where it belongs") {
  const scratch s;
  const auto plan = s / "plan.json";
  REQUIRE(shell(tiny(s) + "--ranks 2 --plan zero2 --save-plan " + plan + " --json " + (s / "a.json")).status == 0);
  REQUIRE(shell(tiny(s) + "--ranks 2 --plan " + plan + " --json " + (s / "b.json")).status == 0);
  require_equal(losses(s / "a.json"), losses(s / "b.json"), 0);
  fs::copy_file(plan, s / "no-suffix");
  REQUIRE(shell(tiny(s) + "--ranks 2 --plan " + (s / "no-suffix") + " --json " + (s / "b.json")).status == 0);
  require_equal(losses(s / "a.json"), losses(s / "b.json"), 0);
  require_refused(tiny(s) + "--ranks 3 --plan " + plan, "is for the mesh");
  require_refused(tiny(s) + "--ranks 2 --batch 4 --plan " + plan, "another model");
  fs::resize_file(plan, fs::file_size(plan) / 2);
  require_refused(tiny(s) + "--ranks 2 --plan " + plan, "cut or damaged");
  require_refused(tiny(s) + "--ranks 2 --plan " + (s / "none.json"), "none.json");
}

TEST_CASE("bad input gets one sentence") {
  const scratch s;
  const auto& t = tiny(s);
  const auto before = s.files();
  require_refused(t + "--data " + (s / "missing.txt"), "there is no text file");
  std::ofstream(s / "empty.txt").flush();
  require_refused(t + "--data " + (s / "empty.txt"), "is empty");
  std::ofstream(s / "short.txt") << "short";
  require_refused(t + "--data " + (s / "short.txt"), "short.txt");
  require_refused(t + "--vocab 50", "vocabulary of 50");
  require_refused(t + "--budget 10KB --ranks 2", "bytes are proved to be needed, and the best plan found takes");
  require_refused(t + "--budget nonsense", "nonsense");
  require_refused(t + "--mesh data=0", "a size is at least 1");
  require_refused(t + "--mesh data", "is no mesh");
  require_refused(t + "--mesh a=2,b=2,c=2,d=2", "1 to 3 axes");
  require_refused(t + "--mesh a=99999,b=99999", "more ranks than an int can count");
  require_refused(t + "--mesh a=999,b=999", "at most 1024");
  require_refused(t + "--heads 5", "not a multiple of");
  require_refused(t + "--dropout 1", "must be in [0, 1)");
  for (const std::string value : {"-1", "nan", "inf", "1e300"})
    require_refused(t + "--slowdown " + value, "--slowdown: '" + value + "' is no number from 0 to 100000");
  require_refused(t + "--slowdown 0.1 --plan ddp", "--slowdown bounds the memory plan");
  require_refused(t + "--plan zebra", "'zebra' is no plan");
  require_refused(t + "--weights " + (s / "text.txt"), "text.txt");
  require_refused(t + "--save " + (s / "no/such/folder.safetensors"), "does not exist");
  require_refused(t + "--plan " + (s / "none.json"), "is no plan and no file: give memory, time, or the file of a saved plan");
  require_refused(t + "--plan " + (s / "."), "is not a regular file");
  require_refused(t + "--save /dev/null", "is a pipe or device");
  require_refused("cd " + (s / ".") + " && " + t + "--save new.safetensors --json ./new.safetensors", "is named twice");
  require_refused("(" + t + "> /dev/full)", "what is printed cannot be written");
  require_refused(t + "--lr 1e30 --steps 20", "operator '");
  // The last step breaks the model.
  require_refused(t + "--lr 1e30 --steps 1", "the result of the forward pass holds nan: operator '");
  require_refused(t + "--lr 1e30 --weight-decay 1e30 --steps 1", "not finite after step 1: no text is sampled");
  require_refused(t + "--lr 1e30 --weight-decay 1e30 --steps 1 --save " + (s / "w.safetensors"),
                  "not finite after step 1: nothing is saved");
  require_refused("ulimit -f 8; " + t + "--save " + (s / "w.safetensors"), "File too large");
  REQUIRE(::mkfifo((s / "pipe").c_str(), 0600) == 0);
  REQUIRE(::mkdir((s / "empty").c_str(), 0700) == 0);
  require_refused(t + "--data " + (s / "pipe"), "pipe\" is not a regular file");
  require_refused(t + "--weights " + (s / "pipe"), "pipe\" is not a regular file");
  require_refused(t + "--data /dev/zero", "is not a regular file");
  require_refused(t + "--data " + (s / "empty"), "empty is empty");
  CHECK(s.files() == before + 4);
}

TEST_CASE("a number that is none, or out of its range, gets one sentence with the range") {
  const scratch s;
  const std::pair<std::string, std::string> ranges[] = {
      {"--ranks", "from 1 to 1024"},        {"--layers", "from 1 to 1000"},          {"--hidden", "from 1 to 1000000000"},
      {"--heads", "from 1 to 1000000000"},  {"--seq", "from 1 to 1000000000"},       {"--batch", "from 1 to 1000000000"},
      {"--vocab", "from 1 to 1000000000"},  {"--accumulate", "from 1 to 1000000000"}, {"--steps", "from 0 to 1099511627776"},
      {"--sample", "from 0 to 1000000000"}, {"--warmup", "from 0 to 1099511627776"}, {"--seed", "from 0 to 18446744073709551615"}};
  for (const auto& [option, range] : ranges)
    for (const std::string value : {"-1", "99999999999999999999", "1.5", "0x10", "many"}) {
      const auto a = shell(tiny(s) + option + " " + value);
      CAPTURE(option, value, a.text);
      CHECK(a.status != 0);
      CHECK(a.text == "train_gpt: " + option + ": '" + value + "' is no whole number " + range + "; --help lists the options\n");
    }
  for (const std::string option : {"--ranks", "--layers", "--hidden", "--heads", "--seq", "--batch", "--vocab", "--accumulate"})
    require_refused(tiny(s) + option + " 0", option + ": '0' is no whole number from 1 to");
  for (const std::string option : {"--lr", "--clip", "--weight-decay", "--solve-work", "--solve-seconds", "--dropout"})
    for (const std::string value : {"-1", "nan", "inf", "1e300", "much"})
      require_refused(tiny(s) + option + " " + value, option + ": '" + value + "' is no number from ");
  const auto largest = shell(tiny(s) + "--ranks 2 --steps 1 --seed 18446744073709551615");
  CAPTURE(largest.text);
  CHECK(largest.status == 0);
}
