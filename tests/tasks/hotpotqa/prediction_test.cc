// Facts and answers from logits: the golden values of doc/hotpotqa.md 10.5, the
// rules of doc/hotpotqa.md 6 one by one, and the differences between the
// default and the official search (traps 9 and 10 of doc/hotpotqa.md 11).

#include "tasks/hotpotqa/prediction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tasks/hotpotqa/span_search.h"
#include "tasks/hotpotqa/task.h"
#include "tests/tasks/hotpotqa/spec_record.h"

namespace etc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr float kLow = -20;

float Logit(double probability) {
  return static_cast<float>(std::log(probability / (1 - probability)));
}

// Logits of the spec's instance, to be changed by tests.
struct Model {
  std::vector<float> facts = std::vector<float>(15, kLow);
  std::vector<float> type = {1, 0, 0};
  std::vector<float> begin = std::vector<float>(29, kLow);
  std::vector<float> end = std::vector<float>(29, kLow);
  std::vector<float> bio;

  HotpotqaPrediction Predict(HotpotqaOptions options = {}) const {
    const WordTokenizer tokenizer = HotpotqaSpecTokenizer();
    const auto example = MakeHotpotqaExample(HotpotqaSpecRecord(), tokenizer);
    std::vector<float> answer = bio;
    if (bio.empty()) {
      answer = begin;
      answer.insert(answer.end(), end.begin(), end.end());
    } else {
      options.answer_encoding = HotpotqaAnswerEncoding::kBio;
    }
    const Hotpotqa::Output output = {
        .example = example,
        .logits = {
            .supporting_facts = facts, .answer_type = type, .answer = answer}};
    return Hotpotqa(options, &tokenizer).Decode({&output, 1});
  }
  std::string Answer(bool official) const {
    return *Predict({.official_compatibility = official}).answer;
  }
};

Model SpecModel() {  // doc/hotpotqa.md 10.5
  Model model;
  model.begin[22] = std::log(0.6F);
  model.begin[5] = std::log(0.3F);
  model.end[23] = std::log(0.5F);
  model.end[6] = std::log(0.4F);
  model.facts[11] = Logit(0.8);
  model.facts[6] = Logit(0.9);
  return model;
}

class DecodeHotpotqaTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(DefaultAndOfficial, DecodeHotpotqaTest,
                         testing::Bool());

TEST_P(DecodeHotpotqaTest, TakesTheBestSpanOfASupportingSentence) {
  Model model = SpecModel();
  EXPECT_EQ(model.Answer(GetParam()), "Jane Roe");
  model.begin[24] = 1;  // within a supporting sentence, but ends before
  model.end[16] = 1;    // within another one
  EXPECT_EQ(model.Answer(GetParam()), "Jane Roe");
  model.end[24] = 1;
  EXPECT_EQ(model.Answer(GetParam()), ".");
}

// doc/hotpotqa.md 11, trap 4
TEST_P(DecodeHotpotqaTest, TakesATitleByItsOwnProbability) {
  Model model = SpecModel();
  model.facts[11] = Logit(0.4);
  model.begin[7] = 5;  // the same words in a sentence that does not support
  model.end[8] = 5;
  EXPECT_EQ(model.Answer(GetParam()), "Jane Roe");
  EXPECT_THAT(*model.Predict().facts, IsEmpty());
}

TEST(DecodeHotpotqaOfficialTest, HasNoAnswerWithoutSupportingSentence) {
  Model model = SpecModel();  // doc/hotpotqa.md 10.5; trap 9
  model.facts[11] = Logit(0.4);
  model.facts[6] = Logit(0.4);
  EXPECT_EQ(model.Answer(/*official=*/true), "");
  EXPECT_EQ(model.Answer(/*official=*/false), "Jane Roe");
}

TEST(DecodeHotpotqaDefaultTest, LimitsTheLengthWithoutSupportingSentenceToo) {
  Model model = SpecModel();
  model.facts.assign(15, kLow);
  EXPECT_EQ(model.Predict().answer, "Jane Roe");
  EXPECT_EQ(model.Predict({.max_answer_length = 1}).answer, "Jane");
}

// doc/hotpotqa.md 10.5
TEST_P(DecodeHotpotqaTest, NamesSupportingSentencesOnly) {
  Model model;
  for (const size_t g : {0, 2, 5, 6, 8, 11}) {  // titles and others, too
    model.facts[g] = 0;                         // exactly the threshold
  }
  EXPECT_THAT(
      *model.Predict({.official_compatibility = GetParam()}).facts,
      ElementsAre(HotpotqaFact{"Jane Roe", 1}, HotpotqaFact{"Acme", 0}));
}

TEST_P(DecodeHotpotqaTest, AnswersYesAndNoWithoutASpan) {
  Model model = SpecModel();
  model.type = {0, 1, 1};  // the first of equals
  EXPECT_EQ(model.Answer(GetParam()), "yes");
  model.type = {0, 1, 2};
  EXPECT_EQ(model.Answer(GetParam()), "no");
}

TEST_P(DecodeHotpotqaTest, AppliesThresholdAndLength) {
  Model model = SpecModel();
  HotpotqaOptions options{.supporting_fact_threshold = 0.85,
                          .official_compatibility = GetParam()};
  EXPECT_EQ(model.Predict(options).answer, "Jane Roe");  // the title
  EXPECT_THAT(*model.Predict(options).facts, IsEmpty());
  options = {.max_answer_length = 1, .official_compatibility = GetParam()};
  model.begin[23] = -1;
  EXPECT_EQ(model.Predict(options).answer, "Roe");
}

// doc/hotpotqa.md 11, trap 10
TEST_P(DecodeHotpotqaTest, TakesTheLaterOneOfEqualSpans) {
  Model model;
  model.facts[11] = 5;
  for (const size_t i : {18, 20}) {
    model.begin[i] = 1;
    model.end[i] = 1;
  }
  EXPECT_EQ(model.Answer(GetParam()), "started");
}

TEST_P(DecodeHotpotqaTest, NeverAnswersWithTheQuestion) {
  Model model = SpecModel();
  model.begin[1] = 9;
  model.end[2] = 9;
  EXPECT_EQ(model.Answer(GetParam()), "Jane Roe");
}

TEST(DecodeHotpotqaOfficialTest, TakesClsForTheLastSlotOfAFullInput) {
  Model model = SpecModel();  // the edge of doc/hotpotqa.md 6
  model.begin[0] = 9;
  model.end[0] = 9;
  model.facts[14] = 5;
  const HotpotqaOptions full{.input = {.max_global_length = 15},
                             .official_compatibility = true};
  EXPECT_EQ(model.Predict(full).answer, "");
  EXPECT_EQ(model.Answer(/*official=*/true), "Jane Roe");  // 256 slots
  EXPECT_EQ(model.Predict({.input = {.max_global_length = 15}}).answer,
            "Jane Roe");
}

TEST(BestSpanTest, SeesMoreThanTheOfficialFifty) {
  // One sentence of 60 tokens, whose first ones are the best begins and last
  // ones the best ends, too far apart.
  HotpotqaExample example;
  example.long_type_ids.assign(120, kHotpotqaSentenceType);
  example.long_token_ids.assign(120, 7);
  example.pattern.sentence.assign(120, 0);
  std::vector<float> begin(120);
  std::vector<float> end(120);
  for (size_t i = 0; i < 120; ++i) {
    begin[i] = -0.1F * static_cast<float>(i);
    end[i] = 0.1F * static_cast<float>(i);
  }
  const SpanFilter filter(&example, {true}, /*cls_allowed=*/false,
                          /*max_answer_length=*/3);
  EXPECT_EQ(BestSpanOfTop50(begin, end, filter), std::nullopt);
  EXPECT_TRUE(BestSpan(begin, end, filter).has_value());
}

TEST(BestSpanTest, AgreesWithTheOfficialSearchOnShortInputs) {
  HotpotqaExample example;
  example.long_type_ids.assign(40, kHotpotqaSentenceType);
  example.long_token_ids.assign(40, 7);
  uint32_t state = 1;
  const auto random = [&state] {
    state = state * 1664525 + 1013904223;
    return static_cast<float>(state >> 16) / 65536.0F;
  };
  for (int round = 0; round < 200; ++round) {
    example.pattern.sentence.clear();
    std::vector<float> begin;
    std::vector<float> end;
    for (int32_t i = 0; i < 40; ++i) {
      example.pattern.sentence.push_back(i / 8);
      begin.push_back(4 * random());
      end.push_back(4 * random());
    }
    const SpanFilter filter(&example, {true, false, true, true, false},
                            /*cls_allowed=*/false, /*max_answer_length=*/5);
    EXPECT_EQ(BestSpan(begin, end, filter), BestSpanOfTop50(begin, end, filter))
        << "round " << round;
  }
}

// Logits whose most probable class at each token is that of `classes`, "B",
// "I" or "O".
std::vector<float> BioLogits(const std::string& classes) {
  std::vector<float> logits;  // [3, L]
  for (const char of : {'B', 'I', 'O'}) {
    for (const char c : classes) {
      logits.push_back(c == of ? 2.0F : 0.0F);
    }
  }
  return logits;
}

TEST_P(DecodeHotpotqaTest, ReadsMarkedTokens) {
  Model model = SpecModel();
  //                      0         1         2
  //                      01234567890123456789012345678
  model.bio = BioLogits("OOOOOOOOOOOOOOOOOOOOOOBIOOOOO");
  EXPECT_EQ(model.Answer(GetParam()), "Jane Roe");
  model.bio = BioLogits("OOOOOOOOOOOOOOOOOOIIOOOOOOOOO");  // no begin
  EXPECT_EQ(model.Answer(GetParam()), "Acme was");
  model.bio = BioLogits("OOOOOOOOOOOOOOOOOOOOOBBOOOOOO");  // the later one
  EXPECT_EQ(model.Answer(GetParam()), "Jane");
  model.bio = BioLogits("OOOOOOOOOOOOOOOOOOOOOOOOOOOOO");
  EXPECT_EQ(model.Answer(GetParam()), "");
}

TEST_P(DecodeHotpotqaTest, TakesTheSurestMarkedSpanNotTheLongest) {
  Model model = SpecModel();
  // "Acme was" with e^2 / (e^2 + 2), 0.79, each; "started" with 0.99.
  //                      0         1         2
  //                      01234567890123456789012345678
  model.bio = BioLogits("OOOOOOOOOOOOOOOOOOBIBOOOOOOOO");
  model.bio[20] = 5;
  EXPECT_EQ(model.Answer(GetParam()), "started");
}

// doc/hotpotqa.md 6
TEST(DecodeHotpotqaOfficialTest, LosesAMarkedSpanAtTheEnd) {
  Model model = SpecModel();
  model.facts[14] = 5;
  model.bio = BioLogits("OOOOOOOOOOOOOOOOOOOOOOOOOOBII");
  HotpotqaOptions full{.input = {.max_long_length = 29}};
  EXPECT_EQ(model.Predict(full).answer, "Nothing here.");
  full.official_compatibility = true;
  EXPECT_EQ(model.Predict(full).answer, "");
}

// doc/hotpotqa.md 6
TEST_P(DecodeHotpotqaTest, KeepsAMarkedSpanAtTheEndOfABatch) {
  Model model = SpecModel();  // the official input goes on, to 4096
  model.facts[14] = 5;
  model.bio = BioLogits("OOOOOOOOOOOOOOOOOOOOOOOOOOBII");
  EXPECT_EQ(model.Answer(GetParam()), "Nothing here.");
  model.bio = BioLogits("OOOOOOOOOOOOOOOOOOOOOOOOOOBIIOOO");  // of 32
  EXPECT_EQ(model.Answer(GetParam()), "Nothing here.");
}

TEST(DecodeHotpotqaOfficialTest, LosesAMarkedSpanThatReachesIntoPadding) {
  Model model = SpecModel();
  model.facts[14] = 5;
  model.bio = BioLogits("OOOOOOOOOOOOOOOOOOOOOOOOOOBIIIIO");  // of 32
  EXPECT_EQ(model.Answer(/*official=*/true), "");
  EXPECT_EQ(model.Answer(/*official=*/false), "Nothing here.");
}

TEST(HotpotqaPredictionsTest, HaveTheOfficialFormat) {
  EXPECT_EQ(
      Hotpotqa().FileContents(
          {.predictions = {{"b",
                            {.answer = "Jos\u00e9",
                             .facts = std::vector<HotpotqaFact>{{"T", 1},
                                                                {"U", 0}}}},
                           {"a", {}}}}),
      "{\"answer\":{\"a\":\"\",\"b\":\"Jos\\u00e9\"},"
      "\"sp\":{\"a\":[],\"b\":[[\"T\",1],[\"U\",0]]}}\n");
}

}  // namespace
}  // namespace etc
