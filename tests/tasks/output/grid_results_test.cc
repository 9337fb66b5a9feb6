// Reports of the settings of a grid: the best one, the table, and grid.json,
// also beside results of settings that have gone on since.
#include "tasks/output/grid_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "nlohmann/json.hpp"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using nlohmann::json;

SettingResult Setting(double epochs, std::optional<double> median,
                      std::optional<double> deviation = std::nullopt) {
  SettingResult setting = {
      .name = "train.epochs=" + std::to_string(static_cast<int>(epochs)),
      .values = {{"train.epochs", epochs}}};
  if (median.has_value()) {
    setting.result = {
        .finished = true,
        .scores = {{"f1", 0.25, deviation}, {"accuracy", *median, deviation}}};
  }
  return setting;
}

TEST(GridResultTest, TakesTheFirstOfEquallyGoodSettings) {
  GridResult grid = {.main_metric = "accuracy",
                     .settings = {Setting(1, std::nullopt), Setting(2, -0.5)}};
  EXPECT_EQ(BestSetting(grid), 1u);
  grid.settings.push_back(Setting(3, 0.75));
  grid.settings.push_back(Setting(4, 0.75));
  EXPECT_EQ(BestSetting(grid), 2u);
  EXPECT_EQ(FormatGridTable(grid),
            "train.epochs      accuracy\n"
            "           1  not finished\n"
            "           2       -0.5000\n"
            "           3        0.7500  best\n"
            "           4        0.7500  equal\n");
  grid.main_metric = "em";
  EXPECT_EQ(BestSetting(grid), std::nullopt);
}

TEST(GridResultTest, TakesTheLowestWhereLowerIsBetter) {
  GridResult grid = {.main_metric = "loss", .lower_is_better = true};
  for (const double loss : {2.0, 1.0, 3.0}) {
    grid.settings.emplace_back().result.scores = {{"loss", loss, {}}};
  }
  EXPECT_EQ(BestSetting(grid), 1u);
  EXPECT_EQ(GridToJson(grid, "glue")["main_metric_direction"], "min");
  grid.lower_is_better = false;
  EXPECT_EQ(BestSetting(grid), 2u);
  EXPECT_FALSE(GridToJson(grid, "glue").contains("main_metric_direction"));
}

TEST(GridResultTest, HasATableOfAllSettings) {
  GridResult grid = {
      .main_metric = "accuracy",
      .settings = {Setting(2, 0.75, 0.125), Setting(10, 0.875, 0.0625),
                   Setting(20, std::nullopt)}};
  grid.settings[2].values["train.learning_rate"] = 2e-5;
  for (SettingResult& setting : grid.settings) {
    setting.values["train.learning_rate"] = 2e-5;
  }
  EXPECT_EQ(FormatGridTable(grid),
            "train.epochs  train.learning_rate      accuracy  deviation\n"
            "           2                2e-05        0.7500     0.1250\n"
            "          10                2e-05        0.8750     0.0625  best\n"
            "          20                2e-05  not finished           \n");
  grid.settings[2].diverged = "the loss of update 3 is nan";
  EXPECT_EQ(FormatGridTable(grid),
            "train.epochs  train.learning_rate  accuracy  deviation\n"
            "           2                2e-05    0.7500     0.1250\n"
            "          10                2e-05    0.8750     0.0625  best\n"
            "          20                2e-05  diverged           \n");
  // One seed; never evaluated.
  grid.settings = {Setting(2, 0.75), Setting(3, 0.5)};
  grid.settings[1].result.scores.clear();
  EXPECT_EQ(FormatGridTable(grid),
            "train.epochs  accuracy\n"
            "           2    0.7500  best\n"
            "           3  no score\n");
}

TEST(GridResultTest, HasAllScoresInJson) {
  const GridResult grid = {
      .main_metric = "accuracy",
      .settings = {Setting(2, 0.75, 0.125), Setting(3, std::nullopt)}};
  EXPECT_EQ(json::parse(GridToJson(grid, "toy").dump()), json::parse(R"({
    "task": "toy", "main_metric": "accuracy", "finished": false,
    "best": "train.epochs=2",
    "settings": [
      {"values": {"train.epochs": 2.0}, "directory": "train.epochs=2",
       "scores": {"f1": {"median": 0.25, "standard_deviation": 0.125},
                  "accuracy": {"median": 0.75,
                               "standard_deviation": 0.125}}},
      {"values": {"train.epochs": 3.0}, "directory": "train.epochs=3",
       "scores": null}]})"));
  GridResult diverged = grid;
  diverged.settings[1].diverged = "the loss of update 3 is nan";
  EXPECT_EQ(json::parse(GridToJson(diverged, "toy")["settings"][1].dump()),
            json::parse(R"({
    "values": {"train.epochs": 3.0}, "directory": "train.epochs=3",
    "scores": null, "diverged": "the loss of update 3 is nan"})"));
  const GridResult none = {.main_metric = "accuracy",
                           .settings = {Setting(3, std::nullopt)}};
  EXPECT_TRUE(GridToJson(none, "toy")["best"].is_null());
}

// The directory of a grid with two settings.
class GridFileTest : public testing::Test {
 protected:
  // Writes the summary of a setting; without a score removes it.
  void Summarize(int epochs, std::optional<double> accuracy) {
    const std::string name = "train.epochs=" + std::to_string(epochs);
    std::filesystem::create_directories(directory_.File(name));
    if (!accuracy.has_value()) {
      std::filesystem::remove(directory_.File(name + "/summary.json"));
      return;
    }
    const json run = {{"seed", 1}, {"best", {{"accuracy", *accuracy}}}};
    directory_.Write(name + "/summary.json",
                     json{{"task", "toy"},
                          {"options", json::object()},
                          {"main_metric", "accuracy"},
                          {"scores", {{"accuracy", {{"median", *accuracy}}}}},
                          {"runs", json::array({run})}}
                         .dump());
  }

  // Writes grid.json of a start that has come to `settings`, and returns it.
  json WriteGrid(std::vector<SettingResult> settings,
                 EarlierScores earlier_scores) {
    const auto written = WriteGridFile({.directory = directory_.path(),
                                        .task = "toy",
                                        .task_options = {},
                                        .seeds = {1},
                                        .has_same_settings = {}},
                                       {.finished = true,
                                        .main_metric = "accuracy",
                                        .lower_is_better = lower_is_better_,
                                        .settings = std::move(settings)},
                                       earlier_scores);
    EXPECT_TRUE(written.ok()) << written.status();
    return json::parse(*ReadFile(directory_.File("grid.json")));
  }

  std::string Reason() const {
    const auto found = FindRun(directory_.path());
    return found.ok() ? found->directory + ": " + found->reason
                      : std::string(found.status().message());
  }

  TemporaryDirectory directory_;
  bool lower_is_better_ = false;
};

TEST_F(GridFileTest, StandsForTheLowestWhereLowerIsBetter) {
  lower_is_better_ = true;
  Summarize(2, 0.75);
  Summarize(3, 0.25);
  Summarize(4, 0.5);
  const json grid =
      WriteGrid({Setting(2, 0.75), Setting(3, 0.25), Setting(4, 0.5)},
                EarlierScores::kKept);
  EXPECT_EQ(grid["main_metric_direction"], "min");
  EXPECT_EQ(grid["best"], "train.epochs=3");
  EXPECT_EQ(Reason(), directory_.File("train.epochs=3") +
                          ": the best of 3 settings, median accuracy 0.2500");
}

TEST_F(GridFileTest, StandsForTheBestSettingAsItIsNow) {
  Summarize(2, 0.75);
  Summarize(3, 0.25);
  WriteGrid({Setting(2, 0.75), Setting(3, 0.25)}, EarlierScores::kKept);
  EXPECT_EQ(Reason(), directory_.File("train.epochs=2") +
                          ": the best of 2 settings, median accuracy 0.7500");
  // It has gone on alone.
  Summarize(3, 1.0);
  EXPECT_EQ(Reason(), directory_.File("train.epochs=3") +
                          ": the best of 2 settings, median accuracy 1.0000");
  // It goes on, and has no result until it ends.
  Summarize(3, std::nullopt);
  EXPECT_EQ(Reason(), directory_.File("train.epochs=2") +
                          ": the best of the 1 finished of 2 settings, median "
                          "accuracy 0.7500");
  Summarize(2, std::nullopt);
  EXPECT_THAT(Reason(), testing::HasSubstr("no setting has scores yet"));
}

TEST_F(GridFileTest, IsFinishedWhenADivergedSettingWasRetried) {
  Summarize(2, 0.25);
  Summarize(3, std::nullopt);
  SettingResult diverged = Setting(3, std::nullopt);
  diverged.diverged = "the loss of update 3 is nan";
  const auto finished = [&](const SettingResult& setting) {
    const json grid =
        WriteGrid({Setting(2, 0.25), setting}, EarlierScores::kKept);
    EXPECT_EQ(grid["settings"][1]["diverged"], diverged.diverged);
    return grid["finished"].get<bool>();
  };
  EXPECT_TRUE(finished(diverged));
  EXPECT_FALSE(finished(Setting(3, std::nullopt))) << "the retry was stopped";
  EXPECT_TRUE(finished(diverged));
  // A start without this setting.
  EXPECT_EQ(WriteGrid({Setting(2, 0.25)}, EarlierScores::kKept)["finished"],
            true);
}

TEST_F(GridFileTest, WithdrawsScoresThatMayBeOfOtherData) {
  Summarize(2, 0.25);
  Summarize(3, 0.75);
  const SettingResult to_come = Setting(3, std::nullopt);
  const json kept =
      WriteGrid({Setting(2, 0.25), to_come}, EarlierScores::kKept);
  EXPECT_EQ(kept["finished"], true);
  EXPECT_EQ(kept["best"], "train.epochs=3");
  const json withdrawn =
      WriteGrid({Setting(2, 0.25), to_come}, EarlierScores::kWithdrawn);
  EXPECT_EQ(withdrawn["finished"], false);
  EXPECT_EQ(withdrawn["best"], "train.epochs=2");
  EXPECT_TRUE(withdrawn["settings"][1]["scores"].is_null());
  EXPECT_EQ(Reason(), directory_.File("train.epochs=2") +
                          ": the best of the 1 finished of 2 settings, median "
                          "accuracy 0.2500");
  EXPECT_EQ(WriteGrid({Setting(2, 0.25), Setting(3, 0.75)},
                      EarlierScores::kWithdrawn),
            kept);
}

}  // namespace
}  // namespace etc
