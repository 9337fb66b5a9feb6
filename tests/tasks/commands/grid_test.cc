// A grid on the command line: the table at the end of training, its estimated
// cost, the commands that are about one run, and GLUE's overall score of
// directories.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/support/realetc_program.h"

namespace etc {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ContainsRegex;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class GridCommandTest : public RealetcTest {
 protected:
  std::string WriteGrid() {
    json config = Config();
    config["train"]["seeds"] = {1, 2};
    config["grid"] = {{"train.steps", {1, 2}}, {"residual_attention", "off"}};
    return WriteConfig(config);
  }
};

TEST_F(GridCommandTest, EndsTrainingWithOneTable) {
  const Result result = Run(absl::StrCat(
      "train ", WriteGrid(),
      " --set grid.train.learning_rate='[1e-3]' --set grid.train.steps=2"));
  ASSERT_EQ(result.code, 0) << result.err;
  const std::string setting =
      "residual_attention=off,train.learning_rate=0.001,train.steps=2";
  EXPECT_THAT(
      result.out,
      AllOf(StartsWith("residual_attention  train.learning_rate  train.steps  "
                       "accuracy  deviation\n"),
            ContainsRegex("\n +off +0.001 +2 +[01].[0-9]+ +0.[0-9]+  best\n"),
            EndsWith(absl::StrCat("median and standard deviation of 2 seeds; "
                                  "best: ",
                                  directory_.File("run/"), setting, "\n"))));
  EXPECT_THAT(result.err, HasSubstr(absl::StrCat("setting 1 of 1: ", setting)));
}

// Steps of nothing.
TEST_F(GridCommandTest, SaysThatSettingsAreEqual) {
  const Result result =
      Run(absl::StrCat("train ", WriteGrid(),
                       " --set grid.train.learning_rate='[1e-9, 2e-9]'"
                       " --set grid.train.steps=1"));
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("  best\n"), HasSubstr("  equal\n"),
                    HasSubstr("; 2 settings are equally good; best: ")));
}

TEST_F(GridCommandTest, IsEstimatedAsAWhole) {
  const Result result = Run("estimate " + WriteGrid());
  EXPECT_EQ(result.code, 0) << result.err;
  // 2 seeds of 1 and of 2 updates.
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("residual scores (off)"),
                    HasSubstr("\nGrid of 2 settings, 4 runs; all above is of "
                              "the first one,\n"
                              "residual_attention=off,train.steps=1\n"),
                    HasSubstr("\n  6 updates ")));
}

TEST_F(GridCommandTest, IsNothingToCommandsOfOneRun) {
  const Result result = Run("inspect --record 1 --config " + WriteGrid());
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("rome"));
}

TEST_F(GridCommandTest, ScoresGlueAsAWhole) {
  const std::vector<std::pair<std::string, json>> runs = {
      {"cola", {{"matthews", 0.5}}},
      {"sst2", {{"accuracy", 0.9}}},
      {"mrpc", {{"accuracy", 0.8}, {"f1", 0.9}}},
      {"qqp", {{"accuracy", 0.8}, {"f1", 0.7}}},
      {"stsb", {{"pearson", 0.8}, {"spearman", 0.9}}},
      {"mnli", {{"accuracy_matched", 0.8}, {"accuracy_mismatched", 0.6}}},
      {"qnli", {{"accuracy", 0.9}}},
      {"rte", {{"accuracy", 0.7}}}};
  std::string directories;
  for (const auto& [task, medians] : runs) {
    json scores = json::object();
    for (const auto& [name, median] : medians.items()) {
      scores[name] = {{"median", median}};
    }
    // RTE's is the second of a grid.
    const std::string path = task == "rte" ? "rte/train.epochs=3" : task;
    std::filesystem::create_directories(directory_.File(path));
    directory_.Write(path + "/summary.json", json{{"task", "glue"},
                                                  {"options", {{"name", task}}},
                                                  {"main_metric", "any"},
                                                  {"scores", scores},
                                                  {"runs", json::array()}}
                                                 .dump());
    absl::StrAppend(&directories, " ", directory_.File(task));
  }
  directory_.Write("rte/grid.json",
                   R"({"task": "glue", "main_metric": "accuracy", "settings": [
          {"values": {}, "directory": "train.epochs=2", "scores": {}},
          {"values": {}, "directory": "train.epochs=3", "scores": {}}]})");
  const Result overall = Run("score glue --overall" + directories);
  EXPECT_EQ(overall.code, 0) << overall.err;
  // (0.5 + 0.9 + 0.85 + 0.75 + 0.85 + 0.8 + 0.6 + 0.9 + 0.7) / 9
  EXPECT_THAT(overall.out, AllOf(StartsWith("overall          0.7611  (main"),
                                 HasSubstr("\nrte              0.7000\n")));
  const Result other = Run("score wikihop --overall" + directories);
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.err, HasSubstr("wikihop is one task"));
  const Result few = Run("score glue --overall " + directory_.File("rte"));
  EXPECT_EQ(few.code, 1);
  EXPECT_THAT(few.err, AllOf(HasSubstr("none of CoLA, SST-2, MRPC"),
                             Not(HasSubstr("RTE"))));
}

}  // namespace
}  // namespace etc
