// Comparisons by numbers that are worked out by hand.

#include "tasks/report/comparison.h"

#include <string>
#include <utility>
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

TEST(ComparisonTest, CountsOrdersOfEqualSeeds) {
  EXPECT_DOUBLE_EQ(ChanceApart(3, 3), 2.0 / 20);
  EXPECT_DOUBLE_EQ(ChanceApart(4, 4), 2.0 / 70);
  EXPECT_DOUBLE_EQ(ChanceApart(2, 3), 2.0 / 10);
}

TEST(ComparisonTest, KnowsHowSureADifferenceIs) {
  using V = std::vector<double>;
  EXPECT_EQ(CertaintyOf(V{0.9}, V{0.1, 0.2}, 1), Certainty::kNothing);
  EXPECT_EQ(CertaintyOf(V{0.9, 0.2}, V{0.1, 0.2}, 1), Certainty::kOverlap);
  EXPECT_EQ(CertaintyOf(V{0.7, 0.8, 0.9}, V{0.1, 0.2, 0.3}, 1),
            Certainty::kHint);
  EXPECT_EQ(CertaintyOf(V{0.7, 0.8, 0.9, 0.9}, V{0.1, 0.2, 0.3, 0.3}, 1),
            Certainty::kLikely);
  // 2 of 35 orders, and 2 of 56: the limit is 1 of 20.
  EXPECT_EQ(CertaintyOf(V{0.7, 0.8, 0.9}, V{0.1, 0.2, 0.3, 0.4}, 1),
            Certainty::kHint);
  EXPECT_EQ(CertaintyOf(V{0.1, 0.2, 0.3, 0.4, 0.5}, V{0.7, 0.8, 0.9}, 1),
            Certainty::kLikely);
  // One of two such comparisons in 4 of 56.
  EXPECT_EQ(CertaintyOf(V{0.1, 0.2, 0.3, 0.4, 0.5}, V{0.7, 0.8, 0.9}, 2),
            Certainty::kHint);
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

// A mode without a partner is compared with all groups without scores; a mode
// that has one takes none from the others.
TEST(CompareModesTest, ComparesSettingsThatDifferInTheModeAlone) {
  std::vector<RunGroup> groups = {Group("off", {{0.5}, {0.6}}),
                                  Group("off", {{0.5}, {0.6}}),
                                  Group("mean", {{0.7}, {0.8}})};
  groups[1].name = "fast";
  groups[1].settings["train"]["learning_rate"] = 3e-3;
  groups[2].settings["train"]["learning_rate"] = 2e-3;
  EXPECT_EQ(CompareModes(groups, kAccuracy).size(), 2u);
  groups.push_back(Group("sum", {{0.9}, {0.8}}));
  const std::vector<Verdict> verdicts = CompareModes(groups, kAccuracy);
  ASSERT_EQ(verdicts.size(), 3u);
  EXPECT_THAT(verdicts[0].headline, HasSubstr("sum is better than off here"));
  EXPECT_THAT(verdicts[0].detail, Not(HasSubstr("may be the reason")));
  for (const size_t i : {1u, 2u}) {
    EXPECT_THAT(verdicts[i].headline, HasSubstr("mean scores better than off"));
    EXPECT_THAT(verdicts[i].detail,
                HasSubstr("may be the reason: train.learning_rate."));
  }
}

TEST(CompareModesTest, SaysWhyThereIsNoComparison) {
  const std::vector<RunGroup> groups = {Group("mean", {{0.5}}),
                                        Group("sum, off, off", {{0.5}})};
  const std::vector<Verdict> verdicts = CompareModes(groups, kAccuracy);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].headline, "These runs do not compare residual scores.");
  EXPECT_THAT(verdicts[0].detail, HasSubstr("these have mean; sum, off, off."));
  EXPECT_EQ(CompareModes(groups, {})[0].headline, "Nothing was evaluated yet.");
}

TEST(CompareModesTest, ComparesNoScoresOnDifferentData) {
  const std::vector<std::vector<double>> low = {{0.1}, {0.2}, {0.3}, {0.4}};
  const std::vector<std::vector<double>> high = {{0.6}, {0.7}, {0.8}, {0.9}};
  for (const char* field : {"dev", "dev_records", "train"}) {
    std::vector<RunGroup> groups = {Group("off", low), Group("sum", high)};
    for (RunGroup& group : groups) {
      // Records that pre-training holds out of data.train.
      group.settings["data"] = {{"dev", nlohmann::json::array()},
                                {"dev_records", ""}};
    }
    groups[1].settings["data"][field] = "others";
    const std::vector<Verdict> verdicts = CompareModes(groups, kAccuracy);
    ASSERT_EQ(verdicts.size(), 1u);
    EXPECT_EQ(verdicts[0].headline,
              "Cannot be compared: sum and off are scored on different data.");
    EXPECT_EQ(verdicts[0].detail,
              std::string("Best accuracy of each seed: sum median 0.7500 "
                          "(0.6000 to 0.9000, 4 seeds), off median 0.2500 "
                          "(0.1000 to 0.4000, 4 seeds). They differ in more "
                          "than the mode: data.") +
                  field + ".");
    groups[1].runs.clear();
    EXPECT_EQ(CompareModes(groups, kAccuracy)[0].headline,
              verdicts[0].headline);
  }
}

// Pre-training leaves short documents out of data.dev too; how many are held
// out of data.train matters only where some are.
TEST(CompareModesTest, ComparesNoScoresOnDocumentsOfOtherLengths) {
  const auto headline = [](const char* field, const nlohmann::json& dev) {
    std::vector<RunGroup> groups = {Group("off", {{0.1}, {0.2}}),
                                    Group("sum", {{0.6}, {0.7}})};
    for (RunGroup& group : groups) {
      group.settings["data"] = {{"dev", dev}, {"dev_records", ""}};
      group.settings["pretrain"] = {{field, 1}};
    }
    groups[1].settings["pretrain"][field] = 12;
    return CompareModes(groups, kAccuracy)[0].headline;
  };
  const nlohmann::json none = nlohmann::json::array();
  for (const auto& [field, dev] :
       {std::pair("min_sentences", none),
        std::pair("min_sentences", nlohmann::json("the same")),
        std::pair("development_one_in", none),
        std::pair("max_sentences", none)}) {
    EXPECT_EQ(headline(field, dev),
              "Cannot be compared: sum and off are scored on different data.")
        << field << " " << dev;
  }
  for (const char* field : {"development_one_in", "max_sentences"}) {
    EXPECT_THAT(headline(field, "the same"),
                HasSubstr("sum scores better than off"));
  }
}

// Options of holding out decide nothing where data.dev names files.
TEST(CompareModesTest, ComparesScoresOnTheSameFiles) {
  for (const char* field : {"dev_fraction", "dev_seed"}) {
    std::vector<RunGroup> groups = {Group("off", {{0.1}, {0.2}}),
                                    Group("sum", {{0.6}, {0.7}})};
    for (RunGroup& group : groups) {
      group.settings["data"] = {{"dev", "the same"}, {"dev_records", ""}};
    }
    groups[1].settings["data"][field] = 2;
    EXPECT_EQ(CompareModes(groups, kAccuracy)[0].headline,
              std::string("sum scores better than off, but they differ in more "
                          "than the mode: data.") +
                  field + ".");
  }
}

TEST(CompareModesTest, AnswersNeitherYesNorNoIfMoreThanTheModeDiffers) {
  std::vector<RunGroup> groups = {Group("off", {{0.1}, {0.2}, {0.3}, {0.4}}),
                                  Group("sum", {{0.6}, {0.7}, {0.8}, {0.9}})};
  for (RunGroup& group : groups) {
    group.settings["data"]["dev"] = "the same";
  }
  groups[1].settings["data"]["train"] = "others";
  groups[1].settings["schedule"]["warmup_proportion"] = 0.1;
  groups[1].settings["train"]["batch_size"] = 8;
  groups[1].settings["train"]["epochs"] = 3;
  const std::vector<Verdict> verdicts = CompareModes(groups, kAccuracy);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].headline,
            "sum scores better than off, but they differ in more than the "
            "mode: data.train, schedule.warmup_proportion, train.batch_size "
            "and 1 more.");
  EXPECT_THAT(verdicts[0].detail,
              HasSubstr("may be the reason: data.train, "
                        "schedule.warmup_proportion, train.batch_size, "
                        "train.epochs."));
}

TEST(CompareModesTest, NamesTheGroupsWithoutScoresIfThereAreSeveral) {
  std::vector<RunGroup> groups = {
      Group("off", {{0.5}, {0.7}}), Group("off", {{0.5}, {0.7}}),
      Group("sum", {{0.6}, {0.9}}), Group("sum", {{0.6}, {0.9}})};
  groups[1].name = "off-fast";
  groups[3].name = "sum-fast";
  for (const size_t fast : {1u, 3u}) {
    groups[fast].settings["train"]["learning_rate"] = 2e-3;
  }
  const std::vector<Verdict> verdicts = CompareModes(groups, kAccuracy);
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_EQ(verdicts[0].headline,
            "No difference can be shown: the seeds of sum and off overlap.");
  EXPECT_EQ(verdicts[1].headline,
            "No difference can be shown: the seeds of sum (sum-fast) and off "
            "(off-fast) overlap.");
}

// Only comparisons that can be answered count.
TEST(CompareModesTest, IsLessSureWhereItMakesSeveralComparisons) {
  std::vector<RunGroup> groups = {Group("off", {{0.1}, {0.2}, {0.3}, {0.4}}),
                                  Group("sum", {{0.6}, {0.7}, {0.8}, {0.9}}),
                                  Group("gate", {{0.9}})};
  const std::vector<Verdict> sure = CompareModes(groups, kAccuracy);
  EXPECT_EQ(sure[0].headline,
            "Yes: sum is better than off here, and that is fairly sure.");
  EXPECT_THAT(sure[0].detail, HasSubstr("in 1 of 35 comparisons."));
  groups.pop_back();
  for (const char* mode : {"mean", "decay", "gate"}) {
    groups.push_back(Group(mode, {{0.6}, {0.7}, {0.8}, {0.9}}));
  }
  const std::vector<Verdict> unsure = CompareModes(groups, kAccuracy);
  ASSERT_EQ(unsure.size(), 4u);
  for (const Verdict& verdict : unsure) {
    EXPECT_THAT(verdict.headline, testing::StartsWith("Probably yes: "));
    EXPECT_THAT(verdict.detail,
                HasSubstr("in 1 of 35 comparisons, and in up to 11 % of "
                          "reports with 4 of them."));
  }
}

TEST(CompareModesTest, ShowsTheDifferenceOfTheMediansThatItShows) {
  const auto detail = [](double off, double sum) {
    return CompareModes({Group("off", {{off}}), Group("sum", {{sum}})},
                        kAccuracy)[0]
        .detail;
  };
  EXPECT_THAT(detail(0.1 + 0.2, 0.3),
              HasSubstr("difference of medians 0.0000. "));
  EXPECT_THAT(detail(0.50004, 0.50006),
              AllOf(HasSubstr("sum 0.5001 "), HasSubstr("off 0.5000 "),
                    HasSubstr("difference of medians +0.0001. ")));
}

TEST(CompareModesTest, NamesRunsThatDiverged) {
  std::vector<RunGroup> groups = {Group("off", {{0.5}, {0.6}}),
                                  Group("sum", {{0.8}, {0.9}})};
  LoggedRun& run = groups[1].runs[1];
  run.finished = false;
  run.log.has_diverged = true;
  EXPECT_THAT(CompareModes(groups, kAccuracy)[0].detail,
              AllOf(HasSubstr("Diverged: sum, seed 2 (scores, if any, are from "
                              "before that)."),
                    Not(HasSubstr("have ended"))));
  for (LoggedRun& without_score : groups[1].runs) {
    without_score.log.evaluations.clear();
  }
  EXPECT_THAT(CompareModes(groups, kAccuracy)[0].detail,
              AllOf(HasSubstr("sum has no evaluation."),
                    HasSubstr("Diverged: sum, seed 2")));
}

// Settings, and so the mode, are in files that evaluations write.
TEST(CompareModesTest, NamesRunsThatDivergedBeforeTheirFirstEvaluation) {
  std::vector<RunGroup> groups = {Group("off", {{0.5}, {0.6}}),
                                  Group("gate", {{}})};
  groups[1].settings = nlohmann::json();
  groups[1].runs[0].finished = false;
  groups[1].runs[0].log.has_diverged = true;
  const std::string named = " Diverged: gate, seed 1 (";
  EXPECT_THAT(CompareModes(groups, {})[0].detail, HasSubstr(named));
  const std::vector<Verdict> without = CompareModes(groups, kAccuracy);
  ASSERT_EQ(without.size(), 1u);
  EXPECT_THAT(without[0].detail, HasSubstr("these have off." + named));
  groups.push_back(Group("sum", {{0.8}, {0.9}}));
  const std::vector<Verdict> verdicts = CompareModes(groups, kAccuracy);
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_EQ(verdicts[1].headline,
            "Some runs diverged before their mode was known.");
  EXPECT_THAT(verdicts[1].detail, HasSubstr(named));
}

TEST(CompareModesTest, CountsTheComparisonsBeyondTheFirstTwelve) {
  std::vector<RunGroup> groups;
  for (const std::string mode : {"off", "sum"}) {
    for (int i = 0; i < 4; ++i) {
      groups.push_back(Group(mode, {{0.5}}));
      groups.back().settings["train"]["learning_rate"] =
          mode + std::to_string(i);
    }
  }
  const std::vector<Verdict> verdicts = CompareModes(groups, kAccuracy);
  ASSERT_EQ(verdicts.size(), 13u);
  EXPECT_EQ(verdicts[12].headline, "4 more comparisons are not shown.");

  // One that can be answered is shown, though its group is the last.
  groups.push_back(Group("gate", {{0.5}}));
  groups.back().settings["train"]["learning_rate"] = "off0";
  const std::vector<Verdict> more = CompareModes(groups, kAccuracy);
  ASSERT_EQ(more.size(), 13u);
  EXPECT_THAT(more[0].headline, HasSubstr("about gate against off"));
  EXPECT_EQ(more[12].headline, "5 more comparisons are not shown.");
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
