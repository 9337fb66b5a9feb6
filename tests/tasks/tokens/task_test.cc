// Labels of tokens from a record to spans: the layout of examples for ETC and
// BERT and the class of each first piece, what is cut, decoding of made-up
// logits to spans and tags, the loss against its formula and gradients that
// reach only first pieces; weights that go to HuggingFace and come back by the
// names of their tags; and a whole run from CoNLL and JSON, whose checkpoint
// answers records as JSON and as structs.

#include "tasks/tokens/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/json_reader.h"
#include "etc/weights/convert.h"
#include "etc/weights/source_config.h"
#include "nlohmann/json.hpp"
#include "tasks/inference/predictor.h"
#include "tasks/run_task.h"
#include "tasks/task/benchmark_head.h"
#include "tasks/task/benchmark_task.h"
#include "tasks/text/wordpiece_tokenizer.h"
#include "tasks/train/initial_weights.h"
#include "tasks/train/model_files.h"
#include "tasks/train/task_model.h"
#include "tests/support/task_config.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/text/word_tokenizer.h"

namespace etc {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Pair;

// [CLS] is 10, [SEP] 11, the words from 12 on; full stops are 6.
RunConfig TokensSettings(int64_t max_long_length = 4096,
                         int64_t max_global_length = 512) {
  EtcConfig model;
  model.vocab_size = 20;
  model.hidden_size = 6;
  model.num_attention_heads = 2;
  model.hidden_dropout_prob = 0;
  return TaskConfig(model, nlohmann::json::object(),
                    {.max_long_length = max_long_length,
                     .max_global_length = max_global_length});
}

std::unique_ptr<RecordTask> MakeTokensTask(
    RunConfig settings = TokensSettings(),
    const nlohmann::json& options = {{"labels", {"p", "q"}}}) {
  const auto tokenizer = std::make_shared<WordTokenizer>(
      std::vector<std::string>{"[CLS]", "[SEP]", "a", "b", "c", "d"});
  settings.task_options = options;
  auto read = ReadCheckedTaskOptions<Tokens>(settings, tokenizer.get());
  EXPECT_TRUE(read.ok()) << read.status();
  read->input.split_sentences = SplitAtFullStops;
  return std::make_unique<BenchmarkTask<Tokens>>(
      *std::move(read), settings.model, tokenizer, MakeTokensHead);
}

TEST(TokensOptionsTest, TakeOneLabelForAListOfOne) {
  EXPECT_NE(MakeTokensTask(TokensSettings(), {{"labels", "p"}}), nullptr);
}

TEST(TokensOutputsTest, FollowFromTheLabels) {
  EXPECT_THAT(MakeTokensTask()->OutputSettings(), ElementsAre("tokens.labels"));
}

std::shared_ptr<const TokensExample> TokensExampleOf(
    const std::string& line, const RunConfig& settings = TokensSettings()) {
  const auto examples =
      MakeTokensTask(settings)->MakeExamples(line, "f.jsonl: record 3");
  EXPECT_TRUE(examples.ok()) << examples.status();
  return std::dynamic_pointer_cast<const TokensExample>(examples->front());
}

// Spans "b, c" and "d", whose first one goes over a comma.
constexpr char kLine[] =
    R"({"text": "a b, c. d a", "spans": [{"start": 8, "end": 9, "label": "q"},
        {"start": 2, "end": 6, "label": "p"}]})";
// The same words, split already, with a sentence that ICU would not make.
constexpr char kSplitLine[] =
    R"({"sentences": [["a", "b"], [], ["b,", "c"]],
        "tags": [["O", "B-p"], [], ["B-p", "I-p"]]})";

TEST(TokensExampleTest, HasTheClassOfEachWord) {
  const auto example = TokensExampleOf(kLine);
  EXPECT_EQ(example->record_id, "3");
  EXPECT_THAT(example->long_token_ids,
              ElementsAre(10, 12, 13, 6, 14, 6, 15, 12, 11));
  EXPECT_THAT(example->global_token_ids, ElementsAre(1, 2, 2));
  EXPECT_THAT(example->pattern.sentence,
              ElementsAre(0, 1, 1, 1, 1, 1, 2, 2, 0));
  EXPECT_THAT(example->classes, ElementsAre(0, 1, 2, 2, 0, 3, 0));
  EXPECT_TRUE(example->has_answer);
}

TEST(TokensExampleTest, TakesWordsAndSentencesAsTheyAre) {
  const auto example = TokensExampleOf(kSplitLine);
  EXPECT_EQ(example->text, "a b\nb, c");
  EXPECT_THAT(example->long_token_ids, ElementsAre(10, 12, 13, 13, 6, 14, 11));
  EXPECT_THAT(example->pattern.sentence, ElementsAre(0, 1, 1, 2, 2, 2, 0));
  EXPECT_THAT(example->classes, ElementsAre(0, 1, 1, 2));
  // The comma is the second piece of "b,".
  EXPECT_EQ(example->units.back().piece, 4);
  EXPECT_THAT(example->sentence_sizes, ElementsAre(2, 0, 2));
}

TEST(TokensExampleTest, IsCutAtTheEnd) {
  const auto example = TokensExampleOf(kLine, TokensSettings(5, 2));
  EXPECT_THAT(example->long_token_ids, ElementsAre(10, 12, 13, 6, 11));
  EXPECT_THAT(example->classes, ElementsAre(0, 1, 2));
  EXPECT_EQ(example->dropped_pieces, 4);
  EXPECT_EQ(example->gold.size(), 2);
  EXPECT_EQ(TokensExampleOf(kLine)->cut_at, std::nullopt);
}

TEST(TokensExampleTest, SaysAtWhichCharacterItIsCut) {
  // \u00e9, a and b are read.
  const auto parts = Tokens().Truncated(
      *TokensExampleOf(R"({"text": "\u00e9 a b c. d"})", TokensSettings(5, 2)));
  EXPECT_THAT(parts, ElementsAre(TruncatedPart{
                         .unit = "pieces", .count = 3, .from = 6}));
  std::string json = R"({"id":"7"})";
  AddTruncated(parts, &json);
  EXPECT_EQ(json, R"({"id":"7","truncated":{"pieces":3,"from":6}})");
}

TEST(TokensExampleTest, IsOneSequenceForBert) {
  RunConfig settings = TokensSettings(/*max_long_length=*/1, 9);
  settings.model.has_long_tokens = false;
  settings.model.segment_vocab_size = 2;
  const auto example = TokensExampleOf(kLine, settings);
  EXPECT_THAT(example->long_token_ids, IsEmpty());
  EXPECT_THAT(example->global_token_ids,
              ElementsAre(10, 12, 13, 6, 14, 6, 15, 12, 11));
  EXPECT_THAT(example->classes, ElementsAre(0, 1, 2, 2, 0, 3, 0));
}

TEST(TokensExampleTest, LabelsTheFirstOfSeveralSpansOfAWord) {
  const auto example = TokensExampleOf(
      R"({"text": "ab c", "spans": [{"start": 0, "end": 1, "label": "p"},
          {"start": 1, "end": 4, "label": "q"}]})");
  EXPECT_THAT(example->classes, ElementsAre(1, 3));
}

TEST(TokensTaskTest, DescribesAnExampleForPeople) {
  EXPECT_EQ(
      MakeTokensTask()->Describe(*TokensExampleOf(kLine, TokensSettings(6, 2))),
      R"(record 3
spans: 2
4 words, 6 long tokens, 2 global tokens; 3 tokens truncated
local radius 84, soft g2l mask, soft l2g mask

global  owns         sees         tokens
     0  0-5          0-5          [CLS] [SEP]
     1  1-4          0-5          a b/B-p [UNK]/I-p c/I-p
)");
}

// The prediction from classes of tokens, and their logits; 2 without them.
TokensPrediction DecodedFrom(std::shared_ptr<const TokensExample> example,
                             const std::vector<int64_t>& classes,
                             TagReading tags = TagReading::kIob2,
                             const std::vector<float>& peaks = {}) {
  const Tokens tokens(TokensOptions{.tags = tags, .labels = {"p", "q"}});
  constexpr int64_t kClasses = 5;
  std::vector<float> logits(
      static_cast<size_t>(example->long_length() * kClasses), 0);
  for (size_t i = 0; i < classes.size(); ++i) {
    logits[i * kClasses + static_cast<size_t>(classes[i])] =
        peaks.empty() ? 2.0F : peaks[i];
  }
  const Tokens::Output output{.example = std::move(example),
                              .logits = {logits}};
  return tokens.Decode({&output, 1});
}

TEST(TokensDecodeTest, JoinsWordsAsConllevalDoes) {
  // [CLS] a b , c . d a [SEP]; the classes of marks do not count.
  const auto spans = [](const std::vector<int64_t>& classes) {
    std::string text;
    for (const auto& [span, words, probability] :
         DecodedFrom(TokensExampleOf(kLine), classes).spans) {
      EXPECT_NEAR(probability, std::exp(2) / (std::exp(2) + 4), 1e-6);
      absl::StrAppend(&text, span.label, " ", span.start, "-", span.end, " ",
                      words, "; ");
    }
    return text;
  };
  EXPECT_EQ(spans({1, 0, 1, 2, 2, 0, 3, 0, 1}), "p 2-6 b, c; q 8-9 d; ");
  EXPECT_EQ(spans({0, 2, 2, 4, 4, 3, 2, 1, 0}),
            "p 0-3 a b; q 3-6 , c; q 6-7 .; p 8-9 d; p 10-11 a; ");
  EXPECT_EQ(spans({0, 0, 0, 0, 0, 0, 0, 0, 0}), "");
}

TEST(TokensDecodeTest, IsAsSureOfASpanAsOfItsLeastSureWord) {
  // [CLS] a b , c . d a [SEP]: the comma is the least sure of "b, c".
  const TokensPrediction prediction =
      DecodedFrom(TokensExampleOf(kLine), {0, 0, 1, 2, 2, 0, 3, 4, 0},
                  TagReading::kIob2, {5, 5, 2, 1, 3, 5, 1, 4, 5});
  ASSERT_EQ(prediction.spans.size(), 2);
  const double least = std::exp(1) / (std::exp(1) + 4);
  EXPECT_EQ(prediction.spans[0].text, "b, c");
  EXPECT_NEAR(prediction.spans[0].probability, least, 1e-6);
  EXPECT_EQ(prediction.spans[1].text, "d a");
  EXPECT_NEAR(prediction.spans[1].probability, least, 1e-6);
}

TEST(TokensDecodeTest, LeavesOutSpansWithoutBeginningIfStrict) {
  for (const TagReading tags :
       {TagReading::kStrictIob2, TagReading::kStrictIobes}) {
    std::string text;
    for (const TokensPredictedSpan& span :
         DecodedFrom(TokensExampleOf(kLine), {0, 2, 1, 4, 2, 3, 4, 1, 0}, tags)
             .spans) {
      absl::StrAppend(&text, span.span.label, " ", span.text, "; ");
    }
    EXPECT_EQ(text, "p b; q . d; p a; ") << static_cast<int>(tags);
  }
}

TEST(TokensDecodeTest, GivesTagsToWordsThatWereSplit) {
  // [CLS] a b / b , c [SEP]; the second sentence ends the first span.
  const TokensPrediction prediction =
      DecodedFrom(TokensExampleOf(kSplitLine), {0, 0, 1, 2, 3, 2, 0});
  EXPECT_THAT(prediction.tags, ElementsAre(ElementsAre("O", "B-p"), IsEmpty(),
                                           ElementsAre("B-p", "I-p")));
  ASSERT_EQ(prediction.spans.size(), 2);
  EXPECT_EQ(prediction.spans[1].text, "b, c");
  EXPECT_EQ(nlohmann::json::parse(Tokens().PredictionJson("7", prediction)),
            nlohmann::json::parse(
                R"({"id": "7", "spans": [
                    {"start": 2, "end": 3, "label": "p", "text": "b",
                     "probability": 0.648786},
                    {"start": 4, "end": 8, "label": "p", "text": "b, c",
                     "probability": 0.648786}],
                    "tags": [["O", "B-p"], [], ["B-p", "I-p"]]})"));
}

TEST(TokensDecodeTest, EndsSpansAtSentencesThatBeginWithoutPieces) {
  // Of U+200B, which BERT's tokenizer deletes, there is no piece.
  const auto wordpiece = ParseWordPieceTokenizer(
      "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\n", "vocab.txt");
  ASSERT_TRUE(wordpiece.ok()) << wordpiece.status();
  const Tokens tokens(TokensOptions{.labels = {"p", "q"}}, wordpiece->get());
  const auto examples = tokens.MakeExamples(
      TokensRecord{.sentences = {{"a"}, {"\u200b", "b"}}}, "here");
  ASSERT_TRUE(examples.ok()) << examples.status();
  // [CLS] a / b [SEP]
  const TokensPrediction prediction =
      DecodedFrom(examples->front(), {0, 1, 2, 0});
  EXPECT_THAT(prediction.tags,
              ElementsAre(ElementsAre("B-p"), ElementsAre("O", "B-p")));
  ASSERT_EQ(prediction.spans.size(), 2);
  EXPECT_EQ(prediction.spans[0].text, "a");
  EXPECT_EQ(prediction.spans[1].text, "b");
}

TEST(TokensHeadTest, AveragesTheCrossEntropyOfFirstPieces) {
  torch::manual_seed(1);
  const auto task = MakeTokensTask();
  const auto head = std::dynamic_pointer_cast<OutputHead>(task->MakeHead());
  const auto first = TokensExampleOf(kSplitLine);
  const auto second = TokensExampleOf(
      R"({"text": "a", "spans": [{"start": 0, "end": 1, "label": "q"}]})");
  const Batch batch = MakeBatch({first, second});
  EtcOutput encoded;
  encoded.long_output = torch::randn({2, 7, 6}).requires_grad_();
  const auto logits = head->forward(encoded, batch);
  ASSERT_EQ(logits.at(0).sizes(), torch::IntArrayRef({2, 7, 5}));
  const torch::Tensor losses = head->Losses(logits, batch);
  const torch::Tensor log = logits.at(0).log_softmax(-1);
  const auto at = [&](int64_t b, int64_t token, int64_t label) {
    return log[b][token][label].item<double>();
  };
  constexpr double kRounding = 1e-6;
  EXPECT_NEAR(losses[0].item<double>(),
              -(at(0, 1, 0) + at(0, 2, 1) + at(0, 3, 1) + at(0, 5, 2)) / 4,
              kRounding);
  EXPECT_NEAR(losses[1].item<double>(), -at(1, 1, 3), kRounding);
  losses.sum().backward();
  const torch::Tensor reached =
      encoded.long_output.grad().abs().sum(-1).gt(0).to(torch::kInt64);
  EXPECT_TRUE(reached.equal(torch::tensor(
      {{0, 1, 1, 1, 0, 1, 0}, {0, 1, 0, 0, 0, 0, 0}}, torch::kInt64)))
      << reached;
  for (const auto& parameter : head->named_parameters()) {
    EXPECT_GT(parameter.value().grad().abs().sum().item<double>(), 0)
        << parameter.key();
  }
}

TEST(TokensHeadTest, DropsStatesInTrainingAlone) {
  torch::manual_seed(1);
  RunConfig settings = TokensSettings();
  settings.model.hidden_dropout_prob = 0.25;
  const auto task = MakeTokensTask(settings);
  const auto head = std::dynamic_pointer_cast<OutputHead>(task->MakeHead());
  const torch::NoGradGuard no_gradients;
  // Logits are the sums of 6 states, each 1 / 0.75 if it is kept.
  const auto parameters = head->named_parameters();
  parameters["classifier.weight"].fill_(1);
  parameters["classifier.bias"].zero_();
  const Batch batch = MakeBatch({TokensExampleOf(kSplitLine)});
  EtcOutput encoded;
  encoded.long_output = torch::ones({1, 7, 6});
  head->eval();
  EXPECT_TRUE(head->forward(encoded, batch).at(0).eq(6).all().item<bool>());
  head->train();
  double sum = 0;
  constexpr int kRuns = 100;
  for (int run = 0; run < kRuns; ++run) {
    const torch::Tensor kept =
        head->forward(encoded, batch).at(0).select(2, 0) * 0.75;
    ASSERT_LT((kept - kept.round()).abs().max().item<double>(), 1e-5);
    sum += kept.sum().item<double>();
  }
  // 7 x 6 draws a run; 5 standard deviations.
  constexpr double kDraws = 42 * kRuns;
  EXPECT_NEAR(sum / kDraws, 0.75, 5 * std::sqrt(0.25 * 0.75 / kDraws));
}

// A classifier of BERT's tokens, in a checkpoint of this task and in
// HuggingFace's form, for labels in another order and for one of them.
TEST(TokensModelTest, TakesOverAClassifierByTheNamesOfItsTags) {
  RunConfig settings = TokensSettings(/*max_long_length=*/1, 9);
  settings.task = "tokens";
  settings.residual_attention = "off";
  settings.model = AsBert(settings.model);
  settings.model.segment_vocab_size = 2;
  settings.model.max_absolute_position_embeddings = 9;
  settings.model.num_hidden_layers = 1;
  settings.model.intermediate_size = 8;
  const TemporaryDirectory directory;
  const std::string run = directory.File("run");
  const std::string exported = directory.File("exported");
  torch::manual_seed(1);
  const auto task = MakeTokensTask(settings);
  const TaskModel before = MakeTaskModel(settings, *task);
  ASSERT_TRUE(CreateDirectories(run).ok());
  ASSERT_TRUE(WriteTaskModel(
                  {.config = settings, .model = before, .vocabulary = ""}, run)
                  .ok());
  const auto report = ExportWeights(run, ExportFormat::kSafetensors, exported);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->warnings, IsEmpty());
  const auto written = ReadJsonFile(exported + "/config.json");
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ((*written)["architectures"][0], "BertForTokenClassification");
  EXPECT_EQ((*written)["id2label"], nlohmann::json({{"0", "O"},
                                                    {"1", "B-p"},
                                                    {"2", "I-p"},
                                                    {"3", "B-q"},
                                                    {"4", "I-q"}}));
  for (const std::string& init : {run, exported}) {
    for (const auto& [labels, rows] :
         {std::pair(std::vector<std::string>{"q", "p"},
                    std::vector<int64_t>{0, 3, 4, 1, 2}),
          std::pair(std::vector<std::string>{"q"},
                    std::vector<int64_t>{0, 3, 4})}) {
      settings.init = init;
      const auto other = MakeTokensTask(settings, {{"labels", labels}});
      const TaskModel model = MakeTaskModel(settings, *other);
      const auto messages = LoadInitialWeights(settings, model);
      ASSERT_TRUE(messages.ok()) << messages.status();
      EXPECT_THAT(messages->messages,
                  Contains(HasSubstr("outputs matched by name: 0 is "
                                     "\"O\", 3 is \"B-q\"")));
      for (const auto& [name, tensor] : ModuleTensors(*model.head())) {
        EXPECT_TRUE(
            torch::equal(tensor, ModuleTensors(*before.head())
                                     .at(name)
                                     .index_select(0, torch::tensor(rows))))
            << name << " of " << init;
      }
    }
  }
}

class TokensRunTest : public testing::Test {
 protected:
  std::string WriteConfig(const nlohmann::json& options) {
    const std::string vocabulary = directory_.Write(
        "vocab.txt",
        "[PAD]\n[unused0]\n[unused1]\n[UNK]\n[CLS]\n[SEP]\na\nb\n.\n");
    const nlohmann::json config = {
        {"task", "tokens"},
        {"model",
         {{"vocab_size", 9},
          {"hidden_size", 8},
          {"num_hidden_layers", 1},
          {"num_attention_heads", 2},
          {"local_radius", 2},
          {"intermediate_size", 8}}},
        {"tokenizer", {{"vocabulary", vocabulary}}},
        {"data",
         {{"train", {directory_.File("train.conll")}},
          {"dev", {directory_.File("dev.jsonl")}},
          {"max_long_length", 16},
          {"max_global_length", 4}}},
        {"train",
         {{"batch_size", 2},
          {"micro_batch_size", 1},
          {"steps", 60},
          {"learning_rate", 0.02},
          {"threads", 1},
          {"device", "cpu"}}},
        {"tokens", options},
        {"output", directory_.File("run")}};
    return directory_.Write("run.json", config.dump());
  }

  TemporaryDirectory directory_;
};

// "b" is always a name.
TEST_F(TokensRunTest, AnswersFromACheckpoint) {
  directory_.Write("train.conll",
                   "a O\nb B-n\n. O\n\nb B-n\nb I-n\na O\n\na O\n. O\n");
  directory_.Write("dev.jsonl",
                   "{\"id\": 5, \"text\": \"a b. a\", \"spans\": [{\"start\": "
                   "2, \"end\": 3, \"label\": \"n\"}]}\n");
  const auto tuned =
      TrainTask({.config = WriteConfig(nlohmann::json::object())});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_THAT(tuned->scores, Contains(Pair("f1", 1)));
  const auto predictor =
      Predictor::Open(directory_.File("run"), {.task = "tokens"});
  ASSERT_TRUE(predictor.ok()) << predictor.status();
  const auto of_json =
      predictor->Predict(R"({"id": "x", "text": "a. b", "spans": "ignored"})");
  ASSERT_TRUE(of_json.ok()) << of_json.status();
  const auto of_struct = predictor->PredictStruct(
      TokensRecord{.id = "x", .has_id = true, .text = "a. b"});
  ASSERT_TRUE(of_struct.ok()) << of_struct.status();
  EXPECT_EQ(of_struct->json, of_json->json);
  const auto* const value = of_struct->As<TokensPrediction>();
  ASSERT_NE(value, nullptr);
  ASSERT_EQ(value->spans.size(), 1);
  EXPECT_EQ(value->spans[0].span, (TokensSpan{"n", 3, 4}));
  const auto of_words = predictor->PredictStruct(
      TokensRecord{.id = "y", .sentences = {{"b", "b"}, {"a"}}});
  ASSERT_TRUE(of_words.ok()) << of_words.status();
  EXPECT_THAT(of_words->As<TokensPrediction>()->tags,
              ElementsAre(ElementsAre("B-n", testing::AnyOf("B-n", "I-n")),
                          ElementsAre("O")));
  const auto evaluated =
      EvaluateTask({.checkpoint = directory_.File("run"),
                    .data = {directory_.Write("words.conll", "a\nb\n")},
                    .device = "cpu"});
  ASSERT_TRUE(evaluated.ok()) << evaluated.status();
  EXPECT_THAT(evaluated->scores, IsEmpty());
  EXPECT_THAT(nlohmann::json::parse(evaluated->predictions)["tags"],
              nlohmann::json::parse(R"([["O", "B-n"]])"));
  EXPECT_THAT(
      predictor->PredictStruct(TokensRecord{.id = "z"}).status().message(),
      HasSubstr("text should have a word, but has none"));
}

TEST_F(TokensRunTest, RefusesMistakesBeforeTheFirstUpdate) {
  directory_.Write("train.conll", "a O\nb B-n\n\na O\nb I-n\n");
  directory_.Write("dev.jsonl", "{\"text\": \"a\", \"spans\": []}\n");
  const std::string config = WriteConfig(nlohmann::json::object());
  EXPECT_THAT(TrainTask({.config = config}).status().message(),
              HasSubstr("train.conll:5: the label is \"I-n\", which should"));
  EXPECT_FALSE(std::filesystem::exists(directory_.File("run")));
  directory_.Write("dev.jsonl",
                   "{\"text\": \"a\", \"spans\": [{\"start\": 0, \"end\": 1, "
                   "\"label\": \"m\"}]}\n");
  EXPECT_THAT(
      TrainTask({.config = config, .overrides = {"tokens.tags=conlleval"}})
          .status()
          .message(),
      HasSubstr("dev.jsonl: record 0.spans[0].label should be one of \"n\""));
}

}  // namespace
}  // namespace etc
