// Grids of 2 x 2 settings with 2 seeds each, on a model that trains in a
// second: one that is stopped in a run in its middle and resumed has the bits
// of one that was left alone, and each of its settings those of a run without
// grid; what was added is run and nothing twice, by one process and by two; one
// that diverges keeps no other from its scores; all mistakes are found before
// the first update.
#include "tasks/runs/grid_run.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tasks/distributed/process_group.h"
#include "tasks/output/find_checkpoint.h"
#include "tests/support/realetc_program.h"
#include "tests/tasks/distributed/forked_processes.h"
#include "tests/tasks/train/toy_run.h"

namespace etc {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

// Stops after so many updates of all runs.
class GridReporter : public FakeReporter {
 public:
  explicit GridReporter(size_t stop_after_updates = 0)
      : stop_after_updates_(stop_after_updates) {}
  void Update(const Progress& progress) override {
    FakeReporter::Update(progress);
    if (updates.size() == stop_after_updates_) {
      stop = true;
    }
  }

 private:
  const size_t stop_after_updates_;
};

constexpr size_t kAllUpdates = 2 * (4 + 6) * 2;
// In the second seed of the second setting, after its third update.
constexpr size_t kUpdatesToStop = 2 * 4 + 6 + 3;
constexpr char kDiverged[] = "the weights' norm after update 1 is inf";

class GridRunTest : public RealetcTest {
 protected:
  GridRunTest() {
    at::set_num_threads(1);  // before a fork
    json_ = Config();
    json_["model"]["hidden_dropout_prob"] = 0.1;
    json_["train"].erase("steps");
    json_["train"]["evaluate_every"] = 2;
    json_["train"]["seeds"] = {1, 2};
    json_["grid"] = {{"train.learning_rate", {0.01, 0.02}},
                     {"train.steps", {4, 6}}};
  }

  std::string Output(const std::string& name) const {
    return directory_.File(name);
  }

  absl::StatusOr<GridResult> Train(const std::string& name,
                                   FakeReporter* reporter, bool resume = false,
                                   ProcessGroup* group = nullptr) {
    json_["output"] = Output(name);
    const auto config = RunConfigFromJson(json_, "run.json");
    if (!config.ok()) {
      return config.status();
    }
    return TrainGrid(
        *config,
        {.earlier = resume ? resumption_ : EarlierRun::kRefuse,
         .allow_changes = allow_changes_,
         .context = {
             .reporter = reporter, .stop = &reporter->stop, .group = group}});
  }

  // A whole one; returns how many updates it made.
  size_t TrainAll(const std::string& name, bool resume = false) {
    GridReporter reporter;
    const auto grid = Train(name, &reporter, resume);
    EXPECT_TRUE(grid.ok()) << grid.status();
    EXPECT_TRUE(grid.ok() && grid->finished);
    return reporter.updates.size();
  }

  // Expects each update to know what comes after its run. `left`: updates of
  // all runs that the start has to make.
  static void ExpectTimesOfAll(const GridReporter& reporter, size_t left) {
    auto later = static_cast<int64_t>(left);
    int64_t previous = std::numeric_limits<int64_t>::max();
    for (const Progress& progress : reporter.updates) {
      const bool is_first = progress.step <= previous;
      later -= is_first ? progress.num_steps - progress.step + 1 : 0;
      previous = progress.step;
      EXPECT_EQ(progress.later_steps, later);
      EXPECT_EQ(progress.seconds_left_in_all > progress.seconds_left,
                later > 0);
    }
  }

  // Settings the second of which diverges.
  void SetDivergingGrid() {
    json_["grid"] = {{"train.learning_rate", {0.01, 1e30, 0.02}},
                     {"train.steps", {4}}};
  }

  // Reads the grid's record of that setting.
  json ReadDiverged(const std::string& name) const {
    const json grid = json::parse(Contents(Output(name) + "/grid.json"));
    EXPECT_EQ(grid["finished"], true);
    for (const size_t i : {0u, 2u}) {
      EXPECT_TRUE(grid["settings"][i]["scores"]["accuracy"].is_object());
      EXPECT_FALSE(grid["settings"][i].contains("diverged"));
    }
    EXPECT_TRUE(grid["settings"][1]["scores"].is_null());
    return grid["settings"][1]["diverged"];
  }

  // The same by two processes, the first of which stops.
  void TrainWithTwo(const std::string& name, bool resume,
                    size_t stop_after_updates) {
    ExpectProcesses(2, [&](const ProcessPlace& place) {
      auto group = ProcessGroup::Join(place, absl::Seconds(kSecondsToHang));
      ASSERT_TRUE(group.ok()) << group.status();
      GridReporter reporter(place.rank == 0 ? stop_after_updates : 0);
      const auto grid = Train(name, &reporter, resume, group->get());
      (*group)->Leave(grid.status());
      ASSERT_TRUE(grid.ok()) << grid.status();
      EXPECT_EQ(grid->finished, stop_after_updates == 0);
    });
  }

  void ExpectSameGrid(const std::string& name, const std::string& expected) {
    for (const char* setting : {"train.learning_rate=0.01,train.steps=4",
                                "train.learning_rate=0.01,train.steps=6",
                                "train.learning_rate=0.02,train.steps=4",
                                "train.learning_rate=0.02,train.steps=6"}) {
      for (const char* seed : {"/seed-1", "/seed-2"}) {
        const std::string run = absl::StrCat("/", setting, seed);
        SCOPED_TRACE(run);
        ExpectSameRun(Output(name) + run, Output(expected) + run);
      }
    }
    EXPECT_EQ(Contents(Output(name) + "/grid.json"),
              Contents(Output(expected) + "/grid.json"));
  }

  // Expects a grid to be refused before it writes anything.
  void ExpectRefused(const json& fields, const std::string& message) {
    json_["grid"] = fields;
    GridReporter reporter;
    const auto grid = Train("refused", &reporter);
    EXPECT_THAT(std::string(grid.status().message()), HasSubstr(message));
    EXPECT_THAT(reporter.updates, IsEmpty());
    EXPECT_FALSE(std::filesystem::exists(Output("refused")));
  }

  json json_;
  EarlierRun resumption_ = EarlierRun::kResume;
  std::vector<std::string> allow_changes_;
};

// First: a process that is forked should have no threads yet.
TEST_F(GridRunTest, IsRunByProcessesTogether) {
  TrainWithTwo("whole", /*resume=*/false, 0);
  TrainWithTwo("stopped", /*resume=*/false, kUpdatesToStop);
  TrainWithTwo("stopped", /*resume=*/true, 0);
  ExpectSameGrid("stopped", "whole");
}

// One command for each start of a job, as launchers and schedulers repeat it.
TEST_F(GridRunTest, BeginsOrGoesOnInProcessesAlike) {
  resumption_ = EarlierRun::kResumeOrBegin;
  TrainWithTwo("restarted", /*resume=*/true, kUpdatesToStop);
  TrainWithTwo("restarted", /*resume=*/true, 0);
  TrainWithTwo("restarted", /*resume=*/true, 0);
  TrainWithTwo("whole", /*resume=*/false, 0);
  ExpectSameGrid("restarted", "whole");
}

TEST_F(GridRunTest, GoesOnWithNoScheduleThatNoRunBeginsWith) {
  json_.erase("grid");
  json_["train"]["steps"] = 2;
  TrainAll("run");
  json_["schedule"] = {{"type", "poly"}, {"min_learning_rate", 1e-6}};
  allow_changes_ = {"schedule"};
  GridReporter reporter;
  EXPECT_THAT(
      std::string(Train("run", &reporter, /*resume=*/true).status().message()),
      HasSubstr("schedule.min_learning_rate"));
}

TEST_F(GridRunTest, IsRefusedToProcessesThatHaveOthers) {
  ExpectProcesses(2, [&](const ProcessPlace& place) {
    auto group = ProcessGroup::Join(place, absl::Seconds(kSecondsToHang));
    ASSERT_TRUE(group.ok()) << group.status();
    if (place.rank == 1) {
      json_["grid"]["train.steps"] = {4};
    }
    GridReporter reporter;
    const auto grid =
        Train("differ", &reporter, /*resume=*/false, group->get());
    (*group)->Leave(grid.status());
    EXPECT_TRUE(absl::IsFailedPrecondition(grid.status())) << grid.status();
    EXPECT_THAT(std::string(grid.status().message()), HasSubstr("grid is {"));
  });
  EXPECT_FALSE(std::filesystem::exists(Output("differ")));
}

TEST_F(GridRunTest, GoesOnInAllProcessesWithoutOneThatDiverges) {
  SetDivergingGrid();
  TrainWithTwo("grid", /*resume=*/false, 0);
  EXPECT_THAT(ReadDiverged("grid"), HasSubstr(kDiverged));
}

TEST_F(GridRunTest, GoesOnToTheBitsOfOneThatWasNotStopped) {
  GridReporter whole;
  ASSERT_TRUE(Train("whole", &whole)->finished);
  EXPECT_EQ(whole.updates.size(), kAllUpdates);
  ExpectTimesOfAll(whole, kAllUpdates);

  GridReporter reporter(kUpdatesToStop);
  const auto stopped = Train("stopped", &reporter);
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_FALSE(stopped->finished);
  ExpectTimesOfAll(reporter, kAllUpdates);
  EXPECT_THAT(reporter.messages,
              AllOf(Contains("setting 1 of 4: train.learning_rate=0.01,"
                             "train.steps=4"),
                    Contains(StartsWith("setting 2 of 4: ")),
                    Contains(StartsWith("stopped after 3 of 6 updates"))));
  const json so_far = json::parse(Contents(Output("stopped/grid.json")));
  EXPECT_EQ(so_far["finished"], false);
  EXPECT_EQ(so_far["settings"].size(), 4u);
  EXPECT_FALSE(so_far["settings"][0]["scores"].is_null());
  EXPECT_TRUE(so_far["settings"][1]["scores"].is_null());
  const auto best = FindCheckpoint(Output("stopped"));
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_THAT(best->reason,
              HasSubstr(", in the best of the 1 finished of 4 settings, median "
                        "accuracy "));

  // Updates of earlier starts do not count.
  constexpr size_t kUpdatesLeft = kAllUpdates - kUpdatesToStop;
  GridReporter rest;
  ASSERT_TRUE(Train("stopped", &rest, /*resume=*/true)->finished);
  ASSERT_EQ(rest.updates.size(), kUpdatesLeft);
  ExpectTimesOfAll(rest, kUpdatesLeft);
  EXPECT_EQ(rest.updates.back().later_steps, 0);
  ExpectSameGrid("stopped", "whole");
  EXPECT_EQ(TrainAll("stopped", /*resume=*/true), 0u);

  // A setting is a run like any other.
  json_.erase("grid");
  json_["train"]["learning_rate"] = 0.02;
  json_["train"]["steps"] = 4;
  EXPECT_EQ(TrainAll("alone"), 8u);
  const std::string setting = "whole/train.learning_rate=0.02,train.steps=4";
  for (const char* seed : {"/seed-1", "/seed-2"}) {
    ExpectSameRun(Output("alone") + seed, Output(setting) + seed);
  }
  const std::string resumed = Output(setting);
  std::filesystem::rename(resumed, Output("moved"));
  EXPECT_EQ(TrainAll("moved", /*resume=*/true), 0u);
}

TEST_F(GridRunTest, RunsWhatWasAddedAndNothingTwice) {
  EXPECT_EQ(TrainAll("grid"), kAllUpdates);
  json_["grid"]["train.learning_rate"] = {0.005, 0.01, 0.02};

  // The bits of the finished ones would be those of other settings.
  json_["train"]["batch_size"] = 4;
  GridReporter reporter;
  const auto changed = Train("grid", &reporter, /*resume=*/true);
  EXPECT_EQ(changed.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(changed.status().message()),
              AllOf(StartsWith("setting train.learning_rate=0.01,"),
                    HasSubstr("another train.batch_size")));
  EXPECT_THAT(reporter.updates, IsEmpty());

  json_["train"]["batch_size"] = 3;
  EXPECT_EQ(TrainAll("grid", /*resume=*/true), 2u * (4 + 6));
  const json grid = json::parse(Contents(Output("grid/grid.json")));
  ASSERT_EQ(grid["settings"].size(), 6u);
  EXPECT_EQ(grid["settings"][0]["values"]["train.learning_rate"], 0.005);
  for (const json& setting : grid["settings"]) {
    EXPECT_TRUE(setting["scores"]["accuracy"]["median"].is_number());
  }
}

// Stops it at the second of its finished settings, before that is looked at.
TEST_F(GridRunTest, LosesNoScoreWhenAResumedOneIsStopped) {
  TrainAll("grid");
  const std::string before = Contents(Output("grid/grid.json"));
  const std::string best = FindCheckpoint(Output("grid"))->directory;
  class Stopping : public FakeReporter {
   public:
    void Message(absl::string_view text) override {
      FakeReporter::Message(text);
      stop = stop || absl::StartsWith(text, "setting 2 of 4");
    }
  } reporter;
  const auto stopped = Train("grid", &reporter, /*resume=*/true);
  EXPECT_THAT(reporter.messages, Not(Contains(StartsWith("setting 4 of 4"))));
  EXPECT_TRUE(stopped.ok() ? !stopped->finished
                           : absl::IsCancelled(stopped.status()))
      << stopped.status();
  EXPECT_EQ(Contents(Output("grid/grid.json")), before);
  EXPECT_EQ(FindCheckpoint(Output("grid"))->directory, best);
}

// As of a run alone: whoever starts it again does so with --resume.
TEST_F(GridRunTest, IsResumedAfterAStopWhileItReadItsData) {
  FakeReporter reporter;
  reporter.stop = true;
  const absl::Status stopped = Train("grid", &reporter).status();
  EXPECT_TRUE(absl::IsCancelled(stopped)) << stopped;
  EXPECT_THAT(std::string(stopped.message()), HasSubstr("reading of the data"));
  EXPECT_EQ(TrainAll("grid", /*resume=*/true), kAllUpdates);
}

// With more updates: the first of two settings has them, the second goes on.
TEST_F(GridRunTest, WithdrawsTheScoresOfSettingsThatGoOn) {
  json_["grid"] = {{"train.learning_rate", {0.01, 0.02}}};
  json_["train"]["steps"] = 2;
  TrainAll("grid");
  json_["train"]["steps"] = 4;
  allow_changes_ = {"train.steps"};
  GridReporter reporter(2 * 2 + 1);
  const auto stopped = Train("grid", &reporter, /*resume=*/true);
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_FALSE(stopped->finished);
  const json grid = json::parse(Contents(Output("grid/grid.json")));
  EXPECT_EQ(grid["finished"], false);
  EXPECT_EQ(grid["best"], "train.learning_rate=0.01");
  EXPECT_FALSE(grid["settings"][0]["scores"].is_null());
  EXPECT_TRUE(grid["settings"][1]["scores"].is_null());
  EXPECT_THAT(FindCheckpoint(Output("grid"))->reason,
              HasSubstr("the best of the 1 finished of 2 settings"));

  EXPECT_EQ(TrainAll("grid", /*resume=*/true), 3u);
  const json whole = json::parse(Contents(Output("grid/grid.json")));
  EXPECT_EQ(whole["finished"], true);
  EXPECT_FALSE(whole["settings"][1]["scores"].is_null());
}

// A part of the grid, and other values in the same directory.
TEST_F(GridRunTest, DescribesAllThatItsDirectoryHas) {
  TrainAll("grid");
  const json before = json::parse(Contents(Output("grid/grid.json")));
  json_["grid"] = {{"train.learning_rate", {0.01}}, {"train.steps", {6}}};
  GridReporter reporter;
  EXPECT_TRUE(Train("grid", &reporter, /*resume=*/true).ok());
  EXPECT_THAT(reporter.messages,
              Contains(Output("grid") +
                       "/grid.json also has 3 settings of earlier grids there, "
                       "which may be better"));
  const auto settings = [&] {
    const json grid = json::parse(Contents(Output("grid/grid.json")));
    std::set<json> all;
    for (const json& setting : grid["settings"]) {
      all.insert(setting);
    }
    return all;
  };
  EXPECT_EQ(settings(), std::set<json>(before["settings"].begin(),
                                       before["settings"].end()));
  EXPECT_EQ(json::parse(Contents(Output("grid/grid.json")))["best"],
            before["best"]);

  // A run with another seed adds its scores to those that are there.
  json_["train"]["seeds"] = {3};
  EXPECT_EQ(TrainAll("grid", /*resume=*/true), 6u);
  const json summary = json::parse(Contents(
      Output("grid/train.learning_rate=0.01,train.steps=6/summary.json")));
  EXPECT_EQ(summary["runs"].size(), 3u);
  EXPECT_EQ(
      json::parse(Contents(Output("grid/grid.json")))["settings"][1]["scores"],
      summary["scores"]);

  // One that is no longer there.
  std::filesystem::remove_all(
      Output("grid/train.learning_rate=0.02,train.steps=4"));
  TrainAll("grid", /*resume=*/true);
  EXPECT_EQ(settings().size(), 3u);
}

TEST_F(GridRunTest, IsRefusedWhereGridJsonIsOfAnother) {
  json_["grid"] = {{"train.steps", {1}}};
  TrainAll("grid");
  const std::string path = Output("grid/grid.json");
  const auto refused = [&](const std::string& text) {
    directory_.Write("grid/grid.json", text);
    GridReporter reporter;
    const auto grid = Train("grid", &reporter, /*resume=*/true);
    EXPECT_FALSE(grid.ok());
    EXPECT_EQ(Contents(path), text);
    return std::string(grid.status().message());
  };
  EXPECT_THAT(refused("{"), HasSubstr(path));
  EXPECT_THAT(refused("[]"), HasSubstr(path));
  EXPECT_THAT(refused(R"({"task": "glue", "main_metric": "f1",
                          "settings": []})"),
              HasSubstr("has a grid of glue by f1, and this one is of wikihop "
                        "by accuracy"));
  EXPECT_THAT(refused(R"({"task": "wikihop", "main_metric": "accuracy",
                          "settings": [{"values": {}, "directory": "../a"}]})"),
              HasSubstr("settings should have an object of values"));
}

TEST_F(GridRunTest, GoesOnWithoutASettingThatDiverges) {
  SetDivergingGrid();
  GridReporter reporter;
  const auto grid = Train("grid", &reporter);
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_TRUE(grid->finished);
  const std::string diverged = grid->settings[1].diverged;
  EXPECT_THAT(
      diverged,
      AllOf(HasSubstr(Output("grid") + "/train.learning_rate=1e+30,train."
                                       "steps=4/seed-1: "),
            HasSubstr(kDiverged), HasSubstr("there is no checkpoint yet")));
  EXPECT_THAT(reporter.warnings,
              Contains("train.learning_rate=1e+30,train.steps=4 has "
                       "no score: " +
                       diverged));
  EXPECT_EQ(ReadDiverged("grid"), diverged);
  EXPECT_THAT(FindCheckpoint(Output("grid"))->reason,
              HasSubstr(", in the best of the 2 finished of 3 settings, "));

  // Tried again, and only that.
  const std::string before = Contents(Output("grid/grid.json"));
  EXPECT_LT(TrainAll("grid", /*resume=*/true), 4u);
  EXPECT_EQ(Contents(Output("grid/grid.json")), before);
  json_["grid"]["train.learning_rate"] = {0.01, 0.02};
  GridReporter others;
  ASSERT_TRUE(Train("grid", &others, /*resume=*/true).ok());
  EXPECT_THAT(others.updates, IsEmpty());
  EXPECT_THAT(others.messages, Not(Contains(HasSubstr("may be better"))));
}

// One epoch of each setting's own data, with 3 records a batch and 2 seeds.
TEST_F(GridRunTest, TrainsEachSettingOnItsOwnData) {
  json_["train"]["epochs"] = 1;
  json_["grid"] = {{"train.max_examples", {3, 6}}};
  EXPECT_EQ(TrainAll("max_examples"), 2u * (1 + 2));

  const std::string whole = directory_.File("data.json");
  json records = json::parse(Contents(whole));
  records.erase(records.begin(), records.begin() + 3);
  const std::string half = directory_.Write("half.json", records.dump());
  json_["grid"] = {{"data.train", {json::array({half}), json::array({whole})}}};
  EXPECT_EQ(TrainAll("data"), 2u * (1 + 2));
}

// Data that are read are held in memory until the last of them has ended.
TEST_F(GridRunTest, ReadsTheDataOnceForAllResidualModes) {
  class CountsReads : public FakeReporter {
   public:
    void Message(absl::string_view text) override {
      FakeReporter::Message(text);
      has_begun_ = has_begun_ || absl::StartsWith(text, "setting 1 of ");
    }
    void Opening(const OpeningProgress&) override {
      reads += has_begun_ ? 0 : 1;
    }
    int64_t reads = 0;

   private:
    bool has_begun_ = false;
  };
  json_["train"]["steps"] = 2;
  const auto reads = [&](const std::string& name, const json& modes) {
    json_["grid"] = {{"residual_attention", modes}};
    CountsReads reporter;
    const auto grid = Train(name, &reporter);
    EXPECT_TRUE(grid.ok()) << grid.status();
    return reporter.reads;
  };
  const int64_t of_one = reads("one", json::array({"gate"}));
  EXPECT_GT(of_one, 0);
  EXPECT_EQ(reads("three", {"off", "sum", "gate"}), of_one);
  const std::string gate = "/residual_attention=gate/seed-1";
  ExpectSameRun(Output("three") + gate, Output("one") + gate);
}

TEST_F(GridRunTest, SaysOnceWhichWeightsAllRunsBeginWith) {
  json_["train"]["steps"] = 1;
  json_["grid"] = {{"train.learning_rate", {0.01, 0.02}}};
  GridReporter reporter;
  ASSERT_TRUE(Train("grid", &reporter).ok());
  EXPECT_EQ(std::count_if(reporter.messages.begin(), reporter.messages.end(),
                          [](const std::string& message) {
                            return absl::StrContains(message, "random weights");
                          }),
            1);
}

TEST_F(GridRunTest, FailsIfAllSettingsDiverge) {
  json_["grid"] = {{"train.learning_rate", {1e29, 1e30}}};
  json_["train"]["steps"] = 4;
  GridReporter reporter;
  const auto grid = Train("grid", &reporter);
  EXPECT_EQ(grid.status().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(
      std::string(grid.status().message()),
      AllOf(StartsWith("all 2 settings have diverged, the first one so: "),
            HasSubstr(kDiverged)));
  EXPECT_THAT(reporter.messages, Contains(StartsWith("setting 2 of 2: ")));
}

TEST_F(GridRunTest, IsResumedInItsOwnDirectoryAlone) {
  const json grid = {{"train.steps", {1}}};
  json_.erase("grid");
  json_["train"]["steps"] = 1;
  TrainAll("above/run");
  const auto refused = [&] {
    GridReporter reporter;
    const absl::Status status =
        Train("above", &reporter, /*resume=*/true).status();
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(StartsWith(Output("above") + " has no run to resume"),
                      HasSubstr("; --resume-or-begin begins one")));
    EXPECT_THAT(reporter.updates, IsEmpty());
  };
  refused();
  json_["grid"] = grid;
  refused();
  TrainAll("above/grid");
  refused();
  json_.erase("grid");
  refused();
}

TEST_F(GridRunTest, IsRefusedWhereThereAreOtherRuns) {
  json_["grid"] = {{"train.steps", {1, 2}}};
  TrainAll("grid");
  const auto refused = [&](const std::string& name, bool resume) {
    GridReporter reporter;
    const absl::Status status = Train(name, &reporter, resume).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
    EXPECT_THAT(reporter.updates, IsEmpty());
    return std::string(status.message());
  };
  // Another value first: the finished ones are seen all the same.
  json_["grid"] = {{"train.steps", {3, 2}}};
  EXPECT_EQ(refused("grid", /*resume=*/false),
            Output("grid") +
                "/train.steps=2 has a run already: resume it, or choose "
                "another output directory");
  const auto config = RunConfigFromJson(json_, "run.json");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(TryGrid(*config, {}).status().message(),
            refused("grid", /*resume=*/false));
  json_.erase("grid");
  json_["train"]["steps"] = 1;
  EXPECT_THAT(refused("grid", /*resume=*/true),
              EndsWith(" has the runs of a grid: choose another output "
                       "directory"));
  TrainAll("run");
  json_["grid"] = {{"train.steps", {1, 2}}};
  EXPECT_THAT(
      refused("run", /*resume=*/true),
      EndsWith(" has a run without a grid: choose another output directory"));
  // Before the data are read.
  json_["data"]["train"] = {Output("missing.json")};
  EXPECT_THAT(refused("run", /*resume=*/true), HasSubstr("without a grid"));
}

TEST_F(GridRunTest, IsCheckedToItsLastValueBeforeItBegins) {
  const json steps = {{"train.steps", {1, 2}}};
  const auto with = [&](const std::string& field, const json& values) {
    json fields = steps;
    fields[field] = values;
    return fields;
  };
  ExpectRefused(with("train.learning_rate", {0.1, "fast"}),
                "train.learning_rate should be a number");
  ExpectRefused(with("wikihop.label_smoothing", {0, 1}),
                "wikihop.label_smoothing should be in [0, 1)");
  ExpectRefused(with("train.batch_size", {3, 3000}),
                "setting train.batch_size=3000,train.steps=1: the training "
                "data have 6 examples, which is less than one batch of 3000");
  ExpectRefused(
      with("data.train", {json_["data"]["train"], json::array({"/nowhere/a"})}),
      "/nowhere/a");
  ExpectRefused(with("train.device", {"cpu", "cuda:120"}), "cuda:120");
  ExpectRefused(with("model.vocab_size", {19, 18}), "model.vocab_size is 18");
  ExpectRefused({{"train.epochs", {1, 1e-3}}}, "come to no update");
}

// A grid, and a run alone.
TEST_F(GridRunTest, MissesThreadsBeforeItReadsItsData) {
  const char* const before = std::getenv("OMP_NUM_THREADS");
  const std::string kept = before == nullptr ? "" : before;
  json_["train"]["threads"] = 0;
  json_["data"]["train"] =
      json::array({directory_.Write("broken.jsonl", "no JSON\n")});
  for (const bool is_grid : {true, false}) {
    if (!is_grid) {
      json_.erase("grid");
      json_["train"]["steps"] = 4;
    }
    setenv("OMP_NUM_THREADS", "5000", /*overwrite=*/1);
    GridReporter reporter;
    EXPECT_THAT(
        Train(is_grid ? "grid" : "alone", &reporter).status().message(),
        HasSubstr("OMP_NUM_THREADS should be at most 1024, but is 5000"));
    unsetenv("OMP_NUM_THREADS");
  }
  if (before != nullptr) {
    setenv("OMP_NUM_THREADS", kept.c_str(), /*overwrite=*/1);
  }
}

// The best is not the first: what the directory of a grid stands for.
TEST_F(GridRunTest, StandsForTheBestCheckpointOfItsBestSetting) {
  json_["grid"] = {{"train.steps", {1, 2}}};
  TrainAll("grid");
  for (const auto& [setting, median] :
       {std::pair("train.steps=1", 0.5), std::pair("train.steps=2", 0.75)}) {
    const std::string file = absl::StrCat("grid/", setting, "/summary.json");
    json summary = json::parse(Contents(Output(file)));
    summary["scores"]["accuracy"]["median"] = median;
    directory_.Write(file, summary.dump());
  }
  const Result best = Run("evaluate " + Output("grid"));
  EXPECT_EQ(best.code, 0) << best.err;
  EXPECT_THAT(best.err,
              AllOf(HasSubstr("checkpoint: " + Output("grid/train.steps=2/")),
                    HasSubstr("the best of 2 seeds by accuracy, "),
                    HasSubstr(", in the best of 2 settings, median accuracy "
                              "0.7500\n")));
  EXPECT_EQ(best.out, Run("evaluate " + Output("grid/train.steps=2")).out);

  // The same as weights to start from.
  json next = Config();
  next.erase("model");
  next["init"] = Output("grid");
  const auto config = RunConfigFromJson(next, "next.json");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->init, std::filesystem::canonical(
                              FindCheckpoint(Output("grid"))->directory)
                              .string());
  EXPECT_EQ(config->model.hidden_size, 8);

  json grid = json::parse(Contents(Output("grid/grid.json")));
  for (json& setting : grid["settings"]) {
    setting["scores"] = nullptr;
  }
  directory_.Write("grid/grid.json", grid.dump());
  const Result none = Run("evaluate " + Output("grid"));
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.err, HasSubstr("no setting has scores yet"));
  EXPECT_THAT(RunConfigFromJson(next, "next.json").status().ToString(),
              HasSubstr("next.json: init: "));
  grid["settings"][1]["directory"] = "../run";
  directory_.Write("grid/grid.json", grid.dump());
  EXPECT_THAT(Run("evaluate " + Output("grid")).err,
              HasSubstr("settings should have an object of values, and the "
                        "name of a directory beside the file"));
}

}  // namespace
}  // namespace etc
