// The layout of an example to the golden values of doc/wikihop.md 11.1, the
// options of its pattern, and the limits. The traps of doc/wikihop.md 12 that
// live here: 1, 3, 4, 5 (with truncation_test), 10.

#include "tasks/wikihop/example.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tasks/wikihop/task.h"
#include "tests/tasks/text/word_tokenizer.h"

namespace etc {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

std::vector<std::string> Words() {
  return {"norway", "sweden", "north", "country", "oslo", "fjord",
          "is",     "in",     ".",     "it",      "long", "borders"};
}

WikihopRecord SpecRecord() {  // doc/wikihop.md 1.2
  return {.id = "WH_train_0",
          .query = "country oslo fjord",
          .candidates = {"norway", "sweden", "north norway"},
          .supports = {"Oslo Fjord is in Norway. It is long.",
                       "North Norway borders Sweden."},
          .label = 0};
}

absl::StatusOr<std::shared_ptr<const WikihopExample>> Make(
    const WikihopRecord& record, WikihopOptions options = {}) {
  options.input.split_sentences = SplitAtFullStops;
  const WordTokenizer tokenizer(Words());
  ETC_ASSIGN_OR_RETURN(
      const auto examples,
      Wikihop(options, &tokenizer).MakeExamples(record, "f: record 0"));
  EXPECT_EQ(examples.size(), 1u);
  return examples.front();
}

std::shared_ptr<const WikihopExample> MakeOrDie(
    const WikihopRecord& record, const WikihopOptions& options = {}) {
  auto example = Make(record, options);
  EXPECT_TRUE(example.ok()) << example.status();
  return *example;
}

std::vector<int32_t> Concatenate(
    const std::vector<std::vector<int32_t>>& parts) {
  std::vector<int32_t> all;
  for (const std::vector<int32_t>& part : parts) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

std::vector<int32_t> Times(size_t count, int32_t value) {
  return std::vector<int32_t>(count, value);
}

std::string Pieces(const WikihopExample& example) {
  const WordTokenizer tokenizer(Words());
  std::string text;
  for (const int32_t id : example.long_token_ids) {
    absl::StrAppend(&text, text.empty() ? "" : " ", tokenizer.Piece(id));
  }
  return text;
}

TEST(WikihopExampleTest, LaysOutTokensAsInTheSpec) {  // doc/wikihop.md 11.1
  const auto example = MakeOrDie(SpecRecord());
  EXPECT_EQ(Pieces(*example),
            "norway sweden north norway country oslo fjord oslo fjord is in "
            "norway . it is long . north norway borders sweden .");
  EXPECT_EQ(example->long_type_ids,
            Concatenate({Times(4, 4), Times(3, 3), Times(15, 1)}));
  EXPECT_THAT(example->global_token_ids,
              ElementsAre(4, 4, 4, 3, 3, 3, 5, 1, 1, 5, 1));
  EXPECT_THAT(example->global_type_ids,
              ElementsAre(6, 6, 6, 5, 5, 5, 7, 0, 0, 7, 0));
}

// doc/wikihop.md 11.1 and 4
TEST(WikihopExampleTest, BuildsThePatternOfTheSpec) {
  const auto example = MakeOrDie(SpecRecord());
  const AttentionPattern& pattern = example->pattern;
  EXPECT_EQ(
      pattern.sentence,
      Concatenate(
          {{0, 1, 2, 2, 3, 4, 5}, Times(6, 7), Times(4, 8), Times(5, 10)}));
  EXPECT_EQ(pattern.paragraph,
            Concatenate({Times(7, -1), Times(10, 6), Times(5, 9)}));
  // Long breakpoints at 0, 1, 3, 6, 16, 21, summed from behind.
  EXPECT_EQ(pattern.long_segment,
            Concatenate({{6, 5, 4, 4, 3, 3, 3}, Times(10, 2), Times(5, 1)}));
  // Global breakpoints 1 1 1 0 0 1 0 0 1 0 1.
  EXPECT_THAT(pattern.global_segment,
              ElementsAre(6, 5, 4, 3, 3, 3, 2, 2, 2, 1, 1));
  EXPECT_THAT(pattern.long_example, Each(1));
  EXPECT_THAT(pattern.global_example, Each(1));
  EXPECT_EQ(
      pattern.linked,
      Concatenate(
          {{0, 1, 2, 2}, Times(7, -1), {0}, Times(5, -1), {2, 2, -1, 1, -1}}));
}

TEST(WikihopExampleTest, FindsTheMentionsOfTheSpec) {  // doc/wikihop.md 11.1
  const auto example = MakeOrDie(SpecRecord());
  EXPECT_THAT(example->mentions,
              UnorderedElementsAre(Mention{0, 0, 0}, Mention{0, 11, 11},
                                   Mention{0, 18, 18}, Mention{1, 1, 1},
                                   Mention{1, 20, 20}, Mention{2, 2, 3},
                                   Mention{2, 17, 18}));
}

TEST(WikihopExampleTest, CarriesWhatPredictionNeeds) {
  const auto example = MakeOrDie(SpecRecord());
  EXPECT_EQ(example->record_id, "WH_train_0");
  EXPECT_EQ(example->query, "country oslo fjord");
  EXPECT_EQ(example->label, 0);
  EXPECT_THAT(example->candidates,
              ElementsAre("norway", "sweden", "north norway"));
  EXPECT_EQ(example->num_documents, 2);
  EXPECT_EQ(example->num_sentences, 3);
  EXPECT_EQ(example->dropped_sentences, 0);
}

TEST(WikihopExampleTest, ExemptsFromTheHardMaskAsAskedFor) {
  WikihopOptions options;
  EXPECT_THAT(MakeOrDie(SpecRecord(), options)->pattern.ignore_hard_g2l,
              ElementsAre(1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0));
  options.query_ignore_hard_g2l = false;
  EXPECT_THAT(MakeOrDie(SpecRecord(), options)->pattern.ignore_hard_g2l,
              ElementsAre(1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0));
  options.candidate_ignore_hard_g2l = false;
  EXPECT_THAT(MakeOrDie(SpecRecord(), options)->pattern.ignore_hard_g2l,
              Each(0));
}

TEST(WikihopExampleTest, LinksOnlyWhenAskedTo) {
  const auto example = MakeOrDie(SpecRecord(), {.enable_l2g_linking = false});
  EXPECT_THAT(example->pattern.linked, Each(-1));
  EXPECT_EQ(example->mentions.size(), 7u);
}

TEST(WikihopExampleTest, GivesTheModelsPatternOptions) {
  const auto example = MakeOrDie(
      SpecRecord(), {.input = {.pattern = {.local_radius = 5,
                                           .relative_pos_max_distance = 3,
                                           .hard_g2l = true,
                                           .hard_l2g = true}}});
  EXPECT_EQ(example->pattern.local_radius, 5);
  EXPECT_EQ(example->pattern.relative_pos_max_distance, 3);
  EXPECT_TRUE(example->pattern.hard_g2l);
  EXPECT_TRUE(example->pattern.hard_l2g);
}

TEST(WikihopExampleTest, TruncatesToExactlyTheLongLength) {
  EXPECT_EQ(MakeOrDie(SpecRecord(), {.input = {.max_long_length = 22}})
                ->long_length(),
            22);
  // One token too many: the document with most sentences, the first, loses its
  // second one.
  const auto example =
      MakeOrDie(SpecRecord(), {.input = {.max_long_length = 21}});
  EXPECT_EQ(Pieces(*example),
            "norway sweden north norway country oslo fjord oslo fjord is in "
            "norway . north norway borders sweden .");
  EXPECT_EQ(example->dropped_sentences, 1);
  EXPECT_EQ(example->dropped_pieces, 4);
  EXPECT_EQ(example->num_sentences, 2);
}

TEST(WikihopExampleTest, KeepsTheGlobalTokenOfADocumentWithoutSentences) {
  // No room for any sentence; both breakpoints of a document then fall on what
  // is there: the query's last piece, and the document's own token.
  const auto example =
      MakeOrDie(SpecRecord(), {.input = {.max_long_length = 7}});
  EXPECT_EQ(example->long_length(), 7);
  EXPECT_THAT(example->global_token_ids, ElementsAre(4, 4, 4, 3, 3, 3, 5, 5));
  EXPECT_THAT(example->pattern.long_segment, ElementsAre(4, 3, 2, 2, 1, 1, 1));
  EXPECT_THAT(example->pattern.global_segment,
              ElementsAre(6, 5, 4, 3, 3, 3, 2, 1));
}

TEST(WikihopExampleTest, LimitsTheNumberOfSentences) {
  const auto example = MakeOrDie(SpecRecord(), {.max_num_sentences = 1});
  // Documents of 2, 1: the first loses one, and as the second has waited
  // longer, that one loses its only one.
  EXPECT_THAT(example->global_token_ids,
              ElementsAre(4, 4, 4, 3, 3, 3, 5, 1, 5));
}

TEST(WikihopExampleTest, RefusesWhatDoesNotFit) {
  const auto message = [](const WikihopRecord& record,
                          const WikihopOptions& options) {
    const absl::Status status = Make(record, options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_EQ(message(SpecRecord(), {.input = {.max_long_length = 6}}),
            "f: record 0: question WH_train_0: candidates and query need 7 "
            "long tokens, but max_long_length is 6");
  EXPECT_EQ(message(SpecRecord(), {.input = {.max_global_length = 10}}),
            "f: record 0: question WH_train_0: needs 11 global tokens (3 "
            "candidates, 3 query tokens, 2 documents, 3 sentences), but "
            "max_global_length is 10");
  EXPECT_TRUE(Make(SpecRecord(), {.input = {.max_global_length = 11}}).ok());
}

TEST(WikihopExampleTest, RefusesTextsWithoutTokens) {
  WikihopRecord record = SpecRecord();
  record.candidates[1] = "";
  EXPECT_EQ(Make(record).status().message(),
            "f: record 0: question WH_train_0: candidate 1, \"\", has no "
            "token");
  record = SpecRecord();
  record.query = " ";
  EXPECT_THAT(Make(record).status().message(),
              HasSubstr("the query has no token"));
}

// Records that programs give have been read by nobody.
TEST(WikihopExampleTest, RefusesCandidatesAndLabelsThatAreNone) {
  WikihopRecord record = SpecRecord();
  for (const int32_t label : {-1, 3}) {
    record.label = label;
    EXPECT_EQ(Make(record).status().message(),
              absl::StrCat("f: record 0: question WH_train_0: the label should "
                           "be a candidate in [0, 3), but is ",
                           label));
  }
  record.label.reset();
  record.candidates.clear();
  EXPECT_EQ(Make(record).status().message(),
            "f: record 0: question WH_train_0: has no candidates");
}

TEST(WikihopExampleTest, AcceptsARecordWithoutDocuments) {
  WikihopRecord record = SpecRecord();
  record.supports = {};
  record.label.reset();
  const auto example = MakeOrDie(record);
  EXPECT_EQ(example->long_length(), 7);
  EXPECT_EQ(example->global_length(), 6);
  EXPECT_FALSE(example->label.has_value());
}

}  // namespace
}  // namespace etc
