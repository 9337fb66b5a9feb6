// Questions made into inputs and logits into texts, exactly as by the official
// program: words, answers, windows, targets, projected texts and predictions
// are compared with the results of its functions (squad.json in the folder of
// shared data; doc/squad.md 13), the counts of windows with those of real data.
// Small cases by hand cover the rest: questions that training refuses and
// leaves out, ETC's global tokens, SentencePiece.
//
// Logits and their sums are in double, as golden ones are; texts and their
// order must be equal, probabilities to 1e-9.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tasks/squad/task.h"
#include "tasks/text/answer_projection.h"
#include "tasks/text/load_tokenizer.h"
#include "tests/support/gzip_member.h"
#include "tests/support/shared_data.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/inputs/byte_level_tokenizer.h"
#include "tests/tasks/squad/golden_data.h"
#include "tests/tasks/text/word_tokenizer.h"

namespace etc {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kGolden[] = "golden/text_tasks/squad.json";
constexpr char kGoldenInput[] = "golden/text_tasks/squad_train_input.json";
constexpr char kUncased[] = "data/vocab/bert-uncased/vocab.txt";

std::shared_ptr<const Tokenizer> Uncased() {
  auto tokenizer = LoadTokenizer(SharedDataPath(kUncased));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

// Options of BERT, with inputs of 48 tokens as the golden ones have.
SquadOptions GoldenOptions() {
  return {.input = {.max_global_length = 48, .has_long_tokens = false},
          .doc_stride = 16,
          .max_query_length = 10};
}

class SquadGoldenTest : public testing::Test {
 protected:
  void SetUp() override {
    ETC_SHARED_DATA_OR_SKIP(const std::string path, kGolden);
    ETC_SHARED_DATA_OR_SKIP(const std::string vocabulary, kUncased);
    golden_ = ReadJsonOrFail(path);
    records_ = ReadSquadRecords(SharedDataPath(kGoldenInput));
    tokenizer_ = Uncased();
  }

  json golden_;
  std::vector<SquadRecord> records_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

TEST_F(SquadGoldenTest, HasTheWordsAndAnswersOfExamples) {
  const json& golden = golden_["examples"];
  size_t next = 0;
  for (const SquadRecord& record : records_) {
    const SquadWords words = FindSquadWords(record.context);
    const SquadAnswer& answer = record.answers->front();
    const auto found = FindAnswerWords(record.context, words, answer);
    if (next == golden.size() || golden[next]["id"] != record.id) {
      EXPECT_EQ(found, std::nullopt) << record.id;  // officially dropped
      continue;
    }
    const json& example = golden[next++];
    std::vector<std::string> texts;
    for (int64_t w = 0; w < static_cast<int64_t>(words.words.size()); ++w) {
      texts.push_back(
          JoinSquadWords(record.context, words.words, {.first = w, .last = w}));
    }
    EXPECT_EQ(texts, example["doc_tokens"].get<std::vector<std::string>>());
    ASSERT_TRUE(found.has_value()) << record.id;
    EXPECT_EQ(found->first, example["start"]) << record.id;
    EXPECT_EQ(found->last, example["end"]) << record.id;
    EXPECT_EQ(answer.text, example["text"]) << record.id;
  }
  EXPECT_EQ(next, 15u);
}

// Compares a window with a golden feature.
void ExpectFeature(const SquadExample& example, const json& feature,
                   const Tokenizer& tokenizer) {
  SCOPED_TRACE(feature["unique_id"]);
  EXPECT_EQ(example.window, feature["doc_span_index"]);
  std::vector<std::string> tokens;
  std::vector<int32_t> ids = example.global_token_ids;
  for (const int32_t id : ids) {
    tokens.push_back(tokenizer.Piece(id));
  }
  EXPECT_EQ(tokens, feature["tokens"].get<std::vector<std::string>>());
  EXPECT_EQ(example.global_length(), feature["length"]);
  ids.resize(feature["input_ids"].size(), 0);
  EXPECT_EQ(ids, feature["input_ids"].get<std::vector<int32_t>>());
  EXPECT_EQ(std::count(example.global_type_ids.begin(),
                       example.global_type_ids.end(), 1),
            feature["segment_ones"].get<int64_t>());
  json words = json::array();
  json most = json::array();
  for (int64_t p = 0; p < example.global_length(); ++p) {
    if (const auto piece = example.PieceAt(p)) {
      const auto at = static_cast<size_t>(*piece);
      words.push_back({p, example.document->pieces[at].word});
      if (example.has_most_context[static_cast<size_t>(
              p - example.first_position())]) {
        most.push_back(p);
      }
    }
  }
  EXPECT_EQ(words, feature["token_to_orig_map"]);
  EXPECT_EQ(most, feature["max_context"]);
  EXPECT_EQ(example.answer.first, feature["start_position"]);
  EXPECT_EQ(example.answer.last, feature["end_position"]);
}

TEST_F(SquadGoldenTest, HasTheFeatures) {
  const json& features = golden_["features"]["list"];
  size_t next = 0;
  for (const SquadRecord& record : records_) {
    for (const auto& example :
         SquadExamplesOf(record, GoldenOptions(), *tokenizer_)) {
      EXPECT_EQ(example->training_error, "");
      if (example->left_out.empty()) {
        ASSERT_LT(next, features.size());
        ExpectFeature(*example, features[next++], *tokenizer_);
      } else {
        EXPECT_THAT(example->left_out, HasSubstr("such as U+00A0"));
        EXPECT_EQ(record.id, "q6");
      }
    }
  }
  EXPECT_EQ(next, 42u);
  EXPECT_EQ(next, features.size());
}

TEST_F(SquadGoldenTest, HasTheProjectedTexts) {
  ASSERT_EQ(golden_["get_final_text"].size(), 16u);
  for (const json& pair : golden_["get_final_text"]) {
    EXPECT_EQ(ProjectAnswer(pair["pred"].get<std::string>(),
                            pair["orig"].get<std::string>()),
              pair["expect"].get<std::string>());
  }
}

// Compares a prediction with golden n-best answers.
void ExpectCandidates(const SquadPrediction& prediction, const json& golden) {
  ASSERT_EQ(prediction.candidates.size(), golden.size());
  for (size_t i = 0; i < golden.size(); ++i) {
    const SquadCandidate& candidate = prediction.candidates[i];
    EXPECT_EQ(candidate.text, golden[i]["text"]) << i;
    EXPECT_NEAR(candidate.probability, golden[i]["probability"], 1e-9) << i;
    EXPECT_EQ(candidate.start_logit, golden[i]["start_logit"]) << i;
    EXPECT_EQ(candidate.end_logit, golden[i]["end_logit"]) << i;
  }
}

TEST_F(SquadGoldenTest, HasThePredictions) {
  ASSERT_EQ(golden_["predictions"].size(), 3u);
  for (const json& run : golden_["predictions"]) {
    SquadOptions options = GoldenOptions();
    options.version = run["v2"] ? SquadVersion::k2 : SquadVersion::k1;
    options.n_best_size = run["n_best_size"];
    options.max_answer_length = run["max_answer_length"];
    options.null_score_diff_threshold =
        run["null_score_diff_threshold"].get<double>();
    auto logits = run["logits"].begin();
    for (const SquadRecord& record : records_) {
      SCOPED_TRACE(record.id);
      std::vector<SquadWindowLogits> windows;
      for (const auto& example :
           SquadExamplesOf(record, options, *tokenizer_)) {
        ASSERT_NE(logits, run["logits"].end());
        windows.push_back({.example = example,
                           .starts = (*logits)[1].get<std::vector<double>>(),
                           .ends = (*logits)[2].get<std::vector<double>>()});
        ++logits;
      }
      // In any order.
      std::reverse(windows.begin(), windows.end());
      const SquadPrediction prediction =
          DecodeSquad(windows, options, *tokenizer_);
      EXPECT_EQ(prediction.text, run["predictions"][record.id]);
      ExpectCandidates(prediction, run["nbest"][record.id]);
      const auto odds = JudgeSquad(prediction).null_odds;
      EXPECT_EQ(odds.has_value(), run["v2"].get<bool>());
      if (odds.has_value()) {
        EXPECT_EQ(*odds, run["null_odds"][record.id].get<double>());
      }
    }
    EXPECT_EQ(logits, run["logits"].end());
  }
}

// The windows of all questions of a file with the sizes of doc/squad.md 13.6.
int64_t CountWindows(const std::string& path) {
  const SquadOptions options = {
      .input = {.max_global_length = 384, .has_long_tokens = false}};
  const std::shared_ptr<const Tokenizer> tokenizer = Uncased();
  int64_t windows = 0;
  for (const SquadRecord& record : ReadSquadRecords(path)) {
    windows += static_cast<int64_t>(
        SquadExamplesOf(record, options, *tokenizer).size());
  }
  return windows;
}

TEST(SquadRealDataTest, HasTheCountsOfWindows) {  // doc/squad.md 13.6
  ETC_SHARED_DATA_OR_SKIP(const std::string first, "data/squad/dev-v1.1.json");
  ETC_SHARED_DATA_OR_SKIP(const std::string second, "data/squad/dev-v2.0.json");
  ETC_SHARED_DATA_OR_SKIP(const std::string vocabulary, kUncased);
  EXPECT_EQ(CountWindows(first), 7157);
  EXPECT_EQ(CountWindows(second), 4053);
}

// All answers lie at their offsets (doc/squad.md 1).
TEST(SquadRealDataTest, HasItsAnswersInTheContexts) {
  ETC_SHARED_DATA_OR_SKIP(const std::string path, "data/squad/dev-v1.1.json");
  int64_t answers = 0;
  int64_t missed = 0;
  for (const SquadRecord& record : ReadSquadRecords(path)) {
    const SquadWords words = FindSquadWords(record.context);
    for (const SquadAnswer& answer : *record.answers) {
      ++answers;
      missed += FindAnswerWords(record.context, words, answer) ? 0 : 1;
    }
  }
  EXPECT_EQ(answers, 23350);
  EXPECT_EQ(missed, 0);
}

// [CLS] is 10, [SEP] 11, the words from 12 on.
const WordTokenizer& Words() {
  static const auto* words = new WordTokenizer(
      {"[CLS]", "[SEP]", "a", "b", "c", "d", ".", "who", "q"});
  return *words;
}

SquadOptions BertOptions(int64_t length) {
  return {.input = {.max_global_length = length, .has_long_tokens = false},
          .doc_stride = 2,
          .max_query_length = 2,
          .marks = {.cls = 10, .separator = 11}};
}

SquadRecord Record(const std::string& context,
                   std::vector<SquadAnswer> answers) {
  return {.id = "1",
          .question = "who q",
          .context = context,
          .answers = std::move(answers)};
}

TEST(SquadExampleTest, TrainsOnTheAnswerWhereTheWindowHasIt) {
  const SquadExamples windows =
      SquadExamplesOf(Record("a b c d a", {{.text = "c d", .start = 4}}),
                      BertOptions(8), Words());
  ASSERT_EQ(windows.size(), 2u);
  EXPECT_THAT(windows[0]->global_token_ids,
              ElementsAre(10, 17, 18, 11, 12, 13, 14, 11));
  EXPECT_THAT(windows[0]->global_type_ids, ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
  EXPECT_EQ(windows[0]->answer, (SquadSpan{.first = 0, .last = 0}));
  EXPECT_THAT(windows[1]->global_token_ids,
              ElementsAre(10, 17, 18, 11, 14, 15, 12, 11));
  EXPECT_EQ(windows[1]->answer, (SquadSpan{.first = 4, .last = 5}));
  EXPECT_EQ(windows[0]->document, windows[1]->document);
  EXPECT_EQ(windows[0]->document->num_windows, 2);
}

TEST(SquadExampleTest, CountsThePiecesThatTheQuestionLoses) {
  SquadRecord record = Record("a b c d a", {});
  const auto dropped = [&record] {
    return SquadExamplesOf(record, BertOptions(8), Words())[0]
        ->document->dropped_question_pieces;
  };
  EXPECT_EQ(dropped(), 0);
  record.question = "who q a b c";
  EXPECT_EQ(dropped(), 3);
}

TEST(SquadExampleTest, HasTwoSeparatorsForRoberta) {
  SquadOptions options = BertOptions(9);
  options.marks.between = {11, 11};
  const SquadExamples windows = SquadExamplesOf(
      Record("a b c d a", {{.text = "c d", .start = 4}}), options, Words());
  ASSERT_EQ(windows.size(), 2u);
  EXPECT_THAT(windows[0]->global_token_ids,
              ElementsAre(10, 17, 18, 11, 11, 12, 13, 14, 11));
  EXPECT_THAT(windows[1]->global_token_ids,
              ElementsAre(10, 17, 18, 11, 11, 14, 15, 12, 11));
  EXPECT_EQ(windows[1]->answer, (SquadSpan{.first = 5, .last = 6}));
  EXPECT_EQ(windows[1]->PieceAt(5), 2);
  EXPECT_EQ(windows[1]->PieceAt(4), std::nullopt);
  EXPECT_EQ(windows[1]->PieceAt(8), std::nullopt);
}

TEST(SquadExampleTest, LeavesOutWhatTrainingCannotUse) {
  const SquadOptions options = BertOptions(20);
  const auto left_out = [&](const std::string& context, SquadAnswer answer) {
    return SquadExamplesOf(Record(context, {std::move(answer)}), options,
                           Words())
        .front()
        ->left_out;
  };
  EXPECT_EQ(left_out("a b", {.text = "b", .start = 2}), "");
  for (const int64_t start : {0, 1, 3, 1000}) {
    EXPECT_EQ(left_out("a  b", {.text = "c", .start = start}),
              "the answer is not at its offset (answer_start counts "
              "characters, not bytes)");
  }
  for (const std::string space : {"\u00a0", "\u3000"}) {  // doc/squad.md 2
    const std::string text = absl::StrCat("a", space, "b");
    EXPECT_EQ(left_out("d " + text, {.text = text, .start = 2}),
              "the answer holds white space, such as U+00A0, at which the "
              "official program does not split");
    EXPECT_THAT(left_out("d " + text, {.text = text, .start = 1}),
                HasSubstr("is not at its offset"));
    EXPECT_EQ(left_out("d " + text, {.text = "b", .start = 4}), "");
  }
  EXPECT_EQ(left_out(" \t ", {.text = "c", .start = 0}),
            "the context has no text");
}

TEST(SquadExampleTest, RefusesToTrainOnOtherThanOneAnswer) {
  SquadOptions options = BertOptions(20);
  const auto error = [&](const SquadRecord& record) {
    return SquadExamplesOf(record, options, Words()).front()->training_error;
  };
  const SquadRecord two =
      Record("a b", {{.text = "a", .start = 0}, {.text = "b", .start = 2}});
  SquadRecord none = Record("a b", {});
  EXPECT_EQ(error(two),
            ".answers should have one answer for training, but has 2; "
            "squad.several_answers \"first\" takes the first");
  EXPECT_EQ(error(none),
            ".answers should have one answer for training, but has 0; "
            "squad.version \"2.0\" is for questions without answer");
  EXPECT_EQ(error(Record("a", {{.text = "", .start = 0}})),
            ".answers[0].text should not be empty");
  EXPECT_EQ(error(Record("a", {{.text = "a"}})),
            ".answers[0].answer_start is missing");
  EXPECT_EQ(error(Record("a", {{.text = "a", .start = -1}})),
            ".answers[0].answer_start should be at least 0, but is -1");
  options.several_answers = SquadSeveralAnswers::kFirst;
  EXPECT_EQ(error(two), "");
  options.version = SquadVersion::k2;
  EXPECT_THAT(error(none), HasSubstr(".is_impossible is missing"));
  none.is_impossible = false;
  EXPECT_THAT(error(none), HasSubstr("although is_impossible is false"));
  none.is_impossible = true;
  EXPECT_EQ(error(none), "");
}

TEST(SquadExampleTest, HasNoAnswerWhereTheQuestionIsImpossible) {
  SquadOptions options = BertOptions(20);
  options.version = SquadVersion::k2;
  SquadRecord record = Record("a b", {{.text = "b", .start = 2}});
  record.is_impossible = true;
  const auto example = SquadExamplesOf(record, options, Words()).front();
  EXPECT_EQ(example->answer, (SquadSpan{.first = 0, .last = 0}));
  EXPECT_EQ(example->left_out, "");
}

TEST(SquadExampleTest, GivesEtcTokensForQuestionAndSentences) {
  SquadOptions options = BertOptions(0);
  options.input = {.max_long_length = 20, .max_global_length = 5};
  options.input.split_sentences = SplitAtFullStops;
  const auto example =
      SquadExamplesOf(Record("a b . c . d .", {{.text = "c", .start = 6}}),
                      options, Words())
          .front();
  EXPECT_THAT(example->long_token_ids,
              ElementsAre(10, 17, 18, 11, 12, 13, 16, 14, 16, 15, 16, 11));
  EXPECT_THAT(example->long_type_ids,
              ElementsAre(1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2));
  // The third sentence belongs to the last token.
  EXPECT_THAT(example->global_token_ids, ElementsAre(1, 3, 3, 2, 2));
  EXPECT_THAT(example->pattern.sentence,
              ElementsAre(0, 1, 2, 0, 3, 3, 3, 4, 4, 4, 4, 0));
  EXPECT_EQ(example->answer, (SquadSpan{.first = 7, .last = 7}));
}

TEST(SquadExampleTest, ReadsWordsAsBehindBlanksWithByteLevelPieces) {
  const auto tokenizer = ByteLevelTokenizer({"the", "Ġthe", "cat", "Ġcat"});
  ASSERT_NE(tokenizer, nullptr);
  SquadOptions options = BertOptions(30);
  options.input.tokenizer_kind = TokenizerKind::kHuggingFace;
  const auto example_of = [&](const std::string& answer, int64_t start) {
    SquadRecord record =
        Record("the \u00e9 the (the cat).", {{.text = answer, .start = start}});
    record.question = "the";
    return SquadExamplesOf(record, options, *tokenizer).front();
  };
  const auto example = example_of("the", 6);
  EXPECT_THAT(example->global_token_ids,
              ElementsAre(10, 256, 11, 257, ' ', 0xc3, 0xa9, 257, ' ', '(', 256,
                          259, ')', '.', 11));
  // Answers are without the punctuation of their words.
  EXPECT_EQ(example->answer, (SquadSpan{.first = 7, .last = 7}));
  EXPECT_EQ(example_of("the cat", 11)->answer,
            (SquadSpan{.first = 10, .last = 11}));
  EXPECT_EQ(example_of("cat", 15)->answer,
            (SquadSpan{.first = 11, .last = 11}));
  // An offset within the right word.
  EXPECT_EQ(example_of("cat", 16)->answer,
            (SquadSpan{.first = 11, .last = 11}));
}

TEST(SquadExampleTest, CountsOffsetsInCharactersWithByteLevelPieces) {
  const auto tokenizer = ByteLevelTokenizer({"the", "cat", "Ġcat"});
  ASSERT_NE(tokenizer, nullptr);
  SquadOptions options = BertOptions(30);
  options.input.tokenizer_kind = TokenizerKind::kHuggingFace;
  // The second "cat" is at character 6, byte 7.
  SquadRecord record = Record("\u00e9 cat-cat", {{.text = "cat", .start = 6}});
  record.question = "the";
  const auto example = SquadExamplesOf(record, options, *tokenizer).front();
  EXPECT_THAT(example->global_token_ids,
              ElementsAre(10, 256, 11, ' ', 0xc3, 0xa9, 258, '-', 257, 11));
  EXPECT_EQ(example->answer, (SquadSpan{.first = 8, .last = 8}));
}

TEST(SquadExampleTest, SaysWhereLengthsHaveNoRoom) {
  const auto examples = Squad(BertOptions(5), &Words())
                            .MakeExamples(Record("a", {}), "f.json: data[0]");
  EXPECT_THAT(std::string(examples.status().message()),
              HasSubstr("f.json: data[0]: an input has no room"));
}

// A prediction for "a b c d", of which start and end logits are given.
SquadPrediction Predict(const SquadOptions& options, const std::string& context,
                        std::vector<double> starts, std::vector<double> ends) {
  const SquadExamples examples =
      SquadExamplesOf(Record(context, {}), options, Words());
  return DecodeSquad({{.example = examples.front(),
                       .starts = std::move(starts),
                       .ends = std::move(ends)}},
                     options, Words());
}

TEST(SquadPredictionTest, HasTheMarksThatATokenizerJsonDrops) {
  const json file = {
      {"normalizer",
       {{"type", "Sequence"},
        {"normalizers", {{{"type", "NFD"}}, {{"type", "StripAccents"}}}}}},
      {"pre_tokenizer", {{"type", "WhitespaceSplit"}}},
      {"model",
       {{"type", "WordLevel"},
        {"unk_token", "[UNK]"},
        {"vocab", {{"[UNK]", 0}, {"\u092e", 1}}}}}};
  const auto parsed = ParseHuggingFaceTokenizer(file.dump(), "tokenizer.json");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Tokenizer& tokenizer = **parsed;
  SquadOptions options = BertOptions(20);
  options.input.tokenizer_kind = TokenizerKind::kHuggingFace;
  const SquadExamples examples = SquadExamplesOf(
      Record("who \u092e\u0947\u0902 d", {}), options, tokenizer);
  const int64_t at = examples.front()->first_position() + 1;
  std::vector<double> logits(examples.front()->global_token_ids.size(), 0);
  logits[static_cast<size_t>(at)] = 9;
  EXPECT_EQ(
      DecodeSquad(
          {{.example = examples.front(), .starts = logits, .ends = logits}},
          options, tokenizer)
          .text,
      "\u092e\u0947\u0902");
}

TEST(SquadPredictionTest, IsEmptyWhereTheContextIs) {  // doc/squad.md 6
  SquadOptions options = BertOptions(20);
  const std::vector<double> logits = {3, 0, 0, 0, 0};
  const SquadPrediction first = Predict(options, " ", logits, logits);
  EXPECT_EQ(first.text, "empty");
  EXPECT_EQ(first.candidates.front().probability, 1);
  options.version = SquadVersion::k2;
  const SquadPrediction second = Predict(options, " ", logits, logits);
  EXPECT_EQ(second.text, "");
  ASSERT_EQ(second.candidates.size(), 1u);
  EXPECT_EQ(second.candidates.front().score(), 0);
  EXPECT_EQ(JudgeSquad(second).null_odds, 1e6);
}

TEST(SquadPredictionTest, TakesTheFirstOfEqualLogits) {  // doc/squad.md 14
  SquadOptions options = BertOptions(20);
  options.n_best_size = 1;
  // Places 0 to 3 and 8 are no part of the window.
  const SquadPrediction prediction =
      Predict(options, "a b c d", {0, 0, 0, 0, 1, 1, 1, 1, 0},
              {0, 0, 0, 0, 1, 1, 1, 1, 0});
  ASSERT_EQ(prediction.candidates.size(), 1u);
  EXPECT_EQ(prediction.text, "a");
}

TEST(SquadPredictionTest, IsTheOriginalTextBetweenSentencePieces) {
  SquadOptions options = BertOptions(20);
  options.input.tokenizer_kind = TokenizerKind::kSentencePiece;
  std::vector<double> starts(9, 0);
  std::vector<double> ends(9, 0);
  starts[5] = 9;
  ends[6] = 9;
  EXPECT_EQ(Predict(options, "a (b  C) d.", starts, ends).text, "(b");
  ends[6] = 0;
  ends[7] = 9;
  EXPECT_EQ(Predict(options, "a (b  C) d.", starts, ends).text, "(b  C");
}

TEST(SquadFileTest, NamesTheQuestionsByTheirPlace) {
  TemporaryDirectory directory;
  const auto read = [&](const std::string& contents) {
    return Squad().ReadFile(directory.Write("f.json", contents), {});
  };
  const auto records = read(
      R"({"data": [{"paragraphs": []}, {"paragraphs": [{"context": "a",
          "qas": [{"id": "x", "question": "b"}, {"id": "y", "more": 1}]}]}]})");
  ASSERT_TRUE(records.ok()) << records.status();
  ASSERT_EQ(records->size(), 2u);
  EXPECT_THAT((*records)[1].where,
              testing::EndsWith("f.json: data[1].paragraphs[0].qas[1]"));
  const auto record = Squad().ParseRecord((*records)[0].Text(), "here");
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->context, "a");
  EXPECT_EQ(record->answers, std::nullopt);

  const std::map<std::string, std::string> mistakes = {
      {R"([])", "f.json should be an object"},
      {R"({})", "f.json: data is missing"},
      {R"({"data": {}})", "f.json: data should be a list of objects"},
      {R"({"data": [{}]})", "f.json: data[0].paragraphs is missing"},
      {R"({"data": [{"paragraphs": [{"qas": []}]}]})",
       "f.json: data[0].paragraphs[0].context is missing"},
      {R"({"data": [{"paragraphs": [{"context": 5, "qas": []}]}]})",
       "f.json: data[0].paragraphs[0].context should be a string"},
      {R"({"data": [{"paragraphs": [{"context": "", "qas": [7]}]}]})",
       "f.json: data[0].paragraphs[0].qas[0] should be an object"}};
  for (const auto& [contents, message] : mistakes) {
    EXPECT_THAT(std::string(read(contents).status().message()),
                HasSubstr(message));
  }
}

TEST(SquadFileTest, SaysThatLinesAreForStandardInput) {
  TemporaryDirectory directory;
  const std::string line = R"({"question": "a", "context": "b"})"
                           "\n";
  EXPECT_THAT(
      std::string(Squad()
                      .ReadFile(directory.Write("f.jsonl", line + line), {})
                      .status()
                      .message()),
      HasSubstr("f.jsonl should be one JSON object, as SQuAD's files are, but "
                "has one on each line"));
}

TEST(SquadFileTest, MayBePackedByGzip) {
  TemporaryDirectory directory;
  const std::string contents = R"({"data": [{"paragraphs": [{"context": "a",
      "qas": [{"id": "x", "question": "b"}]}]}]})";
  const auto packed = Squad().ReadFile(
      directory.Write("f.json", GzipMember(contents)), /*limits=*/{});
  ASSERT_TRUE(packed.ok()) << packed.status();
  ASSERT_EQ(packed->size(), 1u);
  const auto plain =
      Squad().ReadFile(directory.Write("g.json", contents), /*limits=*/{});
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(packed->front().Text(), plain->front().Text());
  const auto cut = Squad().ReadFile(
      directory.Write("h.json", GzipMember(contents).substr(0, 40)),
      /*limits=*/{});
  EXPECT_EQ(cut.status().code(), absl::StatusCode::kDataLoss);
}

TEST(SquadFileTest, GivesEachQuestionTheContextOfItsParagraph) {
  TemporaryDirectory directory;
  const std::string context = "a \"b\" \\ \t\u00e9 \\\"";
  const json file = {
      {"data",
       {{{"paragraphs",
          {{{"context", context},
            {"qas",
             {{{"id", "x"},
               {"question", "q"},
               {"context", "another"},
               {"answers", {{{"text", "b"}, {"answer_start", 3}}}}},
              {{"id", "y"}, {"question", "q"}, {"is_impossible", true}},
              json::object()}}}}}}}}};
  const auto records =
      Squad().ReadFile(directory.Write("f.json", file.dump()), /*limits=*/{});
  ASSERT_TRUE(records.ok()) << records.status();
  ASSERT_EQ(records->size(), 3u);
  const auto first = Squad().ParseRecord((*records)[0].Text(), "here");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->context, context);
  EXPECT_EQ(first->answers->at(0).start, 3);
  EXPECT_EQ(json::parse((*records)[2].Text()), json({{"context", context}}));

  const auto gold = [&](size_t record) {
    return Squad().ParseGold((*records)[record].json, "f: here",
                             ScoringRules::kDefault);
  };
  ASSERT_TRUE(gold(0).ok()) << gold(0).status();
  EXPECT_EQ(gold(0)->first, "x");
  EXPECT_THAT(gold(0)->second->answers, ElementsAre("b"));
  ASSERT_TRUE(gold(1).ok()) << gold(1).status();
  EXPECT_EQ(gold(1)->second, std::nullopt);
  EXPECT_EQ(gold(2).status().message(), "f: here.id is missing");
}

// Contexts may be long, and have many questions.
TEST(SquadFileTest, HoldsTheContextOfAParagraphOnce) {
  constexpr int64_t kContext = 1 << 20;
  constexpr int64_t kQuestions = 100;
  json questions = json::array();
  for (int64_t i = 0; i < kQuestions; ++i) {
    questions.push_back({{"id", absl::StrCat(i)}, {"question", "q"}});
  }
  const std::string file = absl::StrCat(
      R"({"data":[{"paragraphs":[{"context":")", std::string(kContext, 'c'),
      R"(","qas":)", questions.dump(), "}]}]}");
  TemporaryDirectory directory;
  const auto records =
      Squad().ReadFile(directory.Write("f.json", file), /*limits=*/{});
  ASSERT_TRUE(records.ok()) << records.status();
  ASSERT_EQ(static_cast<int64_t>(records->size()), kQuestions);
  std::map<const std::string*, size_t> shared;
  size_t bytes = 0;
  for (const FileRecord& record : *records) {
    shared[record.shared.get()] = record.shared->capacity();
    bytes += record.json.capacity();
  }
  ASSERT_EQ(shared.size(), 1u);
  EXPECT_LT(bytes + shared.begin()->second, size_t{2} * kContext);
  const auto last = Squad().ParseRecord(records->back().Text(), "f: here");
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(static_cast<int64_t>(last->context.size()), kContext);
  EXPECT_EQ(last->id, "99");
}

// They count for the limit of a record all the same.
TEST(SquadFileTest, CountsTheContextForTheLengthOfARecord) {
  TemporaryDirectory directory;
  const std::string path = directory.Write(
      "f.json",
      R"({"data":[{"paragraphs":[{"context":"a long one","qas":[{"id":"a"}]}]}]})");
  const auto read = [&path](size_t max_record_bytes) {
    return Squad()
        .ReadFiles({path}, {.max_record_bytes = max_record_bytes})
        .status();
  };
  // {"id":"a"} has 10 bytes, "context":"a long one" 22.
  EXPECT_EQ(read(25).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(read(33).ok());
}

// Annotation tools number questions; a prediction file has the digits.
TEST(SquadFileTest, TakesANumberForAnId) {
  const auto record = Squad().ParseRecord(
      R"({"id": 262, "question": "", "context": ""})", "f: here");
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->id, "262");
}

TEST(SquadFileTest, NamesTheFieldOfARecord) {
  const std::map<std::string, std::string> mistakes = {
      {R"({"question": "", "context": ""})", "here.id is missing"},
      {R"({"id": "", "context": ""})", "here.question is missing"},
      {R"({"id": "", "question": "", "context": "", "answers": {}})",
       "here.answers should be a list of objects"},
      {R"({"id": "", "question": "", "context": "", "answers": [{}]})",
       "here.answers[0].text is missing"},
      {R"({"id": "", "question": "", "context": "",
           "answers": [{"text": "", "answer_start": "5"}]})",
       "here.answers[0].answer_start should be an integer"},
      {R"({"id": "", "question": "", "context": "", "is_impossible": 1})",
       "here.is_impossible should be true or false"}};
  for (const auto& [text, message] : mistakes) {
    EXPECT_THAT(
        std::string(Squad().ParseRecord(text, "f: here").status().message()),
        HasSubstr(message));
  }
}

}  // namespace
}  // namespace etc
