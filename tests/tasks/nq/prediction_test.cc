// The answers of a document by default: candidates and spans of one window,
// scores against no answer, and the answer type; and where the official
// program differs (doc/nq.md 6, traps 1 and 2). The search against all pairs in
// plain loops, on random logits.

#include "tasks/nq/prediction.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tasks/nq/windows_of_logits.h"

namespace etc {
namespace {

std::string Show(const NqPrediction& prediction) {
  std::string text = absl::StrCat("long ", prediction.long_answer.start_token,
                                  "-", prediction.long_answer.end_token, " ",
                                  prediction.long_answer_score, " short");
  for (const NqSpan& span : prediction.short_answers) {
    absl::StrAppend(&text, " ", span.start_token, "-", span.end_token);
  }
  return absl::StrCat(text, " ", prediction.short_answers_score,
                      prediction.yes_no == NqYesNo::kYes  ? " yes"
                      : prediction.yes_no == NqYesNo::kNo ? " no"
                                                          : "");
}

// Candidates [2, 8), in it [4, 6), and [10, 14). The first window has tokens 0
// to 9, the second one 4 to 15.
std::vector<OwnedNqWindow> TwoWindows() {
  const auto document = NqDocumentOf({{2, 8}, {4, 6}, {10, 14}});
  return {
      WindowOfLogits(
          document, 0, 9, 1,
          {NqTokenLogits{{3, 4}, {6, 9}}, NqTokenLogits{{2, 5}, {6, 9}},
           NqTokenLogits{{4, 2}, {2, 4}, {9, 3}},
           NqTokenLogits{{4, 7}, {3, 5}, {9, 8}}}),
      WindowOfLogits(
          document, 4, 15, -2,
          {NqTokenLogits{{1, 11}, {0, 4}}, NqTokenLogits{{1, 12}, {0, 4}},
           NqTokenLogits{{2, 10}, {1, 4}}, NqTokenLogits{{-1, 13}, {1, 5}}})};
}

TEST(NqPredictionTest, IsACandidateAndAShortAnswerWithinIt) {
  // [2, 8): 3 + 3 in the first window. [4, 6): 1 + 2, and 3 + 3 in the second.
  // [10, 14): 4 + 1. Tokens 3 and 8 are ends of none. Short answers: [4, 6) has
  // 2 + 1 in the first window, [4, 5) 2 + 2 in the second.
  EXPECT_EQ(Show(DecodeNqDocument(TwoWindows(), {})), "long 2-8 6 short 4-5 4");
}

TEST(NqPredictionTest, HasAShortAnswerAnywhereIfDisjoint) {
  EXPECT_EQ(Show(DecodeNqDocument(
                TwoWindows(), {.span_selection = NqSpanSelection::kDisjoint})),
            "long 2-8 6 short 9-10 10");
}

TEST(NqPredictionTest, IsTheBestPairIfExhaustive) {
  std::vector<OwnedNqWindow> windows = TwoWindows();
  const NqOptions options{.span_selection = NqSpanSelection::kJointExhaustive};
  // [10, 14) has 5 and a short answer of 6: together more than 6 and 4.
  EXPECT_EQ(Show(DecodeNqDocument(windows, options)),
            "long 10-14 5 short 11-13 6");
  EndLogit(windows[0], 0, 5) += 2;
  EXPECT_EQ(Show(DecodeNqDocument(windows, options)), "long 2-8 6 short 4-6 5");
}

TEST(NqPredictionTest, TakesBothEndsFromOneWindow) {
  // The start of [10, 14) is in the first window only, its end in the second.
  const auto document = NqDocumentOf({{8, 14}});
  const std::vector<OwnedNqWindow> windows = {
      WindowOfLogits(document, 0, 9, 0, {{}, {}, NqTokenLogits{{5, 8}}, {}}),
      WindowOfLogits(document, 9, 15, 0, {{}, {}, {}, NqTokenLogits{{5, 13}}})};
  EXPECT_EQ(Show(DecodeNqDocument(windows, {})), "long -1--1 0 short 0");
  // Officially they go together.
  EXPECT_EQ(Show(DecodeNqDocument(
                std::vector<OwnedNqWindow>{
                    WindowOfLogits(document, 0, 9, 1,
                                   {{}, {}, NqTokenLogits{{5, 8}}, {}}),
                    WindowOfLogits(document, 9, 15, 1,
                                   {{}, {}, {}, NqTokenLogits{{5, 13}}})},
                {.official_compatibility = true})),
            "long 8-14 10 short 0-1 0");
}

TEST(NqPredictionTest, HasNoAnswerWithoutCandidates) {
  const NqTokenLogits ends = {{5, 3}};
  const std::vector<OwnedNqWindow> windows = {
      WindowOfLogits(NqDocumentOf({}), 0, 9, 0, {ends, ends, ends, ends})};
  for (const auto method :
       {NqSpanSelection::kJoint, NqSpanSelection::kJointExhaustive}) {
    EXPECT_EQ(Show(DecodeNqDocument(windows, {.span_selection = method})),
              "long -1--1 0 short 0");
  }
  EXPECT_EQ(Show(DecodeNqDocument(
                windows, {.span_selection = NqSpanSelection::kDisjoint})),
            "long -1--1 0 short 3-4 10");
}

TEST(NqPredictionTest, PointsAtWholeWords) {
  // Token 2 has three pieces: the first one starts it, the last one ends it.
  auto window = WindowOfLogits(NqDocumentOf({{1, 4}}), 0, 5, 0, {});
  auto example = std::make_shared<NqExample>(*window.example);
  example->long_tokens = {-1, 1, 2, 2, 2, 3, -1};
  window.example = example;
  window.logits.ends.clear();
  for (int64_t c = 0; c < kNqNumChannels; ++c) {
    window.logits.ends.insert(window.logits.ends.end(), {0, 1, 2, 3, 4, 1, 0});
  }
  EXPECT_EQ(Show(DecodeNqDocument(std::vector<OwnedNqWindow>{window}, {})),
            "long 1-4 2 short 2-3 6");
}

TEST(NqPredictionTest, LimitsTheShortAnswer) {
  const auto document = NqDocumentOf({{0, 50}});
  const std::vector<OwnedNqWindow> windows = {
      WindowOfLogits(document, 0, 60, 0,
                     {NqTokenLogits{{1, 10}},
                      NqTokenLogits{{1, 41}, {2, 42}},
                      NqTokenLogits{{1, 0}},
                      {{1, 49}}})};
  EXPECT_EQ(Show(DecodeNqDocument(windows, {})), "long 0-50 2 short 10-42 2");
  EXPECT_EQ(Show(DecodeNqDocument(windows, {.max_short_answer_length = 33})),
            "long 0-50 2 short 10-43 3");
}

std::vector<OwnedNqWindow> WithTypes(const std::vector<NqAnswerType>& types) {
  std::vector<OwnedNqWindow> windows = TwoWindows();
  for (size_t w = 0; w < windows.size(); ++w) {
    std::vector<float>& logits = windows[w].logits.answer_type;
    logits = {1, 0, 0, 0, 0};
    logits[static_cast<size_t>(types[w])] = 3.5;
  }
  return windows;
}

// doc/nq.md 10, trap 2
TEST(NqPredictionTest, TakesTheTypeFromTheWindowOfTheLongAnswer) {
  const auto yes = WithTypes({NqAnswerType::kYes, NqAnswerType::kNo});
  // 2 (3.5 - 1)
  EXPECT_EQ(Show(DecodeNqDocument(yes, {})), "long 2-8 6 short 5 yes");
  EXPECT_EQ(Show(DecodeNqDocument(yes, {.consider_answer_type = false})),
            "long 2-8 6 short 4-5 4");
  const auto no = WithTypes({NqAnswerType::kNo, NqAnswerType::kYes});
  EXPECT_EQ(Show(DecodeNqDocument(no, {})), "long 2-8 6 short 5 no");
  for (const auto type : {NqAnswerType::kNull, NqAnswerType::kShort}) {
    EXPECT_EQ(Show(DecodeNqDocument(WithTypes({type, NqAnswerType::kYes}), {})),
              "long 2-8 6 short 4-5 4");
  }
}

TEST(NqPredictionTest, TakesTheTypeFromTheLastWindowOfficially) {
  const auto windows = WithTypes({NqAnswerType::kYes, NqAnswerType::kNo});
  const NqOptions options{.official_compatibility = true};
  const NqPrediction official = DecodeNqDocument(windows, options);
  EXPECT_EQ(official.yes_no, NqYesNo::kNo);
  EXPECT_THAT(official.short_answers, testing::IsEmpty());
  // The score stays that of the span: 6 / 1 + 6 / 1.
  EXPECT_EQ(official.short_answers_score, 12);
  // No candidate: from 3 to 8.
  EXPECT_EQ(official.long_answer.start_token, 3);
  EXPECT_EQ(official.long_answer.end_token, 9);
}

TEST(NqPredictionTest, HasNoShortAnswerIfTheTypeIsLongUnlessOfficial) {
  const auto windows = WithTypes({NqAnswerType::kLong, NqAnswerType::kLong});
  EXPECT_EQ(Show(DecodeNqDocument(windows, {})), "long 2-8 6 short 4");
  EXPECT_EQ(DecodeNqDocument(windows, {.official_compatibility = true})
                .short_answers.size(),
            1u);  // doc/nq.md 10, trap 2
}

TEST(NqPredictionTest, SurvivesLogitsThatAreNotFinite) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    std::vector<OwnedNqWindow> windows = TwoWindows();
    EndLogit(windows[0], 2, 0) = bad;  // of no long answer in the first window
    windows[0].logits.answer_type.assign(kNqNumAnswerTypes, bad);
    windows[1].logits.answer_type.assign(kNqNumAnswerTypes, bad);
    EXPECT_EQ(Show(DecodeNqDocument(windows, {})), "long 4-6 6 short 4-5 4");
    for (OwnedNqWindow& window : windows) {
      std::fill(window.logits.ends.begin(), window.logits.ends.end(), bad);
    }
    for (const auto method :
         {NqSpanSelection::kJoint, NqSpanSelection::kDisjoint,
          NqSpanSelection::kJointExhaustive}) {
      for (const bool official : {false, true}) {
        const NqPrediction prediction = DecodeNqDocument(
            windows,
            {.span_selection = method, .official_compatibility = official});
        EXPECT_EQ(prediction.long_answer_score, 0);
        EXPECT_EQ(prediction.short_answers_score, 0);
        EXPECT_EQ(prediction.long_answer.is_null(),
                  !official || method != NqSpanSelection::kJoint);
      }
    }
  }
}

// The best of all pairs of tokens of one window, in plain loops.
std::optional<NqScoredSpan> BestOfAll(
    const std::vector<OwnedNqWindow>& windows, NqChannel starts, NqChannel ends,
    const std::function<bool(int64_t, int64_t)>& is_allowed) {
  std::optional<NqScoredSpan> best;
  for (const OwnedNqWindow& window : windows) {
    const std::vector<int32_t>& tokens = window.example->long_tokens;
    for (size_t s = 0; s < tokens.size(); ++s) {
      for (size_t e = s; e < tokens.size(); ++e) {
        const LogitRow of_start = NqChannelOf(window, starts);
        const LogitRow of_end = NqChannelOf(window, ends);
        const double score = static_cast<double>(of_start[s]) - of_start[0] +
                             of_end[e] - of_end[0];
        if (tokens[s] >= 0 && tokens[e] >= 0 &&
            is_allowed(tokens[s], tokens[e]) &&
            (!best.has_value() || score > best->score)) {
          best = NqScoredSpan{
              .first = tokens[s], .last = tokens[e], .score = score};
        }
      }
    }
  }
  return best;
}

TEST(NqSpanSelectionTest, IsTheBestOfAllPairs) {
  std::mt19937 random(20);
  std::normal_distribution<float> normal;
  constexpr int64_t kMax = 3;
  for (int round = 0; round < 100; ++round) {
    const std::vector<std::pair<int64_t, int64_t>> candidates = {
        {0, 9}, {2, 5}, {3, 4}, {9, 14}, {11, 13}};
    const auto document = NqDocumentOf(candidates);
    std::vector<OwnedNqWindow> windows = {
        WindowOfLogits(document, 0, 8, 0, {}),
        WindowOfLogits(document, 5, 13, 0, {})};
    for (OwnedNqWindow& window : windows) {
      for (float& logit : window.logits.ends) {
        logit = normal(random);
      }
    }
    const auto is_candidate = [&](int64_t s, int64_t e) {
      return std::find(candidates.begin(), candidates.end(),
                       std::pair<int64_t, int64_t>(s, e + 1)) !=
             candidates.end();
    };
    const auto shorts_within = [&](int64_t first, int64_t last) {
      return BestOfAll(windows, NqChannel::kShortStart, NqChannel::kShortEnd,
                       [=](int64_t s, int64_t e) {
                         return first <= s && s <= e && e <= last &&
                                e - s < kMax;
                       });
    };
    const auto best_long = BestOfAll(windows, NqChannel::kLongStart,
                                     NqChannel::kLongEnd, is_candidate);
    ASSERT_TRUE(best_long.has_value());
    const NqSelection joint =
        SelectNqSpans(windows, NqSpanSelection::kJoint, kMax);
    EXPECT_EQ(joint.long_answer->first, best_long->first);
    EXPECT_EQ(joint.long_answer->last, best_long->last);
    const auto best_short = shorts_within(best_long->first, best_long->last);
    EXPECT_EQ(joint.short_answer->first, best_short->first);
    EXPECT_EQ(joint.short_answer->last, best_short->last);
    EXPECT_DOUBLE_EQ(joint.short_answer->score, best_short->score);

    const NqSelection disjoint =
        SelectNqSpans(windows, NqSpanSelection::kDisjoint, kMax);
    EXPECT_DOUBLE_EQ(disjoint.long_answer->score, best_long->score);
    EXPECT_DOUBLE_EQ(disjoint.short_answer->score, shorts_within(0, 99)->score);

    double best_sum = -1e9;
    for (const auto& [start, end] : candidates) {
      const auto of_long =
          BestOfAll(windows, NqChannel::kLongStart, NqChannel::kLongEnd,
                    [s = start, e = end](int64_t first, int64_t last) {
                      return first == s && last == e - 1;
                    });
      best_sum = std::max(
          best_sum, of_long->score + shorts_within(start, end - 1)->score);
    }
    const NqSelection exhaustive =
        SelectNqSpans(windows, NqSpanSelection::kJointExhaustive, kMax);
    EXPECT_DOUBLE_EQ(
        exhaustive.long_answer->score + exhaustive.short_answer->score,
        best_sum);
  }
}

}  // namespace
}  // namespace etc
