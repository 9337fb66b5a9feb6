// summary.json of an output directory, which several starts of runs of the toy
// task have used: it has all seeds that are finished there, scores over those
// with the same settings, and nothing of it is lost between two that write it
// at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "nlohmann/json.hpp"
#include "tasks/config/run_settings.h"
#include "tasks/output/checkpoint_files.h"
#include "tasks/output/checkpoint_store.h"
#include "tasks/output/find_checkpoint.h"
#include "tasks/output/results.h"
#include "tasks/output/run_lock.h"
#include "tasks/output/sealed_json.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/train/toy_run.h"
#include "tests/tasks/train/toy_run_fixture.h"

namespace etc {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(SeedOfTest, ReadsTheNamesThatSeedDirectoryGives) {
  for (const int64_t seed : {0, 1, 12, 2147483647}) {
    EXPECT_EQ(SeedOf(SeedDirectory("runs/a", seed)), seed);
  }
  for (const char* name : {"seed-", "seed-x", "seed-1x", "seed-01", "seed- 1",
                           "seed-1/checkpoints", "1", ""}) {
    EXPECT_EQ(SeedOf(name), std::nullopt) << name;
  }
}

TEST(SummarizeScoresTest, LeavesOutAScoreThatSomeSeedsLack) {
  const std::vector<ScoreSummary> scores =
      SummarizeScores({{{"accuracy", 0.25}, {"f1", 0.5}},
                       {{"accuracy", 0.75}},
                       {{"accuracy", 1.0}, {"f1", 0.125}}});
  ASSERT_EQ(scores.size(), 1u);
  EXPECT_EQ(scores[0].name, "accuracy");
  EXPECT_EQ(scores[0].median, 0.75);
}

// The perplexity of a loss above 709 is no double. NaN has no order.
TEST(SummarizeScoresTest, LeavesOutAScoreThatIsNotFiniteInSomeSeed) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double odd : {kInfinity, -kInfinity, std::nan("")}) {
    EXPECT_THAT(SummarizeScores({{{"loss", odd}}, {{"loss", 1.0}}}), IsEmpty());
    EXPECT_THAT(SummarizeScores({{{"loss", odd}}}), IsEmpty());
  }
  const std::vector<ScoreSummary> scores =
      SummarizeScores({{{"loss", 1e308}}, {{"loss", 1.5e308}}});
  ASSERT_EQ(scores.size(), 1u);
  EXPECT_DOUBLE_EQ(scores[0].median, 1.25e308);
  EXPECT_FALSE(scores[0].standard_deviation.has_value());
}

// Pre-training has a loss as its main metric. A median that is not finite is
// null in files of earlier builds.
TEST(FindCheckpointTest, TakesTheSeedWithTheLowestLoss) {
  TemporaryDirectory directory;
  json summary = {{"task", "pretrain"},
                  {"options", json::object()},
                  {"main_metric", "loss"},
                  {"main_metric_direction", "min"},
                  {"scores", {{"perplexity", {{"median", nullptr}}}}},
                  {"runs", json::array()}};
  int64_t seed = 0;
  for (const double loss : {2.0, 0.5, 1.0}) {
    const std::string name =
        "seed-" + std::to_string(++seed) + "/checkpoints/best";
    std::filesystem::create_directories(directory.File(name));
    directory.Write(name + "/run_config.json", "{}");
    summary["runs"].push_back({{"seed", seed}, {"best", {{"loss", loss}}}});
  }
  directory.Write("summary.json", summary.dump());
  const auto found = FindCheckpoint(directory.path());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(found->directory, HasSubstr("/seed-2/"));
  EXPECT_EQ(found->reason, "the best of 3 seeds by loss, 0.5000");
}

// Its reader says that it is damaged.
TEST(FindCheckpointTest, ReplacesADamagedBestOneByNoOther) {
  TemporaryDirectory directory;
  const std::string checkpoints = directory.File("checkpoints");
  CheckpointStore store(checkpoints);
  ASSERT_TRUE(store.TakeOver().ok());
  for (const int64_t step : {4, 8}) {
    const auto write = [](const std::string& folder) {
      absl::Status status =
          WriteFileAtomically(folder + "/model.safetensors", "some weights");
      status.Update(WriteFileAtomically(folder + "/run_config.json", "{}"));
      return status;
    };
    ASSERT_TRUE(store.Save(step, write).ok());
    ASSERT_TRUE(
        store.NoteEvaluation({{"f1", 0.25}}, /*is_best=*/step == 4).ok());
  }
  EXPECT_EQ(FindCheckpoint(directory.path())->reason, "the best");
  std::filesystem::resize_file(checkpoints + "/step-00000004/model.safetensors",
                               3);
  const std::string last = checkpoints + "/step-00000008";
  const auto expect_damaged = [&](const std::string& path,
                                  const std::string& whole) {
    const auto found = FindCheckpoint(path);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_TRUE(std::filesystem::equivalent(found->directory,
                                            checkpoints + "/step-00000004"))
        << found->directory;
    EXPECT_EQ(found->reason, "the best (it is not whole, " + whole + " is)");
  };
  expect_damaged(directory.path(), last);
  // One that was the best before it is named rather than the last.
  std::filesystem::copy(last, checkpoints + "/step-00000002",
                        std::filesystem::copy_options::recursive);
  const std::string run =
      json::parse(*ReadFile(checkpoints + "/owner.json"))["run"];
  ASSERT_TRUE(WriteSealedJson(checkpoints + "/step-00000002/evaluation.json",
                              {{"step", 2}, {"best_step", 2}})
                  .ok());
  ASSERT_TRUE(WriteCheckpointOwner({.name = "step-00000002", .run = run},
                                   checkpoints + "/step-00000002")
                  .ok());
  expect_damaged(directory.path(), checkpoints + "/step-00000002");
  // Where the file system has no links.
  std::filesystem::remove(checkpoints + "/best");
  expect_damaged(checkpoints + "/best", checkpoints + "/step-00000002");
}

// Killed, or just begun: neither it nor its seed is called something else.
TEST(FindCheckpointTest, SaysThatARunHasNoCheckpointYet) {
  TemporaryDirectory directory;
  const std::string seed = directory.File("seed-1");
  std::filesystem::create_directories(seed + "/checkpoints");
  for (const std::string& path : {directory.path(), seed}) {
    EXPECT_EQ(FindCheckpoint(path).status(),
              absl::FailedPreconditionError(path + " has no checkpoint yet"));
  }
  // Every checkpoint there is damaged.
  std::filesystem::create_directories(seed + "/checkpoints/step-00000004");
  directory.Write("seed-1/checkpoints/step-00000004/run_config.json", "{}");
  EXPECT_THAT(std::string(FindCheckpoint(directory.path()).status().message()),
              HasSubstr("step-00000004"));
  // No run at all.
  EXPECT_TRUE(
      absl::IsNotFound(FindCheckpoint(seed + "/checkpoints/other").status()));
}

// An export of one seed, or a folder beside weights.
TEST(FindCheckpointTest, TakesWeightsInADirectoryOfASeedForNoRun) {
  TemporaryDirectory directory;
  const std::string seed = directory.File("seed-1");
  std::filesystem::create_directories(seed);
  for (const char* weights :
       {"model.safetensors", "seed-1/model.safetensors"}) {
    directory.Write(weights, "");
    for (const std::string& path : {directory.path(), seed}) {
      EXPECT_TRUE(absl::IsNotFound(FindCheckpoint(path).status()))
          << FindCheckpoint(path).status();
    }
  }
  // One that has begun, and has no store yet.
  directory.Write("seed-1/lock", "");
  EXPECT_TRUE(absl::IsFailedPrecondition(FindCheckpoint(seed).status()));
}

class RunResultsTest : public ToyRunTest {
 protected:
  RunResultsTest() {
    json_["train"].erase("epochs");
    json_["train"]["steps"] = 3;
  }

  // A start with these seeds in the one output directory.
  TrainResult Train(const std::vector<int64_t>& seeds, bool resume = false) {
    json_["train"]["seeds"] = seeds;
    reporter_.messages.clear();
    const auto result = Run("run", &reporter_, resume);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.value_or(TrainResult());
  }

  json Summary() const {
    const auto text = ReadFile(Output("run/summary.json"));
    EXPECT_TRUE(text.ok()) << text.status();
    return json::parse(*text, nullptr, /*allow_exceptions=*/false);
  }
  std::vector<int64_t> Seeds() const {
    const json summary = Summary();
    std::vector<int64_t> seeds;
    for (const json& run : summary["runs"]) {
      seeds.push_back(run["seed"]);
    }
    return seeds;
  }
  // The best accuracy of each seed.
  std::vector<double> Accuracies() const {
    const json summary = Summary();
    std::vector<double> values;
    for (const json& run : summary["runs"]) {
      values.push_back(run["best"]["accuracy"]);
    }
    return values;
  }
  double Median() const { return Summary()["scores"]["accuracy"]["median"]; }

  FakeReporter reporter_;
};

TEST_F(RunResultsTest, KeepTheSeedsOfOtherStarts) {
  Train({2, 3});
  const std::vector<double> first = Accuracies();
  Train({1});
  EXPECT_THAT(Seeds(), ElementsAre(1, 2, 3));
  EXPECT_THAT(Accuracies(), ElementsAre(Accuracies()[0], first[0], first[1]));
  EXPECT_EQ(Median(), SummarizeScore("accuracy", Accuracies()).median);
  EXPECT_THAT(reporter_.messages, Contains(HasSubstr("is of 3 seeds that ")));

  // A part of them again.
  const std::string before = Summary().dump();
  EXPECT_EQ(Train({3}, /*resume=*/true).runs.size(), 1u);
  EXPECT_EQ(Summary().dump(), before);

  // A seed whose directory is gone is no longer in the summary.
  std::filesystem::remove_all(Output("run/seed-2"));
  Train({1}, /*resume=*/true);
  EXPECT_THAT(Seeds(), ElementsAre(1, 3));
}

// One that never came to a summary, as a later seed was stopped.
TEST_F(RunResultsTest, HaveASeedWhoseStartWasStoppedLater) {
  json_["train"]["seeds"] = {1, 2};
  // In the first update of the second.
  class Stopping : public FakeReporter {
   public:
    void Update(const Progress& progress) override {
      FakeReporter::Update(progress);
      stop = updates.size() == 4;
    }
  } stopping;
  ASSERT_FALSE(Run("run", &stopping)->finished);
  Train({3});
  EXPECT_THAT(Seeds(), ElementsAre(1, 3));
}

TEST_F(RunResultsTest, HaveNoScoresOverOtherSettings) {
  Train({1});
  json_["train"]["learning_rate"] = 0.5;
  const TrainResult other = Train({2});
  EXPECT_THAT(Seeds(), ElementsAre(1, 2));
  EXPECT_EQ(Median(), other.runs[0].best[0].second);
  EXPECT_TRUE(Summary()["scores"]["accuracy"]["standard_deviation"].is_null());
  EXPECT_THAT(reporter_.messages,
              Contains(AllOf(HasSubstr("without " + Output("run/seed-1")),
                             EndsWith("it had other settings"))));
  EXPECT_THAT(reporter_.messages, Not(Contains(HasSubstr("is of 2 seeds"))));
  // Nor is its checkpoint compared.
  const auto found = FindCheckpoint(Output("run"));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(found->directory, HasSubstr("seed-2"));
  EXPECT_THAT(found->reason, HasSubstr("not compared: seed-1"));
}

// A start changes nothing of a seed that has ended: it has the settings that it
// was trained with.
TEST_F(RunResultsTest, KeepTheSettingsOfSeedsThatHaveEnded) {
  Train({1});
  const auto before = ReadFile(Output("run/seed-1/result.json"));
  json_["train"]["learning_rate"] = 0.5;
  allow_changes_ = {"train.learning_rate"};
  const TrainResult both = Train({1, 2}, /*resume=*/true);
  EXPECT_EQ(*ReadFile(Output("run/seed-1/result.json")), *before);
  ASSERT_EQ(both.runs.size(), 2u);
  EXPECT_EQ(Median(), both.runs[1].best[0].second);
  EXPECT_EQ(both.scores[0].median, Median());
  EXPECT_FALSE(both.scores[0].standard_deviation.has_value());
  EXPECT_THAT(reporter_.messages,
              Contains(AllOf(HasSubstr("without " + Output("run/seed-1")),
                             EndsWith("it had other settings"))));
}

// A seed that goes on has no result until it ends again.
TEST_F(RunResultsTest, AreTakenBackFromASeedThatGoesOn) {
  Train({1, 2});
  const double of_two = Accuracies()[1];
  json_["train"]["steps"] = 6;
  allow_changes_ = {"train.steps"};
  json_["train"]["seeds"] = {1};
  FakeReporter stopping;
  stopping.stop_after = 4;
  ASSERT_FALSE(Run("run", &stopping, /*resume=*/true)->finished);
  EXPECT_FALSE(std::filesystem::exists(Output("run/seed-1/result.json")));
  EXPECT_THAT(Seeds(), ElementsAre(2));
  EXPECT_EQ(Median(), of_two);
  EXPECT_THAT(FindCheckpoint(Output("run")).status().ToString(),
              HasSubstr("does not have a finite score of each"));

  std::filesystem::remove_all(Output("run/seed-2"));
  Train({1}, /*resume=*/true);
  json_["train"]["steps"] = 9;
  FakeReporter again;
  again.stop_after = 7;
  ASSERT_FALSE(Run("run", &again, /*resume=*/true)->finished);
  EXPECT_FALSE(std::filesystem::exists(Output("run/summary.json")));
}

// A seed that was never finished takes nothing from the others.
TEST_F(RunResultsTest, KeepTheScoresOfOthersWhileANewSeedTrains) {
  Train({1, 2});
  const std::string before = Summary().dump();
  json_["train"]["seeds"] = {3};
  FakeReporter stopping;
  stopping.stop_after = 2;
  ASSERT_FALSE(Run("run", &stopping)->finished);
  EXPECT_EQ(Summary().dump(), before);
}

TEST_F(RunResultsTest, WaitForAnotherThatWrites) {
  const TrainResult one = Train({1});
  const auto config = RunConfigFromJson(json_, "toy");
  ASSERT_TRUE(config.ok()) << config.status();
  std::optional<RunLock> lock;
  {
    auto taken = RunLock::Take(Output("run"));
    ASSERT_TRUE(taken.ok()) << taken.status();
    lock.emplace(*std::move(taken));
  }
  std::thread writer([&] {
    EXPECT_TRUE(WriteSummary(OutputOf(*config), {"accuracy"}, one.runs,
                             /*settings=*/nullptr)
                    .ok());
  });
  // Time to do the wrong thing in.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  std::filesystem::create_directory(Output("run/seed-2"));
  RunResult two = one.runs[0];
  two.seed = 2;
  two.directory = Output("run/seed-2");
  EXPECT_TRUE(WriteRunResult(two, json::object()).ok());
  lock.reset();
  writer.join();
  EXPECT_THAT(Seeds(), ElementsAre(1, 2));
}

// Before anything is read or written.
TEST_F(RunResultsTest, ReplaceNoFileOfSomebodyElse) {
  std::filesystem::create_directory(Output("run"));
  json_["data"]["train"] = {Output("missing.jsonl")};
  for (const char* text :
       {"my notes", "{\"notes\": \"my own\", \"runs\": []}",
        "{\"task\": \"toy\", \"main_metric\": \"f1\", \"runs\": {}}"}) {
    temporary_.Write("run/summary.json", text);
    for (const bool overwrite : {false, true}) {
      overwrite_ = overwrite;
      const absl::Status status = Run("run", &reporter_).status();
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
      EXPECT_THAT(std::string(status.message()),
                  AllOf(HasSubstr(Output("run/summary.json should ")),
                        HasSubstr("move it away")));
      EXPECT_EQ(*ReadFile(Output("run/summary.json")), text);
      EXPECT_FALSE(std::filesystem::exists(Output("run/seed-1")));
    }
  }
}

TEST_F(RunResultsTest, NameAFileThatIsDamaged) {
  const TrainResult one = Train({1});
  const auto config = RunConfigFromJson(json_, "toy");
  ASSERT_TRUE(config.ok()) << config.status();
  for (const char* file : {"run/summary.json", "run/seed-1/result.json"}) {
    const std::string too_deep = R"({"seed": 1, "best": {}, "settings": )" +
                                 std::string(200000, '[') +
                                 std::string(200000, ']') + "}";
    for (const std::string& text :
         {std::string(), std::string("{\"seed\": 1"), std::string("[1]"),
          std::string(R"({"seed": 1, "best": {}})"), too_deep}) {
      const std::string before = *ReadFile(Output(file));
      temporary_.Write(file, text);
      const absl::Status status =
          WriteSummary(OutputOf(*config), {"accuracy"}, one.runs,
                       /*settings=*/nullptr)
              .status();
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(Output(file)));
      EXPECT_EQ(*ReadFile(Output(file)), text);
      temporary_.Write(file, before);
    }
  }
}

}  // namespace
}  // namespace etc
