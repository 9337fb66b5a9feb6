// SQuAD as a task: the head against its formula in loops and its gradients
// against central differences, for BERT and ETC; the way from the files of the
// sample over perfect logits to prediction files and their scores; options and
// records that make no sense; what the shipped configurations say, and the
// losses of the demo's first updates, to 5e-4, which other CPUs and thread
// counts stay within. Tolerance 1e-10 where all is float64.

#include "tasks/squad/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "etc/weights/import_plan.h"
#include "nlohmann/json.hpp"
#include "tasks/data/batch.h"
#include "tasks/data/record_check.h"
#include "tasks/data/record_source.h"
#include "tasks/task/benchmark_head.h"
#include "tasks/task/benchmark_task.h"
#include "tasks/task/score_files.h"
#include "tasks/text/load_tokenizer.h"
#include "tasks/train/initial_weights.h"
#include "tasks/train/task_model.h"
#include "tests/support/gradient_check.h"
#include "tests/support/initial_values.h"
#include "tests/support/shipped_config.h"
#include "tests/support/task_config.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/text/word_tokenizer.h"

namespace etc {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

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

EtcConfig SmallConfig(bool is_bert) {
  EtcConfig config;
  config.vocab_size = 20;
  config.segment_vocab_size = is_bert ? 2 : 3;
  config.hidden_size = kHidden;
  config.num_attention_heads = 2;
  config.has_long_tokens = !is_bert;
  return config;
}

absl::StatusOr<std::unique_ptr<RecordTask>> MakeSquad(
    bool is_bert, nlohmann::json options = nlohmann::json::object(),
    int64_t length = 9) {
  options["max_query_length"] = options.value("max_query_length", 2);
  return MakeTask<Squad>(
      MakeSquadHead,
      TaskConfig(SmallConfig(is_bert), options,
                 {.max_long_length = length,
                  .max_global_length = is_bert ? length : 6}),
      Words());
}

constexpr char kRecord[] =
    R"({"id": "7", "question": "a b", "context": "c d a b c d",
        "answers": [{"text": "a b", "answer_start": 4}]})";

// Two windows of four and two pieces.
Batch TwoWindows(const Task& task) {
  const auto examples =
      dynamic_cast<const RecordTask&>(task).MakeExamples(kRecord, "f: here");
  EXPECT_TRUE(examples.ok()) << examples.status();
  EXPECT_EQ(examples->size(), 2u);
  return MakeBatch(*examples);
}

// Outputs of an encoder, random.
EtcOutput RandomOutput(const Batch& batch) {
  const auto random = [&batch](int64_t length) {
    return torch::randn({batch.size(), length, kHidden}, torch::kFloat64);
  };
  return {.long_output = random(batch.input.token_ids.size(1)),
          .global_output = random(batch.input.global_token_ids.size(1))};
}

// Data in memory are checked at once for errors that training would meet late.
TEST(SquadDataTest, IsCheckedWithoutATokenizer) {
  TemporaryDirectory directory;
  const auto check = [&](const std::string& question, RecordUse use) {
    const std::string path = directory.Write(
        "f.json", absl::StrCat(R"({"data": [{"paragraphs": [{"context": "c d a",
            "qas": [{"id": "1", "question": "a", "answers": [{"text": "a",
            "answer_start": 4}]}, )",
                               question, "]}]}]}"));
    const auto task = MakeSquad(/*is_bert=*/true);
    EXPECT_TRUE(task.ok()) << task.status();
    const auto source = (*task)->Open({.patterns = {path}, .use = use});
    EXPECT_TRUE(source.ok()) << source.status();
    return CheckRecords(dynamic_cast<const OfficialRecords&>(**source), {});
  };
  const std::string early =
      R"({"id": "2", "question": "a", "answers": [{"text": "a",
          "answer_start": -1}]})";
  EXPECT_THAT(std::string(check(early, RecordUse::kTraining).message()),
              HasSubstr("qas[1].answers[0].answer_start should be at least 0, "
                        "but is -1"));
  EXPECT_TRUE(check(early, RecordUse::kEvaluation).ok());
  const std::string bare = R"({"id": "2", "question": "a"})";
  EXPECT_THAT(std::string(check(bare, RecordUse::kTraining).message()),
              HasSubstr("qas[1] (2) has no answer"));
  EXPECT_TRUE(check(bare, RecordUse::kEvaluation).ok());
  EXPECT_THAT(
      std::string(check(R"({"id": 2})", RecordUse::kEvaluation).message()),
      HasSubstr("qas[1].question is missing"));
  EXPECT_THAT(
      std::string(check(R"({"id": [2]})", RecordUse::kEvaluation).message()),
      HasSubstr("qas[1].id should be a string or a whole number"));
}

TEST(SquadDataTest, HasEachIdOnceInAllFiles) {
  TemporaryDirectory directory;
  const std::string file = R"({"data": [{"paragraphs": [{"context": "c d a",
      "qas": [{"id": "q", "question": "a", "answers": []}]}]}]})";
  const auto task = MakeSquad(/*is_bert=*/true);
  ASSERT_TRUE(task.ok()) << task.status();
  const auto source =
      (*task)->Open({.patterns = {directory.Write("dev_a.json", file),
                                  directory.Write("dev_b.json", file)}});
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_THAT(
      std::string(
          CheckRecordsAndIds(dynamic_cast<const OfficialRecords&>(**source), {})
              .status()
              .message()),
      HasSubstr("dev_b.json: data[0].paragraphs[0].qas[0]: the id \"q\" should "
                "occur once"));
}

// A question about "\u00e9\u00e9 lima is\u00a0a town".
nlohmann::json QuestionOf(const std::string& answer, int64_t start,
                          bool is_impossible) {
  const nlohmann::json given = {{"text", answer}, {"answer_start", start}};
  return {{"id", absl::StrCat(answer, start, is_impossible)},
          {"question", "who"},
          {"answers", nlohmann::json::array({given})},
          {"is_impossible", is_impossible}};
}

// Offsets in bytes are too large behind the first letter beyond ASCII.
TEST(SquadDataTest, IsDescribedByTheQuestionsThatTrainingLeavesOut) {
  TemporaryDirectory directory;
  const auto describe = [&](const nlohmann::json& questions,
                            const nlohmann::json& options) {
    const nlohmann::json paragraph = {
        {"context", "\u00e9\u00e9 lima is\u00a0a town"}, {"qas", questions}};
    nlohmann::json article;
    article["paragraphs"] = nlohmann::json::array({paragraph});
    nlohmann::json file;
    file["data"] = nlohmann::json::array({article});
    const auto task = MakeSquad(/*is_bert=*/true, options);
    EXPECT_TRUE(task.ok()) << task.status();
    const auto source =
        (*task)->Open({.patterns = {directory.Write("t.json", file.dump())},
                       .use = RecordUse::kTraining});
    EXPECT_TRUE(source.ok()) << source.status();
    return (*task)->DescribeData(**source, **source)->warnings;
  };
  const nlohmann::json right = QuestionOf("lima", 3, false);
  EXPECT_THAT(
      describe(nlohmann::json::array({right}), nlohmann::json::object()),
      testing::IsEmpty());
  const nlohmann::json questions = nlohmann::json::array(
      {right, QuestionOf("lima", 9, false), QuestionOf("lima", 50, true),
       QuestionOf("is\u00a0a", 8, false), nlohmann::json::object()});
  const std::string place = directory.File("t.json: data[0].paragraphs[0].qas");
  const std::string spaces = absl::StrCat(
      "1 of 5 training records is left out, ", place,
      "[3]: the answer holds white space, such as U+00A0, at which the "
      "official program does not split");
  const std::string offset =
      "[1]: the answer is not at its offset (answer_start counts characters, "
      "not bytes)";
  EXPECT_THAT(describe(questions, nlohmann::json::object()),
              ElementsAre(spaces, absl::StrCat("2 of 5 training records are "
                                               "left out, the first ",
                                               place, offset)));
  EXPECT_THAT(
      describe(questions, {{"version", "2.0"}}),
      ElementsAre(spaces, absl::StrCat("1 of 5 training records is left out, ",
                                       place, offset)));
}

TEST(SquadDataTest, HasTextsInAnswersAlone) {
  EXPECT_THAT(Squad().AnswerTextFields(), testing::ElementsAre("answers"));
}

class SquadHeadTest : public testing::TestWithParam<bool> {
 protected:
  SquadHeadTest() {
    torch::manual_seed(5);
    task_ = *MakeSquad(GetParam(), {{"doc_stride", 4}});
    head_ = std::dynamic_pointer_cast<OutputHead>(task_->MakeHead());
    head_->to(torch::kFloat64);
    const torch::NoGradGuard no_grad;
    for (torch::Tensor& parameter : head_->parameters()) {
      parameter.copy_(torch::randn_like(parameter));
    }
  }

  std::unique_ptr<RecordTask> task_;
  std::shared_ptr<OutputHead> head_;
};
INSTANTIATE_TEST_SUITE_P(Encoders, SquadHeadTest, testing::Bool(),
                         [](const auto& is_bert) {
                           return is_bert.param ? "Bert" : "Etc";
                         });

TEST_P(SquadHeadTest, IsThePlainFormula) {  // doc/squad.md 4
  const Batch batch = TwoWindows(*task_);
  const EtcOutput output = RandomOutput(batch);
  const torch::Tensor& text =
      GetParam() ? output.global_output : output.long_output;
  const std::vector<torch::Tensor> logits = head_->forward(output, batch);
  const torch::Tensor losses = head_->Losses(logits, batch);
  const auto parameters = head_->named_parameters();
  EXPECT_EQ(logits.at(0).sizes().vec(), (std::vector<int64_t>{2, 2, 9}));
  for (int64_t b = 0; b < batch.size(); ++b) {
    const SquadSpan& answer =
        ExampleAs<SquadExample>(*batch.examples[static_cast<size_t>(b)]).answer;
    // The second window has no answer.
    EXPECT_EQ(answer, (b == 0 ? SquadSpan{.first = 6, .last = 7}
                              : SquadSpan{.first = 0, .last = 0}));
    // Two tokens of padding, which are no ends.
    const int64_t length = b == 0 ? 9 : 7;
    EXPECT_TRUE(logits[0][b].slice(-1, length).eq(-1e9).all().item<bool>());
    double loss = 0;
    for (int64_t end = 0; end < 2; ++end) {
      double sum = 0;
      double of_target = 0;
      for (int64_t i = 0; i < length; ++i) {
        double logit = parameters["qa_outputs.bias"][end].item<double>();
        for (int64_t h = 0; h < kHidden; ++h) {
          logit += parameters["qa_outputs.weight"][end][h].item<double>() *
                   text[b][i][h].item<double>();
        }
        EXPECT_NEAR(logits[0][b][end][i].item<double>(), logit, 1e-10);
        sum += std::exp(logit);
        of_target =
            i == (end == 0 ? answer.first : answer.last) ? logit : of_target;
      }
      loss += (std::log(sum) - of_target) / 2;
    }
    EXPECT_NEAR(losses[b].item<double>(), loss, 1e-10) << b;
  }
}

TEST_P(SquadHeadTest, HasTheGradientsOfItsLoss) {
  const Batch batch = TwoWindows(*task_);
  EtcOutput output = RandomOutput(batch);
  torch::Tensor& text = GetParam() ? output.global_output : output.long_output;
  text.requires_grad_();
  std::vector<std::pair<std::string, torch::Tensor>> variables = {
      {"text", text}};
  for (const auto& parameter : head_->named_parameters()) {
    variables.emplace_back(parameter.key(), parameter.value());
  }
  EXPECT_TRUE(GradientsMatchDifferences(
      [&] { return head_->Losses(head_->forward(output, batch), batch).sum(); },
      variables));
}

TEST_P(SquadHeadTest, StartsWithTheFixedInitializer) {  // doc/squad.md 4
  EtcConfig config = SmallConfig(GetParam());
  config.hidden_size = 4000;
  config.initializer_range = 0.5;
  torch::manual_seed(1);
  ExpectFixedInitialValues(*MakeSquadHead(config, {}));
}

// BertForQuestionAnswering as `realetc import` leaves it: no head of the task
// squad as a whole, but the layer that it consists of.
TEST(SquadModelTest, StartsFromTheAnswerSpanOfBert) {
  RunConfig config;
  config.task = "squad";
  config.model = SmallConfig(/*is_bert=*/true);
  config.model.num_hidden_layers = 1;
  config.model.max_absolute_position_embeddings = 9;
  config.model.relative_pos_max_distance = 0;
  config.model.relative_vocab_size = std::nullopt;
  config.model.share_att_output_projection = true;
  config.residual_attention = "off";
  const auto task = *MakeSquad(/*is_bert=*/true);
  torch::manual_seed(1);
  const TaskModel model = MakeTaskModel(config, *task);
  NamedTensors source = ModuleTensors(*model.encoder());
  source["head.qa_outputs.weight"] = torch::randn({2, kHidden});
  source["head.qa_outputs.bias"] = torch::randn({2});
  const TemporaryDirectory directory;
  config.init = directory.File("model.safetensors");
  ASSERT_TRUE(WriteTensors(config.init, source, {}).ok());
  const auto messages = LoadInitialWeights(config, model);
  ASSERT_TRUE(messages.ok()) << messages.status();
  EXPECT_THAT(messages->messages,
              Contains("head: answer span from " + config.init));
  for (const auto& [name, tensor] : ModuleTensors(*model.head())) {
    EXPECT_TRUE(torch::equal(tensor, source.at("head." + name))) << name;
  }
}

// Logits that say each window's target, or [CLS].
std::vector<torch::Tensor> PerfectLogits(const Batch& batch, int64_t length) {
  torch::Tensor ends = torch::zeros({batch.size(), 2, length});
  for (int64_t b = 0; b < batch.size(); ++b) {
    const SquadSpan& answer =
        ExampleAs<SquadExample>(*batch.examples[static_cast<size_t>(b)]).answer;
    ends[b][0][answer.first] = 10;
    ends[b][1][answer.last] = 10;
  }
  return {ends};
}

// The demo's task, without its lengths of time.
std::unique_ptr<Task> DemoTask(const std::vector<std::string>& overrides) {
  const RunConfig config = ReadShipped("squad", "demo.json", overrides);
  const auto entry = FindTask("squad");
  auto tokenizer = LoadTokenizer(SourcePath("tasks/squad/sample/vocab.txt"));
  auto task = (*entry)->make(config, *std::move(tokenizer));
  EXPECT_TRUE(task.ok()) << task.status();
  return *std::move(task);
}

TEST(SquadWholeWayTest, PerfectLogitsGiveAPerfectScore) {
  const std::string path = SourcePath("tasks/squad/sample/dev.json");
  const auto task = DemoTask({});
  const auto source = task->Open({.patterns = {path}});
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ((*source)->size(), 160);
  const auto predictions = task->MakePredictions();
  int64_t windows = 0;
  for (int64_t r = 0; r < (*source)->size(); ++r) {
    const auto examples = (*source)->Make(RequestForEvaluation(r));
    ASSERT_TRUE(examples.ok()) << examples.status();
    // Each by itself: the windows of a record need not come together.
    for (const auto& example : *examples) {
      EXPECT_THAT(task->Describe(*example), HasSubstr("Where does"));
      const Batch batch = MakeBatch({example});
      predictions->Add(batch, PerfectLogits(batch, example->long_length()));
      ++windows;
    }
  }
  EXPECT_GT(windows, (*source)->size());
  const Metrics metrics = predictions->Score();
  EXPECT_EQ(FindMetric(metrics, "f1"), 100);
  EXPECT_EQ(FindMetric(metrics, "exact"), 100);
  EXPECT_EQ(FindMetric(metrics, "best_f1"), 100);
  EXPECT_EQ(task->main_metric(), "f1");

  TemporaryDirectory directory;
  const std::string file =
      directory.Write("p.json", predictions->FileContents());
  EXPECT_EQ(
      FindMetric(*ScoreFiles(Squad(), {.gold = path, .predictions = file}),
                 "f1"),
      100);
  const std::vector<PredictionFile> more = predictions->MoreFiles();
  ASSERT_EQ(more.size(), 2u);
  EXPECT_EQ(more[1].PathBeside("a/b.json"), "a/null_odds_b.json");
  EXPECT_EQ(more[0].PathBeside("b.json"), "nbest_b.json");
  // The n-best answers give the very scores that an evaluation has.
  const auto of_nbest = ScoreFiles(
      Squad(), {.gold = path,
                .predictions = directory.Write("n.json", more[0].contents)});
  ASSERT_TRUE(of_nbest.ok()) << of_nbest.status();
  EXPECT_EQ(*of_nbest, metrics);
}

TEST(SquadTrainingTest, NeedsOneAnswerOfEachQuestion) {
  const std::string dev = SourcePath("tasks/squad/sample/dev.json");
  const auto first_mistake = [&](const std::vector<std::string>& overrides) {
    const auto task = DemoTask(overrides);
    const auto source =
        task->Open({.patterns = {dev}, .use = RecordUse::kTraining});
    EXPECT_TRUE(source.ok()) << source.status();
    for (int64_t r = 0; r < (*source)->size(); ++r) {
      const auto examples = (*source)->Make(RequestForEvaluation(r));
      if (!examples.ok()) {
        return std::string(examples.status().message());
      }
    }
    return std::string();
  };
  EXPECT_THAT(
      first_mistake({}),
      HasSubstr("dev.json: data[0].paragraphs[0].qas[1].answers should have "
                "one answer for training, but has 3"));
  EXPECT_EQ(first_mistake({"squad.several_answers=first"}), "");
}

TEST(SquadOptionsTest, SayWhatIsWrong) {
  const std::map<std::string, std::string> mistakes = {
      {R"({"version": "2"})",
       "f.json: squad.version should be \"1.1\" or \"2.0\", but is \"2\""},
      {R"({"several_answers": "all"})",
       "squad.several_answers should be \"error\" or \"first\""},
      {R"({"doc_stride": 0})", "squad.doc_stride should be at least 1"},
      {R"({"n_best_size": 0})", "squad.n_best_size should be at least 1"},
      {R"({"max_answer_length": 3000000000})",
       "squad.max_answer_length should be at most 2147483647"},
      {R"({"max_query_length": -1})",
       "squad.max_query_length should be at least 0"},
      {R"({"max_query_length": 6})", "data.max_global_length should be"},
      {R"({"null_threshold": 1})", "has no field \"null_threshold\""}};
  for (const auto& [options, message] : mistakes) {
    const auto task =
        MakeSquad(/*is_bert=*/true, nlohmann::json::parse(options));
    EXPECT_THAT(std::string(task.status().message()), HasSubstr(message));
  }
  const auto too_short =
      MakeSquad(/*is_bert=*/false, {{"max_query_length", 4}}, 7);
  EXPECT_THAT(std::string(too_short.status().message()),
              HasSubstr("data.max_long_length should be at least 8, for the "
                        "question, [CLS], two [SEP] and a piece of the "
                        "context, but is 7"));
  EtcConfig two_types = SmallConfig(/*is_bert=*/false);
  two_types.segment_vocab_size = 2;
  const auto task =
      MakeTask<Squad>(MakeSquadHead, TaskConfig(two_types), Words());
  EXPECT_THAT(std::string(task.status().message()),
              HasSubstr("model.segment_vocab_size should be at least 3"));
}

TEST(SquadOptionsTest, WarnOfWindowsWithoutOverlap) {
  for (const bool is_bert : {true, false}) {
    const auto warnings = [is_bert](int64_t stride) {
      return (*MakeSquad(is_bert, {{"doc_stride", stride}}))->Warnings();
    };
    EXPECT_THAT(warnings(3), testing::IsEmpty());
    // [CLS], a question of 2, two [SEP] and 4 pieces.
    EXPECT_THAT(warnings(4),
                ElementsAre("squad.doc_stride 4 is not below the 4 pieces of a "
                            "window beside a question of 2: windows do not "
                            "overlap, and answers at their borders are lost"));
  }
}

// A file to predict for, whose lists of answers are empty, says nothing.
TEST(SquadScoreTest, AsksWhetherGoldWithoutAnyAnswerIsATestFile) {
  const auto remark = [](const SquadGold& gold) {
    return Squad().Remark({.gold = {{"a", {}}, {"b", gold}}});
  };
  EXPECT_EQ(remark({}),
            "none of 2 questions has an answer or is_impossible: is this a "
            "test file?");
  EXPECT_EQ(remark({.answers = {"x"}}), "");
  EXPECT_EQ(remark({.has_is_impossible = true}), "");
  EXPECT_EQ(Squad().Remark({}), "");
}

// RoBERTa has two separators, and one type of tokens.
TEST(SquadTaskTest, ReadsInputsOfRoberta) {
  EtcConfig model = SmallConfig(/*is_bert=*/true);
  model.segment_vocab_size = 1;
  const auto make = [&](int64_t length) {
    return MakeTask<Squad>(MakeSquadHead,
                           TaskConfig(model, {{"max_query_length", 2}},
                                      {.max_global_length = length}),
                           RobertaWords());
  };
  EXPECT_THAT(std::string(make(6).status().message()),
              HasSubstr("data.max_global_length should be at least 7, for the "
                        "question, the special pieces and a piece of the "
                        "context, but is 6"));
  const auto task = make(10);
  ASSERT_TRUE(task.ok()) << task.status();
  const auto examples = (*task)->MakeExamples(kRecord, "f: here");
  ASSERT_TRUE(examples.ok()) << examples.status();
  EXPECT_THAT(examples->front()->global_token_ids,
              ElementsAre(10, 12, 13, 11, 11, 14, 15, 12, 13, 11));
  EXPECT_THAT(examples->front()->global_type_ids, testing::Each(0));
}

TEST(SquadConfigsTest, HaveTheOfficialHyperParameters) {  // doc/squad.md 5, 12
  const RunConfig config =
      ReadShipped("squad", "squad_bert_base.json", {"init="});
  EXPECT_FALSE(config.model.has_long_tokens);
  EXPECT_EQ(config.data.max_global_length, 384);
  EXPECT_EQ(config.train.batch_size, 32);
  EXPECT_EQ(config.train.learning_rate, 3e-5);
  EXPECT_EQ(config.train.epochs, 2);
  EXPECT_EQ(config.optimizer.weight_decay, 0.01);
  EXPECT_EQ(config.optimizer.clip_norm, 1.0);
  EXPECT_EQ(config.schedule.warmup_proportion, 0.1);
  const auto options = ReadTaskOptions<Squad>(config.task_options, "f");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->doc_stride, 128);
  EXPECT_EQ(options->max_query_length, 64);
  EXPECT_EQ(options->n_best_size, 20);
  EXPECT_EQ(options->max_answer_length, 30);
  EXPECT_EQ(options->version, SquadVersion::k1);
  EXPECT_THAT(ShippedConfigs("squad"),
              UnorderedElementsAre("demo.json", "squad_bert_base.json",
                                   "squad_etc_base.json"));
}

// Every question is answered in its paragraph, or has a person that it does not
// name; no paragraph of the held-out part is one of the training's.
TEST(SquadSampleTest, IsWhatItsGeneratorSays) {
  std::set<std::string> contexts;
  for (const char* name : {"train.json", "dev.json"}) {
    SCOPED_TRACE(name);
    const Squad squad;
    const auto records = squad.ReadFile(
        SourcePath(absl::StrCat("tasks/squad/sample/", name)), {});
    ASSERT_TRUE(records.ok()) << records.status();
    int64_t impossible = 0;
    std::set<std::string> own;
    for (const FileRecord& file : *records) {
      const auto record = squad.ParseRecord(file.Text(), file.where);
      ASSERT_TRUE(record.ok()) << record.status();
      own.insert(record->context);
      EXPECT_FALSE(contexts.contains(record->context));
      const std::string person = record->question.substr(
          std::string("Where does ").size(),
          record->question.find(" live?") - std::string("Where does ").size());
      EXPECT_EQ(record->context.find(person) == std::string::npos,
                *record->is_impossible);
      EXPECT_EQ(record->answers->empty(), *record->is_impossible);
      impossible += *record->is_impossible ? 1 : 0;
      const SquadWords words = FindSquadWords(record->context);
      for (const SquadAnswer& answer : *record->answers) {
        EXPECT_TRUE(FindAnswerWords(record->context, words, answer));
      }
    }
    EXPECT_EQ(impossible * 4, static_cast<int64_t>(records->size()));
    contexts.insert(own.begin(), own.end());
  }
}

TEST(SquadLossCurveTest, IsAsItWas) {
  const std::vector<double> expected = {3.47752, 3.80251, 3.55966, 3.47522,
                                        3.34249, 3.34139, 3.29436, 3.28093,
                                        3.27847, 3.20518};
  constexpr double kTolerance = 5e-4;
  EXPECT_THAT(
      DemoLosses("squad", "train.json", "sum", {"train.learning_rate=1e-4"}),
      testing::Pointwise(testing::DoubleNear(kTolerance), expected));
}

}  // namespace
}  // namespace etc
