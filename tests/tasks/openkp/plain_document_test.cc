// Documents without the layout of a page: their words and sentences, key
// phrases as texts and as lists, what becomes of them in an example, in a
// prediction and in gold files; mistakes; and that a model with visual features
// asks for the layout.

#include "tasks/openkp/plain_document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tasks/openkp/task.h"
#include "tasks/task/score_files.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/text/word_tokenizer.h"

namespace etc {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

OpenkpOptions PlainOptions() {
  OpenkpOptions options;
  options.use_visual_features_in_long = false;
  options.use_visual_features_in_global = false;
  options.input.split_sentences = SplitAtFullStops;
  return options;
}

// Ids from 10 on.
const Tokenizer& TeaWords() {
  static const auto* const words = new WordTokenizer(
      std::vector<std::string>{"green", "tea", "is", "old", "brew"});
  return *words;
}

constexpr char kTea[] =
    R"({"id": 7, "text": "(Green tea)\n\nis old. Brew  green tea, U.S.-style!",
        "KeyPhrases": ["Green tea", ["brew", "green"], "old tea"]})";

TEST(PlainOpenkpTest, SplitsPunctuationFromTheEndsOfWords) {
  EXPECT_THAT(PlainOpenkpWords(" (\"Green\u00a0tea,\" U.S.-based)...\n"),
              ElementsAre("(", "\"", "Green", "tea", ",", "\"", "U.S.-based",
                          ")", ".", ".", "."));
  EXPECT_THAT(PlainOpenkpWords("-- caf\u00e9\u201d"),
              ElementsAre("-", "-", "caf\u00e9", "\u201d"));
  EXPECT_THAT(PlainOpenkpWords(" \t"), IsEmpty());
  EXPECT_THAT(PlainOpenkpWords(""), IsEmpty());
}

TEST(PlainOpenkpTest, HasAnElementForEachSentence) {
  const Openkp openkp(PlainOptions(), &TeaWords());
  const auto record = openkp.ParseRecord(kTea, "f.jsonl: record 3");
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->id, "7");
  EXPECT_EQ(record->text,
            "( Green tea ) is old . Brew green tea , U . S . - style !");
  ASSERT_EQ(record->elements.size(), 4);
  EXPECT_EQ(record->elements[1].first_word, 7);
  EXPECT_EQ(record->elements[1].end_word, 13);

  const auto examples = openkp.MakeExamples(*record, "f.jsonl: record 3");
  ASSERT_TRUE(examples.ok()) << examples.status();
  const OpenkpExample& example = *examples->front();
  EXPECT_EQ(example.global_length(), 4);
  // "old tea" is in none.
  EXPECT_THAT(example.labels,
              ElementsAre(PhrasePosition{.start = 1, .length = 2},
                          PhrasePosition{.start = 7, .length = 2}));
  EXPECT_EQ(example.left_out, "");
  // There is no layout to describe.
  EXPECT_THAT(openkp.Describe(example), Not(HasSubstr("font")));
}

TEST(PlainOpenkpTest, MayLackKeyPhrasesAndBeCalledByItsUrl) {
  const Openkp openkp(PlainOptions(), &TeaWords());
  const auto record = openkp.ParseRecord(
      R"({"url": "x", "text": "tea", "KeyPhrases": null})", "f: record 0");
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->id, "x");
  EXPECT_FALSE(record->key_phrases.has_value());
}

TEST(PlainOpenkpTest, RefusesMistakes) {
  const auto message = [](const std::string& json,
                          const OpenkpOptions& options = PlainOptions()) {
    return std::string(Openkp(options)
                           .ParseRecord(json, "f.jsonl: record 3")
                           .status()
                           .message());
  };
  EXPECT_THAT(message(R"({"text": "tea"})"),
              HasSubstr("record 3.url is missing"));
  EXPECT_THAT(message(R"({"id": "a"})"), HasSubstr("record 3.text is missing"));
  EXPECT_THAT(message(R"({"id": [1], "text": "tea"})"),
              HasSubstr("record 3.id should be a string or a whole number"));
  EXPECT_THAT(message(R"({"id": "a", "text": " "})"),
              HasSubstr("record 3.text should have a word, but has none"));
  EXPECT_THAT(message(R"({"id": "a", "text": "b", "KeyPhrases": "c"})"),
              HasSubstr("KeyPhrases should be a list of phrases"));
  EXPECT_THAT(message(R"({"id": "a", "text": "b", "KeyPhrases": ["c", 3]})"),
              HasSubstr("KeyPhrases[1] should be a text or a list of words"));
  EXPECT_THAT(message(R"({"url": "a", "text": "b"})", OpenkpOptions()),
              HasSubstr("record 3.VDOM is missing; documents without it need "
                        "openkp.use_visual_features_in_long and "
                        "use_visual_features_in_global to be false"));
}

TEST(PlainOpenkpTest, IsGold) {
  TemporaryDirectory directory;
  std::string line = kTea;
  line.erase(line.find('\n'), 1);
  const auto scores = ScoreFiles(
      Openkp(),
      {.gold = directory.Write("gold.jsonl", line + "\n"),
       .predictions = directory.Write(
           "predictions.jsonl",
           "{\"url\": \"7\", \"KeyPhrases\": [[\"green tea\"], [\"tea\"], "
           "[\"brew green\"]]}\n")});
  ASSERT_TRUE(scores.ok()) << scores.status();
  // Two of three, of the three phrases and of the two in the text.
  EXPECT_THAT(*scores, Contains(Pair("p@3", 2.0 / 3)));
  EXPECT_THAT(*scores, Contains(Pair("r@3", 2.0 / 3)));
  EXPECT_THAT(*scores, Contains(Pair("etc_r@3", 1)));
}

}  // namespace
}  // namespace etc
