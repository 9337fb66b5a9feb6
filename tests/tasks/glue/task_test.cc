// GLUE's tasks on a toy encoder: what the head computes and learns from, what
// is decoded, rows of an official file to the file of the server and back to
// the scores that training saw, descriptions, and configurations that cannot
// work. Reading, packing and metrics have tests of their own.

#include "tasks/glue/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "attention/output_rows.h"
#include "base/file.h"
#include "etc/weights/convert.h"
#include "etc/weights/source_config.h"
#include "nlohmann/json.hpp"
#include "tasks/config/config.h"
#include "tasks/data/example_outline.h"
#include "tasks/data/record_check.h"
#include "tasks/data/record_gate.h"
#include "tasks/inputs/text_head.h"
#include "tasks/registry.h"
#include "tasks/task/benchmark_head.h"
#include "tasks/task/benchmark_task.h"
#include "tasks/task/score_files.h"
#include "tasks/task/task.h"
#include "tasks/text/load_tokenizer.h"
#include "tasks/train/initial_weights.h"
#include "tasks/train/task_model.h"
#include "tests/support/task_config.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/text/word_tokenizer.h"

namespace etc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr int64_t kHidden = 6;

// [CLS] is 10, [SEP] 11, the words from 12 on.
std::shared_ptr<const Tokenizer> Words() {
  return std::make_shared<WordTokenizer>(
      std::vector<std::string>{"[CLS]", "[SEP]", "a", "b", "c", "d"});
}

// The same with RoBERTa's two separators between texts.
std::shared_ptr<const Tokenizer> RobertaWords() {
  return std::make_shared<WordTokenizer>(
      std::vector<std::string>{"[CLS]", "[SEP]", "a", "b", "c", "d"},
      /*lower_cases=*/true,
      TextMarkIds{.first = 10, .last = 11, .between = {{11, 11}}});
}

EtcConfig SmallConfig(bool is_bert = true) {
  EtcConfig config = is_bert ? AsBert({}) : EtcConfig();
  config.vocab_size = 20;
  config.segment_vocab_size = is_bert ? 2 : 3;
  config.hidden_size = kHidden;
  config.num_attention_heads = 2;
  return config;
}

absl::StatusOr<std::unique_ptr<RecordTask>> MakeGlue(
    const nlohmann::json& options, const EtcConfig& model = SmallConfig(),
    int64_t length = 128) {
  return MakeTask<Glue>(
      MakeGlueHead,
      TaskConfig(model, options,
                 {.max_long_length = length, .max_global_length = length}),
      Words());
}

std::unique_ptr<RecordTask> GlueOrDie(const std::string& name) {
  auto task = MakeGlue({{"name", name}});
  EXPECT_TRUE(task.ok()) << task.status();
  return *std::move(task);
}

// The examples of all rows of a file.
Examples ExamplesOf(const Task& task, const std::string& path) {
  const auto source = task.Open({.patterns = {path}});
  EXPECT_TRUE(source.ok()) << source.status();
  Examples examples;
  for (int64_t i = 0; i < (*source)->size(); ++i) {
    const auto made = (*source)->Make(RequestForEvaluation(i));
    EXPECT_TRUE(made.ok()) << made.status();
    examples.insert(examples.end(), made->begin(), made->end());
  }
  return examples;
}

std::string Message(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

constexpr char kRte[] =
    "index\tsentence1\tsentence2\tlabel\n"
    "0\ta\tb\tentailment\n1\tc\td\tnot_entailment\n";
constexpr char kStsb[] =
    "index\tsentence1\tsentence2\tscore\n"
    "0\ta\tb\t5.000\n1\tc\td\t1.250\n2\td\ta\t0.000\n";

// Data in memory are checked at once for errors that training would meet late.
TEST(GlueDataTest, IsCheckedToTheLastRow) {
  TemporaryDirectory directory;
  const std::string path =
      directory.Write("train.tsv", std::string(kRte) + "2\ta\tb\tmaybe\n");
  const auto task = GlueOrDie("rte");
  const auto source =
      task->Open({.patterns = {path}, .use = RecordUse::kTraining});
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_THAT(
      Message(CheckRecords(dynamic_cast<const OfficialRecords&>(**source), {})),
      HasSubstr("train.tsv:4"));
  const auto test =
      task->Open({.patterns = {directory.Write(
                      "test.tsv", "index\tsentence1\tsentence2\n0\ta\tb\n")},
                  .use = RecordUse::kTraining});
  ASSERT_TRUE(test.ok()) << test.status();
  EXPECT_THAT(
      Message(CheckRecords(dynamic_cast<const OfficialRecords&>(**test), {})),
      HasSubstr("test.tsv:2 (0) has no answer"));
}

TEST(GlueTaskTest, ScoresItsFileAsTrainingDoes) {
  TemporaryDirectory directory;
  const std::string gold = directory.Write("dev.tsv", kRte);
  const auto task = GlueOrDie("rte");
  const auto predictions = task->MakePredictions();
  // The first of equal logits counts.
  predictions->Add(MakeBatch(ExamplesOf(*task, gold)),
                   {torch::tensor({{1.F, 1.F}, {2.F, 1.F}})});
  const std::string file = predictions->FileContents();
  EXPECT_EQ(file, "index\tprediction\n0\tentailment\n1\tentailment\n");
  EXPECT_THAT(predictions->Score(), ElementsAre(Pair("accuracy", 0.5)));
  EXPECT_EQ(predictions->Remark(), "all 2 predictions are the same");
  const GluePrediction same = {.label = "entailment"};
  EXPECT_EQ(Glue().Remark({.gold = {{"0", {.label = "entailment", .set = "a"}},
                                    {"1", {.label = "entailment"}}},
                           .predictions = {{"0", same}, {"1", same}}}),
            "");
  EXPECT_EQ(task->main_metric(), "accuracy");
  const auto options = ReadTaskOptions<Glue>({{"name", "rte"}}, "f.json: glue");
  const auto scores = ScoreFiles(
      Glue(*options),
      {.gold = gold, .predictions = directory.Write("RTE.tsv", file)});
  ASSERT_TRUE(scores.ok()) << scores.status();
  EXPECT_THAT(*scores, ElementsAre(Pair("accuracy", 0.5),
                                   Pair("distinct_predictions", 1)));
}

// Models of HuggingFace have another order than GLUE.
TEST(GlueTaskTest, HasOutputsByItsNameAndLabels) {
  EXPECT_THAT(GlueOrDie("rte")->OutputSettings(),
              ElementsAre("glue.name", "glue.labels"));
}

TEST(GlueTaskTest, PredictsTheLabelsInTheOrderOfTheOptions) {
  TemporaryDirectory directory;
  const auto task =
      MakeGlue({{"name", "mnli"},
                {"labels", {"entailment", "neutral", "contradiction"}}});
  ASSERT_TRUE(task.ok()) << task.status();
  const auto predictions = (*task)->MakePredictions();
  predictions->Add(
      MakeBatch(ExamplesOf(
          **task, directory.Write("dev.tsv",
                                  "index\tsentence1\tsentence2\tgold_label\n"
                                  "0\ta\tb\tentailment\n"
                                  "1\tb\tc\tneutral\n"
                                  "2\tc\td\tcontradiction\n"))),
      {torch::eye(3)});
  EXPECT_EQ(predictions->FileContents(),
            "index\tprediction\n0\tentailment\n1\tneutral\n"
            "2\tcontradiction\n");
  EXPECT_THAT(predictions->Score(), testing::Contains(Pair("accuracy", 1.0)));
}

TEST(GlueTaskTest, IsNotScoredWithoutAConfiguration) {
  TemporaryDirectory directory;
  const auto entry = FindTask("glue");
  ASSERT_TRUE(entry.ok()) << entry.status();
  const auto scores =
      (*entry)->score({.gold = directory.Write("dev.tsv", kRte),
                       .predictions = directory.Write(
                           "RTE.tsv", "index\tprediction\n0\tentailment\n")},
                      ScoringRules::kDefault, /*options=*/nullptr, "", {});
  EXPECT_THAT(Message(scores.status()),
              HasSubstr("dev.tsv can only be read when it is known which task "
                        "of GLUE it is of: give a configuration"));
}

TEST(GlueTaskTest, PredictsScoresThatTheFileRoundsAndBounds) {
  TemporaryDirectory directory;
  const auto task = GlueOrDie("stsb");
  const auto predictions = task->MakePredictions();
  predictions->Add(
      MakeBatch(ExamplesOf(*task, directory.Write("dev.tsv", kStsb))),
      {torch::tensor({{5.25F}, {2.0004F}, {-1.F}})});
  EXPECT_EQ(predictions->FileContents(),
            "index\tprediction\n0\t5.000\n1\t2.000\n2\t0.000\n");
  // Pearson of 5, 1.25, 0 and 5.25, 2.0004, -1, computed by hand.
  EXPECT_NEAR(predictions->Score()[1].second, 0.96690, 1e-5);
  EXPECT_THAT(predictions->Score()[2], Pair("spearman", testing::DoubleEq(1)));
}

TEST(GlueTaskTest, PredictsForFilesWithoutLabels) {
  TemporaryDirectory directory;
  const auto task = GlueOrDie("rte");
  const auto predictions = task->MakePredictions();
  const Examples examples =
      ExamplesOf(*task, directory.Write("test.tsv",
                                        "index\tsentence1\tsentence2\n"
                                        "0\ta\tb\n2\tc\td\n"));
  EXPECT_FALSE(examples[0]->has_answer);
  predictions->Add(MakeBatch(examples), {torch::eye(2)});
  EXPECT_EQ(predictions->FileContents(),
            "index\tprediction\n0\tentailment\n2\tnot_entailment\n");
  EXPECT_THAT(predictions->Score(), testing::IsEmpty());
}

TEST(GlueTaskTest, CountsBrokenRowsAsSkippedAndLabelsAsMistakes) {
  TemporaryDirectory directory;
  const std::string path =
      directory.Write("train.tsv",
                      "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
                      "1\t2\t3\ta\tb\t1\n4\t5\t6\tc\n7\t8\t9\tc\td\t2\n");
  const auto task = GlueOrDie("qqp");
  const auto source = task->Open({.patterns = {path}});
  ASSERT_TRUE(source.ok()) << source.status();
  ASSERT_EQ((*source)->size(), 3);
  RecordGate gate(RecordUse::kTraining, OnBadRecord::kError, 3);
  const auto pass = [&](int64_t record) {
    const RecordRequest request = RequestForEvaluation(record);
    return gate.Pass(record, OutlinesOf(request, (*source)->Make(request)));
  };
  EXPECT_THAT(*pass(0), SizeIs(1));
  const auto broken = pass(1);
  ASSERT_TRUE(broken.ok()) << broken.status();
  EXPECT_THAT(*broken, SizeIs(0));
  EXPECT_EQ(gate.skipped().count, 1);
  EXPECT_THAT(gate.skipped().first_message,
              HasSubstr("train.tsv:3 should have 6 columns"));
  EXPECT_THAT(Message(pass(2).status()),
              HasSubstr("train.tsv:4: is_duplicate should be 0 or 1, but is "
                        "\"2\""));
}

TEST(GlueTaskTest, DescribesAnExampleForPeople) {
  TemporaryDirectory directory;
  const std::string path = directory.Write("dev.tsv", kRte);
  const auto bert = GlueOrDie("rte");
  EXPECT_EQ(bert->Describe(*ExamplesOf(*bert, path)[0]),
            R"(RTE, row 0
label: entailment
0 long tokens, 5 global tokens; nothing truncated
local radius 84, soft g2l mask, soft l2g mask

global kind  owns         sees         tokens
     0 [CLS] none         none
     1 a     none         none
     2 [SEP] none         none
     3 b     none         none
     4 [SEP] none         none
)");
  const auto etc = MakeGlue({{"name", "rte"}}, SmallConfig(false), 4);
  ASSERT_TRUE(etc.ok()) << etc.status();
  const std::string text = (*etc)->Describe(*ExamplesOf(**etc, path)[1]);
  EXPECT_THAT(text, HasSubstr("4 long tokens, 1 global token; 1 pieces cut "
                              "from the end of the longer text"));
  EXPECT_THAT(text, HasSubstr("[CLS] c [SEP] [SEP]"));
}

TEST(GlueTaskTest, HasTwoSeparatorsForRoberta) {
  TemporaryDirectory directory;
  const std::string path = directory.Write("train.tsv", kRte);
  const auto make = [&](int64_t length) {
    return MakeTask<Glue>(MakeGlueHead,
                          TaskConfig(SmallConfig(), {{"name", "rte"}},
                                     {.max_global_length = length}),
                          RobertaWords());
  };
  const auto task = make(6);
  ASSERT_TRUE(task.ok()) << task.status();
  const Examples examples = ExamplesOf(**task, path);
  EXPECT_THAT(examples[0]->global_token_ids,
              ElementsAre(10, 12, 11, 11, 13, 11));
  const auto cut = make(5);
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_THAT(ExamplesOf(**cut, path)[0]->global_token_ids,
              ElementsAre(10, 12, 11, 11, 11));
  EXPECT_THAT(Message(make(3).status()),
              HasSubstr("data.max_global_length should be at least 4, for the "
                        "special pieces around two texts, but is 3"));
}

TEST(GlueTaskTest, RefusesConfigurationsThatCannotWork) {
  EXPECT_THAT(Message(MakeGlue({{"name", "rte"}}, SmallConfig(), 2).status()),
              HasSubstr("data.max_global_length should be at least 3"));
  EXPECT_THAT(
      Message(MakeGlue({{"name", "rte"}}, SmallConfig(false), 2).status()),
      HasSubstr("data.max_long_length should be at least 3"));
  EtcConfig config = SmallConfig();
  config.segment_vocab_size = 0;
  EXPECT_THAT(Message(MakeGlue({{"name", "rte"}}, config).status()),
              HasSubstr("model.segment_vocab_size should be at least 1"));
  config = SmallConfig(false);
  config.segment_vocab_size = 2;
  EXPECT_THAT(Message(MakeGlue({{"name", "rte"}}, config).status()),
              HasSubstr("model.segment_vocab_size should be at least 3"));
  // A row of another task, which no file of this one has.
  EXPECT_THAT(Message(GlueOrDie("rte")
                          ->MakeExamples(
                              R"({"task":"wnli","id":"0","text":"a"})", "f:2")
                          .status()),
              HasSubstr("f:2 should be of RTE, but is of WNLI"));
}

// --- The head ----------------------------------------------------------------

// Export writes these names, and initial weights are matched by them.
TEST(GlueHeadTest, NamesItsOutputs) {
  const auto meaning = [](const nlohmann::json& options) {
    const auto task = MakeGlue(options);
    EXPECT_TRUE(task.ok()) << task.status();
    const auto head = (*task)->MakeHead();
    const auto* named = dynamic_cast<const NamedOutputs*>(head.get());
    EXPECT_NE(named, nullptr);
    return named->OutputMeaning();
  };
  const std::vector<std::string> labels = {"neutral", "entailment",
                                           "contradiction"};
  const auto mnli = meaning({{"name", "mnli"}, {"labels", labels}});
  EXPECT_EQ(mnli.labels, labels);
  EXPECT_EQ(mnli.problem_type, "single_label_classification");
  const auto scores = meaning({{"name", "stsb"}});
  EXPECT_TRUE(scores.labels.empty());
  EXPECT_EQ(scores.problem_type, "regression");
}

struct HeadRun {
  std::shared_ptr<OutputHead> head;
  Batch batch;
  torch::Tensor globals;  // all of them, [B, G, H]
  EtcOutput encoded;      // what the head reads
};

HeadRun RunOf(const std::string& name, const std::string& file,
              const EtcConfig& model = SmallConfig()) {
  torch::manual_seed(1);
  TemporaryDirectory directory;
  const auto task = MakeGlue({{"name", name}}, model);
  EXPECT_TRUE(task.ok()) << task.status();
  HeadRun run{
      .head = std::dynamic_pointer_cast<OutputHead>((*task)->MakeHead()),
      .batch = MakeBatch(ExamplesOf(**task, directory.Write("dev.tsv", file)))};
  run.globals =
      torch::randn(
          {run.batch.size(), run.batch.input.global_token_ids.size(1), kHidden})
          .requires_grad_();
  run.encoded.global_output =
      RowsOf(run.globals, RowsFor(run.head->Reads(), run.batch).globals);
  return run;
}

TEST(GlueHeadTest, ReadsThePooledFirstTokenAndReachesEveryParameter) {
  const HeadRun run = RunOf("rte", kRte);
  run.head->eval();
  const auto parameters = run.head->named_parameters();
  const auto logits = run.head->forward(run.encoded, run.batch);
  ASSERT_EQ(logits.at(0).sizes(), torch::IntArrayRef({2, 2}));
  const torch::Tensor pooled = torch::tanh(
      torch::matmul(run.globals.select(1, 0), parameters["pooler.weight"].t()) +
      parameters["pooler.bias"]);
  EXPECT_TRUE(torch::allclose(
      logits[0],
      torch::matmul(pooled, parameters["classifier.weight"].t()) +
          parameters["classifier.bias"],
      /*rtol=*/1e-5, /*atol=*/1e-6));
  const torch::Tensor losses = run.head->Losses(logits, run.batch);
  const torch::Tensor log_probabilities = logits[0].log_softmax(-1);
  for (int64_t b = 0; b < 2; ++b) {
    EXPECT_NEAR(losses[b].item<double>(),
                -log_probabilities[b][b].item<double>(), 1e-6);
  }
  losses.sum().backward();
  for (const auto& parameter : parameters) {
    EXPECT_GT(parameter.value().grad().abs().sum().item<double>(), 0)
        << parameter.key();
  }
  const torch::Tensor gradient = run.globals.grad();
  EXPECT_GT(gradient.select(1, 0).abs().sum().item<double>(), 0);
  EXPECT_EQ(gradient.slice(1, 1).abs().sum().item<double>(), 0);
}

TEST(GlueHeadTest, LearnsScoresByTheirSquaredError) {
  const HeadRun run = RunOf("stsb", kStsb);
  run.head->eval();
  const auto logits = run.head->forward(run.encoded, run.batch);
  ASSERT_EQ(logits.at(0).sizes(), torch::IntArrayRef({3, 1}));
  const torch::Tensor losses = run.head->Losses(logits, run.batch);
  const double scores[] = {5, 1.25, 0};
  for (int64_t b = 0; b < 3; ++b) {
    const double error = logits[0][b][0].item<double>() - scores[b];
    EXPECT_NEAR(losses[b].item<double>(), error * error, 1e-4);
  }
}

TEST(GlueHeadTest, DropsOneInTenWhateverTheConfigurationSays) {
  EtcConfig model = SmallConfig();
  model.hidden_dropout_prob = 0;
  const HeadRun run = RunOf("rte", kRte, model);
  run.head->train();
  const auto parameters = run.head->named_parameters();
  {
    const torch::NoGradGuard no_gradients;
    // All pooled values are tanh(1), and the logits their sum.
    parameters["pooler.weight"].zero_();
    parameters["pooler.bias"].fill_(1);
    parameters["classifier.weight"].fill_(1);
    parameters["classifier.bias"].zero_();
  }
  double sum = 0;
  constexpr int kRuns = 2000;
  const double kept = std::tanh(1.0) / 0.9;
  for (int i = 0; i < kRuns; ++i) {
    const auto logits = run.head->forward(run.encoded, run.batch);
    const double values = logits[0].select(1, 0).sum().item<double>() / kept;
    // Else the kept ones are scaled by another factor.
    ASSERT_NEAR(values, std::round(values), 1e-4);
    sum += values;
  }
  // 2 x 6 draws a run; 5 standard deviations.
  EXPECT_NEAR(sum / (kRuns * 12), 0.9, 5 * 0.3 / std::sqrt(kRuns * 12.0));
}

// --- HuggingFace's heads

// Models that tests/hugging_face_heads.py saved, imported and used as `init`.
// Tolerance: sums in another order.
class HuggingFaceHeadTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* const models = std::getenv("ETC_HUGGING_FACE_MODELS");
    if (models == nullptr) {
      GTEST_SKIP() << "needs models that tests/hugging_face_heads.py makes";
    }
    models_ = models;
  }

  // Imports a model, and gives the task's model that begins with it.
  TaskModel Start(const std::string& name) {
    const std::string imported = directory_.File(name);
    const absl::Status status =
        ImportWeights({.source = models_ + "/" + name}, imported);
    EXPECT_TRUE(status.ok()) << status;
    const auto config =
        RunConfigFromJson({{"task", "glue"},
                           {"model", {{"path", imported + "/etc_config.json"}}},
                           {"init", imported},
                           {"residual_attention", "off"}},
                          "f.json");
    EXPECT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->model.hidden_act, "gelu_erf");
    auto tokenizer = LoadTokenizer(imported + "/vocab.txt");
    auto task = MakeTask<Glue>(MakeGlueHead,
                               TaskConfig(config->model, {{"name", "mrpc"}}),
                               *std::move(tokenizer));
    EXPECT_TRUE(task.ok()) << task.status();
    task_ = *std::move(task);
    TaskModel model = MakeTaskModel(*config, *task_);
    const auto notices = LoadInitialWeights(*config, model);
    EXPECT_TRUE(notices.ok()) << notices.status();
    messages_ = notices->messages;
    model.SetTraining(false);
    return model;
  }

  // Row b of what HuggingFace's code computed.
  torch::Tensor Expected(const std::string& name, size_t b) const {
    const auto json =
        nlohmann::json::parse(*ReadFile(models_ + "/" + name + "/logits.json"));
    const auto& row = json.at(b);
    if (!row[0].is_array()) {
      return torch::tensor(row.get<std::vector<double>>());
    }
    std::vector<torch::Tensor> outputs;
    for (const auto& values : row) {
      outputs.push_back(torch::tensor(values.get<std::vector<double>>()));
    }
    return torch::stack(outputs);
  }

  // Compares the outputs of each token by the tensors "head.<name>.*".
  void ExpectSameOutputsOfTokens(const std::string& model_name,
                                 const std::string& head) {
    TaskModel model = Start(model_name);
    const auto reader = TensorReader::Open(directory_.File(model_name));
    ASSERT_TRUE(reader.ok()) << reader.status();
    const torch::Tensor weight = *reader->Read("head." + head + ".weight");
    const torch::Tensor bias = *reader->Read("head." + head + ".bias");
    const torch::NoGradGuard no_gradients;
    for (size_t b = 0; b < kRows; ++b) {
      const torch::Tensor states =
          TextStates(model.encoder()->forward(RowOf(b).input))[0];
      const torch::Tensor logits =
          torch::matmul(weight, states.t()) + bias.unsqueeze(1);
      const torch::Tensor expected = Expected(model_name, b);
      ExpectNear(logits.slice(1, 0, expected.size(1)), expected);
    }
    RecordProperty("largest_error", absl::StrCat(largest_));
  }

  Batch RowOf(size_t b) const {
    return MakeBatch(
        {ExamplesOf(*task_, absl::StrCat(ETC_SOURCE_DIR,
                                         "/tasks/glue/sample/dev.tsv"))[b]});
  }

  void ExpectNear(const torch::Tensor& actual, const torch::Tensor& expected) {
    EXPECT_EQ(actual.sizes(), expected.sizes());
    const double error = (actual - expected).abs().max().item<double>();
    largest_ = std::max(largest_, error);
    EXPECT_LT(error, 1e-5);
  }

  static constexpr size_t kRows = 8;
  TemporaryDirectory directory_;
  std::string models_;
  std::unique_ptr<RecordTask> task_;
  std::vector<std::string> messages_;
  double largest_ = 0;
};

TEST_F(HuggingFaceHeadTest, ClassifiesAsItDid) {
  const std::string name = "BertForSequenceClassification";
  TaskModel model = Start(name);
  EXPECT_THAT(messages_,
              testing::Contains(HasSubstr("head: pooler, classifier from ")));
  const torch::NoGradGuard no_gradients;
  for (size_t b = 0; b < kRows; ++b) {
    ExpectNear(model.Forward(RowOf(b))[0][0], Expected(name, b));
  }
  RecordProperty("largest_error", absl::StrCat(largest_));
}

TEST_F(HuggingFaceHeadTest, AnswersAsItDid) {
  ExpectSameOutputsOfTokens("BertForQuestionAnswering", "qa_outputs");
}

TEST_F(HuggingFaceHeadTest, LabelsTokensAsItDid) {
  ExpectSameOutputsOfTokens("BertForTokenClassification", "classifier");
  EXPECT_THAT(messages_,
              testing::Contains(HasSubstr("it reads tokens, not texts")));
}

}  // namespace
}  // namespace etc
