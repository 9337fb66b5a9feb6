// The windows over a document to the golden values of doc/nq.md 9.1, for what
// they differ from the official program's (doc/nq.md 2.4), and at their edges:
// long and empty questions, documents without pieces, answers that a window
// cuts, a full global input, blocks in place of candidates, down-sampling.

#include "tasks/nq/example.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "c10/util/Exception.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/nq/task.h"
#include "tests/tasks/nq/page_record.h"

namespace etc {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using Windows = std::vector<std::shared_ptr<NqExample>>;

NqOptions SpecOptions() {
  return {.input = {.max_long_length = 16, .max_global_length = 8},
          .max_question_length = 3,
          .stride = 5};
}

Windows Make(NqRecord record, const NqOptions& options = SpecOptions()) {
  const NqSpecTokenizer tokenizer;
  return *Nq(options, &tokenizer).MakeExamples(std::move(record), "here");
}

Windows MakeOfficial(NqRecord record, NqOptions options = SpecOptions()) {
  options.official_compatibility = true;
  return Make(std::move(record), options);
}

TEST(NqExampleTest, LaysOutTheLongInputAsInTheSpec) {  // doc/nq.md 9.1
  const Windows windows = Make(NqSpecRecord());
  ASSERT_EQ(windows.size(), 3u);
  EXPECT_THAT(windows[0]->long_token_ids,
              ElementsAre(101, 200, 201, 202, 102, 107, 202, 203, 204, 205, 206,
                          207, 208, 209, 108, 102));
  EXPECT_THAT(windows[1]->long_token_ids,
              ElementsAre(101, 200, 201, 202, 102, 206, 207, 208, 209, 108, 107,
                          107, 210, 211, 108, 102));
  // Without the padding that the official program writes.
  EXPECT_THAT(
      windows[2]->long_token_ids,
      ElementsAre(101, 200, 201, 202, 102, 107, 107, 210, 211, 108, 108, 102));
  EXPECT_THAT(windows[0]->long_tokens, ElementsAre(-1, -1, -1, -1, -1, 3, 4, 5,
                                                   6, 6, 7, 8, 9, 10, 11, -1));
  EXPECT_THAT(
      windows[1]->long_tokens,
      ElementsAre(-1, -1, -1, -1, -1, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, -1));
  EXPECT_THAT(windows[2]->long_tokens,
              ElementsAre(-1, -1, -1, -1, -1, 12, 13, 14, 15, 16, 17, -1));
  for (size_t w = 0; w < windows.size(); ++w) {
    EXPECT_EQ(windows[w]->window, static_cast<int64_t>(w));
    EXPECT_EQ(windows[w]->question_length, 3);
    EXPECT_THAT(windows[w]->long_type_ids, Each(1));
    EXPECT_EQ(windows[w]->document, windows[0]->document);
    EXPECT_EQ(windows[w]->record_id, "-42");
  }
  EXPECT_EQ(windows[0]->document->num_windows, 3);
  EXPECT_EQ(windows[0]->document->num_pieces, 16);
}

// doc/nq.md 9.1, trap 6
TEST(NqExampleTest, LaysOutTheGlobalInputAsInTheSpec) {
  const Windows windows = Make(NqSpecRecord());
  EXPECT_THAT(windows[0]->global_token_ids,
              ElementsAre(101, 35, 35, 35, 35, 1, 0));
  EXPECT_THAT(windows[1]->global_token_ids,
              ElementsAre(101, 35, 35, 35, 35, 1, 1, 0));
  EXPECT_THAT(windows[2]->global_token_ids,
              ElementsAre(101, 35, 35, 35, 35, 1, 0));
  EXPECT_THAT(windows[0]->pattern.sentence,
              ElementsAre(0, 1, 2, 3, 4, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 6));
  EXPECT_THAT(windows[1]->pattern.sentence,
              ElementsAre(0, 1, 2, 3, 4, 5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 7));
  EXPECT_THAT(windows[2]->pattern.sentence,
              ElementsAre(0, 1, 2, 3, 4, 5, 5, 5, 5, 5, 5, 6));
  EXPECT_THAT(windows[0]->global_candidates,
              ElementsAre(-1, -1, -1, -1, -1, 0, -1));
  EXPECT_THAT(windows[1]->global_candidates,
              ElementsAre(-1, -1, -1, -1, -1, 0, 1, -1));
  EXPECT_THAT(windows[2]->global_candidates,
              ElementsAre(-1, -1, -1, -1, -1, 1, -1));
  for (const auto& window : windows) {
    EXPECT_THAT(window->global_type_ids, Each(0));
    EXPECT_THAT(window->pattern.long_segment, Each(1));
    EXPECT_THAT(window->pattern.global_example, Each(1));
  }
}

TEST(NqExampleTest, HasTheOfficialTargetsOfTheSpec) {  // doc/nq.md 9.1, trap 4
  const Windows windows = MakeOfficial(NqSpecRecord());
  EXPECT_EQ(windows[0]->short_answer, (NqTarget{11, 12}));
  EXPECT_EQ(windows[1]->short_answer, (NqTarget{6, 7}));
  EXPECT_EQ(windows[2]->short_answer, (NqTarget{0, 0}));
  EXPECT_EQ(windows[0]->long_answer, (NqTarget{5, 14}));
  EXPECT_EQ(windows[1]->long_answer, (NqTarget{0, 9}));
  EXPECT_EQ(windows[2]->long_answer, (NqTarget{0, 0}));
  EXPECT_EQ(windows[0]->answer_type, NqAnswerType::kShort);
  EXPECT_EQ(windows[1]->answer_type, NqAnswerType::kShort);
  EXPECT_EQ(windows[2]->answer_type, NqAnswerType::kNull);
}

TEST(NqExampleTest, PointsAtWholeAnswersOnlyByDefault) {
  const Windows windows = Make(NqSpecRecord());
  EXPECT_EQ(windows[0]->short_answer, (NqTarget{11, 12}));
  EXPECT_EQ(windows[0]->long_answer, (NqTarget{5, 14}));
  EXPECT_EQ(windows[1]->short_answer, (NqTarget{6, 7}));
  EXPECT_EQ(windows[1]->long_answer, (NqTarget{0, 0}));
  EXPECT_EQ(windows[1]->answer_type, NqAnswerType::kShort);
  EXPECT_EQ(windows[2]->answer_type, NqAnswerType::kNull);
}

// doc/nq.md 9.1, G = 6
TEST(NqExampleTest, AttachesToTheLastGlobalTokenWhenFull) {
  NqOptions options = SpecOptions();
  options.input.max_global_length = 6;
  for (const auto& window : Make(NqSpecRecord(), options)) {
    EXPECT_THAT(window->global_token_ids, ElementsAre(101, 35, 35, 35, 35, 1));
    std::vector<int32_t> sentences = {0, 1, 2, 3, 4};
    sentences.resize(window->long_token_ids.size(), 5);
    EXPECT_EQ(window->pattern.sentence, sentences);
    EXPECT_EQ(window->global_candidates.back(), window->window == 2 ? 1 : 0);
  }
  options.input.max_global_length = 5;
  for (const auto& window : Make(NqSpecRecord(), options)) {
    EXPECT_THAT(window->global_token_ids, ElementsAre(101, 35, 35, 35, 35));
    EXPECT_EQ(window->pattern.sentence.back(), 4);
  }
}

TEST(NqExampleTest, CutsTheQuestion) {
  NqOptions options = SpecOptions();
  options.max_question_length = 2;
  const Windows windows = Make(NqSpecRecord(), options);
  EXPECT_EQ(windows[0]->question_length, 2);
  EXPECT_EQ(windows[0]->document->dropped_question_pieces, 1);
  EXPECT_THAT(windows[0]->long_token_ids,
              ElementsAre(101, 200, 201, 102, 107, 202, 203, 204, 205, 206, 207,
                          208, 209, 108, 107, 102));

  std::string question;
  for (int i = 0; i < 40; ++i) {
    question += "who ";
  }
  const Windows whole = Make(NqPage("<P> by </P>", question), {});
  EXPECT_EQ(whole[0]->question_length, 32);
  EXPECT_EQ(whole[0]->document->dropped_question_pieces, 8);
  EXPECT_EQ(whole[0]->long_length(), 32 + 3 + 3);
  EXPECT_EQ(whole[0]->global_length(), 32 + 2 + 2);
}

TEST(NqExampleTest, TakesAnEmptyQuestion) {
  NqRecord record = NqSpecRecord();
  record.question = "";
  const Windows windows = Make(record);
  EXPECT_THAT(windows[0]->long_token_ids,
              ElementsAre(101, 102, 107, 202, 203, 204, 205, 206, 207, 208, 209,
                          108, 107, 107, 210, 102));
  EXPECT_THAT(windows[0]->global_token_ids, ElementsAre(101, 35, 1, 1, 0));
  EXPECT_EQ(windows[0]->short_answer, (NqTarget{8, 9}));
}

TEST(NqExampleTest, TakesADocumentWithoutPieces) {  // doc/nq.md 2.5
  const Windows windows = Make(NqPage("<H1> by </H1>", "who wrote blue"));
  ASSERT_EQ(windows.size(), 1u);
  EXPECT_THAT(windows[0]->long_token_ids,
              ElementsAre(101, 200, 201, 202, 102, 102));
  EXPECT_THAT(windows[0]->global_token_ids, ElementsAre(101, 35, 35, 35, 35));
  EXPECT_THAT(windows[0]->pattern.sentence, ElementsAre(0, 1, 2, 3, 4, 4));
  EXPECT_FALSE(windows[0]->has_answer);
  EXPECT_EQ(Make(NqPage("", "")).size(), 1u);
}

TEST(NqExampleTest, PointsBehindWordsOfSeveralPieces) {
  NqRecord record = NqSpecRecord();
  record.annotations[0].short_answers = {NqTokenSpan(5, 7)};  // was written
  EXPECT_EQ(Make(record)[0]->short_answer, (NqTarget{7, 9}));
  record.annotations[0].short_answers = {NqTokenSpan(6, 7)};
  EXPECT_EQ(Make(record)[0]->short_answer, (NqTarget{8, 9}));
}

TEST(NqExampleTest, MergesShortAnswers) {  // doc/nq.md 10, trap 8
  NqRecord record = NqSpecRecord();
  record.annotations[0].short_answers = {NqTokenSpan(4, 5), NqTokenSpan(8, 10)};
  EXPECT_EQ(Make(record)[0]->short_answer, (NqTarget{6, 12}));
  record.annotations[0].short_answers = {NqTokenSpan(8, 10), NqTokenSpan(4, 5)};
  EXPECT_EQ(Make(record)[0]->short_answer, (NqTarget{6, 12}));
}

TEST(NqExampleTest, UsesTheFirstAnnotationOnly) {  // doc/nq.md 10, trap 8
  NqRecord record = NqSpecRecord();
  record.annotations.insert(record.annotations.begin(), NqAnnotation());
  const Windows windows = Make(record);
  for (const auto& window : windows) {
    EXPECT_TRUE(window->has_answer);
    EXPECT_EQ(window->answer_type, NqAnswerType::kNull);
    EXPECT_TRUE(window->long_answer.is_null());
  }
  EXPECT_EQ(windows[0]->document->annotations.size(), 2u);
}

NqRecord YesRecord() {
  NqRecord record = NqSpecRecord();
  record.annotations[0].short_answers.clear();
  record.annotations[0].yes_no = NqYesNo::kYes;
  return record;
}

std::vector<NqAnswerType> Types(const Windows& windows) {
  std::vector<NqAnswerType> types;
  for (const auto& window : windows) {
    types.push_back(window->answer_type);
  }
  return types;
}

TEST(NqExampleTest, SaysYesWhereTheEvidenceIs) {  // doc/nq.md 2.4, trap 5
  EXPECT_THAT(Types(Make(YesRecord())),
              ElementsAre(NqAnswerType::kYes, NqAnswerType::kNull,
                          NqAnswerType::kNull));
  EXPECT_THAT(Types(MakeOfficial(YesRecord())), Each(NqAnswerType::kYes));
  NqRecord no = YesRecord();
  no.annotations[0].yes_no = NqYesNo::kNo;
  EXPECT_EQ(Make(no)[0]->answer_type, NqAnswerType::kNo);
  no.annotations[0].long_answer = {};
  EXPECT_THAT(Types(Make(no)), Each(NqAnswerType::kNull));
  EXPECT_THAT(Types(MakeOfficial(no)), Each(NqAnswerType::kNo));
}

TEST(NqExampleTest, KnowsLongAnswers) {
  NqRecord record = YesRecord();
  record.annotations[0].yes_no = NqYesNo::kNone;
  EXPECT_THAT(Types(Make(record)),
              ElementsAre(NqAnswerType::kLong, NqAnswerType::kNull,
                          NqAnswerType::kNull));
  // The end alone is in the second window.
  EXPECT_THAT(Types(MakeOfficial(record)),
              ElementsAre(NqAnswerType::kLong, NqAnswerType::kLong,
                          NqAnswerType::kNull));
  EXPECT_TRUE(Make(record)[0]->short_answer.is_null());
}

TEST(NqExampleTest, CanTrainToSayTheLongAnswerAsTheShortOne) {
  NqRecord record = YesRecord();
  record.annotations[0].yes_no = NqYesNo::kNone;
  NqOptions options = SpecOptions();
  options.predict_long_as_short = true;
  const Windows windows = Make(record, options);
  EXPECT_EQ(windows[0]->short_answer, (NqTarget{5, 14}));
  EXPECT_EQ(windows[0]->answer_type, NqAnswerType::kLong);
}

TEST(NqExampleTest, HasALongAnswerWhereTheShortOneHasNoPieces) {
  NqRecord record = NqPage("<P> nothing by </P>", "who",
                           {{.long_answer = NqTokenSpan(0, 4),
                             .short_answers = {NqTokenSpan(1, 2)}}});
  const Windows windows = Make(record);
  EXPECT_TRUE(windows[0]->short_answer.is_null());
  EXPECT_EQ(windows[0]->answer_type, NqAnswerType::kLong);
  EXPECT_EQ(MakeOfficial(record)[0]->answer_type, NqAnswerType::kNull);
  EXPECT_EQ(MakeOfficial(record)[0]->long_answer, (NqTarget{3, 5}));
}

TEST(NqExampleTest, HasNoTargetOutsideTopLevelCandidates) {
  NqRecord record = NqSpecRecord();
  record.annotations[0] = {.long_answer = NqTokenSpan(0, 3),
                           .short_answers = {NqTokenSpan(1, 2)}};
  EXPECT_THAT(Types(Make(record)), Each(NqAnswerType::kNull));
}

TEST(NqExampleTest, PutsBlocksInPlaceOfCandidates) {  // doc/nq.md 2.6
  NqOptions options = SpecOptions();
  options.fixed_blocks = true;
  options.fixed_block_size = 5;
  Windows windows = Make(NqSpecRecord(), options);
  EXPECT_THAT(windows[0]->global_token_ids, ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(windows[0]->pattern.sentence,
              ElementsAre(0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3));
  EXPECT_THAT(windows[2]->global_token_ids, ElementsAre(1, 1, 1));
  EXPECT_THAT(windows[0]->global_candidates, Each(-1));
  // Tokens behind the last block belong to none.
  options.fixed_block_size = 2;
  options.input.max_global_length = 5;
  windows = Make(NqSpecRecord(), options);
  EXPECT_THAT(windows[0]->global_token_ids, ElementsAre(1, 1, 1, 1, 1));
  EXPECT_THAT(
      windows[0]->pattern.sentence,
      ElementsAre(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, -1, -1, -1, -1, -1, -1));
}

// Counts the windows that training keeps.
int64_t Kept(const Windows& windows) {
  return std::count_if(windows.begin(), windows.end(), [](const auto& window) {
    return window->left_out.empty();
  });
}

// A page of about a thousand windows.
NqRecord LongPage(std::vector<NqAnnotation> annotations) {
  std::string page = "<P> Ann Lee </P> <P>";
  for (int i = 0; i < 5000; ++i) {
    page += " by";
  }
  return NqPage(page + " </P>", "who wrote blue", std::move(annotations));
}

TEST(NqExampleTest, KeepsAShareOfTheWindowsWithoutAnswer) {  // doc/nq.md 2.8
  const NqRecord answered = LongPage({{.long_answer = NqTokenSpan(0, 4)}});
  const NqRecord unanswered = LongPage({{}});
  NqOptions options = SpecOptions();
  EXPECT_EQ(Kept(Make(answered, options)),
            static_cast<int64_t>(Make(answered, options).size()));
  options.include_unknown_rate = 0.25;
  options.include_unknown_rate_for_unanswerable = 0.5;
  const Windows windows = Make(answered, options);
  ASSERT_GT(windows.size(), 900u);
  // Three standard deviations.
  EXPECT_NEAR(static_cast<double>(Kept(windows)) / windows.size(), 0.25, 0.045);
  EXPECT_NEAR(
      static_cast<double>(Kept(Make(unanswered, options))) / windows.size(),
      0.5, 0.05);
  EXPECT_EQ(windows[0]->answer_type, NqAnswerType::kLong);
  EXPECT_EQ(windows[0]->left_out, "");
  options.include_unknown_rate = 0;
  EXPECT_EQ(Kept(Make(answered, options)), 1);
}

TEST(NqExampleTest, KeepsTheSameWindowsEveryTimeForOneSeed) {
  NqOptions options = SpecOptions();
  options.include_unknown_rate = 0.5;
  const NqRecord record = LongPage({{.long_answer = NqTokenSpan(0, 4)}});
  const auto kept = [&](int64_t seed) {
    options.unknown_seed = seed;
    std::vector<bool> is_kept;
    for (const auto& window : Make(record, options)) {
      is_kept.push_back(window->left_out.empty());
    }
    return is_kept;
  };
  EXPECT_EQ(kept(1), kept(1));
  EXPECT_NE(kept(1), kept(2));
}

TEST(NqExampleTest, SharesTheDocumentAmongWindows) {
  NqRecord record = LongPage({{.long_answer = NqTokenSpan(0, 4)}});
  record.question = "who";
  for (int i = 0; i < 100000; ++i) {
    record.candidates.push_back({.span = NqTokenSpan(1, 2)});
  }
  const Windows windows = Make(std::move(record));
  int64_t bytes = 0;
  for (const auto& window : windows) {
    bytes += window->TaskBytes();
  }
  EXPECT_GT(bytes, 100000 * static_cast<int64_t>(sizeof(NqCandidate)));
  EXPECT_LT(bytes, 2 * 100000 * static_cast<int64_t>(sizeof(NqCandidate)));
}

// Records that programs give have been read by nobody.
TEST(NqExampleTest, RefusesCandidatesWithoutTokensOrBeyondThem) {
  const NqRecord good = NqSpecRecord();
  const NqSpecTokenizer tokenizer;
  for (const auto& [start, end] :
       {std::pair(0, 19), {-1, 2}, {2, 1}, {5, 5}, {18, 18}}) {
    NqRecord record = good;
    record.candidates[1].span = NqTokenSpan(start, end);
    EXPECT_EQ(Nq(SpecOptions(), &tokenizer)
                  .MakeExamples(std::move(record), "here")
                  .status()
                  .message(),
              absl::StrCat("here.candidates[1] should be one token or more "
                           "within [0, 18), but is [",
                           start, ", ", end, ")"));
  }
}

TEST(NqExampleTest, RefusesLengthsThatHoldNoWindow) {
  NqOptions options = SpecOptions();
  options.input.max_long_length = 10;
  EXPECT_THROW(Make(NqSpecRecord(), options), c10::Error);
  options = SpecOptions();
  options.input.max_global_length = 4;
  EXPECT_THROW(Make(NqSpecRecord(), options), c10::Error);
  options = SpecOptions();
  options.stride = 0;
  EXPECT_THROW(Make(NqSpecRecord(), options), c10::Error);
}

}  // namespace
}  // namespace etc
