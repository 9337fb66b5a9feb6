// GLUE's overall score, by the columns of RealFormer's Table 3 (doc/glue.md 9),
// whose last line has it to two digits.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tasks/glue/task.h"

namespace etc {
namespace {

using testing::HasSubstr;

RunSummary RunOf(const std::string& task, const Metrics& medians) {
  RunSummary run = {
      .directory = "runs/" + task, .task = "glue", .options = {{"name", task}}};
  for (const auto& [name, median] : medians) {
    run.scores.push_back({.name = name, .median = median});
  }
  return run;
}

// A column from the top: MNLI (2), QQP (2), QNLI, SST-2, CoLA, STS-B (2), MRPC
// (2), RTE. Metrics that the table does not have must not count.
std::vector<RunSummary> Column(const std::array<double, 12>& values) {
  return {
      RunOf("mnli", {{"accuracy", 50},
                     {"accuracy_matched", values[0]},
                     {"accuracy_mismatched", values[1]}}),
      RunOf("qqp",
            {{"combined", 50}, {"accuracy", values[2]}, {"f1", values[3]}}),
      RunOf("qnli", {{"accuracy", values[4]}}),
      RunOf("SST-2", {{"accuracy", values[5]}}),
      RunOf("cola", {{"matthews", values[6]}, {"accuracy", 50}}),
      RunOf(
          "sts-b",
          {{"combined", 50}, {"pearson", values[7]}, {"spearman", values[8]}}),
      RunOf("mrpc",
            {{"combined", 50}, {"accuracy", values[9]}, {"f1", values[10]}}),
      RunOf("rte", {{"accuracy", values[11]}})};
}

constexpr std::array<double, 12> kPostLn = {85.96, 85.98, 91.29, 88.34,
                                            92.26, 92.89, 58.85, 90.08,
                                            89.77, 87.50, 91.16, 71.12};
constexpr std::array<double, 12> kPreLn = {85.03, 85.05, 91.29, 88.33,
                                           92.35, 93.81, 58.04, 90.06,
                                           89.62, 86.76, 90.69, 68.59};
constexpr std::array<double, 12> kRealFormer = {86.28, 86.34, 91.34, 88.28,
                                                91.89, 94.04, 59.83, 90.11,
                                                89.88, 87.01, 90.91, 73.65};

TEST(GlueOverallTest, IsThatOfThePaper) {
  constexpr double kHalfADigit = 0.005;
  const std::vector<std::pair<std::array<double, 12>, double>> columns = {
      {kPostLn, 84.01}, {kPreLn, 83.47}, {kRealFormer, 84.53}};
  for (const auto& [column, overall] : columns) {
    const auto scores = GlueOverall(Column(column));
    ASSERT_TRUE(scores.ok()) << scores.status();
    EXPECT_EQ(scores->size(), 10u);
    EXPECT_EQ(scores->back().first, "overall");
    EXPECT_NEAR(scores->back().second, overall, kHalfADigit);
  }
  const auto scores = GlueOverall(Column(kRealFormer));
  EXPECT_NEAR(*FindMetric(*scores, "qqp"), 89.81, 1e-9);
  EXPECT_NEAR(*FindMetric(*scores, "stsb"), 89.995, 1e-9);
  EXPECT_EQ(FindMetric(*scores, "mnli_mismatched"), 86.34);
}

TEST(GlueOverallTest, SaysWhichRunsItNeeds) {
  const auto error = [](const std::vector<RunSummary>& runs) {
    return std::string(GlueOverall(runs).status().message());
  };
  std::vector<RunSummary> runs = Column(kPostLn);
  runs.pop_back();
  runs.erase(runs.begin());
  EXPECT_THAT(error(runs), HasSubstr("there is none of MNLI, RTE"));
  runs = Column(kPostLn);
  runs.push_back(RunOf("cola", {{"matthews", 1}}));
  EXPECT_THAT(error(runs), HasSubstr("one run of CoLA, but runs/cola and "));
  runs.back() = RunOf("wnli", {{"accuracy", 1}});
  EXPECT_THAT(error(runs), HasSubstr("runs/wnli: the overall score of GLUE "
                                     "leaves out WNLI"));
  runs = Column(kPostLn);
  runs[0].scores.pop_back();
  EXPECT_THAT(error(runs), HasSubstr("runs/mnli: the overall score of GLUE "
                                     "needs accuracy_mismatched"));
  runs[0].options = nullptr;
  EXPECT_THAT(error(runs), HasSubstr("runs/mnli/summary.json: options"));
}

}  // namespace
}  // namespace etc
