// Comparisons by numbers that are worked out by hand.

#include "tasks/report/comparison.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tasks/report/written_runs.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// A group with a run for each seed, whose evaluations have these accuracies.
RunGroup Group(const std::string& mode,
               const std::vector<std::vector<double>>& seeds) {
  RunGroup group = {.name = mode,
                    .directory = "runs/" + mode,
                    .task = "wikihop",
                    .settings = WrittenRuns::Settings(mode)};
  for (const std::vector<double>& scores : seeds) {
    LoggedRun& run = group.runs.emplace_back();
    run.seed = static_cast<int64_t>(group.runs.size());
    run.finished = true;
    for (const double score : scores) {
      run.log.steps += 10;
      run.log.evaluations.push_back(
          {.step = run.log.steps, .metrics = {{"accuracy", score}}});
    }
  }
  return group;
}

const MainMetric kAccuracy = {.name = "accuracy"};

TEST(ComparisonTest, TakesTheBestEvaluationOfEachSeed) {
  const RunGroup group = Group("sum", {{0.2, 0.9, 0.9}, {0.1}, {}, {0.4, 0.3}});
  EXPECT_THAT(SeedScores(group, kAccuracy, "accuracy"),
              ElementsAre(0.9, 0.1, 0.4));
  EXPECT_EQ(BestEvaluation(group.runs[0], kAccuracy)->step, 30);
  EXPECT_EQ(MiddleRun(group, kAccuracy), 3u);
  EXPECT_EQ(MiddleRun(Group("off", {{}}), kAccuracy), std::nullopt);
  EXPECT_EQ(BestEvaluation(group.runs[2], kAccuracy), nullptr);
}

// A run after a change of its model, which had other scores before.
TEST(ComparisonTest, TakesNoEvaluationThatTheRunHasForgotten) {
  RunGroup group = Group("sum", {{0.9, 0.2, 0.3, 0.1}});
  std::vector<LoggedEvaluation>& evaluations = group.runs[0].log.evaluations;
  evaluations[1].scores_forgotten = 1;
  evaluations[2].scores_forgotten = 2;
  evaluations[3].scores_forgotten = 2;
  EXPECT_EQ(BestEvaluation(group.runs[0], kAccuracy)->step, 30);
}

TEST(ComparisonTest, CountsOrdersOfEqualSeeds) {
  EXPECT_DOUBLE_EQ(ChanceApart(3, 3), 2.0 / 20);
  EXPECT_DOUBLE_EQ(ChanceApart(4, 4), 2.0 / 70);
  EXPECT_DOUBLE_EQ(ChanceApart(2, 3), 2.0 / 10);
}

TEST(ComparisonTest, KnowsHowSureADifferenceIs) {
  using V = std::vector<double>;
  EXPECT_EQ(CertaintyOf(V{0.9}, V{0.1, 0.2}), Certainty::kNothing);
  EXPECT_EQ(CertaintyOf(V{0.9, 0.2}, V{0.1, 0.2}), Certainty::kOverlap);
  EXPECT_EQ(CertaintyOf(V{0.7, 0.8, 0.9}, V{0.1, 0.2, 0.3}), Certainty::kHint);
  EXPECT_EQ(CertaintyOf(V{0.7, 0.8, 0.9, 0.9}, V{0.1, 0.2, 0.3, 0.3}),
            Certainty::kLikely);
  // 2 of 35 orders, and 2 of 56: the limit is 1 of 20.
  EXPECT_EQ(CertaintyOf(V{0.7, 0.8, 0.9}, V{0.1, 0.2, 0.3, 0.4}),
            Certainty::kHint);
  EXPECT_EQ(CertaintyOf(V{0.1, 0.2, 0.3, 0.4, 0.5}, V{0.7, 0.8, 0.9}),
            Certainty::kLikely);
}

TEST(CompareModesTest, SaysWhatSeedsThatLieApartShow) {
  const std::vector<RunGroup> groups = {Group("off", {{0.5}, {0.6}, {0.7}}),
                                        Group("sum", {{0.8}, {0.9}, {1.0}})};
  const std::vector<Verdict> verdicts = CompareModes(groups, kAccuracy);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].headline,
            "Probably yes: sum is better than off here, but so few seeds are "
            "only a hint.");
  EXPECT_EQ(
      verdicts[0].detail,
      "Best accuracy of each seed: sum median 0.9000 (0.8000 to 1.0000, 3 "
      "seeds), off median 0.6000 (0.5000 to 0.7000, 3 seeds); difference "
      "of medians +0.3000. sum is better in 9, worse in 0 and equal in 0 "
      "of the 9 pairs of seeds. The ranges lie apart; those of equal "
      "settings would in 1 of 10 comparisons.");
}

TEST(CompareModesTest, SaysThatSomeRunsHaveNotEnded) {
  const std::string said = "Not all of these runs have ended.";
  std::vector<RunGroup> groups = {Group("off", {{0.5}, {0.6}}),
                                  Group("sum", {{0.8}, {0.9}})};
  EXPECT_THAT(CompareModes(groups, kAccuracy)[0].detail, Not(HasSubstr(said)));
  for (RunGroup& group : groups) {
    group.not_begun = {3};
    EXPECT_THAT(CompareModes(groups, kAccuracy)[0].detail, HasSubstr(said));
    group.not_begun.clear();
    group.runs.back().finished = false;
    EXPECT_THAT(CompareModes(groups, kAccuracy)[0].detail, HasSubstr(said));
    group.runs.back().finished = true;
  }
}

TEST(CompareModesTest, ConcludesNothingFromASingleSeedOrAnOverlap) {
  const std::vector<RunGroup> single = {Group("off", {{0.5}}),
                                        Group("sum", {{0.9}})};
  const std::vector<Verdict> of_single = CompareModes(single, kAccuracy);
  ASSERT_EQ(of_single.size(), 1u);
  EXPECT_THAT(of_single[0].headline, HasSubstr("Nothing can be concluded"));
  EXPECT_THAT(of_single[0].detail, AllOf(HasSubstr("off 0.5000 (1 seed)"),
                                         HasSubstr("train.seeds")));
  const std::vector<RunGroup> overlap = {Group("off", {{0.5}, {0.7}}),
                                         Group("gate", {{0.6}, {0.9}})};
  const std::vector<Verdict> of_overlap = CompareModes(overlap, kAccuracy);
  ASSERT_EQ(of_overlap.size(), 1u);
  EXPECT_EQ(of_overlap[0].headline,
            "No difference can be shown: the seeds of gate and off overlap.");
  EXPECT_THAT(of_overlap[0].detail,
              HasSubstr("better in 3, worse in 1 and equal in 0 of the 4"));
}

TEST(CompareModesTest, ComparesSettingsThatDifferInTheModeAlone) {
  std::vector<RunGroup> groups = {Group("off", {{0.5}, {0.6}}),
                                  Group("sum", {{0.7}, {0.8}})};
  groups[1].settings["train"]["learning_rate"] = 2e-3;
  const std::vector<Verdict> rough = CompareModes(groups, kAccuracy);
  ASSERT_EQ(rough.size(), 1u);
  EXPECT_THAT(rough[0].detail, HasSubstr("may be the reason: "
                                         "train.learning_rate."));
  groups.push_back(Group("sum", {{0.9}, {0.8}}));
  const std::vector<Verdict> exact = CompareModes(groups, kAccuracy);
  ASSERT_EQ(exact.size(), 1u);
  EXPECT_THAT(exact[0].detail, Not(HasSubstr("may be the reason")));
  EXPECT_THAT(CompareModes({groups[0]}, kAccuracy), testing::IsEmpty());
}

TEST(CompareModesTest, KnowsThatLossesShouldBeLow) {
  std::vector<RunGroup> groups = {Group("off", {}), Group("sum", {})};
  for (size_t g = 0; g < 2; ++g) {
    for (int i = 0; i < 4; ++i) {
      LoggedRun& run = groups[g].runs.emplace_back();
      run.finished = true;
      run.log.evaluations = {
          {.step = 1, .metrics = {{"loss", static_cast<double>(g) + 0.1 * i}}}};
    }
  }
  const std::vector<Verdict> verdicts =
      CompareModes(groups, {.name = "loss", .lower_is_better = true});
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].headline,
            "No: sum is worse than off here, and that is fairly sure.");
}

TEST(ComparedMetricTest, IsTheMainOneOrTheOneThatIsWanted) {
  std::vector<RunGroup> groups = {Group("off", {{0.5}})};
  EXPECT_EQ(ComparedMetric(groups, "")->name, "accuracy");
  EXPECT_FALSE(ComparedMetric(groups, "")->lower_is_better);
  EXPECT_EQ(std::string(ComparedMetric(groups, "acuracy").status().message()),
            "the runs have no metric \"acuracy\"; did you mean \"accuracy\"?");
  groups[0].main_metric = {.name = "f1"};
  EXPECT_EQ(ComparedMetric(groups, "")->name, "f1");
  EXPECT_EQ(ComparedMetric({}, "")->name, "");
}

TEST(ComparedMetricTest, IsBetterInTheDirectionOfTheRuns) {
  std::vector<RunGroup> groups = {Group("off", {{0.5, 0.2}}),
                                  Group("sum", {{0.7}})};
  groups[1].main_metric = {.name = "accuracy", .lower_is_better = true};
  for (const std::string wanted : {"", "accuracy"}) {
    const auto metric = ComparedMetric(groups, wanted);
    ASSERT_TRUE(metric.ok()) << metric.status();
    EXPECT_THAT(SeedScores(groups[0], *metric, "accuracy"), ElementsAre(0.2));
  }
}

TEST(DifferingFieldsTest, ListsTheValuesOfEachGroup) {
  std::vector<RunGroup> groups = {Group("off", {}), Group("sum", {})};
  groups[1].settings["data"]["dev"] = {
      {{"path", "dev.json"}, {"digest", "sha256:0123456789ab"}}};
  const std::vector<DifferingField> fields = DifferingFields(groups);
  ASSERT_EQ(fields.size(), 2u);
  EXPECT_EQ(fields[0].name, "data.dev");
  EXPECT_THAT(fields[0].values, ElementsAre("absent", "dev.json (01234567)"));
  EXPECT_EQ(fields[1].name, "residual_attention");
  EXPECT_THAT(fields[1].values, ElementsAre("off", "sum"));

  // The same file elsewhere.
  groups[0].settings["data"]["dev"] = {
      {{"path", "/data/dev.json"}, {"digest", "sha256:0123456789ab"}}};
  EXPECT_EQ(DifferingFields(groups).size(), 1u);
}

}  // namespace
}  // namespace etc
