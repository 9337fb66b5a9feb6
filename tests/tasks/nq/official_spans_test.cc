// The official search for answers to the golden values of doc/nq.md 9.3, and
// its rules one by one (doc/nq.md 6.2, 6.3; trap 1).

#include "tasks/nq/official_spans.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tasks/nq/windows_of_logits.h"

namespace etc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kMaxLength = 32;

// "[3, 18) 6", or "none".
std::string Show(const std::optional<NqScoredSpan>& span) {
  if (!span.has_value()) {
    return "none";
  }
  return absl::StrCat("[", span->first, ", ", span->last + 1, ") ",
                      span->score);
}

std::vector<OwnedNqWindow> SpecWindows() {  // doc/nq.md 9.3
  const auto document = NqDocumentOf({});
  return {WindowOfLogits(
              document, 0, 60, 2,
              {NqTokenLogits{{5, 8}, {3, 9}}, NqTokenLogits{{7, 50}, {4, 9}},
               NqTokenLogits{{6, 3}, {1, 12}}, NqTokenLogits{{8, 2}, {4, 11}}}),
          WindowOfLogits(
              document, 10, 20, -1,
              {NqTokenLogits{}, {}, NqTokenLogits{{-2, 12}}, {{-3, 17}}})};
}

TEST(OfficialScoredTokensTest, AreThoseOfTheSpec) {
  const auto tokens = OfficialScoredTokens(SpecWindows());
  EXPECT_THAT(tokens[0],
              ElementsAre(NqScoredToken{2.5, 8}, NqScoredToken{1.5, 9}));
  EXPECT_THAT(tokens[1],
              ElementsAre(NqScoredToken{3.5, 50}, NqScoredToken{2.0, 9}));
  EXPECT_THAT(tokens[2],
              ElementsAre(NqScoredToken{3.0, 3}, NqScoredToken{0.5, 12},
                          NqScoredToken{2.0, 12}));
  EXPECT_THAT(tokens[3],
              ElementsAre(NqScoredToken{4.0, 2}, NqScoredToken{2.0, 11},
                          NqScoredToken{3.0, 17}));
}

TEST(OfficialSpansTest, AreThoseOfTheSpec) {
  const std::vector<OwnedNqWindow> windows = SpecWindows();
  const auto select = [&](NqSpanSelection method) {
    return SelectNqSpansOfficially(windows, method, kMaxLength);
  };
  const NqSelection joint = select(NqSpanSelection::kJoint);
  EXPECT_EQ(Show(joint.long_answer), "[3, 18) 6");
  EXPECT_EQ(Show(joint.short_answer), "[8, 10) 4.5");
  const NqSelection disjoint = select(NqSpanSelection::kDisjoint);
  EXPECT_EQ(Show(disjoint.long_answer), "[2, 4) 7");
  EXPECT_EQ(Show(disjoint.short_answer), "[8, 51) 6");
  const NqSelection exhaustive = select(NqSpanSelection::kJointExhaustive);
  EXPECT_EQ(Show(exhaustive.long_answer), "[3, 18) 6");
  EXPECT_EQ(Show(exhaustive.short_answer), "[8, 10) 4.5");
}

TEST(OfficialScoredTokensTest, AreOfTheFiftyBestOfAllPositions) {
  // 60 tokens, and 40 positions of padding with better logits.
  NqTokenLogits logits;
  for (int32_t token = 0; token < 60; ++token) {
    logits.emplace_back(token == 7 ? 3.0F : 2.0F, token);
  }
  std::vector<OwnedNqWindow> windows = {WindowOfLogits(
      NqDocumentOf({}), 0, 59, 1, {logits, logits, logits, logits})};
  OwnedNqWindow padded = windows[0];
  padded.logits.ends.assign(kNqNumChannels * 102, -1.0F);
  for (size_t c = 0; c < kNqNumChannels; ++c) {
    for (size_t i = 0; i < 102; ++i) {
      EndLogit(padded, c, i) = i < 62   ? EndLogit(windows[0], c, i)
                               : c == 0 ? 9.0F
                                        : -1.0F;
    }
  }
  windows[0] = padded;
  const auto tokens = OfficialScoredTokens(windows);
  // 40 of padding, then token 7, then the first ones.
  ASSERT_EQ(tokens[0].size(), 10u);
  EXPECT_EQ(tokens[0][0], (NqScoredToken{3, 7}));
  EXPECT_EQ(tokens[0][1], (NqScoredToken{2, 0}));
  EXPECT_EQ(tokens[0][9], (NqScoredToken{2, 9}));
  EXPECT_EQ(tokens[1].size(), 50u);
}

TEST(OfficialScoredTokensTest, LeaveOutScoresThatAreNotFinite) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const auto of = [](float cls, float logit) {
    const NqTokenLogits ends = {{logit, 3}, {1, 4}};
    return OfficialScoredTokens(std::vector<OwnedNqWindow>{WindowOfLogits(
        NqDocumentOf({}), 0, 5, cls, {ends, ends, ends, ends})})[0];
  };
  EXPECT_THAT(of(0, 1), IsEmpty());
  EXPECT_THAT(of(kNan, 1), IsEmpty());
  EXPECT_THAT(of(1, kNan), ElementsAre(NqScoredToken{1, 4}));
}

// Windows over nothing.
std::vector<OwnedNqWindow> EmptyWindows() {
  return {WindowOfLogits(NqDocumentOf({}), 0, -1, 1, {})};
}

// doc/nq.md 6.3, end of joint
TEST(OfficialSpansTest, AreTheFirstTokenWithoutAny) {
  const NqSelection joint = SelectNqSpansOfficially(
      EmptyWindows(), NqSpanSelection::kJoint, kMaxLength);
  EXPECT_EQ(Show(joint.long_answer), "[0, 1) 0");
  EXPECT_EQ(Show(joint.short_answer), "[0, 1) 0");
  for (const auto method :
       {NqSpanSelection::kDisjoint, NqSpanSelection::kJointExhaustive}) {
    const NqSelection other =
        SelectNqSpansOfficially(EmptyWindows(), method, kMaxLength);
    EXPECT_FALSE(other.long_answer.has_value());
    EXPECT_FALSE(other.short_answer.has_value());
  }
}

// The long answer and the short one that these logits of one window give.
NqSelection SelectOf(const NqTokenLogits& starts, const NqTokenLogits& ends,
                     NqSpanSelection method) {
  return SelectNqSpansOfficially(
      std::vector<OwnedNqWindow>{WindowOfLogits(NqDocumentOf({}), 0, 80, 1,
                                                {starts, ends, starts, ends})},
      method, kMaxLength);
}

TEST(OfficialSpansTest, SwapEndsIfNoneIsBehindTheStart) {  // steps 2, 3
  const NqSelection joint =
      SelectOf({{5, 40}}, {{2, 10}, {3, 9}}, NqSpanSelection::kJoint);
  EXPECT_EQ(Show(joint.long_answer), "[9, 41) 8");
  EXPECT_EQ(Show(joint.short_answer), "[9, 41) 8");
}

TEST(OfficialSpansTest, LimitTheShortAnswerOnly) {
  const NqTokenLogits starts = {{5, 10}};
  const NqTokenLogits ends = {{4, 42}, {3, 41}};
  const NqSelection joint = SelectOf(starts, ends, NqSpanSelection::kJoint);
  EXPECT_EQ(Show(joint.long_answer), "[10, 43) 9");
  EXPECT_EQ(Show(joint.short_answer), "[10, 42) 8");
  const NqSelection exhaustive =
      SelectOf(starts, ends, NqSpanSelection::kJointExhaustive);
  EXPECT_EQ(Show(exhaustive.long_answer), "[10, 43) 9");
  EXPECT_EQ(Show(exhaustive.short_answer), "[10, 42) 8");
}

TEST(OfficialSpansTest, PreferTheLaterOfEqualStarts) {
  const NqSelection joint =
      SelectOf({{5, 10}, {5, 20}}, {{3, 30}, {3, 25}}, NqSpanSelection::kJoint);
  // Ties go to the first in the list, which has the lower position.
  EXPECT_EQ(Show(joint.long_answer), "[20, 26) 8");
}

TEST(OfficialSpansTest, IgnoreNegativeScoresWhenExhaustive) {
  const NqTokenLogits starts = {{-1, 10}, {-2, 20}};
  const NqTokenLogits ends = {{-1, 30}, {-3, 15}};
  const NqSelection selection =
      SelectOf(starts, ends, NqSpanSelection::kJointExhaustive);
  EXPECT_EQ(Show(selection.long_answer), "[10, 31) -2");
}

}  // namespace
}  // namespace etc
