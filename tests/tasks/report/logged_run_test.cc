// Runs as their directories describe them: cut and damaged metrics, which seeds
// are one group, and the error of each path that is no run.

#include "tasks/report/logged_run.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tasks/output/checkpoint_store.h"
#include "tasks/output/sealed_json.h"
#include "tests/tasks/report/written_runs.h"

namespace etc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr char kThreeLines[] =
    "{\"step\":1,\"loss\":2.5,\"scores\":{\"largest\":9.5,"
    "\"l2l\":{\"carried_deviation\":[null,0.5]}}}\n"
    "{\"step\":2,\"loss\":null}\n"
    "{\"step\":2,\"evaluation\":{\"accuracy\":0.5,\"f1\":null}}\n";

TEST(ReadMetricsFileTest, ReadsNumbersOfUpdatesAndEvaluations) {
  WrittenRuns runs;
  const auto file = ReadMetricsFile(runs.Write("m.jsonl", kThreeLines));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->steps, 2);
  EXPECT_EQ(file->lost_losses, 1);
  EXPECT_FALSE(file->is_cut);
  EXPECT_THAT(file->curves,
              ElementsAre(Pair("loss", ElementsAre(Pair(1, 2.5))),
                          Pair("scores.l2l.carried_deviation.1",
                               ElementsAre(Pair(1, 0.5))),
                          Pair("scores.largest", ElementsAre(Pair(1, 9.5)))));
  ASSERT_EQ(file->evaluations.size(), 1u);
  EXPECT_EQ(file->evaluations[0].step, 2);
  EXPECT_THAT(file->evaluations[0].metrics, ElementsAre(Pair("accuracy", 0.5)));
}

TEST(ReadMetricsFileTest, ReadsWhatIsWholeAtEveryCut) {
  WrittenRuns runs;
  const std::string whole = kThreeLines;
  for (size_t bytes = 0; bytes <= whole.size(); ++bytes) {
    const auto file =
        ReadMetricsFile(runs.Write("m.jsonl", whole.substr(0, bytes)));
    ASSERT_TRUE(file.ok()) << bytes << ": " << file.status();
    const std::string kept = whole.substr(0, bytes);
    // A line without its newline counts where it is whole.
    const bool ends_whole =
        kept.empty() || kept.back() == '\n' || whole[bytes] == '\n';
    EXPECT_EQ(file->is_cut, !ends_whole) << bytes;
  }
}

TEST(ReadMetricsFileTest, KnowsThatARunHasDiverged) {
  WrittenRuns runs;
  const std::string update = "{\"step\":1,\"loss\":2.5}\n";
  for (const bool has_diverged : {false, true}) {
    const auto file = ReadMetricsFile(runs.Write(
        "m.jsonl",
        update + (has_diverged ? "{\"step\":1,\"diverged\":\"the loss of "
                                 "update 2 is nan\"}\n"
                               : "")));
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->has_diverged, has_diverged);
    EXPECT_EQ(file->steps, 1);
    EXPECT_EQ(file->lost_losses, 0);
  }
}

TEST(ReadMetricsFileTest, NamesTheLineThatIsDamaged) {
  WrittenRuns runs;
  const std::string path =
      runs.Write("m.jsonl", "{\"step\":1}\n{\"step\":\n{\"step\":3}\n");
  EXPECT_THAT(
      std::string(ReadMetricsFile(path).status().message()),
      HasSubstr(path + ":2: should be a JSON object with a whole number "
                       "\"step\""));
}

// Deeper than any line of a run, in one that somebody else wrote.
TEST(ReadMetricsFileTest, ReadsNoLineThatIsTooDeep) {
  WrittenRuns runs;
  const std::string path =
      runs.Write("m.jsonl", "{\"step\":1,\"a\":" + std::string(200000, '[') +
                                std::string(200000, ']') + "}\n{\"step\":2}\n");
  EXPECT_THAT(std::string(ReadMetricsFile(path).status().message()),
              HasSubstr(path + ":1: should be a JSON object"));
}

std::string Error(const std::vector<std::string>& paths) {
  const auto groups = ReadRunGroups(paths);
  return groups.ok() ? "" : std::string(groups.status().message());
}

TEST(ReadRunGroupsTest, GroupsSeedsByTheirSettings) {
  WrittenRuns runs;
  for (const int seed : {3, 1}) {
    runs.WriteSeed("off", seed, {0.5}, WrittenRuns::Settings("off"));
  }
  runs.WriteSeed("sum", 1, {0.5}, WrittenRuns::Settings("sum"));
  // The same settings in another directory, and others in the same one.
  runs.WriteSeed("more", 2, {0.5}, WrittenRuns::Settings("sum"));
  nlohmann::json faster = WrittenRuns::Settings("sum");
  faster["train"]["learning_rate"] = 2e-3;
  runs.WriteSeed("more", 3, {0.5}, faster);
  const auto groups =
      ReadRunGroups({runs.Path("off"), runs.Path("sum"), runs.Path("more")});
  ASSERT_TRUE(groups.ok()) << groups.status();
  ASSERT_EQ(groups->size(), 3u);
  const auto seeds = [&](size_t group) {
    std::vector<int64_t> found;
    for (const LoggedRun& run : (*groups)[group].runs) {
      found.push_back(run.seed);
    }
    return found;
  };
  EXPECT_THAT(seeds(0), ElementsAre(1, 3));
  EXPECT_THAT(seeds(1), ElementsAre(1, 2));
  EXPECT_THAT(seeds(2), ElementsAre(3));
  EXPECT_EQ((*groups)[0].name, "off");
  EXPECT_EQ((*groups)[0].mode(), "off");
  EXPECT_EQ((*groups)[2].name, "more");
  EXPECT_EQ((*groups)[0].task, "wikihop");
}

// As on two machines.
TEST(ReadRunGroupsTest, ComparesFilesByTheirContents) {
  WrittenRuns runs;
  const auto settings = [](const std::string& path, const std::string& digest) {
    nlohmann::json json = WrittenRuns::Settings("sum");
    json["data"]["train"] = {
        {{"path", path}, {"bytes", 5}, {"digest", digest}}};
    return json;
  };
  runs.WriteSeed("here", 1, {0.5}, settings("train.json", "sha256:01"));
  runs.WriteSeed("there", 2, {0.5}, settings("/data/train.json", "sha256:01"));
  runs.WriteSeed("other", 3, {0.5}, settings("train.json", "sha256:02"));
  const auto groups = ReadRunGroups(
      {runs.Path("here"), runs.Path("there"), runs.Path("other")});
  ASSERT_TRUE(groups.ok()) << groups.status();
  ASSERT_EQ(groups->size(), 2u);
  EXPECT_EQ((*groups)[0].runs.size(), 2u);
}

TEST(ReadRunGroupsTest, ReadsGridsAndSingleSeeds) {
  WrittenRuns runs;
  for (const char* mode : {"off", "sum"}) {
    runs.WriteSeed(std::string("grid/mode=") + mode, 1, {0.5},
                   WrittenRuns::Settings(mode));
  }
  const auto grid = ReadRunGroups({runs.Path("grid")});
  ASSERT_TRUE(grid.ok()) << grid.status();
  ASSERT_EQ(grid->size(), 2u);
  EXPECT_EQ((*grid)[1].name, "mode=sum");
  const auto seed = ReadRunGroups({runs.Path("grid/mode=sum/seed-1/")});
  ASSERT_TRUE(seed.ok()) << seed.status();
  ASSERT_EQ(seed->size(), 1u);
  EXPECT_EQ((*seed)[0].runs.size(), 1u);
}

TEST(ReadRunGroupsTest, ReadsTheMainMetricAndItsDirection) {
  WrittenRuns runs;
  for (const std::string name : {"up", "down"}) {
    runs.WriteSeed(name, 1, {0.5}, WrittenRuns::Settings(name));
  }
  runs.Write("up/summary.json",
             R"({"task": "wikihop", "main_metric": "accuracy"})");
  runs.Write("down/summary.json",
             R"({"task": "wikihop", "main_metric": "accuracy",
                 "main_metric_direction": "min"})");
  const auto groups = ReadRunGroups({runs.Path("up"), runs.Path("down")});
  ASSERT_TRUE(groups.ok()) << groups.status();
  ASSERT_EQ(groups->size(), 2u);
  for (const RunGroup& group : *groups) {
    EXPECT_EQ(group.main_metric.name, "accuracy");
    EXPECT_EQ(group.main_metric.lower_is_better, group.name == "down");
  }
}

TEST(RunGroupTest, HasTheModesOfTheThreePaths) {
  RunGroup group = {.directory = "run",
                    .settings = {{"task", "translation"},
                                 {"residual_attention", "sum"},
                                 {"model",
                                  {{"encoder_residual_attention", "sum"},
                                   {"decoder_residual_attention", "off"},
                                   {"cross_residual_attention", "off"}}}}};
  EXPECT_EQ(group.mode(), "sum, off, off");
  group.settings["model"]["encoder_residual_attention"] = "off";
  EXPECT_EQ(group.mode(), "off");
  for (const char* path :
       {"encoder_residual_attention", "decoder_residual_attention",
        "cross_residual_attention"}) {
    group.settings["model"][path] = "gate";
  }
  EXPECT_EQ(group.mode(), "gate");
}

TEST(ReadRunGroupsTest, ReadsRunsThatGoOn) {
  WrittenRuns runs;
  runs.Write("new/seed-1/metrics.jsonl", "{\"step\":1,\"loss\":1.0}\n{\"st");
  runs.Write("new/seed-2/metrics.jsonl", "");
  const auto groups = ReadRunGroups({runs.Path("new")});
  ASSERT_TRUE(groups.ok()) << groups.status();
  ASSERT_EQ(groups->size(), 1u);
  EXPECT_FALSE((*groups)[0].runs[0].finished);
  EXPECT_TRUE((*groups)[0].runs[0].log.is_cut);
  EXPECT_EQ((*groups)[0].mode(), "");
  EXPECT_THAT((*groups)[0].not_begun, ElementsAre(2));
}

// The directories of later seeds are there where such a run was resumed.
TEST(ReadRunGroupsTest, EndsARunWithTheSeedThatDiverges) {
  WrittenRuns runs;
  const std::string update = "{\"step\":1,\"loss\":1.0}\n";
  runs.Write("run/seed-2/lock", "");
  for (const bool has_diverged : {false, true}) {
    runs.Write("run/seed-1/metrics.jsonl",
               update + (has_diverged
                             ? "{\"step\":1,\"diverged\":\"the loss is nan\"}\n"
                             : ""));
    const auto groups = ReadRunGroups({runs.Path("run")});
    ASSERT_TRUE(groups.ok()) << groups.status();
    ASSERT_EQ(groups->size(), 1u);
    EXPECT_EQ((*groups)[0].not_begun.empty(), has_diverged);
    EXPECT_EQ((*groups)[0].has_ended(), has_diverged);
  }
}

// Before summary.json is there.
TEST(ReadRunGroupsTest, ReadTheMainMetricOfARunThatGoesOn) {
  WrittenRuns runs;
  runs.Write("new/seed-1/metrics.jsonl",
             "{\"step\":1,\"loss\":1.0}\n"
             "{\"step\":1,\"evaluation\":{\"accuracy\":0.5,\"mae\":2.0},"
             "\"main_metric\":\"mae\",\"main_metric_direction\":\"min\"}\n");
  const auto groups = ReadRunGroups({runs.Path("new")});
  ASSERT_TRUE(groups.ok()) << groups.status();
  EXPECT_EQ((*groups)[0].main_metric.name, "mae");
  EXPECT_TRUE((*groups)[0].main_metric.lower_is_better);
}

TEST(ReadRunGroupsTest, KeepsSeedsThatHaveNotBegunOfARunThatJoinsAnother) {
  WrittenRuns runs;
  runs.WriteSeed("here", 1, {0.5}, WrittenRuns::Settings("sum"));
  runs.WriteSeed("there", 2, {0.5}, WrittenRuns::Settings("sum"));
  runs.Write("there/seed-3/metrics.jsonl", "");
  const auto groups = ReadRunGroups({runs.Path("here"), runs.Path("there")});
  ASSERT_TRUE(groups.ok()) << groups.status();
  ASSERT_EQ(groups->size(), 1u);
  EXPECT_THAT((*groups)[0].not_begun, ElementsAre(3));
}

// Their metrics are columns of one CSV file.
TEST(ReadRunGroupsTest, ReadsRunsOfSeveralTasks) {
  WrittenRuns runs;
  runs.WriteSeed("a", 1, {0.5}, WrittenRuns::Settings("off"));
  nlohmann::json other = WrittenRuns::Settings("off");
  other["task"] = "squad";
  runs.WriteSeed("b", 1, {0.5}, other);
  const auto groups = ReadRunGroups({runs.Path("a"), runs.Path("b")});
  ASSERT_TRUE(groups.ok()) << groups.status();
  ASSERT_EQ(groups->size(), 2u);
  EXPECT_EQ((*groups)[0].task, "wikihop");
  EXPECT_EQ((*groups)[1].task, "squad");
}

// As on a file system without links, where checkpoints.json says which
// checkpoints they would lead to.
TEST(ReadRunGroupsTest, FindsCheckpointsWithoutLinks) {
  WrittenRuns runs;
  runs.Write("run/seed-1/metrics.jsonl", "{\"step\":1,\"loss\":1.0}\n");
  const std::string checkpoints = runs.Path("run/seed-1/checkpoints");
  CheckpointStore store(checkpoints);
  ASSERT_TRUE(store.TakeOver().ok());
  const auto save = [&](int64_t step, const std::string& mode) {
    return store.Save(step, [&](const std::string& directory) {
      absl::Status status =
          WriteFileAtomically(directory + "/run_config.json", "{}");
      status.Update(WriteSealedJson(
          directory + "/evaluation.json",
          nlohmann::json({{"settings", WrittenRuns::Settings(mode)}})));
      return status;
    });
  };
  ASSERT_TRUE(save(1, "off").ok());
  ASSERT_TRUE(store.NoteEvaluation({}, /*is_best=*/true).ok());
  ASSERT_TRUE(save(2, "sum").ok());
  for (const char* link : {"/last", "/best"}) {
    EXPECT_TRUE(std::filesystem::remove(checkpoints + link));
  }
  const auto groups = ReadRunGroups({runs.Path("run")});
  ASSERT_TRUE(groups.ok()) << groups.status();
  ASSERT_EQ(groups->size(), 1u);
  EXPECT_EQ((*groups)[0].runs[0].checkpoint, checkpoints + "/step-00000001");
  EXPECT_EQ((*groups)[0].mode(), "sum");
}

// train.steps 0 evaluates `init` as it is.
TEST(ReadRunGroupsTest, TakesAnEvaluationWithoutUpdates) {
  WrittenRuns runs;
  runs.WriteSeed("run", 1, {}, WrittenRuns::Settings("off"));
  EXPECT_THAT(Error({runs.Path("run")}), HasSubstr("has no metrics yet"));
  runs.Write("run/seed-1/metrics.jsonl",
             "{\"step\":0,\"evaluation\":{\"accuracy\":0.5}}\n");
  const auto groups = ReadRunGroups({runs.Path("run")});
  ASSERT_TRUE(groups.ok()) << groups.status();
  ASSERT_EQ(groups->size(), 1u);
  EXPECT_TRUE((*groups)[0].has_ended());
  EXPECT_THAT((*groups)[0].not_begun, testing::IsEmpty());
  ASSERT_EQ((*groups)[0].runs[0].log.evaluations.size(), 1u);
}

TEST(ReadRunGroupsTest, RefusesWhatIsNoRun) {
  WrittenRuns runs;
  EXPECT_THAT(Error({runs.Path("none")}), HasSubstr("there is no such run"));
  EXPECT_THAT(Error({runs.Write("empty/readme", "")}),
              HasSubstr("is the directory of no run"));
  EXPECT_THAT(Error({runs.Path("empty")}),
              HasSubstr("should have seed-1/metrics.jsonl"));
  runs.Write("early/seed-1/lock", "");
  EXPECT_THAT(Error({runs.Path("early")}), HasSubstr("has no metrics yet"));
  runs.WriteSeed("a", 1, {0.5}, WrittenRuns::Settings("off"));
  EXPECT_THAT(Error({runs.Path("a"), runs.Path("a/")}),
              HasSubstr("is named twice"));
}

}  // namespace
}  // namespace etc
