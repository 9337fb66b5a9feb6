// `realetc average`: what it prints and writes, and one clear message for each
// mistake. The means themselves are those of average_checkpoints_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/support/realetc_program.h"

namespace etc {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class AverageCommandTest : public RealetcTest {
 protected:
  // A run of three updates with a checkpoint after each.
  void SetUp() override {
    nlohmann::json config = Config();
    config["train"]["steps"] = 3;
    config["train"]["evaluate_every"] = 1;
    config["train"]["keep_last"] = 3;
    ASSERT_EQ(Run("finetune " + WriteConfig(config)).code, 0);
  }

  void ExpectMistake(const std::string& arguments, const std::string& part,
                     int code = 1) {
    RealetcTest::ExpectMistake("average " + arguments, part, code);
  }

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

TEST_F(AverageCommandTest, RefusesNumbersThatThereAreNot) {
  ExpectMistake(run_, "should have 10 checkpoints to average, but has 3");
  ExpectMistake(run_ + " --last 4",
                "should have 4 checkpoints to average, but has 3");
  ExpectMistake(run_ + " --last 3 --up-to 2", "but has 2 of up to 2 updates");
  for (const char* const count : {"0", "-1", "1.5", "all", "''"}) {
    ExpectMistake(absl::StrCat(run_, " --last ", count), "--last", 2);
  }
  EXPECT_FALSE(fs::exists(seed_ + "/averaged-10"));
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
  ASSERT_EQ(Run("finetune " + WriteConfig(config)).code, 0);
  const std::string several = directory_.File("seeds");
  ExpectMistake(several + " --last 1",
                absl::StrCat(several, " has several seeds; name one of them: ",
                             several, "/seed-1, ", several, "/seed-2"));
}

TEST_F(AverageCommandTest, ReplacesNothing) {
  const std::string last_two = "average " + run_ + " --last 2";
  ASSERT_EQ(Run(last_two).code, 0);
  const std::string weights = Contents(seed_ + "/averaged-2/model.safetensors");
  ExpectMistake(run_ + " --last 2", "averaged-2 is there already");
  ExpectMistake(absl::StrCat(run_, " --last 2 --output ", seed_),
                "is there already");
  ExpectMistake(
      absl::StrCat(run_, " --last 2 --output ", directory_.File("run.json")),
      "--output");
  ExpectMistake(absl::StrCat(run_, " --last 2 --output ''"),
                "--output should name a directory, but is empty");
  EXPECT_EQ(Contents(seed_ + "/averaged-2/model.safetensors"), weights);
}

// Checkpoints of a run with other sizes, put beside those of this one.
TEST_F(AverageCommandTest, RefusesOtherShapesAndLeavesNothing) {
  nlohmann::json config = Config();
  config["model"]["intermediate_size"] = 24;
  config["train"]["steps"] = 5;
  config["output"] = directory_.File("wider");
  ASSERT_EQ(Run("finetune " + WriteConfig(config)).code, 0);
  const std::string stranger = "/seed-1/checkpoints/step-00000005";
  ASSERT_TRUE(fs::exists(directory_.File("wider") + stranger));
  fs::copy(directory_.File("wider") + stranger, run_ + stranger,
           fs::copy_options::recursive);
  ExpectMistake(run_ + " --last 2", "but has another shape or type");
  for (const auto& entry : fs::directory_iterator(seed_)) {
    EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr("averaged")));
  }
}

TEST_F(AverageCommandTest, RefusesDamagedCheckpoints) {
  const std::string path =
      seed_ + "/checkpoints/step-00000003/model.safetensors";
  std::string bytes = Contents(path);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  directory_.Write("run/seed-1/checkpoints/step-00000003/model.safetensors",
                   bytes);
  ExpectMistake(run_ + " --last 2", path);
  // A checkpoint that is not whole does not count.
  fs::remove(path);
  ExpectMistake(run_ + " --last 3", "but has 2");
}

}  // namespace
}  // namespace etc
