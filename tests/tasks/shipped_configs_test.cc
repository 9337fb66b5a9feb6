// Every command that takes a configuration, on every configuration that the
// repository ships (tasks/TASK/configs), as far as it can go with what the
// repository has: `estimate` always; the demos from training to the official
// score; of the others, whose data and weights are elsewhere, one clear message
// that names what is missing, and with the sample's data in their place what
// their task makes of a record.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tasks/config/config.h"
#include "tests/support/run_realetc.h"
#include "tests/support/task_directories.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::string Contents(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream contents;
  contents << stream.rdbuf();
  return contents.str();
}

struct Shipped {
  std::string task;
  std::string path;  // from the root of the repository
  nlohmann::json json;
  std::string train;  // of the task's sample
  std::string dev;

  std::string Sample(const std::string& name) const {
    return absl::StrCat("tasks/", task, "/sample/", name);
  }
  bool IsDemo() const { return path.ends_with("/demo.json"); }
};

// In the order of their paths.
std::vector<Shipped> AllShipped() {
  std::vector<Shipped> all;
  for (const std::string& task : TaskDirectories()) {
    const std::string directory = absl::StrCat("tasks/", task, "/configs/");
    for (const auto& entry :
         fs::directory_iterator(absl::StrCat(ETC_SOURCE_DIR, "/", directory))) {
      Shipped shipped = {
          .task = task,
          .path = absl::StrCat(directory, entry.path().filename().string()),
          .json = nlohmann::json::parse(Contents(entry.path().string()))};
      for (const auto& file : fs::directory_iterator(
               absl::StrCat(ETC_SOURCE_DIR, "/", shipped.Sample("")))) {
        const std::string name = file.path().filename().string();
        if (name.starts_with("train.")) {
          shipped.train = shipped.Sample(name);
        } else if (name.starts_with("dev.")) {
          shipped.dev = shipped.Sample(name);
        }
      }
      all.push_back(shipped);
    }
  }
  std::sort(all.begin(), all.end(),
            [](const Shipped& a, const Shipped& b) { return a.path < b.path; });
  return all;
}

struct Result {
  int code = -1;
  std::string out;
  std::string err;
};

class ShippedConfigsTest : public testing::TestWithParam<Shipped> {
 protected:
  // `arguments` as in a shell at the root of the repository.
  Result Run(const std::string& arguments) const {
    const std::string out = directory_.File("stdout");
    const std::string err = directory_.File("stderr");
    const int code = RunRealetc(ETC_SOURCE_DIR, arguments, out, err);
    return {.code = code, .out = Contents(out), .err = Contents(err)};
  }

  // A success without a word of complaint.
  Result Succeed(const std::string& arguments) const {
    const Result result = Run(arguments);
    EXPECT_EQ(result.code, 0) << arguments << "\n" << result.err;
    EXPECT_EQ(result.err, "") << arguments;
    return result;
  }

  // A failure with one line that has `part`.
  void FailWith(const std::string& arguments, const std::string& part) const {
    const Result result = Run(arguments);
    EXPECT_EQ(result.code, 1) << arguments;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1)
        << result.err;
    EXPECT_THAT(result.err, AllOf(StartsWith("realetc: "), HasSubstr(part)));
  }

  // Returns the overrides that make it read the task's sample, whose data are
  // WordPiece's.
  std::string OnTheSample() const {
    const nlohmann::json::json_pointer split("/tokenizer/split_punctuation");
    return absl::StrCat(
        " --set init= --set model.vocab_size=null --set "
        "tokenizer.type=wordpiece --set tokenizer.vocabulary=",
        GetParam().Sample("vocab.txt"),
        GetParam().json.contains(split)
            ? " --set tokenizer.split_punctuation=false"
            : "");
  }

  TemporaryDirectory directory_;
};

TEST_P(ShippedConfigsTest, IsEstimated) {
  const Result result = Succeed(absl::StrCat("estimate ", GetParam().path));
  for (const std::string& line :
       {absl::StrCat("head of ", GetParam().task), std::string("total"),
        std::string("peak"), std::string("forward and backward"),
        std::string("one update")}) {
    EXPECT_THAT(result.out, HasSubstr(absl::StrCat("\n  ", line, " ")));
  }
}

TEST_P(ShippedConfigsTest, IsInspectedOnTheSample) {
  const Result result =
      Succeed(absl::StrCat("inspect --config ", GetParam().path, " --data ",
                           GetParam().dev, OnTheSample()));
  EXPECT_THAT(result.out, HasSubstr(" global token"));
}

TEST_P(ShippedConfigsTest,
       GoesFromTrainingToTheOfficialScoreOrSaysWhatIsMissing) {
  const Shipped& shipped = GetParam();
  const std::string run = directory_.File("run");
  const std::string train =
      absl::StrCat("train ", shipped.path, " --output ", run);
  if (!shipped.IsDemo()) {
    const std::string init = shipped.json.value("init", "");
    const std::string missing = init.empty() ? "tokenizer.vocabulary" : init;
    FailWith(train, missing);
    FailWith(absl::StrCat("inspect --config ", shipped.path), missing);
    FailWith(absl::StrCat("inspect --count --config ", shipped.path), missing);
    EXPECT_FALSE(fs::exists(run));
    return;
  }
  const Result trained = Run(
      absl::StrCat(train, " --set train.steps=1 --set train.evaluate_every=0"));
  ASSERT_EQ(trained.code, 0) << trained.err;
  const std::string checkpoint = run + "/seed-1/checkpoints/last";
  const std::string predictions = directory_.File("predictions.json");
  EXPECT_EQ(Run(absl::StrCat("inspect --count --config ", shipped.path)).code,
            0);
  EXPECT_EQ(Run(absl::StrCat("evaluate ", checkpoint)).code, 0);
  EXPECT_EQ(Run(absl::StrCat("predict ", checkpoint, " --data ", shipped.dev,
                             " --output ", predictions))
                .code,
            0);
  const Result score =
      Run(absl::StrCat("score ", shipped.task, " ", shipped.dev, " ",
                       predictions, " --config ", shipped.path));
  EXPECT_EQ(score.code, 0) << score.err;
  EXPECT_EQ(Run(absl::StrCat("inspect ", checkpoint)).code, 0);
  const std::string exporting =
      absl::StrCat("export ", checkpoint, " ", directory_.File("exported"));
  Result exported = Run(exporting);
  // The official code of ETC has not all heads.
  if (absl::StrContains(exported.err, "; --format huggingface writes it")) {
    exported = Run(exporting + " --format huggingface");
  }
  EXPECT_EQ(exported.code, 0) << exported.err;
  EXPECT_EQ(Run(absl::StrCat("import ", directory_.File("exported"), " ",
                             directory_.File("imported")))
                .code,
            0);
}

// So that each model can start from another (doc/model.md 1.2).
TEST(ShippedSizesTest, AreThoseOfOneModelInAllConfigurationsOfEtcLarge) {
  int64_t found = 0;
  for (const auto& entry : fs::recursive_directory_iterator(
           absl::StrCat(ETC_SOURCE_DIR, "/tasks"))) {
    const std::string name = entry.path().filename().string();
    if (entry.path().parent_path().filename() != "configs" ||
        (!name.starts_with("large") && !name.starts_with("etc_large"))) {
      continue;
    }
    SCOPED_TRACE(entry.path().string());
    ++found;
    const auto config = ReadRunConfig(entry.path().string(),
                                      {"init=", "model.vocab_size=50265"});
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->model.local_radius, 169);
    EXPECT_EQ(config->model.relative_pos_max_distance, 24);
    EXPECT_EQ(config->model.relative_vocab_size, 64);
  }
  EXPECT_GE(found, 7);
}

INSTANTIATE_TEST_SUITE_P(All, ShippedConfigsTest,
                         testing::ValuesIn(AllShipped()),
                         [](const testing::TestParamInfo<Shipped>& shipped) {
                           return absl::StrCat(
                               shipped.param.task, "_",
                               fs::path(shipped.param.path).stem().string());
                         });

}  // namespace
}  // namespace etc
