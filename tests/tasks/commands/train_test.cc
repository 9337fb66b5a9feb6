// Options of `realetc finetune` and `pretrain` that change what becomes of the
// output directory: --dry-run and --overwrite.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "nlohmann/json.hpp"
#include "tests/support/realetc_program.h"

namespace etc {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class TrainCommandTest : public RealetcTest {
 protected:
  const std::string run_ = directory_.File("run");
};

TEST_F(TrainCommandTest, TriesARunAndWritesNothing) {
  const std::string config = WriteConfig(Config());
  const Result tried = Run("finetune --dry-run " + config);
  EXPECT_EQ(tried.code, 0) << tried.err;
  EXPECT_THAT(
      tried.out,
      AllOf(HasSubstr(run_ + ": 2 updates on 6 examples, "),
            HasSubstr("\n  micro-batch: 2 examples, "),
            HasSubstr("\n  evaluation: 6 examples of 6 records, "),
            HasSubstr("\n  time: about "), HasSubstr("\n  memory: about "),
            HasSubstr("nothing was written; without --dry-run it is "
                      "trained\n")));
  EXPECT_FALSE(fs::exists(run_));
  EXPECT_EQ(Run("finetune --dry-run --resume " + config).code, 2);
}

TEST_F(TrainCommandTest, TriesAllSettingsOfAGrid) {
  nlohmann::json config = Config();
  config["grid"] = {{"train.steps", {2, 3}}};
  const Result tried = Run("finetune --dry-run " + WriteConfig(config));
  EXPECT_EQ(tried.code, 0) << tried.err;
  EXPECT_THAT(tried.out, AllOf(HasSubstr("train.steps=2: 2 updates"),
                               HasSubstr("train.steps=3: 3 updates")));
  EXPECT_FALSE(fs::exists(run_));

  config["grid"] = {{"train.batch_size", {3, 7}}};
  const Result refused = Run("finetune --dry-run " + WriteConfig(config));
  EXPECT_EQ(refused.code, 1) << refused.out;
  EXPECT_THAT(refused.err, AllOf(HasSubstr("setting train.batch_size=7: "),
                                 HasSubstr("less than one batch of 7")));
  EXPECT_FALSE(fs::exists(run_));

  config["grid"] = {{"train.main_metric_direction", {"max", "min"}}};
  const Result two_metrics = Run("finetune --dry-run " + WriteConfig(config));
  EXPECT_EQ(two_metrics.code, 1) << two_metrics.out;
  EXPECT_THAT(two_metrics.err, HasSubstr("should have one main metric"));

  config["grid"] = {{"train.steps", {2}}};
  fs::create_directory(run_);
  directory_.Write("run/grid.json", R"({"task": "glue", "main_metric": "f1",
                                        "settings": []})");
  const Result other = Run("finetune --dry-run " + WriteConfig(config));
  EXPECT_EQ(other.code, 1) << other.out;
  EXPECT_THAT(other.err, HasSubstr("has a grid of glue by f1"));
}

TEST_F(TrainCommandTest, ReplacesARunWhenAsked) {
  const std::string config = WriteConfig(Config());
  ASSERT_EQ(Run("finetune " + config).code, 0);
  const std::string metrics = Contents(run_ + "/seed-1/metrics.jsonl");
  const Result refused = Run("finetune " + config);
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("replace it (--overwrite)"));
  EXPECT_EQ(Run("finetune --overwrite --resume " + config).code, 2);
  EXPECT_EQ(Run("finetune --overwrite --dry-run " + config).code, 0);
  EXPECT_EQ(Contents(run_ + "/seed-1/metrics.jsonl"), metrics);

  const Result replaced =
      Run("finetune --overwrite --set train.steps=1 " + config);
  EXPECT_EQ(replaced.code, 0) << replaced.err;
  EXPECT_THAT(replaced.err,
              HasSubstr("removed the earlier run in " + run_ + "/seed-1\n"));
  EXPECT_TRUE(fs::exists(run_ + "/seed-1/checkpoints/step-00000001"));
  EXPECT_FALSE(fs::exists(run_ + "/seed-1/checkpoints/step-00000002"));

  nlohmann::json grid = Config();
  grid["grid"] = {{"train.steps", {2, 3}}};
  grid["output"] = directory_.File("grid");
  const Result of_grid = Run("finetune --overwrite " + WriteConfig(grid));
  EXPECT_EQ(of_grid.code, 1);
  EXPECT_THAT(of_grid.err, HasSubstr("this configuration has a grid"));
}

// --overwrite would remove them before they are read.
TEST_F(TrainCommandTest, RefusesInputsInTheDirectoriesThatItReplaces) {
  ASSERT_EQ(Run("finetune " + WriteConfig(Config())).code, 0);
  const std::string weights = run_ + "/seed-1/checkpoints/last";
  const std::string before = Contents(weights + "/model.safetensors");
  ASSERT_NE(before, "");
  nlohmann::json config = Config();
  config.erase("model");
  config["init"] = weights;
  ExpectMistake("finetune --overwrite " + WriteConfig(config),
                "init names " + run_ + "/seed-1/");
  EXPECT_EQ(Contents(weights + "/model.safetensors"), before);

  for (const std::string field : {"train", "dev"}) {
    config = Config();
    const std::string data =
        directory_.Write("run/seed-1/" + field + ".json",
                         Contents(directory_.File("data.json")));
    config["data"][field] = {data};
    ExpectMistake("finetune --overwrite " + WriteConfig(config),
                  "data." + field + " names " + data + ", which is in " + run_);
    EXPECT_TRUE(fs::exists(data));
  }
}

}  // namespace
}  // namespace etc
