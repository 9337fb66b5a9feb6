// Natural Questions behind the Task seam, on the bundled sample and on real
// pages with BERT's and ALBERT's vocabularies where they are at hand: every
// record becomes windows, gold targets spell the gold answers, fed back they
// score what the official rules allow, in training and by file alike, and a
// model with random weights goes the whole way. Of the bundled training pages
// the first hundred; sample_test.cc makes windows of all. Short answers of
// several spans cannot be said (doc/nq.md 7.2): no sample has any. Options are
// read strictly.

#include "tasks/nq/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tasks/data/record_file.h"
#include "tasks/task/benchmark_task.h"
#include "tasks/task/score_files.h"
#include "tasks/text/load_tokenizer.h"
#include "tasks/train/task_model.h"
#include "tests/support/sample_examples.h"
#include "tests/support/shared_data.h"
#include "tests/support/task_config.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/nq/page_record.h"
#include "tests/tasks/nq/renamed_pieces.h"
#include "tests/tasks/nq/spec_record.h"

namespace etc {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::json;

EtcConfig SmallConfig() {
  EtcConfig config;
  config.vocab_size = 30522;
  config.hidden_size = 8;
  config.num_hidden_layers = 1;
  config.num_attention_heads = 2;
  config.intermediate_size = 8;
  config.use_hard_g2l_mask = true;
  return config;
}

// The lengths of doc/nq.md 9.1.
RunConfig SpecSetup() {
  return TaskConfig(SmallConfig(), Json::object(),
                    {.max_long_length = 16, .max_global_length = 8});
}

Json SpecOptions() { return {{"stride", 5}, {"question_len", 3}}; }

absl::StatusOr<std::unique_ptr<RecordTask>> MakeTask(
    const Json& options, RunConfig setup = SpecSetup(),
    std::shared_ptr<const Tokenizer> tokenizer =
        std::make_shared<NqSpecTokenizer>()) {
  setup.task_options = options;
  return etc::MakeTask<Nq>(MakeNqHead, setup, std::move(tokenizer));
}

std::string Message(const absl::StatusOr<std::unique_ptr<RecordTask>>& task) {
  EXPECT_EQ(task.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(task.status().message());
}

// doc/nq.md 8.1
TEST(NqOptionsTest, DefaultToTheOfficialNumbersAndSoundRules) {
  const auto options = ReadTaskOptions<Nq>(Json::object(), "f.json: nq");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->stride, 2048);
  EXPECT_EQ(options->max_question_length, 32);
  EXPECT_FALSE(options->predict_long_as_short);
  EXPECT_EQ(options->include_unknown_rate, 1);
  EXPECT_EQ(options->include_unknown_rate_for_unanswerable, 4);
  EXPECT_FALSE(options->fixed_blocks);
  EXPECT_EQ(options->fixed_block_size, 27);
  EXPECT_TRUE(options->mask_long_output);
  EXPECT_EQ(options->span_selection, NqSpanSelection::kJoint);
  EXPECT_TRUE(options->consider_answer_type);
  EXPECT_EQ(options->max_short_answer_length, 32);
  EXPECT_FALSE(options->official_compatibility);
}

TEST(NqTaskTest, HasNoTextsInAnnotations) {
  EXPECT_THAT(Nq().AnswerTextFields(), IsEmpty());
  // Predicting does not look at them all the same.
  EXPECT_THAT(Nq().AnswerFields(), testing::ElementsAre("annotations"));
}

TEST(NqOptionsTest, ReadEveryField) {
  const auto options =
      ReadTaskOptions<Nq>({{"stride", 100},
                           {"question_len", 20},
                           {"predict_la_when_no_sa", true},
                           {"include_unknown_rate", 0.25},
                           {"include_unknown_rate_for_unanswerable", 0.5},
                           {"include_unknown_seed", 7},
                           {"fixed_blocks", true},
                           {"fixed_block_size", 9},
                           {"mask_long_output", true},
                           {"span_selection_method", "joint_exhaustive"},
                           {"consider_answer_type", false},
                           {"max_short_answer_len", 5},
                           {"official_compatibility", true}},
                          "f.json: nq");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->stride, 100);
  EXPECT_EQ(options->max_question_length, 20);
  EXPECT_TRUE(options->predict_long_as_short);
  EXPECT_EQ(options->include_unknown_rate, 0.25);
  EXPECT_EQ(options->include_unknown_rate_for_unanswerable, 0.5);
  EXPECT_EQ(options->unknown_seed, 7);
  EXPECT_TRUE(options->fixed_blocks);
  EXPECT_EQ(options->fixed_block_size, 9);
  EXPECT_TRUE(options->mask_long_output);
  EXPECT_EQ(options->span_selection, NqSpanSelection::kJointExhaustive);
  EXPECT_FALSE(options->consider_answer_type);
  EXPECT_EQ(options->max_short_answer_length, 5);
  EXPECT_TRUE(options->official_compatibility);
}

TEST(NqOptionsTest, FollowOtherOptionsWhereTheyAreAbsent) {  // doc/nq.md 2.8, 4
  const auto options = ReadTaskOptions<Nq>(
      {{"include_unknown_rate", 0.1}, {"official_compatibility", true}},
      "f.json: nq");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_DOUBLE_EQ(options->include_unknown_rate_for_unanswerable, 0.4);
  EXPECT_FALSE(options->mask_long_output);
}

TEST(MakeNqTaskTest, RefusesOptionsThatMakeNoSense) {
  EXPECT_THAT(Message(MakeTask({{"strid", 5}})),
              HasSubstr("did you mean \"stride\"?"));
  EXPECT_THAT(Message(MakeTask({{"stride", 0}})),
              HasSubstr("nq.stride should be at least 1, but is 0"));
  EXPECT_THAT(Message(MakeTask({{"question_len", -1}})),
              HasSubstr("question_len should be at least 0"));
  EXPECT_THAT(Message(MakeTask({{"include_unknown_rate", -0.5}})),
              HasSubstr("include_unknown_rate should be at least 0"));
  EXPECT_THAT(Message(MakeTask({{"fixed_block_size", 0}})),
              HasSubstr("fixed_block_size should be at least 1"));
  EXPECT_THAT(Message(MakeTask({{"max_short_answer_len", 0}})),
              HasSubstr("max_short_answer_len should be at least 1"));
  for (const char* count :
       {"stride", "question_len", "fixed_block_size", "max_short_answer_len"}) {
    EXPECT_THAT(Message(MakeTask({{count, INT64_MAX}})),
                HasSubstr(absl::StrCat("nq.", count,
                                       " should be at most 2147483647, but is "
                                       "9223372036854775807")));
  }
  EXPECT_THAT(Message(MakeTask({{"span_selection_method", "best"}})),
              HasSubstr("but is \"best\""));
}

TEST(MakeNqTaskTest, RefusesASetupThatDoesNotFit) {
  RunConfig setup = SpecSetup();
  setup.data.max_long_length = 10;
  EXPECT_THAT(Message(MakeTask(SpecOptions(), setup)),
              HasSubstr("max_long_length should be at least 11"));
  setup = SpecSetup();
  setup.data.max_global_length = 4;
  EXPECT_THAT(Message(MakeTask(SpecOptions(), setup)),
              HasSubstr("max_global_length should be at least 5"));
  setup = SpecSetup();
  setup.model.vocab_size = 211;
  EXPECT_THAT(Message(MakeTask(SpecOptions(), setup)),
              HasSubstr("vocab_size should be at least 212"));
  setup = SpecSetup();
  setup.model.segment_vocab_size = 1;
  EXPECT_THAT(Message(MakeTask(SpecOptions(), setup)),
              HasSubstr("segment_vocab_size should be at least 2"));
  setup = SpecSetup();
  setup.tokenizer.type = "sentencepiece";
  EXPECT_THAT(Message(MakeTask(SpecOptions(), setup)),
              HasSubstr("f.json: nq: the vocabulary should have the piece "
                        "\"<unused_63>\""));
}

TEST(NqTaskTest, PassesOnWhereARecordIsWrong) {
  const auto task = MakeTask(SpecOptions());
  ASSERT_TRUE(task.ok()) << task.status();
  EXPECT_EQ((*task)->main_metric(), "average_f1");
  EXPECT_THAT(std::string((*task)
                              ->MakeExamples("{}", "dev.jsonl: record 3")
                              .status()
                              .message()),
              HasSubstr("dev.jsonl: record 3"));
}

TEST(NqOptionsTest, MayCutWindowsAnewAfterTraining) {
  EXPECT_THAT(OptionsWithRule<Nq>(&FieldRule::reads_files),
              testing::ElementsAre("nq.stride"));
}

TEST(NqTaskTest, SaysWhyNoWindowHoldsAnAnswer) {
  const auto lost = [](const Json& record, int64_t max_long_length) {
    RunConfig setup = SpecSetup();
    setup.data.max_long_length = max_long_length;
    const auto task = MakeTask(SpecOptions(), setup);
    EXPECT_TRUE(task.ok()) << task.status();
    const auto windows = (*task)->MakeExamples(record.dump(), "here");
    EXPECT_TRUE(windows.ok()) << windows.status();
    return windows->front()->lost_answer;
  };
  const Json record = NqSpecJson();
  EXPECT_EQ(lost(record, 16), "");
  EXPECT_EQ(lost(record, 11), "it is whole in no window");
  Json other = record;
  other["long_answer_candidates"][0]["top_level"] = false;
  EXPECT_EQ(lost(other, 16), "it is whole in no window");
  other = record;
  other["annotations"][0]["long_answer"]["start_token"] = 4;
  EXPECT_EQ(lost(other, 16), "the long answer is no candidate of the page");
  other["annotations"] = Json::array();
  EXPECT_EQ(lost(other, 16), "");
}

TEST(NqTaskTest, MakesTheSameWindowsOfBothFormats) {
  const auto task = MakeTask(SpecOptions());
  ASSERT_TRUE(task.ok()) << task.status();
  const auto original = (*task)->MakeExamples(NqSpecJson().dump(), "here");
  const auto simplified =
      (*task)->MakeExamples(SimplifiedNqJson(NqSpecJson()).dump(), "here");
  ASSERT_TRUE(original.ok()) << original.status();
  ASSERT_TRUE(simplified.ok()) << simplified.status();
  ASSERT_EQ(original->size(), 3u);
  ASSERT_EQ(simplified->size(), 3u);
  for (size_t w = 0; w < 3; ++w) {
    EXPECT_EQ((*task)->Describe(*(*original)[w]),
              (*task)->Describe(*(*simplified)[w]));
  }
}

TEST(NqTaskTest, DescribesAnExampleForPeople) {
  RunConfig setup = SpecSetup();
  setup.model.local_radius = 3;
  const auto task = MakeTask(SpecOptions(), setup);
  ASSERT_TRUE(task.ok()) << task.status();
  const auto windows = (*task)->MakeExamples(NqSpecJson().dump(), "here");
  ASSERT_TRUE(windows.ok()) << windows.status();
  EXPECT_EQ((*task)->Describe(*(*windows)[0]),
            R"(document -42, window 0 of 3: who wrote blue
answer: short; long answer 5-14 (document 3-11), short answer 11-12 (document 8-9)
16 pieces in the document; 16 long tokens, 7 global tokens
local radius 3, hard g2l mask, soft l2g mask

global kind          owns         sees         tokens
     0 [CLS]         0            0            [CLS]
     1 question      1            1            who
     2 question      2            2            wrote
     3 question      3            3            blue
     4 question      4            4            [SEP]
     5 candidate 0   5-14         5-14         { <> blue was writ ##ten by [ ann lee ] . </> }
     6 end           15           15           [SEP]
)");
}

// Logits that say what the targets say: `right` at the targets, those of [CLS]
// where a window has none.
std::vector<torch::Tensor> GoldLogits(const Batch& batch) {
  constexpr float kRight = 10;
  torch::Tensor spans = torch::ones(
      {batch.size(), kNqNumChannels, batch.input.token_ids.size(1)});
  torch::Tensor types = torch::zeros({batch.size(), kNqNumAnswerTypes});
  for (int64_t b = 0; b < batch.size(); ++b) {
    const NqExample& example =
        ExampleAs<NqExample>(*batch.examples[static_cast<size_t>(b)]);
    const NqTarget& short_answer = example.short_answer;
    const NqTarget& long_answer = example.long_answer;
    spans[b][0][short_answer.start] = kRight;
    spans[b][1][short_answer.end] = kRight;
    spans[b][2][long_answer.start] = kRight;
    spans[b][3][long_answer.end] = kRight;
    types[b][static_cast<int64_t>(example.answer_type)] = kRight;
  }
  return {spans, types};
}

std::map<std::string, double> ToMap(const Metrics& metrics) {
  return {metrics.begin(), metrics.end()};
}

TEST(NqPredictionsTest, GatherWindowsOverBatches) {
  const auto task = MakeTask(SpecOptions());
  ASSERT_TRUE(task.ok()) << task.status();
  const auto windows = (*task)->MakeExamples(NqSpecJson().dump(), "here");
  ASSERT_TRUE(windows.ok()) << windows.status();
  const auto at_once = (*task)->MakePredictions();
  const Batch all = MakeBatch(*windows);
  at_once->Add(all, GoldLogits(all));
  EXPECT_THAT(at_once->FileContents(), HasSubstr("\"start_token\":3"));
  EXPECT_EQ(ToMap(at_once->Score()).at("average_f1"), 1.0);

  const auto one_by_one = (*task)->MakePredictions();
  for (const auto& window : *windows) {
    EXPECT_THAT(one_by_one->FileContents(), Not(HasSubstr("-42")));
    EXPECT_THAT(one_by_one->Score(), IsEmpty());
    const Batch batch = MakeBatch({window});
    one_by_one->Add(batch, GoldLogits(batch));
  }
  EXPECT_EQ(one_by_one->FileContents(), at_once->FileContents());
  EXPECT_EQ(one_by_one->Score(), at_once->Score());
}

TEST(NqPredictionsTest, HaveNoScoreWithoutAnnotations) {
  const auto task = MakeTask(SpecOptions());
  ASSERT_TRUE(task.ok()) << task.status();
  Json json = NqSpecJson();
  json["annotations"] = Json::array();
  const auto windows = (*task)->MakeExamples(json.dump(), "here");
  ASSERT_TRUE(windows.ok()) << windows.status();
  EXPECT_FALSE(windows->front()->has_answer);
  const Batch batch = MakeBatch(*windows);
  const auto predictions = (*task)->MakePredictions();
  predictions->Add(batch, GoldLogits(batch));
  EXPECT_THAT(predictions->Score(), IsEmpty());
  EXPECT_THAT(predictions->FileContents(), HasSubstr("\"example_id\":-42"));
}

bool HasShort(const Json& annotation) {
  return !annotation["short_answers"].empty() ||
         annotation["yes_no_answer"] != "NONE";
}

bool HasLong(const Json& annotation) {
  return annotation["long_answer"]["start_token"] >= 0;
}

// Number of annotators that have to agree that there is an answer (doc/nq.md
// 7.2).
int64_t Needed(const Json& annotations) {
  return std::min<int64_t>(2, static_cast<int64_t>(annotations.size()));
}

// The record with an annotation in front that the official rules call right:
// one that most annotators agree on, of those that have an answer if enough of
// them have.
Json WithRightAnnotationFirst(Json record) {
  if (!record.contains("annotations")) {
    return record;
  }
  Json& all = record["annotations"];
  const bool is_answered =
      std::count_if(all.begin(), all.end(), HasLong) >= Needed(all);
  size_t best = 0;
  int64_t best_count = 0;
  for (size_t a = 0; a < all.size(); ++a) {
    const int64_t count =
        std::count_if(all.begin(), all.end(), [&](const Json& other) {
          return other["long_answer"] == all[a]["long_answer"] &&
                 other["short_answers"] == all[a]["short_answers"] &&
                 other["yes_no_answer"] == all[a]["yes_no_answer"];
        });
    if (HasLong(all[a]) == is_answered && count > best_count) {
      best = a;
      best_count = count;
    }
  }
  if (!all.empty()) {
    std::swap(all[0], all[best]);
  }
  return record;
}

struct Sample {
  std::string data;  // below shared/, or of this repository
  std::string vocabulary;
  bool official_compatibility = false;
};

constexpr int64_t kMostTrainingRecords = 100;

class NqSamplesTest : public testing::TestWithParam<Sample> {
 protected:
  void SetUp() override {
    std::string vocabulary;
    if (IsBundled()) {
      path_ = absl::StrCat(ETC_SOURCE_DIR, "/", GetParam().data);
      vocabulary = absl::StrCat(ETC_SOURCE_DIR, "/", GetParam().vocabulary);
      if (path_.ends_with("train.jsonl.gz")) {
        ASSERT_NO_FATAL_FAILURE(TakeSomeRecords(kMostTrainingRecords));
      }
    } else {
      ETC_SHARED_DATA_OR_SKIP(path_, GetParam().data);
      ETC_SHARED_DATA_OR_SKIP(vocabulary, GetParam().vocabulary);
    }
    ETC_SKIP_IF_TOKENIZER_IS_REFUSED(vocabulary);
    auto tokenizer = LoadTokenizer(vocabulary);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    const bool wordpiece = IsWordPiece(vocabulary);
    tokenizer_ = wordpiece ? *tokenizer : WithEtcNames(*tokenizer);
    RunConfig setup =
        TaskConfig(SmallConfig(), Json::object(), {.max_global_length = 230});
    setup.tokenizer.type = wordpiece ? "wordpiece" : "sentencepiece";
    auto task = MakeTask(
        {{"official_compatibility", GetParam().official_compatibility}}, setup,
        tokenizer_);
    ASSERT_TRUE(task.ok()) << task.status();
    task_ = *std::move(task);
    const auto file = RecordFile::Open(path_);
    ASSERT_TRUE(file.ok()) << file.status();
    for (int64_t i = 0; i < file->size(); ++i) {
      const Json json = WithRightAnnotationFirst(Json::parse(*file->Read(i)));
      const std::string text = json.dump();
      has_short_ |=
          json.contains("annotations") &&
          std::count_if(json["annotations"].begin(), json["annotations"].end(),
                        HasShort) >= Needed(json["annotations"]);
      const auto record = Nq().ParseRecord(text, file->Where(i));
      ASSERT_TRUE(record.ok()) << record.status();
      records_.push_back(*record);
      const auto windows = task_->MakeExamples(text, file->Where(i));
      ASSERT_TRUE(windows.ok()) << windows.status();
      ASSERT_THAT(*windows, Not(IsEmpty()));
      windows_.push_back(*windows);
    }
    ASSERT_THAT(records_, Not(IsEmpty()));
  }

  // Makes the file one of some of its records, from all over it.
  void TakeSomeRecords(int64_t count) {
    const auto file = RecordFile::Open(path_);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_GT(file->size(), count);
    std::string lines;
    for (int64_t i = 0; i < count; ++i) {
      const auto record = file->Read(i * (file->size() / count));
      ASSERT_TRUE(record.ok()) << record.status();
      absl::StrAppend(&lines, *record, "\n");
    }
    path_ = directory_.Write("train.jsonl", lines);
  }

  bool IsBundled() const { return GetParam().data.starts_with("tasks/"); }
  bool HasAnnotations() const { return !records_[0].annotations.empty(); }

  // The scores of the predictions' file, which those in training must equal.
  std::map<std::string, double> ScoreOf(const TaskPredictions& predictions) {
    if (!HasAnnotations()) {
      EXPECT_THAT(predictions.Score(), IsEmpty());
      return {};
    }
    const auto score =
        ScoreFiles(Nq(), {.gold = path_,
                          .predictions = directory_.Write(
                              "p.json", predictions.FileContents())});
    EXPECT_TRUE(score.ok()) << score.status();
    if (!GetParam().official_compatibility) {
      EXPECT_EQ(*score, predictions.Score());
    }
    return ToMap(*score);
  }

  TemporaryDirectory directory_;
  std::string path_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::unique_ptr<RecordTask> task_;
  std::vector<NqRecord> records_;
  // True if any document has a short answer, by the official rules.
  bool has_short_ = false;
  std::vector<std::vector<std::shared_ptr<const Example>>> windows_;
};

// The pieces of words and tags of a document one by one.
std::vector<int32_t> IdsOf(const NqRecord& record, const NqSpan& span,
                           const Tokenizer& tokenizer, const NqTokens& tokens) {
  std::vector<int32_t> ids;
  for (int64_t t = span.start_token; t < span.end_token; ++t) {
    const NqToken& token = record.tokens[static_cast<size_t>(t)];
    if (token.is_html) {
      ids.push_back(token.text.starts_with("</") ? tokens.closing_tag
                                                 : tokens.opening_tag);
      continue;
    }
    for (const Token& piece : tokenizer.Encode(token.text)) {
      ids.push_back(piece.id);
    }
  }
  return ids;
}

TEST_P(NqSamplesTest, PointAtTheGoldAnswers) {
  const auto tokens = NqTokensOf(IsWordPiece(GetParam().vocabulary)
                                     ? TokenizerKind::kWordPiece
                                     : TokenizerKind::kSentencePiece,
                                 *tokenizer_);
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  int64_t answers = 0;
  for (size_t r = 0; HasAnnotations() && r < records_.size(); ++r) {
    const NqRecord& record = records_[r];
    const NqAnnotation& gold = record.annotations.front();
    const auto check = [&](const NqExample& window, const NqTarget& target,
                           const NqSpan& span) {
      if (target.start == 0 || target.end == 0) {
        return;  // not, or officially not wholly, in the window
      }
      EXPECT_EQ(
          std::vector<int32_t>(window.long_token_ids.begin() + target.start,
                               window.long_token_ids.begin() + target.end + 1),
          IdsOf(record, span, *tokenizer_, *tokens))
          << window.record_id;
      EXPECT_EQ(window.long_tokens[static_cast<size_t>(target.start)],
                span.start_token);
      EXPECT_EQ(window.long_tokens[static_cast<size_t>(target.end)],
                span.end_token - 1);
      ++answers;
    };
    for (const auto& example : windows_[r]) {
      const NqExample& window = ExampleAs<NqExample>(*example);
      EXPECT_EQ(window.left_out, "");
      if (!gold.long_answer.is_null()) {
        check(window, window.long_answer, gold.long_answer);
      }
      if (!gold.short_answers.empty()) {
        check(window, window.short_answer, gold.short_answers.front());
      }
    }
  }
  EXPECT_EQ(answers > 0, HasAnnotations());
}

TEST_P(NqSamplesTest, ScoreOneForGoldFedBack) {
  const auto predictions = task_->MakePredictions();
  for (const auto& windows : windows_) {
    const Batch batch = MakeBatch(windows);
    predictions->Add(batch, GoldLogits(batch));
  }
  const auto scores = ScoreOf(*predictions);
  // Officially the type of the last window decides, and where no window has
  // an answer scores are not comparable (doc/nq.md 10, traps 1 and 2).
  if (HasAnnotations() && !GetParam().official_compatibility) {
    EXPECT_EQ(scores.at("long_f1"), 1.0);
    EXPECT_EQ(scores.at("short_f1"), has_short_ ? 1.0 : 0.0);
  }
}

TEST_P(NqSamplesTest, GoThroughAModelWithRandomWeights) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(5);
  TaskModel model(EtcModel(SmallConfig()), task_->MakeHead());
  const auto predictions = task_->MakePredictions();
  for (const auto& windows : windows_) {
    for (const auto& window : windows) {
      const Batch batch = MakeBatch({window});
      const std::vector<torch::Tensor> logits = model.Forward(batch);
      if (HasAnnotations()) {
        EXPECT_TRUE(model.Loss(logits, batch, model.Totals(batch.examples))
                        .isfinite()
                        .item<bool>());
      }
      predictions->Add(batch, logits);
    }
  }
  ScoreOf(*predictions);
}

constexpr char kBundled[] = "tasks/nq/sample/dev.jsonl";
constexpr char kBundledVocabulary[] = "tasks/nq/sample/vocab.txt";
constexpr char kDev[] = "data/natural_questions/nq-dev-original.sample.jsonl";
constexpr char kTrain[] =
    "data/natural_questions/nq-train-simplified.sample.jsonl";
constexpr char kTest[] =
    "data/natural_questions/nq-test-simplified-unannotated.sample.jsonl";
constexpr char kBert[] = "data/vocab/bert-uncased/vocab.txt";
constexpr char kAlbert[] = "data/vocab/sentencepiece/albert_spiece.model";
INSTANTIATE_TEST_SUITE_P(
    Files, NqSamplesTest,
    testing::Values(Sample{kBundled, kBundledVocabulary},
                    Sample{kBundled, kBundledVocabulary, true},
                    Sample{"tasks/nq/sample/train.jsonl.gz",
                           kBundledVocabulary},
                    Sample{kDev, kBert}, Sample{kDev, kBert, true},
                    Sample{kDev, kAlbert}, Sample{kDev, kAlbert, true},
                    Sample{kTrain, kBert}, Sample{kTrain, kBert, true},
                    Sample{kTrain, kAlbert}, Sample{kTest, kBert},
                    Sample{kTest, kAlbert}));

}  // namespace
}  // namespace etc
