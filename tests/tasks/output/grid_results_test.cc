// Reports of the settings of a grid: the best one, the table, and grid.json.
#include "tasks/output/grid_results.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "nlohmann/json.hpp"

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

}  // namespace
}  // namespace etc
