// The classifier from a record to its scores: the layout of examples for ETC
// and BERT, what is cut, options and vocabularies that make no sense, gold fed
// back, the losses of each type against their formulas, gradients that reach
// every parameter; and a whole run from a CSV, whose checkpoint needs the
// training data no more.

#include "tasks/classify/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "attention/output_rows.h"
#include "base/json_reader.h"
#include "etc/weights/convert.h"
#include "nlohmann/json.hpp"
#include "tasks/run_task.h"
#include "tasks/task/benchmark_head.h"
#include "tasks/task/benchmark_task.h"
#include "tasks/task/score_files.h"
#include "tasks/text/wordpiece_tokenizer.h"
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
using ::testing::IsSupersetOf;
using ::testing::Key;
using ::testing::Pair;

// [CLS] is 10, [SEP] 11, the words from 12 on.
std::shared_ptr<const Tokenizer> Words() {
  return std::make_shared<WordTokenizer>(
      std::vector<std::string>{"[CLS]", "[SEP]", "a", "b", "c", "d"});
}

RunConfig Settings(int64_t max_long_length = 4096,
                   int64_t max_global_length = 512) {
  EtcConfig model;
  model.vocab_size = 20;
  model.hidden_size = 6;
  model.num_attention_heads = 2;
  return TaskConfig(model, nlohmann::json::object(),
                    {.max_long_length = max_long_length,
                     .max_global_length = max_global_length});
}

RunConfig BertSettings(int64_t length) {
  RunConfig settings = Settings(/*max_long_length=*/1, length);
  settings.model.has_long_tokens = false;
  settings.model.segment_vocab_size = 2;
  return settings;
}

const nlohmann::json kLabels = {{"labels", {"no", "yes", "maybe"}}};

absl::StatusOr<std::unique_ptr<RecordTask>> MakeClassify(
    const nlohmann::json& options = kLabels, RunConfig settings = Settings(),
    const std::shared_ptr<const Tokenizer>& tokenizer = Words()) {
  settings.task_options = options;
  ETC_ASSIGN_OR_RETURN(ClassifyOptions read, ReadCheckedTaskOptions<Classify>(
                                                 settings, tokenizer.get()));
  read.input.split_sentences = SplitAtFullStops;
  return std::make_unique<BenchmarkTask<Classify>>(
      std::move(read), settings.model, tokenizer, MakeClassifyHead);
}

TEST(ClassifyOutputsTest, FollowFromLabelsMeanAndDeviation) {
  EXPECT_THAT(
      (*MakeClassify())->OutputSettings(),
      ElementsAre("classify.labels", "classify.mean", "classify.deviation"));
}

// The example of a record in JSON.
std::shared_ptr<const Example> ExampleOf(
    const std::string& line, const RunConfig& settings = Settings(),
    const nlohmann::json& options = kLabels) {
  const auto task = MakeClassify(options, settings);
  EXPECT_TRUE(task.ok()) << task.status();
  const auto examples = (*task)->MakeExamples(line, "f: record 3");
  EXPECT_TRUE(examples.ok()) << examples.status();
  return examples->front();
}

TEST(ClassifyExampleTest, HasAGlobalTokenForTheTextAndEachSentence) {
  const auto pair =
      ExampleOf(R"({"text": "a b. c.", "text_b": "d", "label": "yes"})");
  EXPECT_EQ(pair->record_id, "3");
  EXPECT_THAT(pair->long_token_ids,
              ElementsAre(10, 12, 13, 6, 14, 6, 11, 15, 11));
  EXPECT_THAT(pair->long_type_ids, ElementsAre(1, 1, 1, 1, 1, 1, 1, 2, 2));
  EXPECT_THAT(pair->global_token_ids, ElementsAre(1, 2, 2, 2));
  EXPECT_THAT(pair->global_type_ids, Each(0));
  EXPECT_THAT(pair->pattern.sentence, ElementsAre(0, 1, 1, 1, 2, 2, 0, 3, 0));
  EXPECT_THAT(pair->pattern.paragraph, Each(0));
  EXPECT_THAT(ExampleAs<ClassifyExample>(*pair).labels, ElementsAre(1));
}

TEST(ClassifyExampleTest, BeginsASentenceWithEachText) {
  const auto example =
      ExampleOf(R"({"x": "a", "y": ["b", "", "c"]})", Settings(),
                {{"labels", {"no", "yes"}}, {"text", {"x", "y"}}});
  EXPECT_THAT(example->long_token_ids, ElementsAre(10, 12, 13, 14, 11));
  EXPECT_THAT(example->pattern.sentence, ElementsAre(0, 1, 2, 3, 0));
  EXPECT_FALSE(example->has_answer);
}

TEST(ClassifyExampleTest, GivesTokensToTheSentencesThatHaveRoom) {
  const std::string line = R"({"text": "a. b. c.", "text_b": "d. a."})";
  const auto some = ExampleOf(line, Settings(4096, 3));
  EXPECT_THAT(some->global_token_ids, ElementsAre(1, 2, 2));
  EXPECT_THAT(some->pattern.sentence,
              ElementsAre(0, 1, 1, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_EQ(ExampleAs<ClassifyExample>(*some).dropped_sentences, 3);
  const auto more = ExampleOf(line, Settings(4096, 5));
  EXPECT_THAT(more->pattern.sentence,
              ElementsAre(0, 1, 1, 2, 2, 3, 3, 0, 4, 4, 0, 0, 0));
  const auto none = ExampleOf(line, Settings(4096, 1));
  EXPECT_THAT(none->global_token_ids, ElementsAre(1));
  EXPECT_THAT(none->pattern.sentence, Each(0));
}

TEST(ClassifyExampleTest, CutsTheLongerText) {
  const std::string line = R"({"text": "a b c", "text_b": "d d"})";
  EXPECT_THAT(ExampleOf(line, Settings(6))->long_token_ids,
              ElementsAre(10, 12, 13, 11, 15, 11));
  const auto least = ExampleOf(line, Settings(3));
  EXPECT_THAT(least->long_token_ids, ElementsAre(10, 11, 11));
  EXPECT_THAT(least->global_token_ids, ElementsAre(1));
  EXPECT_EQ(ExampleAs<ClassifyExample>(*least).dropped_pieces, 5);
  // A sentence of which nothing is left has no token.
  EXPECT_THAT(
      ExampleOf(R"({"text": "a. b. c."})", Settings(5))->pattern.sentence,
      ElementsAre(0, 1, 1, 2, 0));
}

// Invisible characters are no white space, but no tokenizer has a piece for
// them.
TEST(ClassifyExampleTest, IsLeftOutWhereTheTokenizerLeavesNothing) {
  const auto left_out = [](const std::string& line) {
    const auto task = MakeClassify(
        kLabels, Settings(),
        *ParseWordPieceTokenizer("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n", "v"));
    EXPECT_TRUE(task.ok()) << task.status();
    const auto examples = (*task)->MakeExamples(line, "f: record 3");
    EXPECT_TRUE(examples.ok()) << examples.status();
    return examples->front()->left_out;
  };
  EXPECT_EQ(left_out(R"({"text": "\u200b", "label": "yes"})"),
            "the tokenizer leaves nothing of the text");
  EXPECT_EQ(left_out(R"({"text": "a", "label": "yes"})"), "");
  EXPECT_EQ(left_out(R"({"text": "\u200b", "text_b": "a", "label": "yes"})"),
            "");
  // Nor is one left out whose texts have no room.
  EXPECT_EQ(ExampleOf(R"({"text": "a", "text_b": "b"})", Settings(3))->left_out,
            "");
}

TEST(ClassifyExampleTest, IsOneSequenceForBert) {
  const auto pair =
      ExampleOf(R"({"text": "a. b", "text_b": "c"})", BertSettings(7));
  EXPECT_THAT(pair->long_token_ids, IsEmpty());
  EXPECT_THAT(pair->global_token_ids, ElementsAre(10, 12, 6, 13, 11, 14, 11));
  EXPECT_THAT(pair->global_type_ids, ElementsAre(0, 0, 0, 0, 0, 1, 1));
  EXPECT_THAT(
      ExampleOf(R"({"text": "a. b"})", BertSettings(4))->global_token_ids,
      ElementsAre(10, 12, 6, 11));
}

TEST(ClassifyExampleTest, HasOneTypeForRoberta) {
  RunConfig settings = BertSettings(7);
  settings.model.segment_vocab_size = 1;
  const auto pair = ExampleOf(R"({"text": "a. b", "text_b": "c"})", settings);
  EXPECT_THAT(pair->global_token_ids, ElementsAre(10, 12, 6, 13, 11, 14, 11));
  EXPECT_THAT(pair->global_type_ids, Each(0));
}

TEST(ClassifyExampleTest, HasOtherMarksWhereThereIsNoCls) {
  const auto task =
      MakeClassify(kLabels, Settings(),
                   std::make_shared<WordTokenizer>(std::vector<std::string>{
                       "<unused_2>", "<unused_63>", "a"}));
  ASSERT_TRUE(task.ok()) << task.status();
  const auto examples =
      (*task)->MakeExamples(R"({"text": "a"})", "f: record 0");
  ASSERT_TRUE(examples.ok()) << examples.status();
  EXPECT_THAT(examples->front()->long_token_ids, ElementsAre(11, 12, 10));
}

std::string Message(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

TEST(ClassifyTaskTest, RefusesWhatMakesNoSense) {
  EXPECT_THAT(Message(MakeClassify(kLabels, Settings(2)).status()),
              HasSubstr("max_long_length should be at least 3"));
  EXPECT_THAT(Message(MakeClassify(kLabels, BertSettings(2)).status()),
              HasSubstr("max_global_length should be at least 3"));
  RunConfig few_types = Settings();
  few_types.model.segment_vocab_size = 2;
  EXPECT_THAT(Message(MakeClassify(kLabels, few_types).status()),
              HasSubstr("segment_vocab_size should be at least 3"));
  EXPECT_THAT(
      Message(MakeClassify(kLabels, Settings(),
                           std::make_shared<WordTokenizer>(
                               std::vector<std::string>{"[CLS]", "a"}))
                  .status()),
      HasSubstr("f.json: classify: the vocabulary should have the pieces"));
  const auto task = MakeClassify();
  EXPECT_THAT(Message((*task)
                          ->MakeExamples(R"({"text": "a", "label": "often"})",
                                         "f: record 3")
                          .status()),
              HasSubstr("f: record 3.label should be one of \"no\", \"yes\", "
                        "\"maybe\", but is "
                        "\"often\""));
}

TEST(ClassifyTaskTest, DescribesAnExampleForPeople) {
  const std::string line = R"({"text": "a. b.", "label": "no"})";
  EXPECT_EQ((*MakeClassify())->Describe(*ExampleOf(line, Settings(5, 2))),
            R"(record 3
label: no
5 long tokens, 2 global tokens; 1 token truncated; no global token for 1 sentence
local radius 84, soft g2l mask, soft l2g mask

global  owns         sees         tokens
     0  0-4          0-4          [CLS] b [SEP]
     1  1-2          0-4          a [UNK]
)");
  EXPECT_THAT((*MakeClassify(kLabels, BertSettings(9)))
                  ->Describe(*ExampleOf(line, BertSettings(9))),
              HasSubstr("     2 [UNK]"));
}

// The predictions of a task for records without ids, from logits [B, C].
std::unique_ptr<TaskPredictions> Predict(const RecordTask& task,
                                         const std::vector<std::string>& lines,
                                         const torch::Tensor& logits) {
  std::vector<std::shared_ptr<const Example>> examples;
  for (const std::string& line : lines) {
    const auto made = task.MakeExamples(
        line, absl::StrCat("gold.jsonl: record ", examples.size()));
    EXPECT_TRUE(made.ok()) << made.status();
    examples.push_back(made->front());
  }
  auto predictions = task.MakePredictions();
  predictions->Add(MakeBatch(examples), {logits});
  return predictions;
}

TEST(ClassifyTaskTest, ScoresTheSameInTrainingAndByFile) {
  const std::vector<std::string> lines = {R"({"text": "a", "label": "yes"})",
                                          R"({"text": "b", "label": "no"})",
                                          R"({"text": "c", "label": "no"})"};
  const auto task = MakeClassify();
  const auto predictions = Predict(
      **task, lines,
      torch::tensor({{0.F, 2.F, 1.F}, {1.F, 0.F, 1.F}, {0.F, 0.F, 3.F}}));
  TemporaryDirectory directory;
  const auto scores = ScoreFiles(
      Classify(),
      {.gold = directory.Write("gold.jsonl", absl::StrJoin(lines, "\n")),
       .predictions = directory.Write("p.jsonl", predictions->FileContents())});
  ASSERT_TRUE(scores.ok()) << scores.status();
  for (const auto& [name, score] : predictions->Score()) {
    EXPECT_THAT(*scores, Contains(Pair(name, score)));
  }
  EXPECT_THAT(*scores, Contains(Pair("accuracy", 2.0 / 3)));
  EXPECT_THAT(*scores, Contains(Pair("confusion[no,maybe]", 1.0)));
}

TEST(ClassifyTaskTest, HasTheMainMetricOfItsType) {
  const auto main = [](const nlohmann::json& options) {
    const auto task = MakeClassify(options);
    EXPECT_TRUE(task.ok()) << task.status();
    return (*task)->main_metric();
  };
  EXPECT_EQ(main(kLabels), "accuracy");
  EXPECT_EQ(main({{"type", "several"}, {"labels", {"a", "b"}}}), "micro_f1");
  EXPECT_EQ(main({{"type", "number"}}), "pearson");
}

TEST(ClassifyTaskTest, HasNoScoreWithoutAnswers) {
  const auto task = MakeClassify();
  EXPECT_THAT(
      Predict(**task, {R"({"text": "a"})"}, torch::zeros({1, 3}))->Score(),
      IsEmpty());
}

// --- The head ----------------------------------------------------------------

struct HeadRun {
  torch::Tensor logits;
  torch::Tensor losses;
};

// Logits and losses of two records; checks that their gradients reach all that
// should have one.
HeadRun RunHead(const nlohmann::json& options,
                const std::vector<std::string>& lines) {
  torch::manual_seed(1);
  const auto task = MakeClassify(options);
  EXPECT_TRUE(task.ok()) << task.status();
  const auto head = std::dynamic_pointer_cast<OutputHead>((*task)->MakeHead());
  std::vector<std::shared_ptr<const Example>> examples;
  for (const std::string& line : lines) {
    examples.push_back(ExampleOf(line, Settings(), options));
  }
  head->eval();
  const Batch batch = MakeBatch(examples);
  const torch::Tensor globals =
      torch::randn({batch.size(), batch.input.global_token_ids.size(1),
                    Settings().model.hidden_size})
          .requires_grad_();
  EtcOutput encoded;
  encoded.global_output =
      RowsOf(globals, RowsFor(head->Reads(), batch).globals);
  const auto logits = head->forward(encoded, batch);
  const torch::Tensor losses = head->Losses(logits, batch);
  losses.sum().backward();
  for (const auto& parameter : head->named_parameters()) {
    EXPECT_GT(parameter.value().grad().abs().sum().item<double>(), 0)
        << parameter.key();
  }
  const torch::Tensor gradient = globals.grad();
  EXPECT_GT(gradient.select(1, 0).abs().sum().item<double>(), 0);
  EXPECT_EQ(gradient.slice(1, 1).abs().sum().item<double>(), 0);
  return {logits.at(0).detach(), losses.detach()};
}

constexpr double kTolerance = 1e-6;

TEST(ClassifyHeadTest, WeighsTheCrossEntropyOfOneLabel) {
  nlohmann::json options = kLabels;
  options["class_weights"] = {{"yes", 3}};
  const HeadRun run = RunHead(options, {R"({"text":"a","label":"yes"})",
                                        R"({"text":"b","label":"no"})"});
  ASSERT_EQ(run.logits.sizes(), torch::IntArrayRef({2, 3}));
  const torch::Tensor log = run.logits.log_softmax(-1);
  EXPECT_NEAR(run.losses[0].item<double>(), -3 * log[0][1].item<double>(),
              kTolerance);
  EXPECT_NEAR(run.losses[1].item<double>(), -log[1][0].item<double>(),
              kTolerance);
}

TEST(ClassifyHeadTest, AveragesTheBinaryCrossEntropyOfSeveralLabels) {
  const HeadRun run = RunHead(
      {{"type", "several"}, {"labels", {"a", "b", "c"}}},
      {R"({"text":"a","label":["c","a"]})", R"({"text":"b","label":[]})"});
  const torch::Tensor targets =
      torch::tensor({{1.F, 0.F, 1.F}, {0.F, 0.F, 0.F}});
  const torch::Tensor probabilities = run.logits.sigmoid();
  const torch::Tensor expected = -(targets * probabilities.log() +
                                   (1 - targets) * (1 - probabilities).log())
                                      .mean(1);
  EXPECT_TRUE(torch::allclose(run.losses, expected, /*rtol=*/0, kTolerance));
}

TEST(ClassifyHeadTest, SquaresTheDistanceOfNumbers) {
  const HeadRun run =
      RunHead({{"type", "number"}, {"mean", 10}, {"deviation", 2}},
              {R"({"text":"a","label":13})", R"({"text":"b","label":10})"});
  ASSERT_EQ(run.logits.sizes(), torch::IntArrayRef({2, 1}));
  const torch::Tensor targets = torch::tensor({1.5F, 0.F});
  EXPECT_TRUE(torch::allclose(run.losses,
                              (run.logits.select(1, 0) - targets).square(),
                              /*rtol=*/0, kTolerance));
}

TEST(ClassifyHeadTest, LearnsNumbersWhoseDifferenceToTheMeanIsNoDouble) {
  const HeadRun run =
      RunHead({{"type", "number"}, {"mean", 1e308}, {"deviation", 1e308}},
              {R"({"text":"a","label":-1.5e308})"});
  EXPECT_TRUE(torch::allclose(run.losses,
                              (run.logits.select(1, 0) + 2.5F).square(),
                              /*rtol=*/0, kTolerance));
}

TEST(ClassifyHeadTest, HasNoLossBeforeTheLabelsAreKnown) {
  EXPECT_THROW(
      RunHead(nlohmann::json::object(), {R"({"text":"a","label":"yes"})"}),
      c10::Error);
}

// --- From a CSV to predictions -----------------------------------------------

class ClassifyRunTest : public testing::Test {
 protected:
  // The configuration of a run of two steps.
  std::string WriteConfig(const nlohmann::json& options) {
    const std::string vocabulary = directory_.Write(
        "vocab.txt",
        "[PAD]\n[unused0]\n[unused1]\n[UNK]\n[CLS]\n[SEP]\na\nb\n.\n");
    const nlohmann::json config = {{"task", "classify"},
                                   {"model",
                                    {{"vocab_size", 9},
                                     {"hidden_size", 8},
                                     {"num_hidden_layers", 1},
                                     {"num_attention_heads", 2},
                                     {"local_radius", 2},
                                     {"intermediate_size", 8}}},
                                   {"tokenizer", {{"vocabulary", vocabulary}}},
                                   {"data",
                                    {{"train", {directory_.File("train.csv")}},
                                     {"dev", {directory_.File("dev.tsv")}},
                                     {"max_long_length", 16},
                                     {"max_global_length", 4}}},
                                   {"train",
                                    {{"batch_size", 2},
                                     {"micro_batch_size", 1},
                                     {"steps", 2},
                                     {"threads", 1},
                                     {"device", "cpu"}}},
                                   {"classify", options},
                                   {"output", directory_.File("run")}};
    return directory_.Write("run.json", config.dump());
  }

  TemporaryDirectory directory_;
};

TEST_F(ClassifyRunTest, KeepsTheLabelsWithTheCheckpoint) {
  directory_.Write("train.csv",
                   "text,topic\n\"a, b\",x\nb,y\n\"a\nb\",x\nb b,z\n");
  directory_.Write("dev.tsv", "text\ttopic\na\tx\nb\tz\n");
  const std::string config =
      WriteConfig({{"label", "topic"}, {"class_weights", "balanced"}});
  const auto tuned = TrainTask({.config = config});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_THAT(tuned->scores, Contains(Key("accuracy")));
  std::filesystem::remove(directory_.File("train.csv"));
  const auto evaluated =
      EvaluateTask({.checkpoint = directory_.File("run"), .device = "cpu"});
  ASSERT_TRUE(evaluated.ok()) << evaluated.status();
  EXPECT_THAT(evaluated->scores, Contains(Key("mcc")));
  const auto predicted =
      EvaluateTask({.checkpoint = directory_.File("run"),
                    .data = {directory_.Write("new.csv", "text\na b\n")},
                    .device = "cpu"});
  ASSERT_TRUE(predicted.ok()) << predicted.status();
  EXPECT_THAT(predicted->scores, IsEmpty());
  const auto json = nlohmann::json::parse(predicted->predictions);
  EXPECT_EQ(json["id"], "0");
  EXPECT_EQ(json["probabilities"].size(), 3u);
  EXPECT_TRUE(json["probabilities"].contains(json["label"]));
}

// A misspelt column would leave half of each pair unread.
TEST_F(ClassifyRunTest, PredictsForPairsWhereItWasTrainedOnThem) {
  const auto predict = [this](const std::string& rows) {
    return EvaluateTask({.checkpoint = directory_.File("run"),
                         .data = {directory_.Write("new.csv", rows)},
                         .device = "cpu"})
        .status();
  };
  const std::string config = WriteConfig(nlohmann::json::object());
  directory_.Write("train.csv", "text,text_b,label\na,b,x\nb,a,y\n");
  directory_.Write("dev.tsv", "text\ttext_B\tlabel\na\tb\tx\n");
  EXPECT_THAT(Message(TrainTask({.config = config}).status()),
              HasSubstr("dev.tsv has no column \"text_b\""));
  directory_.Write("dev.tsv", "text\ttext_b\tlabel\na\tb\tx\n");
  ASSERT_TRUE(TrainTask({.config = config}).ok());
  EXPECT_THAT(Message(predict("text,text_B\na,b\n")),
              HasSubstr("new.csv has no column \"text_b\""));
  EXPECT_TRUE(predict("text,text_b\na,b\nb,\n").ok());

  std::filesystem::remove_all(directory_.File("run"));
  directory_.Write("train.csv", "text,label\na,x\nb,y\n");
  directory_.Write("dev.tsv", "text\tlabel\na\tx\n");
  ASSERT_TRUE(TrainTask({.config = config}).ok());
  EXPECT_TRUE(predict("text\na\n").ok());
  EXPECT_THAT(Message(predict("text,text_b\na,b\n")),
              HasSubstr("new.csv:2: text_b should be absent"));
}

TEST_F(ClassifyRunTest, ResumesWithTheSameLabels) {
  directory_.Write("train.csv", "text,label\na,x\nb,y\n");
  directory_.Write("dev.tsv", "text\tlabel\na\tx\n");
  const std::string config = WriteConfig(nlohmann::json::object());
  ASSERT_TRUE(TrainTask({.config = config}).ok());
  const auto resumed =
      TrainTask({.config = config, .earlier = EarlierRun::kResume});
  EXPECT_TRUE(resumed.ok()) << resumed.status();
  directory_.Write("train.csv", "text,label\na,x\nb,z\n");
  const auto other =
      TrainTask({.config = config, .earlier = EarlierRun::kResume});
  EXPECT_EQ(other.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(other.status().message()),
              HasSubstr("classify.labels"));
}

// A classifier says the same of a text, by name, wherever it has been: in a run
// that starts from another run, or from an export in either form, or from what
// was imported of that, with the labels in another order.
TEST_F(ClassifyRunTest, TakesOverAClassifierByTheNamesOfItsOutputs) {
  directory_.Write("train.csv", "text,label\na,x\nb,y\na b,z\nb a,x\n");
  directory_.Write("dev.tsv", "text\tlabel\na\tx\nb\tz\n");
  const std::string config = WriteConfig(nlohmann::json::object());
  const auto train = [&](const std::string& name,
                         std::vector<std::string> overrides) {
    overrides.push_back("output=" + directory_.File(name));
    overrides.emplace_back(
        R"(model={"preset":"bert_base","vocab_size":9,"hidden_size":8,)"
        R"("num_hidden_layers":1,"num_attention_heads":2,)"
        R"("intermediate_size":8,"max_absolute_position_embeddings":16})");
    overrides.emplace_back("data.max_global_length=16");
    const auto tuned =
        TrainTask({.config = config, .overrides = std::move(overrides)});
    EXPECT_TRUE(tuned.ok()) << tuned.status();
    const auto predicted =
        EvaluateTask({.checkpoint = directory_.File(name),
                      .data = {directory_.Write("new.csv", "text\na b\n")},
                      .device = "cpu"});
    EXPECT_TRUE(predicted.ok()) << predicted.status();
    return nlohmann::json::parse(predicted->predictions)["probabilities"];
  };
  const nlohmann::json before =
      train("run", {"train.learning_rate=0.1", "train.steps=20"});
  const std::string run = directory_.File("run/seed-1/checkpoints/best");
  const std::string hugging_face = directory_.File("hugging_face");
  const std::string google = directory_.File("google");
  const std::string imported = directory_.File("imported");
  ASSERT_TRUE(
      ExportWeights(run, ExportFormat::kSafetensors, hugging_face).ok());
  ASSERT_TRUE(ExportWeights(run, ExportFormat::kTensorFlow, google).ok());
  ASSERT_TRUE(ImportWeights({.source = hugging_face}, imported).ok());
  for (const std::string& directory : {hugging_face, google}) {
    const auto written =
        ReadJsonFile(directory + (directory == google ? "/bert_config.json"
                                                      : "/config.json"));
    ASSERT_TRUE(written.ok()) << written.status();
    EXPECT_EQ((*written)["id2label"],
              nlohmann::json({{"0", "x"}, {"1", "y"}, {"2", "z"}}));
  }
  for (const std::string& source : {run, hugging_face, google, imported}) {
    const nlohmann::json after =
        train("second" + std::to_string(source.size()),
              {"init=" + source, "train.learning_rate=1e-12",
               R"(classify.labels=["z","x","y"])"});
    for (const char* label : {"x", "y", "z"}) {
      EXPECT_NEAR(after[label].get<double>(), before[label].get<double>(), 1e-4)
          << label << " of " << source;
    }
  }
  EXPECT_GT(std::abs(before["x"].get<double>() - before["y"].get<double>()),
            1e-3)
      << "else no order could be seen";
}

// Numbers are learnt as (number - mean) / deviation: weights that come along
// must still mean the same numbers.
TEST_F(ClassifyRunTest, TakesOverTheScaleOfNumbers) {
  directory_.Write("dev.tsv", "text\tlabel\na\t1\nb\t2\n");
  directory_.Write("train.csv", "text,label\na,10\nb,20\n");
  const std::string config = WriteConfig({{"type", "number"}});
  const auto number = [&](const std::string& name,
                          std::vector<std::string> overrides) {
    overrides.push_back("output=" + directory_.File(name));
    EXPECT_TRUE(
        TrainTask({.config = config, .overrides = std::move(overrides)}).ok());
    const auto predicted =
        EvaluateTask({.checkpoint = directory_.File(name),
                      .data = {directory_.Write("new.csv", "text\na b\n")},
                      .device = "cpu"});
    EXPECT_TRUE(predicted.ok()) << predicted.status();
    return nlohmann::json::parse(predicted->predictions)["value"].get<double>();
  };
  const double before = number("run", {});
  directory_.Write("train.csv", "text,label\na,-3\nb,7\n");
  EXPECT_NEAR(number("second", {"init=" + directory_.File("run"),
                                "train.learning_rate=1e-12"}),
              before, 1e-3);
}

TEST_F(ClassifyRunTest, TrainsForSeveralLabelsAndNumbers) {
  directory_.Write("dev.tsv", "text\tlabel\na\t1\nb\t2\n");
  directory_.Write("train.csv", "text,label\na,1;2\nb,2\n");
  auto tuned = TrainTask({.config = WriteConfig({{"type", "several"}})});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_THAT(tuned->scores, Contains(Key("exact_match")));
  directory_.Write("train.csv", "text,label\na,1\nb,2\n");
  const std::string config = WriteConfig({{"type", "number"}});
  tuned = TrainTask({.config = config,
                     .overrides = {"output=" + directory_.File("numbers")}});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_THAT(tuned->scores, Contains(Key("spearman")));
}

TEST_F(ClassifyRunTest, SaysThatAllPredictionsAreTheSame) {
  directory_.Write("train.csv", "text,label\na,x\nb,y\n");
  directory_.Write("dev.tsv", "text\tlabel\na\tx\na\ty\n");
  std::vector<std::string> messages;
  const auto tuned = TrainTask(
      {.config = WriteConfig(nlohmann::json::object()),
       .callbacks = {.message = [&messages](const std::string& message) {
         messages.push_back(message);
       }}});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_THAT(messages,
              Contains(testing::AllOf(
                  testing::StartsWith("evaluation after 2 updates: accuracy "),
                  testing::EndsWith("): all 2 predictions are the same"))));
}

TEST_F(ClassifyRunTest, SaysWhichLabelTrainingDoesNotHave) {
  directory_.Write("train.csv", "text,label\na,x\nb,y\n");
  directory_.Write("dev.tsv", "text\tlabel\na\tx\nb\tq\n");
  const auto tuned =
      TrainTask({.config = WriteConfig(nlohmann::json::object())});
  EXPECT_THAT(
      Message(tuned.status()),
      HasSubstr(
          "dev.tsv:3: label should be one of \"x\", \"y\", but is \"q\""));
  EXPECT_FALSE(std::filesystem::exists(directory_.File("run")));
}

TEST_F(ClassifyRunTest, ChecksAllRecordsBeforeTheFirstUpdate) {
  std::string rows = "text,label\n";
  for (int i = 0; i < 50; ++i) {
    absl::StrAppend(&rows, i % 2 == 0 ? "a,x\n" : "b,y\n");
  }
  directory_.Write("train.csv", rows + "a b,\n");
  directory_.Write("dev.tsv", "text\tlabel\na\tx\n");
  const auto tuned =
      TrainTask({.config = WriteConfig(nlohmann::json::object())});
  EXPECT_THAT(Message(tuned.status()),
              HasSubstr("train.csv:52 (50) has no answer, which training "
                        "needs"));
  EXPECT_FALSE(std::filesystem::exists(directory_.File("run")));
  // Skipping bad records skips this one.
  const auto skipped =
      TrainTask({.config = WriteConfig(nlohmann::json::object()),
                 .overrides = {"data.on_bad_record=skip"}});
  EXPECT_TRUE(skipped.ok()) << skipped.status();
}

TEST_F(ClassifyRunTest, FindsIdsThatComeAgainBeforeTheFirstUpdate) {
  // Ids of training data are of no use, and may be the same.
  directory_.Write("train.csv", "id,text,label\n7,a,x\n7,b,y\n");
  directory_.Write("dev.tsv", "id\ttext\tlabel\n1\ta\tx\n1\tb\ty\n");
  const std::string config = WriteConfig(nlohmann::json::object());
  const std::string message = absl::StrCat(
      directory_.File("dev.tsv:3: the id \"1\" should occur once, but is that "
                      "of "),
      directory_.File("dev.tsv:2 too"));
  for (const char* on_bad_record : {"error", "skip"}) {
    const auto tuned = TrainTask(
        {.config = config,
         .overrides = {absl::StrCat("data.on_bad_record=", on_bad_record)}});
    EXPECT_THAT(Message(tuned.status()), HasSubstr(message));
    EXPECT_FALSE(std::filesystem::exists(directory_.File("run")));
  }
  // Not those of records that are skipped, nor numbers of two files.
  directory_.Write("dev.tsv", "id\ttext\tlabel\n1\ta\tx\n1\t \ty\n2\tb\ty\n");
  const auto skipped =
      TrainTask({.config = config, .overrides = {"data.on_bad_record=skip"}});
  EXPECT_TRUE(skipped.ok()) << skipped.status();
  const std::string numbered = directory_.Write("dev.csv", "text,label\na,x\n");
  const std::string more = directory_.Write("more.csv", "text,label\nb,y\n");
  const auto tuned =
      TrainTask({.config = config,
                 .overrides = {absl::StrCat("data.dev=[\"", numbered, "\",\"",
                                            more, "\"]"),
                               "output=" + directory_.File("numbered")}});
  EXPECT_TRUE(tuned.ok()) << tuned.status();
}

TEST_F(ClassifyRunTest, RefusesRecordsThatAreTooLong) {
  directory_.Write("train.csv",
                   absl::StrCat("text,label\na,x\n",
                                std::string(1'100'000, 'b'), ",y\nb,y\n"));
  directory_.Write("dev.tsv", "text\tlabel\na\tx\n");
  const auto tuned = TrainTask({.config = WriteConfig(nlohmann::json::object()),
                                .overrides = {"data.max_record_megabytes=1"}});
  EXPECT_EQ(tuned.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(tuned.status().message()),
              HasSubstr("train.csv:3: a record should have at most 1000000 "
                        "bytes (data.max_record_megabytes)"));
}

TEST_F(ClassifyRunTest, HoldsOutAShareOfEachLabel) {
  std::string rows = "text,label\n";
  for (int i = 0; i < 40; ++i) {
    absl::StrAppend(&rows, i % 4 == 0 ? "b a,y\n" : "a,x\n");
  }
  directory_.Write("train.csv", rows);
  std::vector<std::string> messages;
  TaskCallbacks callbacks;
  callbacks.message = [&](const std::string& line) {
    messages.push_back(line);
  };
  const std::vector<std::string> overrides = {"data.dev=[]",
                                              "data.dev_fraction=0.2"};
  const std::string config = WriteConfig(nlohmann::json::object());
  const auto tuned = TrainTask(
      {.config = config, .overrides = overrides, .callbacks = callbacks});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_THAT(tuned->scores, Contains(Key("accuracy")));
  EXPECT_THAT(messages,
              IsSupersetOf({HasSubstr("held out for evaluation"),
                            HasSubstr("training: 32 documents, 2 labels: "
                                      "\"x\" 24, \"y\" 8"),
                            HasSubstr("evaluation: 8 documents, 2 labels: "
                                      "\"x\" 6, \"y\" 2 (always \"x\": "
                                      "accuracy 0.7500)")}));
  // The checkpoint is evaluated on the records that were held out of its
  // training.
  const auto evaluated =
      EvaluateTask({.checkpoint = directory_.File("run"), .device = "cpu"});
  ASSERT_TRUE(evaluated.ok()) << evaluated.status();
  EXPECT_EQ(evaluated->num_examples, 8);
  EXPECT_EQ(evaluated->scores.front(), tuned->scores.front());
  const auto resumed = TrainTask({.config = config,
                                  .overrides = overrides,
                                  .earlier = EarlierRun::kResume});
  EXPECT_TRUE(resumed.ok()) << resumed.status();
  // Never on others.
  directory_.Write("train.csv", rows + "a,x\nb,y\na b,x\n");
  const auto changed =
      EvaluateTask({.checkpoint = directory_.File("run"), .device = "cpu"});
  EXPECT_EQ(changed.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(changed.status().message()),
              HasSubstr("data.dev_records"));
}

TEST_F(ClassifyRunTest, HoldsOutNothingBesideDevFiles) {
  directory_.Write("train.csv", "text,label\na,x\nb,y\n");
  directory_.Write("dev.tsv", "text\tlabel\na\tx\n");
  const auto tuned = TrainTask({.config = WriteConfig(nlohmann::json::object()),
                                .overrides = {"data.dev_fraction=0.5"}});
  EXPECT_THAT(Message(tuned.status()),
              HasSubstr("data.dev_fraction should be 0 where dev names files"));
}

}  // namespace
}  // namespace etc
