#ifndef ETC_TESTS_SUPPORT_REALETC_PROGRAM_H_
#define ETC_TESTS_SUPPORT_REALETC_PROGRAM_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/support/run_realetc.h"
#include "tests/support/temporary_directory.h"

// For tests of the program `realetc` (etc_test's PROGRAM or COMMANDS).
namespace etc {

inline std::string Contents(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream contents;
  contents << stream.rdbuf();
  return contents.str();
}

inline int64_t Lines(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

struct Result {
  int code = -1;
  std::string out;
  std::string err;
};

class RealetcTest : public testing::Test {
 protected:
  // `arguments` as in a shell.
  Result Run(const std::string& arguments) const {
    const std::string out = directory_.File("stdout");
    const std::string err = directory_.File("stderr");
    const int code = RunRealetc(".", arguments, out, err);
    return {.code = code, .out = Contents(out), .err = Contents(err)};
  }

  // `arguments` fail with the exit code and a message with `part`, on one line
  // unless it is followed by a command's usage (code 2).
  void ExpectMistake(const std::string& arguments, const std::string& part,
                     int code = 1) const {
    const Result result = Run(arguments);
    EXPECT_EQ(result.code, code) << arguments;
    EXPECT_THAT(result.err, testing::HasSubstr(part)) << arguments;
    if (code == 1) {
      EXPECT_EQ(Lines(result.err), 1) << result.err;
      EXPECT_THAT(result.err, testing::StartsWith("realetc: "));
    }
  }

  // Questions whose answer is in the text; made so that two steps are enough to
  // see everything work, not to learn.
  std::string WriteData() {
    nlohmann::json records = nlohmann::json::array();
    const std::vector<std::string> towns = {"oslo", "rome", "lima"};
    for (size_t i = 0; i < 6; ++i) {
      const std::string& answer = towns[i % towns.size()];
      records.push_back(
          {{"id", absl::StrCat("q", i)},
           {"query", "town_of mira"},
           {"answer", answer},
           {"candidates", towns},
           {"supports", {absl::StrCat("mira lives in ", answer, " .")}}});
    }
    return directory_.Write("data.json", records.dump());
  }

  nlohmann::json Config() {
    const std::string vocabulary = directory_.Write(
        "vocab.txt",
        "[PAD]\n[unused0]\n[unused1]\n[unused2]\n[unused3]\n[unused4]\n[UNK]\n"
        "[CLS]\n[SEP]\noslo\nrome\nlima\ntown\n_\nof\nmira\nlives\nin\n.\n");
    const std::string data = WriteData();
    return {{"task", "wikihop"},
            {"model",
             {{"vocab_size", 19},
              {"hidden_size", 8},
              {"num_hidden_layers", 2},
              {"num_attention_heads", 2},
              {"local_radius", 4},
              {"intermediate_size", 16}}},
            {"residual_attention", "sum"},
            {"tokenizer", {{"vocabulary", vocabulary}}},
            {"data", {{"train", {data}}, {"dev", {data}}}},
            {"train",
             {{"batch_size", 3},
              {"micro_batch_size", 2},
              {"steps", 2},
              {"threads", 1}}},
            {"output", directory_.File("run")}};
  }

  std::string WriteConfig(const nlohmann::json& config) {
    return directory_.Write("run.json", config.dump());
  }

  TemporaryDirectory directory_;
};

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_REALETC_PROGRAM_H_
