// Key phrases that count, their places, and their references: doc/openkp.md 2,
// 3.4 and 8.2, each rule on a text made for it.

#include "tasks/openkp/phrases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tasks/openkp/phrases.h"
#include "tests/tasks/openkp/spec_record.h"

namespace etc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Position = PhrasePosition;

OpenkpRecord Record(const OpenkpPieces& pieces,
                    std::vector<std::vector<std::string>> phrases) {
  OpenkpRecord record = OpenkpSpecRecord(pieces, {});
  record.key_phrases = std::move(phrases);
  return record;
}

TEST(ValidKeyPhrasesTest, AreWholeWordsInAnyCase) {
  const auto record =
      Record({{"Green Tea is steam", kBoldFeature}},
             {{"TEA", "is"}, {"tea", "i"}, {" green ", "", "tea"}, {}, {""}});
  EXPECT_THAT(ValidKeyPhrases(record), ElementsAre("TEA is", "green tea"));
}

// doc/openkp.md 2
TEST(ValidKeyPhrasesTest, AreOfficiallyEmptyOnesWhereBlanksAre) {
  for (const char* text : {"", "a ", "a  b", " "}) {
    const auto record = Record({{text, kBoldFeature}}, {{" ", ""}});
    EXPECT_THAT(ValidKeyPhrases(record, ScoringRules::kOfficial),
                ElementsAre(""))
        << text;
    EXPECT_THAT(ValidKeyPhrases(record), IsEmpty()) << text;
  }
  for (const char* text : {"a", " a", "a b"}) {
    const auto record = Record({{text, kBoldFeature}}, {{}});
    EXPECT_THAT(ValidKeyPhrases(record, ScoringRules::kOfficial), IsEmpty())
        << text;
  }
}

TEST(EtcKeyPhrasesTest, AreOfficiallyLessForAnEmptyOne) {
  const auto record =
      Record({{"a  b c", kBoldFeature}}, {{}, {"a"}, {"b"}, {"c"}});
  EXPECT_THAT(EtcKeyPhrases(record, ScoringRules::kOfficial),
              ElementsAre("", "a", "b"));
  EXPECT_THAT(EtcKeyPhrases(record), ElementsAre("a", "b", "c"));
  const OpenkpReferences references =
      ReferencesOf(record, ScoringRules::kOfficial);
  EXPECT_THAT(references.etc, ElementsAre("", "a", "b"));
  EXPECT_EQ(references.num_valid, 4);
}

TEST(ValidKeyPhrasesTest, MayCrossElements) {
  const auto record = Record({{"green", kBoldFeature}, {"tea", kBoldFeature}},
                             {{"green", "tea"}});
  EXPECT_THAT(ValidKeyPhrases(record), ElementsAre("green tea"));
}

TEST(EtcKeyPhrasesTest, AreTheFirstThreeInLowerCaseAndOrder) {
  const auto record = Record({{"a B c D e", kBoldFeature}},
                             {{"x"}, {"D"}, {"c"}, {"b"}, {"a"}});
  EXPECT_THAT(EtcKeyPhrases(record), ElementsAre("b", "c", "d"));
  const auto twice =
      Record({{"a B c D e", kBoldFeature}}, {{"A"}, {"a"}, {"b"}, {"c"}});
  EXPECT_THAT(EtcKeyPhrases(twice), ElementsAre("a", "b"));
}

TEST(FindPhrasesTest, TakesTheFirstPlaceInTheFirstText) {
  EXPECT_THAT(
      FindPhrases({"a", "b c", "d"}, {{"x B  c", 0}, {"b C a b c a", 4}},
                  PhraseMatch::kWholeWords),
      ElementsAre(Position{6, 1}, Position{4, 2}));
}

TEST(FindPhrasesTest, CountsEmptyWords) {
  EXPECT_THAT(
      FindPhrases({"tea"}, {{"  green  tea", 10}}, PhraseMatch::kWholeWords),
      ElementsAre(Position{15 - 1, 1}));
}

TEST(FindPhrasesTest, FoldsAllOfUnicode) {  // doc/openkp.md 11, trap 15
  EXPECT_THAT(FindPhrases({"\xC3\xA9t\xC3\xA9"}, {{"un \xC3\x89T\xC3\x89", 0}},
                          PhraseMatch::kWholeWords),
              ElementsAre(Position{1, 1}));
}

TEST(FindPhrasesTest, FindsPartsOfWordsOnDemand) {
  EXPECT_THAT(
      FindPhrases({"tea m"}, {{"hot steatea mug", 0}}, PhraseMatch::kAnywhere),
      ElementsAre(Position{1, 2}));
}

TEST(JoinedPhrasesTest, KeepTheWhiteSpaceOfPredictions) {
  EXPECT_THAT(JoinedPhrases({{"The", "Tea!"},
                             {"the tea!"},
                             {},
                             {"", "a"},
                             {"x "},
                             {"X "},
                             {"x"}}),
              ElementsAre("the tea!", "x ", "x"));
}

// doc/openkp.md 8.2, trap 10
TEST(EvaluatorPhrasesTest, FoldCaseAndNothingElse) {
  EXPECT_THAT(
      EvaluatorPhrases({{"The", "Tea!"}, {"the tea!"}, {}, {"", "a"}, {"x "}}),
      ElementsAre("the tea!", "x"));
}

TEST(ReferencesTest, KeepWhatEachProtocolAsksFor) {
  const auto record =
      Record({{"green tea", kBoldFeature}, {"at home", kBoldFeature}},
             {{"tea", "at"}, {"Coffee"}});
  const OpenkpReferences references = ReferencesOf(record);
  EXPECT_THAT(references.evaluator, ElementsAre("tea at", "coffee"));
  EXPECT_THAT(references.etc, ElementsAre("tea at"));
  EXPECT_EQ(references.num_valid, 1);
  EXPECT_TRUE(references.is_removed);  // it lies in two elements
  EXPECT_THAT(ReferencesOf(Record({{"a", kBoldFeature}}, {})).etc, IsEmpty());
}

}  // namespace
}  // namespace etc
