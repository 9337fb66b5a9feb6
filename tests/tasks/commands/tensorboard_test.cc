// `train.tensorboard` in runs of the program: the numbers of metrics.jsonl are
// in the event files, also those of a resumed run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/support/realetc_program.h"

namespace etc {
namespace {

class TensorboardRunTest : public RealetcTest {
 protected:
  std::vector<std::string> EventFiles() const {
    std::vector<std::string> paths;
    const std::string folder = directory_.File("run/seed-1/tensorboard");
    if (std::filesystem::exists(folder)) {
      for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        paths.push_back(entry.path().string());
      }
    }
    std::sort(paths.begin(), paths.end());
    return paths;
  }
  // Occurrences of `tag` in all event files.
  int64_t Count(const std::string& tag) const {
    int64_t count = 0;
    for (const std::string& path : EventFiles()) {
      const std::string contents = Contents(path);
      for (size_t at = contents.find(tag); at != std::string::npos;
           at = contents.find(tag, at + 1)) {
        ++count;
      }
    }
    return count;
  }
};

TEST_F(TensorboardRunTest, WritesWhatMetricsHaveOnceAlsoWhenResumed) {
  nlohmann::json config = Config();
  config["residual_attention"] = "gate";
  config["train"]["steps"] = 3;
  config["train"]["evaluate_every"] = 2;
  config["train"]["tensorboard"] = true;
  const Result run = Run("train " + WriteConfig(config));
  ASSERT_EQ(run.code, 0) << run.err;
  ASSERT_EQ(EventFiles().size(), 1u);
  EXPECT_EQ(Count("train/loss"), 3);
  EXPECT_EQ(Count("train/gates"), 3);
  EXPECT_EQ(Count("train/gate_mean"), 3);
  EXPECT_EQ(Count("evaluation/accuracy"), 2);
  EXPECT_EQ(Count("\"tensorboard\": true"), 1);  // the configuration

  config["train"]["steps"] = 5;
  const Result resumed = Run(absl::StrCat(
      "train ", WriteConfig(config), " --resume --allow-changes train.steps"));
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(EventFiles().size(), 2u);
  EXPECT_EQ(Count("train/loss"), 5);
  EXPECT_EQ(Count("train/gates"), 5);
  EXPECT_EQ(Count("\"tensorboard\": true"), 1);
  // Evaluations after updates 2, 3, 4 and 5.
  EXPECT_EQ(Count("evaluation/accuracy"), 4);
}

TEST_F(TensorboardRunTest, WritesNothingUnlessAsked) {
  const Result run = Run("train " + WriteConfig(Config()));
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(EventFiles().empty());
}

TEST_F(TensorboardRunTest, PrintsMetricsAsCsv) {
  ASSERT_EQ(Run("train " + WriteConfig(Config())).code, 0);
  const Result csv = Run("metrics " + directory_.File("run"));
  ASSERT_EQ(csv.code, 0) << csv.err;
  EXPECT_THAT(csv.out, testing::StartsWith("run,seed,step,"));
  EXPECT_THAT(csv.out, testing::HasSubstr(",evaluation.accuracy\n"));
  EXPECT_EQ(Lines(csv.out), 3);
  const Result missing = Run("metrics " + directory_.File("missing"));
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err, testing::HasSubstr("there is no such run"));
}

}  // namespace
}  // namespace etc
