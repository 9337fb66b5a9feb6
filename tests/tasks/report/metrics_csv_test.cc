// Metrics of runs as CSV: columns, rows, empty cells, quotes.
#include "tasks/report/metrics_csv.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tasks/report/written_runs.h"

namespace etc {
namespace {

TEST(MetricsCsvTest, HasARowForEachUpdateAndSeed) {
  const std::vector<RunGroup> groups = {
      {.directory = "runs/a,b",
       .runs = {{.directory = "runs/a,b/seed-1",
                 .seed = 1,
                 .log = {.curves = {{"loss", {{1, 0.1}, {2, 1e-9}}},
                                    {"gate_mean", {{2, 0.5}}}},
                         .evaluations = {{.step = 0, .metrics = {{"f1", 0.25}}},
                                         {.step = 2,
                                          .metrics = {{"f1", 0.75}}}}}}}},
      {.directory = "other",
       .runs = {{.directory = "other/seed-7",
                 .seed = 7,
                 .log = {.curves = {{"loss", {{1, 3.0}}}}}}}}};
  EXPECT_EQ(MetricsAsCsv(groups),
            "run,seed,step,gate_mean,loss,evaluation.f1\n"
            "\"runs/a,b\",1,0,,,0.25\n"
            "\"runs/a,b\",1,1,,0.1,\n"
            "\"runs/a,b\",1,2,0.5,1e-09,0.75\n"
            "other,7,1,,3.0,\n");
}

// Runs of two directories with the same settings are one group.
TEST(MetricsCsvTest, NamesTheDirectoryOfEachRun) {
  WrittenRuns runs;
  runs.WriteSeed("a", 1, {0.5}, WrittenRuns::Settings("off"));
  runs.WriteSeed("b", 2, {0.5}, WrittenRuns::Settings("off"));
  const auto groups = ReadRunGroups({runs.Path("a"), runs.Path("b")});
  ASSERT_TRUE(groups.ok()) << groups.status();
  ASSERT_EQ(groups->size(), 1u);
  EXPECT_THAT(MetricsAsCsv(*groups),
              testing::AllOf(testing::HasSubstr(runs.Path("a") + ",1,"),
                             testing::HasSubstr(runs.Path("b") + ",2,")));
}

TEST(MetricsCsvTest, ReadsRunsAsTheyAreWritten) {
  WrittenRuns runs;
  runs.WriteSeed("a", 3, {0.5}, WrittenRuns::Settings("off"));
  const auto groups = ReadRunGroups({runs.Path("a")});
  ASSERT_TRUE(groups.ok()) << groups.status();
  const std::string row = runs.Path("a") + ",3,";
  EXPECT_EQ(MetricsAsCsv(*groups),
            "run,seed,step,gradient_norm,learning_rate,loss,seconds_waited,"
            "tokens_per_second,evaluation.accuracy\n" +
                row + "1,0.5,0.001,1.0,0.25,1000.0,\n" + row +
                "2,0.5,0.001,0.5,0.25,1000.0,0.5\n");
}

// Numbers of train.watch_scores.
TEST(MetricsCsvTest, HasAColumnForEachLayer) {
  WrittenRuns runs;
  runs.Write("a/seed-1/metrics.jsonl",
             R"({"step":1,"loss":1.5})"
             "\n"
             R"({"step":2,"loss":1.0,"scores":{"largest":3.5,)"
             R"("l2l":{"carried_deviation":[null,0.5]}}})"
             "\n");
  const auto groups = ReadRunGroups({runs.Path("a")});
  ASSERT_TRUE(groups.ok()) << groups.status();
  const std::string row = runs.Path("a") + ",1,";
  EXPECT_EQ(MetricsAsCsv(*groups),
            "run,seed,step,loss,scores.l2l.carried_deviation.1,"
            "scores.largest\n" +
                row + "1,1.5,,\n" + row + "2,1.0,0.5,3.5\n");
}

}  // namespace
}  // namespace etc
