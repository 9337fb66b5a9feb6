// Scores for people, the main metric first and named, and for programs, with
// all digits; the direction of a metric by its name.
#include "tasks/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "nlohmann/json.hpp"

namespace etc {
namespace {

const std::vector<std::pair<std::string, double>> kScores = {
    {"em", 0.6}, {"f1", 2.0 / 3.0}, {"joint_f1", 0.73574}};

TEST(MetricsTest, HaveADirectionByTheirNames) {
  for (const char* name :
       {"loss", "masked_lm_loss", "perplexity", "error", "absolute_error",
        "error_rate", "word_error_rate", "mse", "rmse", "mae", "wer", "cer"}) {
    EXPECT_TRUE(IsLowerBetter(name)) << name;
  }
  for (const char* name : {"gloss", "f1", "accuracy", "answer", "er"}) {
    EXPECT_FALSE(IsLowerBetter(name)) << name;
  }
}

TEST(ScoreTableTest, HasTheMainMetricFirst) {
  EXPECT_EQ(FormatScoreTable(kScores, "joint_f1"),
            "joint_f1  0.7357  (main metric)\n"
            "em        0.6000\n"
            "f1        0.6667\n");
  EXPECT_EQ(FormatScoreTable({{"accuracy", 1}}, "accuracy"),
            "accuracy  1.0000\n");
  EXPECT_EQ(FormatScoreTable({}, "accuracy"), "");
}

TEST(ScoreTableTest, HasDigitsOfSmallAndLargeScores) {
  EXPECT_EQ(FormatScore(0), "0.0000");
  EXPECT_EQ(FormatScore(-0.25), "-0.2500");
  EXPECT_EQ(FormatScore(0.00012345), "0.0001234");
  EXPECT_EQ(FormatScore(-1.2e-9), "-1.2e-09");
  EXPECT_EQ(FormatScore(123456.5), "123456.5000");
  EXPECT_EQ(FormatScore(1e300), "1e+300");
  EXPECT_EQ(FormatMainScore({{"mse", 1e-8}}, "mse"), "mse 1e-08");
}

// A setting of fewer digits would be on the other side of an answer's odds.
TEST(ScoreTableTest, HasAllDigitsOfThresholds) {
  const double odds = -0.30000000000000004;
  const std::string table = FormatScoreTable({{"best_f1", odds},
                                              {"best_f1_thresh", odds},
                                              {"threshold", 0.1},
                                              {"no_threshold_is", odds}},
                                             "best_f1");
  EXPECT_EQ(table,
            "best_f1          -0.3000  (main metric)\n"
            "best_f1_thresh   -0.30000000000000004\n"
            "threshold        0.1\n"
            "no_threshold_is  -0.3000\n");
  EXPECT_EQ(std::stod("-0.30000000000000004"), odds);
  EXPECT_EQ(FormatScoreTable({{"threshold", HUGE_VAL}}, ""),
            "threshold  inf\n");
}

TEST(ScoreTableTest, IsJsonWhateverTheScores) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(ScoresToJson({{"a", infinity}, {"b", -infinity}}),
            R"({"a":"inf","b":"-inf"})");
}

TEST(ScoreTableTest, NamesTheMainScore) {
  EXPECT_EQ(FormatMainScore(kScores, "joint_f1"), "joint_f1 0.7357");
  EXPECT_EQ(FormatMainScore({}, "joint_f1"), "no joint_f1");
}

TEST(ScoreTableTest, KeepsAllDigitsForPrograms) {
  const std::string text = ScoresToJson(kScores);
  EXPECT_EQ(text.find("{\"em\":0.6,\"f1\":0.666"), 0) << text;
  EXPECT_EQ(nlohmann::json::parse(text)["f1"].get<double>(), 2.0 / 3.0);
}

}  // namespace
}  // namespace etc
