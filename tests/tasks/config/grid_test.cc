// The grid of a configuration: which settings it stands for, in which order and
// under which names, and that a mistake in any of its values is said with the
// field and the file.
#include "tasks/config/grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

json Config(const json& grid) {
  return {{"task", "wikihop"},
          {"model", {{"preset", "base"}}},
          {"train", {{"epochs", 7}, {"seeds", {1, 2}}}},
          {"grid", grid},
          {"output", "runs/x"}};
}

absl::StatusOr<std::vector<GridSetting>> Expand(const json& config) {
  const auto read = RunConfigFromJson(config, "run.json");
  if (!read.ok()) {
    return read.status();
  }
  return ExpandGrid(*read);
}

std::vector<std::string> Names(const json& grid) {
  const auto settings = Expand(Config(grid));
  EXPECT_TRUE(settings.ok()) << settings.status();
  std::vector<std::string> names;
  for (const GridSetting& setting : *settings) {
    names.push_back(setting.name);
  }
  return names;
}

std::string Error(const json& grid) {
  const auto settings = Expand(Config(grid));
  EXPECT_EQ(settings.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(settings.status().message());
}

TEST(GridTest, IsEachCombinationInTheOrderOfItsValues) {
  const auto settings = Expand(Config(
      {{"train.learning_rate", {3e-5, 2e-5}}, {"train.epochs", {4, 2}}}));
  ASSERT_TRUE(settings.ok()) << settings.status();
  ASSERT_EQ(settings->size(), 4u);
  const std::vector<std::pair<double, double>> expected = {
      {4, 3e-5}, {4, 2e-5}, {2, 3e-5}, {2, 2e-5}};
  for (size_t i = 0; i < expected.size(); ++i) {
    const GridSetting& setting = (*settings)[i];
    EXPECT_EQ(setting.config.train.epochs, expected[i].first);
    EXPECT_EQ(setting.config.train.learning_rate, expected[i].second);
    EXPECT_THAT(setting.config.train.seeds, ElementsAre(1, 2));
    EXPECT_EQ(setting.values["train.epochs"], expected[i].first);
    // Equal to a configuration of its own, also in its checkpoints.
    EXPECT_EQ(setting.config.output, "runs/x/" + setting.name);
    EXPECT_EQ(setting.config.json["output"], setting.config.output);
    EXPECT_FALSE(setting.config.json.contains("grid"));
    EXPECT_TRUE(setting.config.grid.empty());
  }
  EXPECT_EQ(settings->front().name, "train.epochs=4,train.learning_rate=3e-05");
}

TEST(GridTest, IsTheConfigurationAloneWithoutFields) {
  for (const bool has_grid : {true, false}) {
    json config = Config(json::object());
    if (!has_grid) {
      config.erase("grid");
    }
    const auto settings = Expand(config);
    ASSERT_TRUE(settings.ok()) << settings.status();
    ASSERT_EQ(settings->size(), 1u);
    EXPECT_EQ(settings->front().name, "");
    EXPECT_EQ(settings->front().config.output, "runs/x");
    EXPECT_EQ(settings->front().config.train.epochs, 7);
  }
}

// However a number is written, and whatever else changes in the grid, a setting
// keeps its directory.
TEST(GridTest, GivesStableNamesThatAreFileNames) {
  EXPECT_THAT(
      Names({{"train.learning_rate", {0.00002, 1e-4, 1}}}),
      ElementsAre("train.learning_rate=2e-05", "train.learning_rate=0.0001",
                  "train.learning_rate=1"));
  EXPECT_THAT(Names({{"train.epochs", {3.0, 2.5}}}),
              ElementsAre("train.epochs=3", "train.epochs=2.5"));
  EXPECT_THAT(
      Names({{"residual_attention", {"off", "sum"}},
             {"train.shard_optimizer", false}}),
      ElementsAre("residual_attention=off,train.shard_optimizer=false",
                  "residual_attention=sum,train.shard_optimizer=false"));
  EXPECT_THAT(Names({{"data.train", {{"a/b.json", "c d"}, "e,f=%"}}}),
              ElementsAre("data.train=%5B%22a%2Fb.json%22%2C%22c%20d%22%5D",
                          "data.train=e%2Cf%3D%25"));
}

TEST(GridTest, ReachesEveryFieldThatHasAName) {
  const auto settings = Expand(Config({{"model.num_hidden_layers", {2, 3}},
                                       {"wikihop.label_smoothing", 0.1},
                                       {"optimizer.type", "lamb"},
                                       {"train.steps", 5}}));
  ASSERT_TRUE(settings.ok()) << settings.status();
  const RunConfig& config = settings->back().config;
  EXPECT_EQ(config.model.num_hidden_layers, 3);
  EXPECT_EQ(config.model.hidden_size, 768);
  EXPECT_EQ(config.task_options["label_smoothing"], 0.1);
  EXPECT_EQ(config.optimizer.type, "lamb");
  EXPECT_EQ(config.train.steps, 5);
  EXPECT_EQ(config.train.epochs, 7);
}

TEST(GridTest, IsSetOnTheCommandLine) {
  TemporaryDirectory directory;
  const std::string path = directory.Write(
      "run.json",
      Config({{"train.epochs", {2, 3}}, {"train.steps", {9}}}).dump());
  const auto added = ReadRunConfig(
      path, {"grid.train.learning_rate=[1e-5, 2e-5]", "grid.train.epochs=4"});
  ASSERT_TRUE(added.ok()) << added.status();
  EXPECT_EQ(added->grid, json({{"train.epochs", {4}},
                               {"train.learning_rate", {1e-5, 2e-5}},
                               {"train.steps", {9}}}));
  const auto replaced = ReadRunConfig(path, {R"(grid={"data.workers": [1]})"});
  ASSERT_TRUE(replaced.ok()) << replaced.status();
  EXPECT_EQ(replaced->grid, json({{"data.workers", {1}}}));
  const auto none = ReadRunConfig(path, {"grid={}"});
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_TRUE(none->grid.empty());
}

// The last of many values is looked at too.
TEST(GridTest, ChecksEveryValueAsItsFieldDoes) {
  EXPECT_EQ(Error({{"train.epochs", {1, 2, 0}}, {"train.steps", {4, 5}}}),
            "run.json (train.epochs=0, train.steps=4 of its grid): "
            "train.epochs should be more than 0, but is 0");
  EXPECT_THAT(Error({{"train.learning_rte", {1e-5}}}),
              HasSubstr("train has no field \"learning_rte\"; did you mean "
                        "\"learning_rate\"?"));
  EXPECT_THAT(Error({{"trian.epochs", {1}}}),
              HasSubstr("\"trian\"; did you mean \"train\"?"));
  EXPECT_THAT(Error({{"train.learning_rate", {1e-5, "fast"}}}),
              HasSubstr("train.learning_rate should be a number, but is "
                        "\"fast\""));
  EXPECT_THAT(Error({{"task.name", {1}}}), HasSubstr("no object"));
  // Fields together.
  EXPECT_THAT(
      Error({{"train.batch_size", {8, 2}}, {"train.micro_batch_size", {1, 4}}}),
      AllOf(HasSubstr("train.batch_size=2, train.micro_batch_size=4"),
            HasSubstr("at most batch_size (2)")));
}

TEST(GridTest, SaysWhatAGridMayNotBe) {
  const auto expect = [](const json& grid, const std::string& message) {
    EXPECT_EQ(Error(grid), "run.json: grid" + message);
  };
  expect(3, " should be an object, but is 3");
  expect({{"train.epochs", json::array()}},
         ".train.epochs should have at least one value, but is empty");
  expect({{"train.epochs", {2, 3, 2.0}}},
         ".train.epochs should have each value once, but has 2.0 twice");
  expect({{"train.epochs", nullptr}},
         ".train.epochs should be a list of values, but is null");
  expect({{"train", {{"epochs", {2, 3}}}}},
         ".train should be a list of values, but is an object");
  expect({{"train", {{{"epochs", 2}}}}},
         ".train should be a list of values, but has an object in it; name the "
         "fields of that, as in train.epochs");
  expect({{"output", {"a", "b"}}},
         ".output should not be given: each setting has a directory of its own "
         "in it");
  expect({{"grid", {1}}},
         ".grid should not be given: a grid has no grids in it");
  expect({{"task", {"wikihop", "nq"}}},
         ".task should not be given: settings are compared by the metric of "
         "one task");
  expect({{"train.seeds", {{1}, {2}}}},
         ".train.seeds should not be given: each setting is trained with all "
         "seeds");
}

TEST(GridTest, HasBounds) {
  std::vector<int> many(101);
  for (size_t i = 0; i < many.size(); ++i) {
    many[i] = static_cast<int>(i) + 1;
  }
  EXPECT_EQ(Error({{"train.steps", many}, {"train.epochs", many}}),
            "run.json: grid should have at most 10000 settings, but has more");
  EXPECT_THAT(Error({{"data.sentences", std::string(250, 'x')}}),
              HasSubstr("would have a name of 265 bytes; a file has at most "
                        "255"));
}

}  // namespace
}  // namespace etc
