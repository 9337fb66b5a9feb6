// Records to inputs of the model: the golden cases of doc/openkp.md 10.3 to
// 10.6 and 10.8, and each rule of doc/openkp.md 11 that official_compatibility
// decides, both ways.

#include "tasks/openkp/example.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tasks/openkp/task.h"
#include "tests/tasks/inputs/byte_level_tokenizer.h"
#include "tests/tasks/openkp/spec_record.h"

namespace etc {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Position = PhrasePosition;

// Settings of doc/openkp.md 10.1.
OpenkpOptions SpecOptions(bool official = false) {
  return {.input = {.max_long_length = 16,
                    .max_global_length = 4,
                    .pattern = {.local_radius = 2,
                                .relative_pos_max_distance = 4,
                                .hard_g2l = true}},
          .official_compatibility = official};
}

std::shared_ptr<const OpenkpExample> Make(const OpenkpRecord& record,
                                          const OpenkpOptions& options) {
  const auto tokenizer = OpenkpSpecTokenizer();
  const auto examples =
      Openkp(options, tokenizer.get()).MakeExamples(record, "here");
  EXPECT_TRUE(examples.ok()) << examples.status();
  return examples->at(0);
}

std::vector<std::string> StarTrekPhrases() {
  return {"Star Trek", "Jason Isaacs"};
}

class OpenkpExampleTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Rules, OpenkpExampleTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& official) {
                           return official.param ? "official" : "sound";
                         });

// doc/openkp.md 10.3
TEST_P(OpenkpExampleTest, HasTheFeaturesOfTheNormalCase) {
  const auto example =
      Make(OpenkpSpecRecord(StarTrekPieces(), StarTrekPhrases()),
           SpecOptions(GetParam()));
  EXPECT_THAT(example->labels, ElementsAre(Position{0, 2}, Position{7, 2}));
  EXPECT_THAT(example->long_token_ids,
              ElementsAre(3, 4, 5, 6, 7, 8, 9, 10, 8, 9, 10, 11, 12));
  EXPECT_THAT(example->long_words,
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 6, 7, 8, 8, 9, 10));
  EXPECT_THAT(example->pattern.sentence,
              ElementsAre(0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1));
  EXPECT_EQ(example->num_words, 11);
  EXPECT_THAT(example->global_token_ids, ElementsAre(1, 1));
  EXPECT_THAT(example->long_type_ids, Each(1));
  EXPECT_THAT(example->global_type_ids, ElementsAre(0, 0));
  EXPECT_EQ(example->elements[0].node.y, 78);
  EXPECT_EQ(example->elements[1].parent.width, 564);
  EXPECT_EQ(example->dropped_words, 0);
  EXPECT_EQ(example->left_out, "");
}

TEST_P(OpenkpExampleTest, HasThePiecesOfWordsBehindBlanks) {
  const auto tokenizer = ByteLevelTokenizer({"trek", "Ġtrek"});
  ASSERT_NE(tokenizer, nullptr);
  const OpenkpRecord record =
      OpenkpSpecRecord({{"trek trek", kBoldFeature}}, {"trek"});
  for (const int64_t block : {0, 4}) {
    OpenkpOptions options = SpecOptions(GetParam());
    options.fixed_block_length = block;
    const auto examples =
        Openkp(options, tokenizer.get()).MakeExamples(record, "here");
    ASSERT_TRUE(examples.ok()) << examples.status();
    EXPECT_THAT(examples->at(0)->long_token_ids, ElementsAre(257, 257))
        << block;
  }
}

// doc/openkp.md 10.4
TEST_P(OpenkpExampleTest, TakesNoMoreElementsThanGlobals) {
  OpenkpPieces pieces = StarTrekPieces();
  for (int i = 0; i < 12; ++i) {
    pieces.emplace_back("foo", kLeafFeature);
  }
  const auto example = Make(OpenkpSpecRecord(pieces, StarTrekPhrases()),
                            SpecOptions(GetParam()));
  EXPECT_THAT(example->long_token_ids,
              ElementsAre(3, 4, 5, 6, 7, 8, 9, 10, 8, 9, 10, 11, 12, 13, 13));
  EXPECT_THAT(example->long_words,
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 6, 7, 8, 8, 9, 10, 11, 12));
  EXPECT_EQ(example->num_words, 13);
  EXPECT_EQ(example->global_length(), 4);
  EXPECT_TRUE(example->elements[2].node.is_leaf);
  EXPECT_EQ(example->elements[3].parent.x, 3110);
  EXPECT_THAT(example->labels, ElementsAre(Position{0, 2}, Position{7, 2}));
  EXPECT_EQ(example->dropped_words, 10);
}

OpenkpRecord TooManyTokens() {
  std::vector<std::string> stars(99, "star");
  return OpenkpSpecRecord({{"Star Wars and not Trek", kHeadingFeature},
                           {absl::StrJoin(stars, " "), kBoldFeature}},
                          {"Star Wars", "Trek"});
}

// doc/openkp.md 10.5, trap 7
TEST(OpenkpTruncationTest, IsOfWholeElementsOfficially) {
  const auto example = Make(TooManyTokens(), SpecOptions(/*official=*/true));
  EXPECT_THAT(example->long_token_ids, ElementsAre(3, 14, 11, 15, 4));
  EXPECT_THAT(example->labels, ElementsAre(Position{0, 2}, Position{4, 1}));
  EXPECT_EQ(example->global_length(), 1);
  EXPECT_EQ(example->dropped_words, 99);
}

TEST(OpenkpTruncationTest, KeepsTheWordsThatFit) {
  const auto example = Make(TooManyTokens(), SpecOptions());
  EXPECT_EQ(example->long_length(), 16);
  EXPECT_EQ(example->num_words, 16);
  EXPECT_EQ(example->global_length(), 2);
  EXPECT_EQ(example->elements[1].end_word, 16);
  EXPECT_EQ(example->dropped_words, 88);
}

TEST(OpenkpTruncationTest, CutsNoWord) {
  // "isaacs" has two pieces, of which one would fit.
  OpenkpOptions options = SpecOptions();
  options.input.max_long_length = 2;
  const auto record =
      OpenkpSpecRecord({{"star isaacs trek", kBoldFeature}}, {"trek"});
  const auto example = Make(record, options);
  EXPECT_THAT(example->long_token_ids, ElementsAre(3));
  // Phrases behind the cut cannot be found.
  EXPECT_THAT(example->labels, IsEmpty());
  EXPECT_EQ(example->left_out,
            "no key phrase lies within one element (of a document: one "
            "sentence) of the input, which data.max_long_length or "
            "data.max_global_length cuts");
}

TEST(OpenkpTruncationTest, EndsTheDocumentAtTheCut) {
  // "trek" would fit behind the element that "isaacs" cuts.
  OpenkpOptions options = SpecOptions();
  options.input.max_long_length = 2;
  const auto example =
      Make(OpenkpSpecRecord(
               {{"star isaacs", kBoldFeature}, {"trek", kBoldFeature}}, {}),
           options);
  EXPECT_THAT(example->long_token_ids, ElementsAre(3));
  EXPECT_EQ(example->num_words, 1);
  EXPECT_EQ(example->global_length(), 1);
  EXPECT_EQ(example->dropped_words, 2);
}

TEST(OpenkpFixedBlocksTest, HaveGlobalsForRunsOfTokens) {  // doc/openkp.md 10.6
  OpenkpOptions options = SpecOptions(/*official=*/true);
  options.fixed_block_length = 4;
  const auto example =
      Make(OpenkpSpecRecord(StarTrekPieces(), StarTrekPhrases()), options);
  EXPECT_THAT(example->labels, ElementsAre(Position{5, 2}, Position{0, 2}));
  EXPECT_THAT(example->pattern.sentence,
              ElementsAre(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3));
  EXPECT_THAT(example->global_token_ids, ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(example->elements, IsEmpty());
  EXPECT_EQ(example->num_words, 11);
  options.input.max_global_length = 2;
  EXPECT_EQ(
      Make(OpenkpSpecRecord(StarTrekPieces(), {}), options)->long_length(), 8);
}

// doc/openkp.md 3.7
TEST(OpenkpFixedBlocksTest, FindPartsOfWordsOfficiallyOnly) {
  OpenkpOptions options = SpecOptions();
  options.fixed_block_length = 4;
  const auto record =
      OpenkpSpecRecord({{"wars not star trek", kBoldFeature}}, {"star trek"});
  OpenkpRecord part = record;
  part.text = "wars xstar trek star trek";
  EXPECT_THAT(Make(part, options)->labels, ElementsAre(Position{3, 2}));
  options.official_compatibility = true;
  EXPECT_THAT(Make(part, options)->labels, ElementsAre(Position{1, 2}));
}

TEST_P(OpenkpExampleTest, LabelsTheInstanceOfTheSpec) {  // doc/openkp.md 10.8
  const auto record =
      Openkp().ParseRecord(GreenTeaJson().dump(), "doc/openkp.md 1");
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_THAT(Make(*record, SpecOptions(GetParam()))->labels,
              ElementsAre(Position{0, 2}, Position{5, 3}));
}

// "star" | "" (no words) | "trek wars"
OpenkpRecord WithElementWithoutWords() {
  OpenkpRecord record = OpenkpSpecRecord(
      {{"star", kBoldFeature}, {"trek wars", kBoldFeature}}, {"trek wars"});
  OpenkpElement empty = record.elements[1];
  empty.end_word = empty.first_word;
  record.elements.insert(record.elements.begin() + 1, empty);
  return record;
}

TEST(OpenkpPhantomWordsTest, ShiftOfficially) {  // doc/openkp.md 3.3, trap 12
  const auto example =
      Make(WithElementWithoutWords(), SpecOptions(/*official=*/true));
  EXPECT_THAT(example->long_words, ElementsAre(0, 2, 3));
  EXPECT_THAT(example->labels, ElementsAre(Position{2, 2}));
  EXPECT_EQ(example->num_words, 4);
}

TEST(OpenkpPhantomWordsTest, AreNotThere) {
  const auto example = Make(WithElementWithoutWords(), SpecOptions());
  EXPECT_THAT(example->long_words, ElementsAre(0, 1, 2));
  EXPECT_THAT(example->labels, ElementsAre(Position{1, 2}));
  EXPECT_EQ(example->num_words, 3);
  EXPECT_EQ(example->global_length(), 3);
}

// Records that programs give have been read by nobody.
TEST(OpenkpChecksTest, RefuseElementsBeyondTheWordsOrWithGaps) {
  const OpenkpRecord good = OpenkpSpecRecord(
      {{"star trek", kBoldFeature}, {"discovery", kBoldFeature}}, {"trek"});
  const auto tokenizer = OpenkpSpecTokenizer();
  const auto message = [&](int64_t first, int64_t end) {
    OpenkpRecord record = good;
    record.elements[1].first_word = first;
    record.elements[1].end_word = end;
    return std::string(Openkp(SpecOptions(), tokenizer.get())
                           .MakeExamples(record, "here")
                           .status()
                           .message());
  };
  EXPECT_EQ(message(2, 3), "");
  for (const auto& [first, end] :
       {std::pair(2, 4), {1, 3}, {3, 3}, {-1, 3}, {2, 1}}) {
    EXPECT_EQ(message(first, end),
              absl::StrCat("here.elements[1] should be words [2, end) with end "
                           "at most 3, but is [",
                           first, ", ", end, ")"));
  }
}

TEST(OpenkpChecksTest, RefuseElementsThatLackWords) {
  OpenkpRecord record = OpenkpSpecRecord(
      {{"star trek", kBoldFeature}, {"discovery", kBoldFeature}}, {"trek"});
  const auto tokenizer = OpenkpSpecTokenizer();
  const auto status_of = [&](OpenkpOptions options) {
    return Openkp(options, tokenizer.get())
        .MakeExamples(record, "here")
        .status();
  };
  OpenkpOptions blocks = SpecOptions();
  blocks.fixed_block_length = 4;
  for (const int covered : {2, 0}) {
    record.elements.pop_back();
    EXPECT_EQ(std::string(status_of(SpecOptions()).message()),
              absl::StrCat("here.elements should cover all 3 words, but cover ",
                           covered));
    // They read the words alone.
    EXPECT_TRUE(status_of(blocks).ok());
  }
}

TEST(OpenkpChecksTest, RefuseOnlyOfficially) {  // doc/openkp.md 3.1
  OpenkpRecord record = OpenkpSpecRecord(StarTrekPieces(), {});
  const auto status = [&record](bool official) {
    const auto tokenizer = OpenkpSpecTokenizer();
    return Openkp(SpecOptions(official), tokenizer.get())
        .MakeExamples(record, "f: record 1")
        .status();
  };
  record.has_integer_coordinates = true;
  EXPECT_TRUE(status(false).ok());
  EXPECT_THAT(std::string(status(true).message()), HasSubstr("like 44.0"));
  record.has_integer_coordinates = false;
  record.id = std::string(1001, 'u');
  EXPECT_TRUE(status(false).ok());
  EXPECT_THAT(std::string(status(true).message()), HasSubstr("has 1001"));
  record = OpenkpSpecRecord({{std::string(20, ' '), kBoldFeature}}, {});
  EXPECT_TRUE(status(false).ok());
  EXPECT_THAT(std::string(status(true).message()),
              HasSubstr("has 21 words, but max_long_length is 16"));
}

TEST_P(OpenkpExampleTest, GivesADocumentWithoutPiecesOneThatIsNoWord) {
  for (const std::string& text : {std::string(), std::string("\0", 1)}) {
    const auto example = Make(OpenkpSpecRecord({{text, kBoldFeature}}, {"a"}),
                              SpecOptions(GetParam()));
    EXPECT_THAT(example->long_token_ids, ElementsAre(0));
    EXPECT_THAT(example->long_words, ElementsAre(-1));
    EXPECT_EQ(example->num_words, 1);
    EXPECT_EQ(example->global_length(), 1);
  }
}

TEST_P(OpenkpExampleTest, TakesVeryLongDocuments) {
  OpenkpPieces pieces;
  for (int i = 0; i < 2000; ++i) {
    pieces.emplace_back(
        "star trek star trek star trek star trek star trek star trek star trek "
        "star trek star trek star trek star trek star trek star trek star trek "
        "star trek star trek star trek star trek star trek star trek star trek "
        "star trek star trek star trek star trek star trek star trek star trek "
        "star trek star trek star trek star trek star trek star trek star trek "
        "star trek star trek star trek star trek",
        kBoldFeature);
  }
  pieces.back().first += " doug";
  const auto record = OpenkpSpecRecord(pieces, {"doug"});
  EXPECT_EQ(OpenkpWords(record.text).size(), 156001u);
  OpenkpOptions options = SpecOptions(GetParam());
  options.input.max_long_length = 4096;
  options.input.max_global_length = 512;
  const auto example = Make(record, options);
  EXPECT_EQ(example->long_length(), GetParam() ? 52 * 78 : 4096);
  EXPECT_EQ(example->dropped_words, 156001 - example->long_length());
  EXPECT_THAT(example->left_out, HasSubstr("no key phrase"));
  options.input.max_long_length = 200000;
  options.input.max_global_length = 2000;
  EXPECT_THAT(Make(record, options)->labels, ElementsAre(Position{156000, 1}));
}

// doc/openkp.md 8.3
TEST(OpenkpReferencesTest, AreOfficiallyRemovedBehindTheCut) {
  const auto record = OpenkpSpecRecord(
      {{"star trek", kBoldFeature}, {"doug foo", kBoldFeature}}, {"doug"});
  for (const int64_t fixed_block_length : {0, 1}) {
    for (const bool official : {false, true}) {
      OpenkpOptions options = SpecOptions(official);
      options.fixed_block_length = fixed_block_length;
      EXPECT_FALSE(Make(record, options)->references->is_removed);
      options.input.max_long_length = 2;
      EXPECT_EQ(Make(record, options)->references->is_removed, official);
    }
  }
}

// doc/openkp.md 2, 3.4
TEST(OpenkpReferencesTest, HaveOfficiallyAnEmptyPhrase) {
  const auto record =
      OpenkpSpecRecord({{"star  trek", kBoldFeature}}, {"trek", ""});
  const auto example = Make(record, SpecOptions(/*official=*/true));
  EXPECT_THAT(example->references->etc, ElementsAre("", "trek"));
  EXPECT_THAT(example->labels, ElementsAre(Position{1, 1}, Position{2, 1}));
  const auto sound = Make(record, SpecOptions());
  EXPECT_THAT(sound->references->etc, ElementsAre("trek"));
  EXPECT_THAT(sound->labels, ElementsAre(Position{2, 1}));
}

TEST(OpenkpLeftOutTest, AreExamplesThatNothingCanBeLearntFrom) {
  const auto record =
      OpenkpSpecRecord({{"a b c d e f g", kBoldFeature}}, {"a b c d e f"});
  EXPECT_THAT(Make(record, SpecOptions())->left_out,
              HasSubstr("longer than 5"));
  EXPECT_EQ(Make(record, SpecOptions(/*official=*/true))->left_out, "");
  const auto crossing =
      OpenkpSpecRecord({{"a b", kBoldFeature}, {"c d", kBoldFeature}}, {"b c"});
  EXPECT_EQ(Make(crossing, SpecOptions())->left_out,
            "no key phrase lies within one element (of a document: one "
            "sentence) of the input");
  EXPECT_TRUE(Make(crossing, SpecOptions())->has_answer);
}

TEST(OpenkpExampleMemoryTest, IsThatOfTextAndElements) {
  const auto small = Make(OpenkpSpecRecord(StarTrekPieces(), {}), {});
  OpenkpPieces pieces;
  for (int i = 0; i < 500; ++i) {
    pieces.emplace_back("star trek", kBoldFeature);
  }
  const auto large = Make(OpenkpSpecRecord(pieces, {}), {});
  EXPECT_GE(large->TaskBytes(),
            static_cast<int64_t>(500 * sizeof(OpenkpElement) + 5000));
  EXPECT_LE(small->TaskBytes(), 4096);
}

TEST(DescribeOpenkpExampleTest, ShowsElementsAndKeyPhrases) {
  const auto example = Make(
      OpenkpSpecRecord(StarTrekPieces(), StarTrekPhrases()), SpecOptions());
  const auto tokenizer = OpenkpSpecTokenizer();
  EXPECT_EQ(Openkp({}, tokenizer.get()).Describe(*example),
            R"(document http://x.org/1
key phrases: star trek, jason isaacs
in the input: "Star Trek" at words 0-1, "Jason Isaacs" at words 7-8
11 words, 13 long tokens, 2 global tokens; nothing truncated
local radius 2, hard g2l mask, soft l2g mask

global  owns         sees         tokens ([ key phrase ])
     0  0-5          0-5          [ star trek ] discovery season 1 jason
        (44, 78) 728x45 font 20 block heading; parent (44, 78) 728x45 font 20 block heading
     1  6-12         6-12         isaac ##s [ jason isaac ##s ] and doug
        (208, 138) 49x15 font 12 bold; parent (198, 138) 564x15 font 12 block bold
)");
}

}  // namespace
}  // namespace etc
