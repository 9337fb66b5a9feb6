// Options of `realetc train` that change what becomes of the output directory:
// --dry-run, --overwrite and --resume-or-begin.

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
using testing::Not;

class TrainCommandTest : public RealetcTest {
 protected:
  const std::string run_ = directory_.File("run");
};

TEST_F(TrainCommandTest, TriesARunAndWritesNothing) {
  const std::string config = WriteConfig(Config());
  const Result tried = Run("train --dry-run " + config);
  EXPECT_EQ(tried.code, 0) << tried.err;
  EXPECT_THAT(
      tried.out,
      AllOf(HasSubstr(run_ + ": 2 updates on 6 records, "),
            HasSubstr("\n  micro-batch: 2 examples, "),
            HasSubstr("\n  evaluation: 6 examples of 6 records, "),
            HasSubstr("\n  time: about "), HasSubstr("\n  memory: about "),
            HasSubstr(" for updates on the CPU, "),
            HasSubstr(" for evaluations, and at most "),
            HasSubstr("\n  disk: at most "),
            HasSubstr("nothing was written; without --dry-run it is "
                      "trained\n")));
  EXPECT_FALSE(fs::exists(run_));
  EXPECT_EQ(Run("train --dry-run --resume " + config).code, 2);
}

// The labels of classify, for one, are what a dry run is for.
TEST_F(TrainCommandTest, TriesARunAndSaysAboutItsDataWhatTheRunSays) {
  const std::string data =
      directory_.Write("docs.csv",
                       "text,label\nmira lives in oslo,a\nin rome,a\n"
                       "town of lima,A\noslo,A\n");
  nlohmann::json config = Config();
  config["task"] = "classify";
  config["data"] = {{"train", {data}}, {"dev", {data}}};
  const std::string path = WriteConfig(config);
  const Result tried = Run("train --dry-run " + path);
  EXPECT_EQ(tried.code, 0) << tried.err;
  const Result trained = Run("train " + path);
  EXPECT_EQ(trained.code, 0) << trained.err;
  for (const char* line :
       {"classify: 4 training records, 4 for evaluation; 2 updates",
        "\ntraining: 4 documents, 2 labels: ",
        "differ by case or white space only",
        "4 of the 4 documents for evaluation have the text of a training"}) {
    EXPECT_THAT(tried.err, HasSubstr(line));
    EXPECT_THAT(trained.err, HasSubstr(line));
  }
}

TEST_F(TrainCommandTest, WarnsOfAVocabularyThatKnowsLittleOfTheText) {
  const std::string path = WriteConfig(Config());
  const std::string warning =
      " of the tokens of the first 6 records are unknown to " +
      directory_.File("vocab.txt");
  EXPECT_THAT(Run("train --dry-run " + path).err, Not(HasSubstr("unknown")));
  nlohmann::json records =
      nlohmann::json::parse(Contents(directory_.File("data.json")));
  for (nlohmann::json& record : records) {
    record["supports"] = {"she dwells near oslo, rome and lima."};
  }
  directory_.Write("data.json", records.dump());
  for (const char* command : {"train --dry-run ", "train "}) {
    EXPECT_THAT(Run(command + path).err, HasSubstr(warning)) << command;
  }
}

// A run would meet it after an epoch.
TEST_F(TrainCommandTest, TriesTheLastRecordForEvaluation) {
  nlohmann::json config = Config();
  nlohmann::json records =
      nlohmann::json::parse(Contents(directory_.File("data.json")));
  records.back()["id"] = "q1";
  config["data"]["dev"] = {directory_.Write("dev.json", records.dump())};
  const std::string path = WriteConfig(config);
  for (const char* command : {"train --dry-run ", "train "}) {
    const Result result = Run(command + path);
    EXPECT_EQ(result.code, 1) << command;
    EXPECT_THAT(result.err,
                HasSubstr("dev.json: record 5: the id \"q1\" should occur "
                          "once, but is that of "));
    EXPECT_FALSE(fs::exists(run_ + "/seed-1/checkpoints/last"));
  }
}

TEST_F(TrainCommandTest, TriesAllSettingsOfAGrid) {
  nlohmann::json config = Config();
  config["grid"] = {{"train.steps", {2, 3}}};
  const Result tried = Run("train --dry-run " + WriteConfig(config));
  EXPECT_EQ(tried.code, 0) << tried.err;
  EXPECT_THAT(tried.out, AllOf(HasSubstr("train.steps=2: 2 updates"),
                               HasSubstr("train.steps=3: 3 updates")));
  EXPECT_FALSE(fs::exists(run_));

  config["grid"] = {{"train.batch_size", {3, 7}}};
  const Result refused = Run("train --dry-run " + WriteConfig(config));
  EXPECT_EQ(refused.code, 1) << refused.out;
  EXPECT_THAT(refused.err, AllOf(HasSubstr("setting train.batch_size=7: "),
                                 HasSubstr("less than one batch of 7")));
  EXPECT_FALSE(fs::exists(run_));

  config["grid"] = {{"train.main_metric_direction", {"max", "min"}}};
  const Result two_metrics = Run("train --dry-run " + WriteConfig(config));
  EXPECT_EQ(two_metrics.code, 1) << two_metrics.out;
  EXPECT_THAT(two_metrics.err, HasSubstr("should have one main metric"));

  config["grid"] = {{"train.steps", {2}}};
  fs::create_directory(run_);
  directory_.Write("run/grid.json", R"({"task": "glue", "main_metric": "f1",
                                        "settings": []})");
  const Result other = Run("train --dry-run " + WriteConfig(config));
  EXPECT_EQ(other.code, 1) << other.out;
  EXPECT_THAT(other.err, HasSubstr("has a grid of glue by f1"));
}

TEST_F(TrainCommandTest, SaysThatEachChangeNeedsASet) {
  const std::string config = WriteConfig(Config());
  ExpectMistake("train " + config + " --set train.steps=1 output=x seeds=2",
                "The following arguments were not expected: output=x seeds=2 "
                "(each FIELD=VALUE needs a --set); see realetc train",
                2);
  const Result help = Run("train --help");
  EXPECT_THAT(help.out, AllOf(HasSubstr("--set TEXT "),
                              HasSubstr("--allow-changes TEXT ...")));
  EXPECT_EQ(help.out.find("--set TEXT ..."), std::string::npos);
}

TEST_F(TrainCommandTest, ReplacesARunWhenAsked) {
  const std::string config = WriteConfig(Config());
  ASSERT_EQ(Run("train " + config).code, 0);
  const std::string metrics = Contents(run_ + "/seed-1/metrics.jsonl");
  const Result refused = Run("train " + config);
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("replace it (--overwrite)"));
  EXPECT_EQ(Run("train --overwrite --resume " + config).code, 2);
  EXPECT_EQ(Run("train --overwrite --dry-run " + config).code, 0);
  EXPECT_EQ(Contents(run_ + "/seed-1/metrics.jsonl"), metrics);

  const Result replaced =
      Run("train --overwrite --set train.steps=1 " + config);
  EXPECT_EQ(replaced.code, 0) << replaced.err;
  EXPECT_THAT(replaced.err,
              HasSubstr("removed the earlier run in " + run_ + "/seed-1\n"));
  EXPECT_TRUE(fs::exists(run_ + "/seed-1/checkpoints/step-00000001"));
  EXPECT_FALSE(fs::exists(run_ + "/seed-1/checkpoints/step-00000002"));

  nlohmann::json grid = Config();
  grid["grid"] = {{"train.steps", {2, 3}}};
  grid["output"] = directory_.File("grid");
  const Result of_grid = Run("train --overwrite " + WriteConfig(grid));
  EXPECT_EQ(of_grid.code, 1);
  EXPECT_THAT(of_grid.err, HasSubstr("this configuration has a grid"));
}

TEST_F(TrainCommandTest, BeginsARunOrGoesOnByOneCommand) {
  const std::string command = "train " + WriteConfig(Config());
  ExpectMistake(command + " --resume",
                "there is no run to resume; --resume-or-begin begins one");
  const std::string restarted = command + " --resume-or-begin";
  const Result begun = Run(restarted);
  ASSERT_EQ(begun.code, 0) << begun.err;
  const std::string metrics = Contents(run_ + "/seed-1/metrics.jsonl");
  const Result ended = Run(restarted);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, begun.out);
  EXPECT_EQ(Contents(run_ + "/seed-1/metrics.jsonl"), metrics);
  const Result longer =
      Run(restarted + " --set train.steps=3 --allow-changes train.steps");
  EXPECT_EQ(longer.code, 0) << longer.err;
  EXPECT_THAT(longer.err, HasSubstr(", after 2 of 3 updates\n"));
  for (const char* option :
       {" --overwrite", " --dry-run", " --overwrite --resume"}) {
    EXPECT_EQ(Run(restarted + option).code, 2) << option;
  }
  ExpectMistake(command + " --allow-changes train",
                "--allow-changes requires --resume or --resume-or-begin",
                /*code=*/2);
}

// No score rises by 100.
TEST_F(TrainCommandTest, SaysThatARunThatEndedEarlyMadeTheFirstUpdates) {
  nlohmann::json config = Config();
  config["train"].update({{"steps", 4},
                          {"evaluate_every", 1},
                          {"early_stopping", 1},
                          {"early_stopping_improvement", 100}});
  const Result ended = Run("train " + WriteConfig(config));
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("stopped early, after 2 of 4 updates: "));
  EXPECT_THAT(ended.out, HasSubstr(" of the first 2 updates, "));
}

TEST_F(TrainCommandTest, EvaluatesAndSavesInitWithoutAnUpdate) {
  ASSERT_EQ(Run("train " + WriteConfig(Config())).code, 0);
  const std::string second = directory_.File("second");
  nlohmann::json config = Config();
  config["init"] = run_;
  config["output"] = second;
  config["train"]["steps"] = 0;
  config["train"]["batch_size"] = 7;  // more than the examples
  const std::string path = WriteConfig(config);
  const Result tried = Run("train --dry-run " + path);
  EXPECT_EQ(tried.code, 0) << tried.err;
  EXPECT_THAT(tried.out, AllOf(HasSubstr(": 0 updates on 6 records, "),
                               Not(HasSubstr("micro-batch")),
                               HasSubstr("at most 1 evaluation\n")));
  const Result made = Run("train " + path);
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr(" after 0 of 0 updates, " + second +
                                  "/seed-1/checkpoints/best\n"));
  EXPECT_EQ(Run("evaluate " + second).out, Run("evaluate " + run_).out);
  const Result ended = Run("train --resume " + path);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, made.out);

  config.erase("init");
  config["output"] = directory_.File("third");
  ExpectMistake("train " + WriteConfig(config), "train.steps is 0, ");
  config["init"] = run_;
  config["task"] = "classify";
  const std::string data =
      directory_.Write("docs.csv", "text,label\nx,a\ny,b\n");
  config["data"] = {{"train", {data}}, {"dev", {data}}};
  const Result random = Run("train " + WriteConfig(config));
  EXPECT_EQ(random.code, 1);
  EXPECT_THAT(random.err, HasSubstr("train.steps is 0, but head: "));
  EXPECT_FALSE(fs::exists(directory_.File("third/seed-1/checkpoints/last")));
}

// To read them may take minutes.
TEST_F(TrainCommandTest, FindsThatInitDoesNotFitBeforeItReadsTheData) {
  ASSERT_EQ(Run("train " + WriteConfig(Config())).code, 0);
  nlohmann::json config = Config();
  config["init"] = run_;
  config["output"] = directory_.File("second");
  config["model"]["hidden_size"] = 16;
  const std::string path = WriteConfig(config);
  const std::string gone = directory_.File("gone.json");
  for (const std::string command : {"train ", "train --dry-run "}) {
    const Result result = Run(command + path + " --set data.train=" + gone);
    EXPECT_EQ(result.code, 1);
    EXPECT_THAT(result.err,
                AllOf(HasSubstr("hidden_size should be 16, but is 8"),
                      HasSubstr("; --set model={} takes the sizes of init\n"),
                      Not(HasSubstr("gone.json"))));
  }
  const Result taken = Run("train " + path + " --set 'model={}'");
  EXPECT_EQ(taken.code, 0) << taken.err;
}

// --overwrite would remove them before they are read.
TEST_F(TrainCommandTest, RefusesInputsInTheDirectoriesThatItReplaces) {
  ASSERT_EQ(Run("train " + WriteConfig(Config())).code, 0);
  const std::string weights = run_ + "/seed-1/checkpoints/last";
  const std::string before = Contents(weights + "/model.safetensors");
  ASSERT_NE(before, "");
  nlohmann::json config = Config();
  config.erase("model");
  config["init"] = weights;
  ExpectMistake("train --overwrite " + WriteConfig(config),
                "init names " + run_ + "/seed-1/");
  EXPECT_EQ(Contents(weights + "/model.safetensors"), before);

  for (const std::string field : {"train", "dev"}) {
    config = Config();
    const std::string data =
        directory_.Write("run/seed-1/" + field + ".json",
                         Contents(directory_.File("data.json")));
    config["data"][field] = {data};
    ExpectMistake("train --overwrite " + WriteConfig(config),
                  "data." + field + " names " + data + ", which is in " + run_);
    EXPECT_TRUE(fs::exists(data));
    // It removes nothing where a run was begun.
    for (const char* resume : {" --resume", " --resume-or-begin"}) {
      EXPECT_THAT(Run("train " + WriteConfig(config) + resume).err,
                  Not(HasSubstr(", which is in ")));
    }
  }
}

}  // namespace
}  // namespace etc
