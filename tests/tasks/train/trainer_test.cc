// Whole runs of a toy benchmark, through files and checkpoints: that it learns;
// that a run that was stopped goes on to the very bits of one that was not (one
// that was killed: killed_run_test.cc); what it writes and says; what it
// refuses. Dropout is on, so that resumed random numbers matter.

#include "tasks/train/trainer.h"

#include <torch/types.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "etc/weights/checkpoint.h"
#include "etc/weights/encoder_parameters.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/train/train_runs.h"
#include "tasks/train/training_state.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/train/toy_run.h"
#include "tests/tasks/train/toy_run_fixture.h"
#include "tests/tasks/train/toy_task.h"

namespace etc {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

using TrainerTest = ToyRunTest;

TEST_F(TrainerTest, LearnsTheToyTask) {
  json_["train"]["steps"] = 200;
  json_["train"]["learning_rate"] = 0.003;
  json_["train"]["evaluate_every"] = 0;
  json_["data"]["dev"] = {train_};
  FakeReporter reporter;
  const auto result = Run("run", &reporter);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->finished);
  ASSERT_EQ(result->runs.size(), 1);
  EXPECT_GE(result->runs[0].last[0].second, 0.97);
  EXPECT_LT(reporter.updates.back().loss, 0.3);
}

TEST_F(TrainerTest, WritesWhatItPromises) {
  FakeReporter reporter;
  const auto result = Run("run", &reporter);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(reporter.updates.size(), 12);
  const std::string last = Output("run/seed-1/checkpoints/last");
  for (const char* file :
       {"/etc_config.json", "/model.safetensors", "/run_config.json",
        "/training_state.safetensors", "/predictions.json"}) {
    EXPECT_TRUE(fs::exists(last + file)) << file;
  }
  const auto lines = MetricsLines(Output("run/seed-1"));
  ASSERT_EQ(lines.size(), 12 + 3);
  EXPECT_EQ(lines[0]["step"], 1);
  EXPECT_EQ(lines[0]["learning_rate"], 0);
  EXPECT_EQ(lines[0]["examples"], 8);
  EXPECT_DOUBLE_EQ(lines[0]["epoch"], 8.0 / 37);
  EXPECT_EQ(lines[4]["step"], 4);
  EXPECT_TRUE(lines[4]["evaluation"].contains("accuracy"));
  const auto summary =
      nlohmann::json::parse(*ReadFile(Output("run/summary.json")));
  EXPECT_EQ(summary["runs"][0]["best"]["accuracy"],
            result->runs[0].best[0].second);
  EXPECT_EQ(summary["scores"]["accuracy"]["median"],
            result->runs[0].best[0].second);
}

class ResumeTest : public TrainerTest,
                   public testing::WithParamInterface<int64_t> {};
INSTANTIATE_TEST_SUITE_P(MicroBatches, ResumeTest, testing::Values(1, 3, 8));

TEST_P(ResumeTest, GoesOnBitForBit) {
  json_["train"]["micro_batch_size"] = GetParam();
  FakeReporter straight;
  ASSERT_TRUE(Run("straight", &straight).ok());
  for (const int64_t stop_after : {3, 4, 11}) {
    const std::string name = absl::StrCat("stopped-", stop_after);
    FakeReporter first;
    first.stop_after = stop_after;
    const auto stopped = Run(name, &first);
    ASSERT_TRUE(stopped.ok()) << stopped.status();
    EXPECT_FALSE(stopped->finished);
    EXPECT_EQ(stopped->runs[0].steps, stop_after);
    EXPECT_FALSE(fs::exists(Output(name + "/summary.json")));

    json_["data"]["workers"] = 3;
    FakeReporter second;
    const auto resumed = Run(name, &second, /*resume=*/true);
    json_["data"].erase("workers");
    ASSERT_TRUE(resumed.ok()) << resumed.status();
    EXPECT_TRUE(resumed->finished);
    EXPECT_EQ(second.updates.size(), 12 - static_cast<size_t>(stop_after));
    ExpectSameRun(Output(name + "/seed-1"), Output("straight/seed-1"));
  }
}

TEST_F(TrainerTest, GoesOnBitForBitWithEachOptimizer) {
  for (const std::string type : {"lamb", "adamw"}) {
    json_["optimizer"]["type"] = type;
    FakeReporter straight;
    ASSERT_TRUE(Run("straight-" + type, &straight).ok());
    FakeReporter first;
    first.stop_after = 5;
    ASSERT_TRUE(Run(type, &first).ok());
    FakeReporter second;
    ASSERT_TRUE(Run(type, &second, /*resume=*/true).ok());
    ExpectSameRun(Output(type + "/seed-1"),
                  Output("straight-" + type + "/seed-1"));
  }
}

TEST_F(TrainerTest, GoesOnAfterAStopInAnEvaluation) {
  FakeReporter straight;
  ASSERT_TRUE(Run("straight", &straight).ok());
  FakeReporter first;
  first.stop_after_evaluation_batch = 3;  // the first of the second evaluation
  const auto stopped = Run("run", &first);
  ASSERT_TRUE(stopped.ok());
  EXPECT_FALSE(stopped->finished);
  EXPECT_EQ(stopped->runs[0].steps, 8);
  FakeReporter second;
  ASSERT_TRUE(Run("run", &second, /*resume=*/true).ok());
  ExpectSameRun(Output("run/seed-1"), Output("straight/seed-1"));
}

TEST_F(TrainerTest, RefusesADirectoryWithARun) {
  FakeReporter reporter;
  ASSERT_TRUE(Run("run", &reporter).ok());
  const auto again = Run("run", &reporter);
  EXPECT_TRUE(absl::IsAlreadyExists(again.status()));
  EXPECT_THAT(again.status().message(), HasSubstr(Output("run/seed-1")));
}

// --- Gates -------------------------------------------------------------------

TEST_F(TrainerTest, TrainsGatesAndLogsThem) {
  FakeReporter reporter;
  ASSERT_TRUE(Run("sum", &reporter).ok());
  for (const nlohmann::json& line : MetricsLines(Output("sum/seed-1"))) {
    EXPECT_FALSE(line.contains("gate_mean"));
    EXPECT_FALSE(line.contains("gate_max"));
  }

  json_["residual_attention"] = "gate";
  json_["model"]["residual_gate_init"] = 0.5;
  ASSERT_TRUE(Run("gate", &reporter).ok());
  const auto lines = MetricsLines(Output("gate/seed-1"));
  // The first update has a rate of 0.
  EXPECT_EQ(lines[0]["gate_mean"], 0.5);
  EXPECT_EQ(lines[0]["gate_max"], 0.5);
  const std::string last = Output("gate/seed-1/checkpoints/last");
  double sum = 0;
  double largest = 0;
  int64_t gates = 0;
  for (const auto& [name, tensor] : ReadAll(last + "/model.safetensors")) {
    if (IsGate(name)) {
      gates += tensor.numel();
      sum += tensor.to(torch::kFloat64).sum().item<double>();
      largest = std::max(largest,
                         static_cast<double>(tensor.abs().max().item<float>()));
    }
  }
  ASSERT_EQ(gates, 8);
  EXPECT_FALSE(lines.back().contains("gate_mean"));  // of the evaluation
  const nlohmann::json& update = lines[lines.size() - 2];
  EXPECT_EQ(update["step"], 12);
  EXPECT_NE(update["gate_mean"], 0.5);
  EXPECT_NEAR(update["gate_mean"].get<double>(), sum / 8, 1e-12);
  EXPECT_EQ(update["gate_max"].get<double>(), largest);
  EXPECT_TRUE(
      ReadTrainingState(last + "/training_state.safetensors")
          ->optimizer.contains("m.encoder.layers.1.attention.g2g_gate"));
}

TEST_F(TrainerTest, AFactorSpeedsUpTheGates) {
  json_["residual_attention"] = "gate";
  json_["schedule"]["warmup_proportion"] = 0;
  FakeReporter reporter;
  ASSERT_TRUE(Run("one", &reporter).ok());
  json_["train"]["gate_learning_rate_factor"] = 4;
  ASSERT_TRUE(Run("four", &reporter).ok());
  // The first updates begin with the same weights.
  const auto one = MetricsLines(Output("one/seed-1"))[0];
  const auto four = MetricsLines(Output("four/seed-1"))[0];
  EXPECT_EQ(one["gradient_norm"], four["gradient_norm"]);
  EXPECT_EQ(one["learning_rate"], four["learning_rate"]);
  ASSERT_GT(one["gate_max"].get<double>(), 1e-3);
  EXPECT_NEAR(four["gate_max"].get<double>(), 4 * one["gate_max"].get<double>(),
              1e-6);
}

TEST_F(TrainerTest, GatesGoOnBitForBit) {
  json_["residual_attention"] = "gate";
  FakeReporter straight;
  ASSERT_TRUE(Run("straight", &straight).ok());
  FakeReporter first;
  first.stop_after = 5;
  ASSERT_TRUE(Run("stopped", &first).ok());
  FakeReporter second;
  const auto resumed = Run("stopped", &second, /*resume=*/true);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  ExpectSameRun(Output("stopped/seed-1"), Output("straight/seed-1"));
}

// `realetc average` needs them.
TEST_F(TrainerTest, KeepsTheCheckpointsOfEpochsWithoutEvaluations) {
  json_["data"]["dev"] = nlohmann::json::array();
  json_["train"]["keep_last"] = 2;
  FakeReporter reporter;
  const auto result = Run("run", &reporter);
  ASSERT_TRUE(result.ok()) << result.status();
  std::vector<std::string> steps;
  for (const auto& entry :
       fs::directory_iterator(Output("run/seed-1/checkpoints"))) {
    if (!entry.is_symlink() && entry.is_directory()) {
      steps.push_back(entry.path().filename());
    }
  }
  EXPECT_THAT(steps, UnorderedElementsAre("step-00000008", "step-00000012"));
}

TEST_F(TrainerTest, ResumingAFinishedRunChangesNothing) {
  FakeReporter reporter;
  const auto first = Run("run", &reporter);
  ASSERT_TRUE(first.ok());
  FakeReporter again;
  const auto second = Run("run", &again, /*resume=*/true);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(second->finished);
  EXPECT_TRUE(again.updates.empty());
  EXPECT_EQ(again.evaluation_batches, 0);
  EXPECT_EQ(second->runs[0].best, first->runs[0].best);
}

TEST_F(TrainerTest, ResumesOnlyWithTheSameSettings) {
  FakeReporter first;
  first.stop_after = 11;
  ASSERT_TRUE(Run("run", &first).ok());
  const nlohmann::json begun = json_;
  const auto expect_refused = [this, &begun](const std::string& field,
                                             nlohmann::json value) {
    json_ = begun;
    json_[nlohmann::json::json_pointer(
        "/" + absl::StrReplaceAll(field, {{".", "/"}}))] = std::move(value);
    FakeReporter reporter;
    const auto status = Run("run", &reporter, /*resume=*/true).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << field;
    EXPECT_THAT(status.ToString(), HasSubstr("another " + field));
  };
  expect_refused("train.learning_rate", 0.02);
  expect_refused("train.micro_batch_size", 4);
  expect_refused("train.steps", 13);
  expect_refused("optimizer.weight_decay", 0.1);
  expect_refused("residual_attention", "off");
  expect_refused("model.hidden_dropout_prob", 0.2);
  expect_refused("data.bucket_batches", 3);
  expect_refused("train.precision", "bf16");
  // The same number of records, but others.
  const std::string other = temporary_.Write("other.jsonl", ToyRecords(37, 3));
  expect_refused("data.train", {other});
  expect_refused("data.dev", {other});

  json_ = begun;
  temporary_.Write("train.jsonl", ToyRecords(37, 3));
  FakeReporter reporter;
  EXPECT_THAT(
      std::string(Run("run", &reporter, /*resume=*/true).status().message()),
      HasSubstr("another data.train"));

  // The same records elsewhere.
  fs::remove(train_);
  json_["data"]["train"] = temporary_.Write("moved.jsonl", ToyRecords(37, 1));
  json_["train"]["threads"] = 2;
  json_["train"]["evaluate_every"] = 6;
  json_["train"]["checkpoint_every"] = 2;
  json_["train"]["evaluation_batch_size"] = 3;
  json_["data"]["workers"] = 2;
  json_["data"]["cache_megabytes"] = 0;
  const auto resumed = Run("run", &reporter, /*resume=*/true);
  EXPECT_TRUE(resumed.ok()) << resumed.status();
}

TEST_F(TrainerTest, ResumesWithOtherSettingsWhereThatIsMeant) {
  FakeReporter first;
  first.stop_after = 11;
  ASSERT_TRUE(Run("run", &first).ok());
  const std::string state =
      Output("run/seed-1/checkpoints/last/training_state.safetensors");
  const int64_t epoch = ReadTrainingState(state)->state.position.epoch;

  json_["train"]["learning_rate"] = 0.02;
  json_["data"]["train"] = temporary_.Write("more.jsonl", ToyRecords(50, 3));
  allow_changes_ = {"train.learning_rate"};
  FakeReporter refused;
  EXPECT_THAT(
      Run("run", &refused, /*resume=*/true).status().ToString(),
      AllOf(HasSubstr("another data.train"), Not(HasSubstr("learning_rate"))));
  allow_changes_ = {"train.learning_rte"};
  EXPECT_THAT(Run("run", &refused, /*resume=*/true).status().ToString(),
              HasSubstr("did you mean \"train.learning_rate\"?"));

  // Settings that its scores are of stay, named or not.
  allow_changes_ = {"train.learning_rate", "data"};
  json_["data"]["dev"] = {train_};
  EXPECT_THAT(Run("run", &refused, /*resume=*/true).status().ToString(),
              AllOf(HasSubstr("another data.dev"),
                    HasSubstr("begin a new run with --set init="),
                    Not(HasSubstr("data.train"))));
  json_["data"]["dev"] = {dev_};
  FakeReporter resumed;
  resumed.stop_after = 12;
  const auto result = Run("run", &resumed, /*resume=*/true);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(
      resumed.messages,
      Contains(AllOf(HasSubstr("changed: data.train, from "),
                     HasSubstr("train.jsonl ("), HasSubstr("more.jsonl ("))));
  EXPECT_THAT(resumed.messages,
              Contains("changed: train.learning_rate, from 0.01 to 0.02"));
  EXPECT_THAT(resumed.messages, Contains(HasSubstr("with a new pass")));
  EXPECT_EQ(ReadTrainingState(state)->state.position.epoch, epoch + 1);

  // They are its settings from now on.
  allow_changes_ = {};
  FakeReporter again;
  const auto finished = Run("run", &again, /*resume=*/true);
  ASSERT_TRUE(finished.ok()) << finished.status();
  EXPECT_TRUE(finished->finished);
}

// 6 updates of 8 examples and 6 of 4, of 37.
TEST_F(TrainerTest, CountsThePassesOfUpdatesOfOtherSizes) {
  FakeReporter first;
  first.stop_after = 6;
  ASSERT_TRUE(Run("run", &first).ok());
  json_["train"]["batch_size"] = 4;
  allow_changes_ = {"train.batch_size"};
  FakeReporter resumed;
  const auto result = Run("run", &resumed, /*resume=*/true);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(resumed.messages,
              Contains(HasSubstr("comes to 1.95 passes over its data, since "
                                 "not all of the 6 updates")));
  ASSERT_EQ(resumed.updates.size(), 6u);
  EXPECT_DOUBLE_EQ(resumed.updates.front().epoch, 52.0 / 37);
  EXPECT_DOUBLE_EQ(resumed.updates.back().epoch, 72.0 / 37);
}

TEST_F(TrainerTest, RefusesDataWithoutRecordsAndWarnsOfThoseWithoutAnswers) {
  FakeReporter reporter;
  json_["data"]["train"] = {temporary_.Write("empty.json", "[]")};
  EXPECT_THAT(Run("none", &reporter).status().ToString(),
              AllOf(HasSubstr("data.train: there are no records in "),
                    HasSubstr("empty.json")));
  json_["data"]["train"] = train_;
  json_["train"]["steps"] = 1;
  json_["data"]["dev"] = nlohmann::json::array();
  ASSERT_TRUE(Run("no-dev", &reporter).ok());
  EXPECT_THAT(reporter.warnings, Contains(StartsWith("data.dev is empty: ")));
  json_["data"]["dev"] = temporary_.File("empty.json");
  ASSERT_TRUE(Run("empty-dev", &reporter).ok());
  EXPECT_THAT(reporter.warnings,
              Contains(StartsWith("data.dev: there are no records")));
  const std::string no_answer =
      R"({"id": "1", "tokens": [2, 7], "has_answer": false})";
  json_["data"]["dev"] = temporary_.Write("test.jsonl", no_answer);
  ASSERT_TRUE(Run("no-answers", &reporter).ok());
  EXPECT_THAT(reporter.warnings,
              Contains(AllOf(StartsWith("data.dev: the records of "),
                             HasSubstr("test.jsonl have no answers"))));
  json_["data"]["dev"] = temporary_.Write(
      "dev.jsonl",
      absl::StrCat(no_answer, "\n", R"({"id": "2", "tokens": [7]})"));
  FakeReporter some;
  ASSERT_TRUE(Run("some-answers", &some).ok());
  EXPECT_THAT(some.warnings,
              Contains("data.dev: 1 record without an answer is left "
                       "out of the scores"));
}

TEST_F(TrainerTest, RunsEachSeedAndSummarizes) {
  json_["train"]["seeds"] = {1, 2, 3};
  FakeReporter stopped;
  stopped.stop_after = 7;
  auto result = Run("run", &stopped);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->runs.size(), 1);
  FakeReporter reporter;
  result = Run("run", &reporter, /*resume=*/true);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->runs.size(), 3);
  EXPECT_NE(ReadAll(Output("run/seed-1/checkpoints/last"))["head.output.bias"]
                .sum()
                .item<double>(),
            ReadAll(Output("run/seed-2/checkpoints/last"))["head.output.bias"]
                .sum()
                .item<double>());
  std::vector<double> values;
  for (const RunResult& run : result->runs) {
    values.push_back(run.best[0].second);
  }
  const ScoreSummary expected = SummarizeScore("accuracy", values);
  const auto summary =
      nlohmann::json::parse(*ReadFile(Output("run/summary.json")));
  EXPECT_EQ(summary["scores"]["accuracy"]["median"], expected.median);
  EXPECT_EQ(summary["scores"]["accuracy"]["standard_deviation"],
            *expected.standard_deviation);
  ASSERT_EQ(result->scores.size(), 2);  // accuracy and correct
  EXPECT_EQ(result->scores[0].name, "accuracy");
  EXPECT_EQ(result->scores[0].median, expected.median);
}

// The latest of equal scores.
TEST_F(TrainerTest, SaysWhichScoreIsTheBestSoFar) {
  class Scored : public ToyPredictions {
   public:
    explicit Scored(double score) : score_(score) {}
    Metrics Score() const override { return {{"accuracy", score_}}; }

   private:
    const double score_;
  };
  class ScoredTask : public ToyTask {
   public:
    using ToyTask::ToyTask;
    std::unique_ptr<TaskPredictions> MakePredictions() const override {
      constexpr double kScores[] = {0.5, 0.25, 0.5};
      return std::make_unique<Scored>(kScores[evaluations_++ % 3]);
    }

   private:
    mutable size_t evaluations_ = 0;
  };
  json_["output"] = Output("run");
  const auto config = RunConfigFromJson(json_, "toy");
  ASSERT_TRUE(config.ok()) << config.status();
  FakeReporter reporter;
  const auto result = TrainRuns(*config, ScoredTask(config->model),
                                {.context = {.reporter = &reporter}});
  ASSERT_TRUE(result.ok()) << result.status();
  for (const char* said :
       {"evaluation after 4 updates: accuracy 0.5000, the best so far (",
        "evaluation after 8 updates: accuracy 0.2500; best so far: accuracy "
        "0.5000 after 4 updates (",
        "evaluation after 12 updates: accuracy 0.5000, equal to the best so "
        "far ("}) {
    EXPECT_THAT(reporter.messages, Contains(StartsWith(said)));
  }
  EXPECT_EQ(result->runs[0].best_step, 12);
  EXPECT_EQ(fs::read_symlink(Output("run/seed-1/checkpoints/best")).string(),
            "step-00000012");
}

TEST(SummarizeScoreTest, GivesMedianAndSampleDeviation) {
  const ScoreSummary odd = SummarizeScore("x", {4, 1, 2});
  EXPECT_EQ(odd.median, 2);
  EXPECT_NEAR(*odd.standard_deviation, 1.5275252317, 1e-9);
  const ScoreSummary even = SummarizeScore("x", {4, 1, 2, 3});
  EXPECT_EQ(even.median, 2.5);
  EXPECT_FALSE(SummarizeScore("x", {4}).standard_deviation.has_value());
}

TEST_F(TrainerTest, SkipsBadRecordsOrSaysWhereTheyAre) {
  train_ = temporary_.Write("train.jsonl", ToyRecords(37, 1) + "{\"id\": 5}\n");
  FakeReporter reporter;
  EXPECT_THAT(Run("strict", &reporter).status().message(),
              AllOf(HasSubstr("train.jsonl"), HasSubstr("id")));
  json_["data"]["on_bad_record"] = "skip";
  const auto result = Run("lenient", &reporter);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(reporter.messages, Contains(AllOf(HasSubstr("1 bad record"),
                                                HasSubstr("train.jsonl"))));
}

TEST_F(TrainerTest, SaysOnceHowManyRecordsWereCut) {
  const auto cut = [](const char* id) {
    return absl::StrCat("{\"id\": \"", id,
                        "\", \"tokens\": [7, 2], \"is_truncated\": true}\n");
  };
  temporary_.Write("train.jsonl", ToyRecords(22, 1) + cut("a") + cut("b"));
  temporary_.Write("dev.jsonl", ToyRecords(10, 2) + cut("c"));
  FakeReporter reporter;
  ASSERT_TRUE(Run("cut", &reporter).ok());  // 12 updates, 4 passes
  std::vector<std::string> said;
  for (const std::string& message : reporter.messages) {
    if (message.find(" cut: ") != std::string::npos) {
      said.push_back(message.substr(0, message.find(" cut: ")));
    }
  }
  EXPECT_THAT(said, testing::ElementsAre("training: 2 records were",
                                         "evaluation: 1 record was"));
}

// A pass takes nine updates, not the three that its 24 records would take with
// an example each.
TEST_F(TrainerTest, CountsRecordsThatWereCutOnceAllWereRead) {
  std::string records;
  for (int i = 0; i < 24; ++i) {
    absl::StrAppend(&records, "{\"id\": \"", i,
                    "\", \"tokens\": [7, 2], \"is_truncated\": true, "
                    "\"examples\": 3}\n");
  }
  temporary_.Write("train.jsonl", records);
  json_["data"]["bucket_batches"] = 1;
  FakeReporter reporter;
  ASSERT_TRUE(Run("cut", &reporter).ok());
  EXPECT_THAT(reporter.messages,
              Contains(StartsWith("training: 24 records were cut: ")));
}

}  // namespace
}  // namespace etc
