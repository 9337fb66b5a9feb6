// `realetc average`: what it prints and writes, and one clear message for each
// mistake. The means themselves are those of average_checkpoints_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/support/realetc_program.h"

namespace etc {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;
using testing::StartsWith;

class AverageCommandTest : public RealetcTest {
 protected:
  // A run of three updates with a checkpoint after each.
  void SetUp() override {
    config_["train"]["steps"] = 3;
    config_["train"]["evaluate_every"] = 1;
    config_["train"]["keep_last"] = 3;
    ASSERT_EQ(Run("train " + WriteConfig(config_)).code, 0);
  }

  void ExpectMistake(const std::string& arguments, const std::string& part,
                     int code = 1) {
    RealetcTest::ExpectMistake("average " + arguments, part, code);
  }

  // Changes a byte of its weights, whose path is returned.
  std::string DamageCheckpoint(const std::string& name) {
    const std::string path =
        absl::StrCat("run/seed-1/checkpoints/", name, "/model.safetensors");
    std::string bytes = Contents(directory_.File(path));
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    return directory_.Write(path, bytes);
  }

  nlohmann::json config_ = Config();
  const std::string run_ = directory_.File("run");
  const std::string seed_ = run_ + "/seed-1";
};

TEST_F(AverageCommandTest, WritesACheckpointForTheOtherCommands) {
  const Result averaged = Run("average " + run_ + " --last 2");
  EXPECT_EQ(averaged.code, 0) << averaged.err;
  EXPECT_EQ(averaged.out,
            absl::StrCat("averaged: 2 checkpoints, after updates 2, 3\n"
                         "written: ",
                         seed_, "/averaged-2\n"));
  EXPECT_EQ(averaged.err, "");
  EXPECT_EQ(nlohmann::json::parse(
                Contents(seed_ + "/averaged-2/average.json"))["steps"],
            nlohmann::json({2, 3}));
  const Result evaluated = Run(absl::StrCat("evaluate ", seed_, "/averaged-2"));
  EXPECT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_THAT(evaluated.out, HasSubstr("accuracy"));

  const std::string named = directory_.File("somewhere/mean");
  const Result earlier =
      Run(absl::StrCat("average ", seed_, "/checkpoints --last 1 --up-to 2",
                       " --output ", named, "/"));
  EXPECT_EQ(earlier.code, 0) << earlier.err;
  EXPECT_THAT(earlier.out,
              StartsWith("averaged: 1 checkpoint, after updates 2"));
  EXPECT_EQ(Contents(named + "/model.safetensors").size(),
            Contents(seed_ + "/averaged-2/model.safetensors").size());
}

TEST_F(AverageCommandTest, TakesAllOfFew) {
  const Result averaged = Run("average " + run_);
  EXPECT_EQ(averaged.code, 0) << averaged.err;
  EXPECT_EQ(averaged.out,
            absl::StrCat("averaged: 3 checkpoints, after updates 1, 2, 3\n"
                         "written: ",
                         seed_, "/averaged-3\n"));
}

TEST_F(AverageCommandTest, RefusesNumbersThatThereAreNot) {
  ExpectMistake(run_ + " --last 4",
                "should have 4 checkpoints to average, but has 3");
  ExpectMistake(run_ + " --last 3 --up-to 2", "but has 2 of up to 2 updates");
  for (const char* const count : {"0", "-1", "1.5", "all", "''"}) {
    ExpectMistake(absl::StrCat(run_, " --last ", count),
                  "--last: should be a whole number of at least 1, but is ", 2);
  }
  EXPECT_FALSE(fs::exists(seed_ + "/averaged-4"));
}

TEST_F(AverageCommandTest, RefusesPlacesWithoutCheckpoints) {
  ExpectMistake(directory_.File("nothing") + " --last 1",
                "there are no checkpoints in ");
  fs::create_directory(directory_.File("empty"));
  ExpectMistake(directory_.File("empty") + " --last 1",
                "there are no checkpoints in ");
  ExpectMistake(directory_.File("run.json") + " --last 1",
                "there are no checkpoints in ");
  ExpectMistake(seed_ + "/checkpoints/best --last 1", "is one checkpoint");
  ExpectMistake("--last 1", "DIR", 2);
  nlohmann::json config = Config();
  config["train"]["seeds"] = {1, 2};
  config["output"] = directory_.File("seeds");
  ASSERT_EQ(Run("train " + WriteConfig(config)).code, 0);
  const std::string several = directory_.File("seeds");
  ExpectMistake(several + " --last 1",
                absl::StrCat(several, " has several seeds; name one of them: ",
                             several, "/seed-1, ", several, "/seed-2"));
  config["train"]["seeds"] = {1};
  config["grid"] = {{"residual_attention", {"off", "mean"}}};
  config["output"] = directory_.File("grid");
  ASSERT_EQ(Run("train " + WriteConfig(config)).code, 0);
  const std::string grid = directory_.File("grid");
  const Result refused = Run("average " + grid + " --last 1");
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err,
              testing::ContainsRegex(absl::StrCat(
                  grid, " has several runs; name one of them: ", grid,
                  "/[^/]*mean/seed-1, ", grid, "/[^/]*off/seed-1")));
}

TEST_F(AverageCommandTest, ReplacesNothing) {
  const std::string last_two = "average " + run_ + " --last 2";
  ASSERT_EQ(Run(last_two).code, 0);
  const std::string weights = Contents(seed_ + "/averaged-2/model.safetensors");
  ExpectMistake(run_ + " --last 2",
                "averaged-2 is there already; --overwrite replaces it");
  ExpectMistake(absl::StrCat(run_, " --last 2 --output ", seed_),
                "is there already");
  ExpectMistake(
      absl::StrCat(run_, " --last 2 --output ", directory_.File("run.json")),
      "--output");
  ExpectMistake(absl::StrCat(run_, " --last 2 --output ''"),
                "--output should name a directory, but is empty");
  ExpectMistake(absl::StrCat(run_, " --last 2 --overwrite --output ", seed_),
                "is there already: choose another directory");
  EXPECT_EQ(Contents(seed_ + "/averaged-2/model.safetensors"), weights);
}

TEST_F(AverageCommandTest, ReplacesAnAverageWhenAsked) {
  const std::string average = seed_ + "/averaged-2";
  ASSERT_EQ(Run("average " + run_ + " --last 2").code, 0);
  const std::string weights = Contents(average + "/model.safetensors");
  const Result resumed =
      Run("train " + WriteConfig(config_) +
          " --resume --set train.steps=5 --allow-changes train");
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  const Result again = Run("average " + run_ + " --last 2 --overwrite");
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("after updates 4, 5"));
  EXPECT_NE(Contents(average + "/model.safetensors"), weights);
  const auto entries =
      std::distance(fs::directory_iterator(seed_), fs::directory_iterator());
  // A new one that fails leaves the old one.
  const std::string newer = Contents(average + "/model.safetensors");
  DamageCheckpoint("step-00000005");
  ExpectMistake(run_ + " --last 2 --overwrite", "model.safetensors");
  EXPECT_EQ(Contents(average + "/model.safetensors"), newer);
  EXPECT_EQ(
      std::distance(fs::directory_iterator(seed_), fs::directory_iterator()),
      entries);
}

// It would pass for one of the run that takes the place of its own.
TEST_F(AverageCommandTest, IsRemovedWithItsRun) {
  ASSERT_EQ(Run("average " + run_ + " --last 2").code, 0);
  fs::copy(seed_ + "/averaged-2", seed_ + "/copy", fs::copy_options::recursive);
  const Result replaced = Run("train --overwrite " + WriteConfig(config_));
  EXPECT_EQ(replaced.code, 0) << replaced.err;
  EXPECT_FALSE(fs::exists(seed_ + "/averaged-2"));
  EXPECT_TRUE(fs::exists(seed_ + "/copy/average.json"));
}

// Copied in among the checkpoints of this run.
TEST_F(AverageCommandTest, LeavesOutACheckpointOfAnotherRun) {
  nlohmann::json config = Config();
  config["residual_attention"] = "off";
  config["train"]["steps"] = 5;
  config["train"]["keep_last"] = 2;
  config["output"] = directory_.File("other");
  ASSERT_EQ(Run("train " + WriteConfig(config)).code, 0);
  const std::string stranger = "/seed-1/checkpoints/step-00000005";
  ASSERT_TRUE(fs::exists(directory_.File("other") + stranger));
  fs::copy(directory_.File("other") + stranger, run_ + stranger,
           fs::copy_options::recursive);
  ExpectMistake(run_ + " --last 4", "but has 3");
  const Result averaged = Run("average " + run_);
  EXPECT_EQ(averaged.code, 0) << averaged.err;
  EXPECT_THAT(averaged.out, HasSubstr("after updates 1, 2, 3\n"));
}

TEST_F(AverageCommandTest, RefusesAPlaceAmongTheCheckpoints) {
  ExpectMistake(absl::StrCat(run_, " --last 2 --output ", seed_,
                             "/checkpoints/step-00000099"),
                "should not be among the checkpoints of the run");
  EXPECT_FALSE(fs::exists(seed_ + "/checkpoints/step-00000099"));
}

TEST_F(AverageCommandTest, RefusesDamagedCheckpoints) {
  const std::string path = DamageCheckpoint("step-00000003");
  ExpectMistake(run_ + " --last 2", path);
  // A checkpoint that is not whole does not count.
  fs::remove(path);
  ExpectMistake(run_ + " --last 3", "but has 2");
}

}  // namespace
}  // namespace etc
