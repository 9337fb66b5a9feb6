// When spans and sets of them are equal, when an answer is right, and which
// threshold is best: the official tests and the golden case of doc/nq.md 9.4 to
// 9.6. Scores are ratios of small numbers: exact, or to 1e-12.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tasks/nq/metric.h"

namespace etc {
namespace {

constexpr double kTolerance = 1e-12;
constexpr NqSpan kNull;

constexpr NqSpan Bytes(int64_t start, int64_t end) {
  return {.start_byte = start, .end_byte = end};
}
constexpr NqSpan Tokens(int64_t start, int64_t end) {
  return {.start_token = start, .end_token = end};
}

TEST(NqSpansMatchTest, NeedsEqualBytesOrEqualTokens) {  // doc/nq.md 9.6
  EXPECT_TRUE(NqSpansMatch(Bytes(100, 102), Bytes(100, 102)));
  EXPECT_TRUE(NqSpansMatch(Tokens(100, 102), Tokens(100, 102)));
  EXPECT_FALSE(NqSpansMatch(Bytes(100, 102), Tokens(100, 102)));
  EXPECT_FALSE(NqSpansMatch(Tokens(100, 102), Tokens(100, 103)));
  EXPECT_FALSE(NqSpansMatch(Tokens(100, 102), Tokens(99, 102)));
  EXPECT_FALSE(NqSpansMatch(Bytes(100, 102), Bytes(100, 103)));
  EXPECT_FALSE(NqSpansMatch(Bytes(100, 102), Bytes(99, 102)));
  EXPECT_FALSE(NqSpansMatch(kNull, kNull));
  // One of the two is enough.
  EXPECT_TRUE(NqSpansMatch({1, 2, 3, 4}, {1, 2, 5, 6}));
  EXPECT_TRUE(NqSpansMatch({1, 2, 3, 4}, {7, 9, 3, 4}));
  EXPECT_FALSE(NqSpansMatch({1, 2, 3, 4}, {1, 3, 3, 5}));
}

TEST(NqSpansMatchTest, KnowsNullSpans) {  // doc/nq.md 9.6
  EXPECT_TRUE(kNull.is_null());
  EXPECT_FALSE(Tokens(0, 1).is_null());
}

TEST(NqSpanSetsMatchTest, IgnoresOrderAndNullSpans) {  // doc/nq.md 9.6
  const NqSpan a = Tokens(100, 102);
  const NqSpan b = Tokens(101, 105);
  EXPECT_TRUE(NqSpanSetsMatch({a, b}, {a, b}));
  EXPECT_TRUE(NqSpanSetsMatch({a, b}, {b, a}));
  EXPECT_TRUE(NqSpanSetsMatch({a, b}, {a, b, kNull}));
  EXPECT_FALSE(NqSpanSetsMatch({a}, {a, b, kNull}));
  EXPECT_FALSE(NqSpanSetsMatch({a, b, kNull}, {a}));
  EXPECT_TRUE(NqSpanSetsMatch({kNull}, {}));
}

// Annotators of whom the first gave these answers, and five in all.
std::vector<NqAnnotation> FiveWith(std::vector<NqAnnotation> annotations) {
  annotations.resize(5);
  return annotations;
}

NqAnnotation Long(const NqSpan& span) { return {.long_answer = span}; }
NqAnnotation Short(std::vector<NqSpan> spans) {
  return {.short_answers = std::move(spans)};
}
NqAnnotation Word(NqYesNo yes_no) { return {.yes_no = yes_no}; }

// "gold predicted correct", of those that hold.
std::string TextOf(const NqVerdict& verdict) {
  return absl::StrCat(verdict.has_gold ? "gold " : "",
                      verdict.has_prediction ? "predicted " : "",
                      verdict.is_correct ? "correct" : "");
}

std::string JudgeLong(const std::vector<NqAnnotation>& annotations,
                      const NqSpan& span) {
  return TextOf(
      JudgeLongAnswer(FiveWith(annotations), {.long_answer = span}, 2));
}

// doc/nq.md 9.5
TEST(JudgeLongAnswerTest, NeedsTwoAnnotatorsAndOneThatAgrees) {
  const NqSpan ten = Tokens(0, 10);
  const NqSpan nine = Tokens(0, 9);
  EXPECT_EQ(JudgeLong({Long(ten)}, ten), "predicted ");
  EXPECT_EQ(JudgeLong({Long(ten), Long(nine)}, ten), "gold predicted correct");
  EXPECT_EQ(JudgeLong({Long(ten), Long(nine)}, nine), "gold predicted correct");
  EXPECT_EQ(JudgeLong({Long(ten), Long(nine)}, Tokens(0, 8)),
            "gold predicted ");
  EXPECT_EQ(JudgeLong({Long(ten), Long(nine)}, kNull), "gold ");
  EXPECT_EQ(JudgeLong({}, kNull), "");
}

TEST(JudgeLongAnswerTest, TakesThresholdAndScoreAsGiven) {
  const NqSpan ten = Tokens(0, 10);
  const NqVerdict verdict = JudgeLongAnswer(
      {Long(ten)},
      {.long_answer = ten, .long_answer_score = 3.5, .short_answers_score = 7},
      1);
  EXPECT_TRUE(verdict.is_correct);
  EXPECT_EQ(verdict.score, 3.5);
}

std::string JudgeShort(const std::vector<NqAnnotation>& annotations,
                       const NqPrediction& prediction) {
  return TextOf(JudgeShortAnswers(FiveWith(annotations), prediction, 2));
}

TEST(JudgeShortAnswersTest, NeedsTheWholeSetOfOneAnnotator) {  // doc/nq.md 9.5
  const std::vector<NqSpan> both = {Tokens(1, 3), Tokens(5, 6)};
  EXPECT_EQ(JudgeShort({Short(both)}, {.short_answers = both}), "predicted ");
  EXPECT_EQ(JudgeShort({Short(both), Short(both)}, {.short_answers = both}),
            "gold predicted correct");
  EXPECT_EQ(
      JudgeShort({Short(both), Short(both)}, {.short_answers = {Tokens(1, 3)}}),
      "gold predicted ");
  EXPECT_EQ(JudgeShort({Short(both), Short({Tokens(1, 3)})},
                       {.short_answers = {Tokens(1, 3)}}),
            "gold predicted correct");
  EXPECT_EQ(JudgeShort({Short(both), Short(both)}, {}), "gold ");
  EXPECT_EQ(
      JudgeShort({Short({kNull}), Short({kNull})}, {.short_answers = {kNull}}),
      "");
}

TEST(JudgeShortAnswersTest, CountsYesAndNoAsAnswers) {  // doc/nq.md 9.5
  const std::vector<NqAnnotation> gold = {Word(NqYesNo::kYes),
                                          Short({Tokens(1, 3), Tokens(5, 6)})};
  EXPECT_EQ(JudgeShort(gold, {.yes_no = NqYesNo::kYes}),
            "gold predicted correct");
  EXPECT_EQ(JudgeShort(gold, {.yes_no = NqYesNo::kNo}), "gold predicted ");
  EXPECT_EQ(JudgeShort({Word(NqYesNo::kYes), Word(NqYesNo::kNo)},
                       {.yes_no = NqYesNo::kNo}),
            "gold predicted correct");
  EXPECT_EQ(JudgeShort({Word(NqYesNo::kYes)}, {.yes_no = NqYesNo::kYes}),
            "predicted ");
}

NqVerdict Verdict(bool has_gold, bool has_prediction, bool is_correct,
                  double score) {
  return {.has_gold = has_gold,
          .has_prediction = has_prediction,
          .is_correct = is_correct,
          .score = score};
}

TEST(BestThresholdTest, TakesEqualScoresTogether) {  // doc/nq.md 9.4
  const NqThresholdScores best = BestThreshold(
      {Verdict(true, true, true, 9), Verdict(true, true, false, 8),
       Verdict(false, true, false, 7), Verdict(true, true, true, 7),
       Verdict(true, false, false, 6), Verdict(true, true, true, 5),
       Verdict(false, true, false, 1)});
  EXPECT_NEAR(best.f1, .6, kTolerance);
  EXPECT_NEAR(best.precision, .6, kTolerance);
  EXPECT_NEAR(best.recall, .6, kTolerance);
  EXPECT_EQ(best.threshold, 5);
  EXPECT_NEAR(best.recall_at_precision[0], .6, kTolerance);
  EXPECT_NEAR(best.recall_at_precision[1], .2, kTolerance);
  EXPECT_NEAR(best.recall_at_precision[2], .2, kTolerance);
}

TEST(BestThresholdTest, AgreesWithTheOfficialTest) {  // doc/nq.md 9.5
  const NqThresholdScores best = BestThreshold(
      {Verdict(true, true, true, 1), Verdict(false, true, false, 10)});
  EXPECT_NEAR(best.f1, 2. / 3, kTolerance);
  EXPECT_EQ(best.precision, .5);
  EXPECT_EQ(best.recall, 1);
  EXPECT_EQ(best.threshold, 1);
  EXPECT_THAT(best.recall_at_precision, testing::ElementsAre(1, 0, 0));
}

TEST(BestThresholdTest, TakesTheHighestOfEquallyGoodThresholds) {
  const NqThresholdScores best = BestThreshold(
      {Verdict(true, true, true, -2), Verdict(true, false, false, -3),
       Verdict(true, false, false, -4)});
  EXPECT_EQ(best.threshold, -2);
  EXPECT_EQ(best.precision, 1);
}

TEST(BestThresholdTest, IsZeroWithoutAnythingRight) {
  for (const std::vector<NqVerdict>& verdicts :
       std::vector<std::vector<NqVerdict>>{
           {},
           {Verdict(false, false, false, 3)},
           {Verdict(true, false, false, 3)},
           {Verdict(false, true, false, 3), Verdict(true, true, false, -1)}}) {
    const NqThresholdScores best = BestThreshold(verdicts);
    EXPECT_EQ(best.f1, 0);
    EXPECT_EQ(best.threshold, 0);
    EXPECT_THAT(best.recall_at_precision, testing::ElementsAre(0, 0, 0));
  }
}

TEST(BestThresholdTest, PutsWhatIsNoNumberLast) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const NqThresholdScores best = BestThreshold(
      {Verdict(false, true, false, nan), Verdict(true, true, true, -1e300)});
  EXPECT_EQ(best.f1, 1);
  EXPECT_EQ(best.threshold, -1e300);
}

// Computes each threshold by the definition: count the answers that score at
// least as much.
NqThresholdScores BestThresholdReference(
    const std::vector<NqVerdict>& verdicts) {
  std::vector<double> thresholds;
  double num_gold = 0;
  for (const NqVerdict& verdict : verdicts) {
    thresholds.push_back(verdict.score);
    num_gold += verdict.has_gold;
  }
  std::sort(thresholds.rbegin(), thresholds.rend());
  NqThresholdScores best;
  for (const double threshold : thresholds) {
    double correct = 0;
    double given = 0;
    for (const NqVerdict& verdict : verdicts) {
      if (verdict.score >= threshold) {
        correct += verdict.is_correct;
        given += verdict.has_prediction;
      }
    }
    const double precision = given == 0 ? 0 : correct / given;
    const double recall = num_gold == 0 ? 0 : correct / num_gold;
    const double f1 =
        correct == 0 ? 0 : 2 * precision * recall / (precision + recall);
    if (f1 > best.f1) {
      best = {{f1, precision, recall}, threshold, best.recall_at_precision};
    }
    for (size_t p = 0; p < kNqPrecisions.size(); ++p) {
      if (precision >= kNqPrecisions[p]) {
        best.recall_at_precision[p] =
            std::max(best.recall_at_precision[p], recall);
      }
    }
  }
  return best;
}

// Few scores, so that many are equal.
TEST(BestThresholdTest, MatchesItsDefinition) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::vector<NqVerdict> verdicts(random() % 12);
    for (NqVerdict& verdict : verdicts) {
      verdict = Verdict(random() % 2 == 0, random() % 4 != 0, false,
                        static_cast<double>(random() % 6));
      verdict.is_correct =
          verdict.has_gold && verdict.has_prediction && random() % 3 != 0;
    }
    const NqThresholdScores fast = BestThreshold(verdicts);
    const NqThresholdScores slow = BestThresholdReference(verdicts);
    ASSERT_EQ(fast.f1, slow.f1) << round;
    ASSERT_EQ(fast.threshold, slow.threshold) << round;
    ASSERT_EQ(fast.precision, slow.precision) << round;
    ASSERT_EQ(fast.recall, slow.recall) << round;
    ASSERT_EQ(fast.recall_at_precision, slow.recall_at_precision) << round;
  }
}

}  // namespace
}  // namespace etc
