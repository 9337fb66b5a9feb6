// Phrases from logits, and the official file: the golden cases of doc/openkp.md
// 10.9, and the changes by official_compatibility.

#include "tasks/openkp/prediction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/tasks/openkp/spec_record.h"

namespace etc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A document and n-gram logits, -10000 unless set.
class Document {
 public:
  explicit Document(const std::string& text, int64_t num_words)
      : num_words_(std::max<int64_t>(num_words, 5)),
        logits_(static_cast<size_t>(5 * num_words_), -10000.0F) {
    example_.text = text;
    example_.num_words = num_words;
  }

  Document& Set(int64_t start, int64_t length, float logit) {
    logits_[static_cast<size_t>((length - 1) * num_words_ + start)] = logit;
    return *this;
  }

  std::vector<std::string> Decode(const OpenkpOptions& options) const {
    return DecodeKeyPhrases(example_, {.ngrams = logits_}, options);
  }

 private:
  int64_t num_words_;
  std::vector<float> logits_;
  OpenkpExample example_;
};

constexpr char kStarTrek[] = "Star Trek Discovery Season 1 Director";

TEST(DecodeKeyPhrasesTest, TakesTheBestPlaces) {  // doc/openkp.md 10.9
  Document document(kStarTrek, 6);
  document.Set(4, 2, .1F).Set(2, 2, .2F).Set(0, 2, .3F);
  for (const bool official : {false, true}) {
    EXPECT_THAT(
        document.Decode({.max_phrases = 2, .official_compatibility = official}),
        ElementsAre("star trek", "discovery season"));
  }
}

// doc/openkp.md 10.9
TEST(DecodeKeyPhrasesTest, SkipsPlacesBehindTheDocument) {
  Document document(kStarTrek, 21);
  document.Set(4, 2, .1F).Set(2, 2, .2F).Set(20, 2, .3F);
  EXPECT_THAT(
      document.Decode({.max_phrases = 2, .official_compatibility = true}),
      ElementsAre("discovery season", "1 director"));
}

TEST(DecodeKeyPhrasesTest, OrdersPlacesByLogit) {  // doc/openkp.md 10.9
  Document document("a b c d", 4);
  document.Set(0, 1, .1F).Set(1, 1, .9F).Set(2, 1, .5F).Set(3, 1, -.3F);
  document.Set(0, 2, .8F).Set(1, 2, .3F).Set(2, 2, .4F);
  EXPECT_THAT(document.Decode({.max_phrases = 3}),
              ElementsAre("b", "a b", "c"));
}

TEST(DecodeKeyPhrasesTest, CountsATextOnce) {  // doc/openkp.md 7.2
  Document document("Tea and tea or TEA", 5);
  document.Set(0, 1, 3).Set(2, 1, 2).Set(4, 1, 1).Set(1, 1, 0);
  EXPECT_THAT(document.Decode({.max_phrases = 2}), ElementsAre("tea", "and"));
  EXPECT_THAT(document.Decode({.max_phrases = 2, .max_positions = 3}),
              ElementsAre("tea"));
}

TEST(DecodeKeyPhrasesTest, PrefersShortAndEarlyPhrasesOfEqualLogit) {
  Document document("a b c", 3);
  document.Set(1, 1, 1).Set(2, 1, 1).Set(0, 2, 1);
  EXPECT_THAT(document.Decode({.max_phrases = 3}),
              ElementsAre("b", "c", "a b"));
}

TEST(DecodeKeyPhrasesTest, StaysInTheWordsThatTheModelReads) {
  // Three words are there, of which the model reads two.
  Document document("a b c", 2);
  document.Set(0, 1, 1);
  EXPECT_THAT(document.Decode({}), ElementsAre("a", "b", "a b"));
  // Officially, places of logit -10000 are taken as well.
  EXPECT_THAT(document.Decode({.official_compatibility = true}),
              ElementsAre("a", "b", "c", "a b", "b c"));
}

TEST(DecodeKeyPhrasesTest, FindsNothingInAnEmptyDocument) {
  for (const bool official : {false, true}) {
    EXPECT_THAT(Document("", 1).Decode({.official_compatibility = official}),
                IsEmpty());
  }
}

// doc/openkp.md 7.3
TEST(OpenkpPredictionLinesTest, IsAsTheOfficialScriptReadsIt) {
  EXPECT_EQ(OpenkpPredictionLines({{"http://x.org/\xC3\xA9", {"a b", "c\"d"}}}),
            "{\"url\":\"http://x.org/\\u00e9\",\"KeyPhrases\":[[\"a b\"],"
            "[\"c\\\"d\"]]}\n");
  EXPECT_EQ(OpenkpPredictionLines({{"u", {}}}),
            "{\"url\":\"u\",\"KeyPhrases\":[]}\n");
}

// The score counts the last one, too.
TEST(OpenkpPredictionLinesTest, HaveTheLastPredictionOfEachUrl) {
  EXPECT_EQ(OpenkpPredictionLines({{"u", {"a"}}, {"v", {"b"}}, {"u", {"c"}}}),
            "{\"url\":\"u\",\"KeyPhrases\":[[\"c\"]]}\n"
            "{\"url\":\"v\",\"KeyPhrases\":[[\"b\"]]}\n");
}

TEST(ParseOpenkpPhraseListsTest, ReadsWhatWasWritten) {
  const auto lists =
      ParseOpenkpPhraseLists(OpenkpPredictionLines({{"u", {"a b", "c"}}}), "p");
  ASSERT_TRUE(lists.ok()) << lists.status();
  EXPECT_EQ(lists->url, "u");
  EXPECT_THAT(lists->phrases,
              ElementsAre(ElementsAre("a b"), ElementsAre("c")));
}

TEST(ParseOpenkpPhraseListsTest, RefusesPlainStrings) {  // doc/openkp.md 8.2
  EXPECT_THAT(std::string(ParseOpenkpPhraseLists(
                              R"({"url": "u", "KeyPhrases": ["tea"]})", "p")
                              .status()
                              .message()),
              HasSubstr("KeyPhrases[0] should be a list of words"));
  EXPECT_THAT(
      std::string(
          ParseOpenkpPhraseLists(R"({"url": "u"})", "p").status().message()),
      HasSubstr("KeyPhrases"));
}

}  // namespace
}  // namespace etc
