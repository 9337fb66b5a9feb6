// The smallest benchmark (boolq.h), as CONTRIBUTING.md shows it: a record
// becomes an example, the example a prediction, and the file of predictions has
// the score that training saw; text without room is told; its head gives losses
// that reach all of its layers; its entry can stand in the registry; one row
// reads its option, holds it to its bounds and describes it. Mistakes of an
// author are found, and named with their place.

#include "tests/tasks/task/boolq.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "etc/config.h"
#include "etc/model.h"
#include "tasks/config/config.h"
#include "tasks/inputs/text_input.h"
#include "tasks/task/benchmark_task.h"
#include "tasks/task/score_files.h"
#include "tests/support/task_config.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/text/word_tokenizer.h"

namespace etc {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::ThrowsMessage;
using ::testing::Truly;

const std::vector<std::string>& Lines() {
  static const auto* const lines = new std::vector<std::string>{
      R"({"idx": 0, "question": "a b", "passage": "c", "label": true})",
      R"({"idx": 1, "question": "b", "passage": "c d", "label": false})",
      R"({"idx": 2, "question": "d", "passage": "a"})"};
  return *lines;
}

EtcConfig SmallConfig() {
  EtcConfig config;
  config.vocab_size = 20;
  config.hidden_size = 8;
  config.num_attention_heads = 2;
  config.num_hidden_layers = 1;
  config.intermediate_size = 8;
  config.segment_vocab_size = 3;
  return config;
}

template <typename B = Boolq>
std::unique_ptr<RecordTask> MakeBoolq() {
  auto task =
      MakeTask<B>(MakeBoolqHead,
                  TaskConfig(SmallConfig(), nlohmann::json::object(),
                             {.max_long_length = 16, .max_global_length = 4}),
                  std::make_shared<WordTokenizer>(std::vector<std::string>{
                      "[CLS]", "[SEP]", "a", "b", "c", "d"}));
  EXPECT_TRUE(task.ok()) << task.status();
  return *std::move(task);
}

Batch BatchOf(const RecordTask& task, size_t records) {
  std::vector<std::shared_ptr<const Example>> examples;
  for (size_t i = 0; i < records; ++i) {
    const auto made = task.MakeExamples(Lines()[i], "dev.jsonl");
    EXPECT_TRUE(made.ok()) << made.status();
    examples.push_back(made->front());
  }
  return MakeBatch(std::move(examples));
}

TEST(BoolqTest, ReadsARecordAndSaysWhatIsWrongWithIt) {
  const auto record = Boolq().ParseRecord(Lines()[0], "dev.jsonl: record 0");
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->id, "0");
  EXPECT_EQ(record->answer, true);
  EXPECT_EQ(Boolq().ParseRecord(Lines()[2], "here")->answer, std::nullopt);
  EXPECT_THAT(
      Boolq()
          .ParseRecord(R"({"idx": 3, "question": "a"})", "dev.jsonl: record 3")
          .status()
          .message(),
      testing::AllOf(HasSubstr("dev.jsonl: record 3"), HasSubstr("passage")));
}

TEST(BoolqTest, ScoresTheSameInTrainingAndByFile) {
  const auto task = MakeBoolq();
  const auto predictions = task->MakePredictions();
  predictions->Add(BatchOf(*task, 3),
                   {torch::tensor({{0.F, 1.F}, {0.F, 1.F}, {1.F, 0.F}})});
  EXPECT_EQ(predictions->num_unanswered(), 1);
  EXPECT_THAT(predictions->Score(), ElementsAre(Pair("accuracy", 0.5)));
  TemporaryDirectory directory;
  const auto scores = ScoreFiles(
      Boolq(),
      {.gold = directory.Write("dev.jsonl", absl::StrJoin(Lines(), "\n")),
       .predictions =
           directory.Write("predictions.jsonl", predictions->FileContents())});
  ASSERT_TRUE(scores.ok()) << scores.status();
  EXPECT_EQ(*scores, predictions->Score());
}

// The last layer computes these rows; estimates and memory plans believe the
// numbers.
TEST(BoolqTest, ReadsTheRowsThatAreCounted) {
  Batch batch = BatchOf(*MakeBoolq(), 2);
  for (const bool is_bert : {false, true}) {
    if (is_bert) {
      batch.input.token_ids = batch.input.token_ids.slice(1, 0, 0);
    }
    const StepShape shape = {
        .batch = batch.size(),
        .long_length = batch.input.token_ids.size(1),
        .global_length = batch.input.global_token_ids.size(1)};
    const auto size = [&](const torch::Tensor& rows, int64_t length) {
      return rows.defined() ? rows.numel() : shape.batch * length;
    };
    for (const ReadTokens tokens :
         {ReadTokens::kAll, ReadTokens::kText, ReadTokens::kGlobal,
          ReadTokens::kFirstGlobal}) {
      const OutputRows rows = RowsFor(tokens, batch);
      const OutputCounts counts = CountsFor(tokens, shape);
      EXPECT_EQ(size(rows.longs, shape.long_length),
                shape.batch * counts.longs.value_or(shape.long_length));
      EXPECT_EQ(size(rows.globals, shape.global_length),
                shape.batch * counts.globals.value_or(shape.global_length));
    }
  }
  const HeadCost cost = MakeBoolqHead(SmallConfig(), {})->CostOf({});
  EXPECT_EQ(cost.outputs.longs, 0);
  EXPECT_EQ(cost.outputs.globals, 1);
}

// Marks take 3 of the 16 long tokens, sentences 3 of the 4 global ones.
TEST(BoolqTest, TellsWhatHadNoRoom) {
  const auto task = MakeBoolq();
  const auto examples = task->MakeExamples(
      absl::StrCat(R"({"idx": 0, "question": "Is it?", )"
                   R"("passage": "He came. She went. They left. )",
                   absl::StrJoin(std::vector<std::string>(5, "c"), " "),
                   R"("})"),
      "dev.jsonl");
  ASSERT_TRUE(examples.ok()) << examples.status();
  const Example& example = *examples->front();
  EXPECT_EQ(example.long_length(), 16);
  EXPECT_THAT(example.global_token_ids,
              ElementsAre(kWholeTextToken, kSentenceOfTextToken,
                          kSentenceOfTextToken, kSentenceOfTextToken));
  EXPECT_TRUE(example.is_truncated);
  EXPECT_EQ(example.lost_text.count, 4);
  EXPECT_EQ(example.lost_text.unit, "pieces");
  const std::vector<std::vector<torch::Tensor>> logits = {
      {torch::tensor({{0.F, 1.F}})}};
  EXPECT_THAT(task->PredictRecord(*examples, logits).truncated,
              ElementsAre(TruncatedPart{.unit = "pieces", .count = 4}));
  EXPECT_THAT(task->Describe(example),
              HasSubstr("4 tokens truncated; no global token for 1 sentence"));
}

TEST(BoolqTest, HasLossesThatReachAllOfItsHead) {
  torch::manual_seed(1);
  const auto task = MakeBoolq();
  const std::shared_ptr<TaskHead> head = task->MakeHead();
  const Batch batch = BatchOf(*task, 2);
  const auto logits = head->Run(EtcModel(SmallConfig()), batch);
  head->Loss(logits, batch, head->Totals(batch.examples)).backward();
  for (const auto& parameter : head->named_parameters()) {
    EXPECT_GT(parameter.value().grad().abs().sum().item<double>(), 0)
        << parameter.key();
  }
}

TEST(BoolqTest, NamesItsGlobalTokens) {
  const auto task = MakeBoolq();
  std::set<int32_t> named;
  for (const GlobalTokenName& name : task->GlobalTokenNames()) {
    named.insert(name.id);
  }
  const auto examples = task->MakeExamples(Lines()[0], "dev.jsonl");
  ASSERT_TRUE(examples.ok()) << examples.status();
  EXPECT_THAT(examples->front()->global_token_ids,
              Each(Truly([&](int32_t id) { return named.contains(id); })));
}

TEST(BoolqTest, CanStandInTheRegistry) {
  const TaskEntry entry = BenchmarkEntry<Boolq>(MakeBoolqHead);
  EXPECT_EQ(entry.name, "boolq");
  EXPECT_TRUE(entry.serves_bert);
  EXPECT_FALSE(entry.holds_out_records);
  RunConfig config;
  config.model = SmallConfig();
  config.task_options = nlohmann::json::object();
  EXPECT_TRUE(entry.make_head(config).ok());
  config.task_options = {{"no_field", 1}};
  EXPECT_THAT(std::string(entry.make_head(config).status().message()),
              HasSubstr("no_field"));
}

TEST(BoolqTest, ReadsChecksAndDescribesItsOptionByTheSameRow) {
  const auto options = [](const nlohmann::json& json) {
    return ReadTaskOptions<Boolq>(json, "run.json: boolq");
  };
  EXPECT_EQ(options({{"yes_margin", 1.5}})->yes_margin, 1.5);
  EXPECT_EQ(options({{"yes_margin", -1}}).status().message(),
            "run.json: boolq.yes_margin should be at least 0, but is -1");
  const TaskEntry entry = BenchmarkEntry<Boolq>(MakeBoolqHead);
  ASSERT_EQ(entry.fields.size(), 1);
  EXPECT_EQ(entry.fields[0].name, "boolq.yes_margin");
  EXPECT_EQ(entry.fields[0].type, "number");
  EXPECT_EQ(entry.fields[0].default_value, "`0`");
  EXPECT_EQ(entry.fields[0].bounds, "at least 0");
  EXPECT_THAT(entry.decoding_options, ElementsAre("boolq.yes_margin"));
}

// --- Mistakes of an author ---------------------------------------------------

enum class Mistake { kThrows, kNull, kTwoExamples, kAnswer, kMetric };

template <Mistake kMistake>
class Mistaken final : public Boolq {
 public:
  using Boolq::Boolq;

  ExamplesOr MakeExamples(Record record,
                          const std::string& where) const override {
    if (kMistake == Mistake::kThrows) {
      throw std::out_of_range("no such key");
    }
    ExamplesOr made = Boolq::MakeExamples(std::move(record), where);
    if (kMistake == Mistake::kNull) {
      made->front() = nullptr;
    } else if (kMistake == Mistake::kTwoExamples) {
      made->push_back(made->front());
    } else if (kMistake == Mistake::kAnswer) {
      made->front()->has_answer = true;
    }
    return made;
  }
  Scores Score(const Answers& answers) const override {
    Scores scores = Boolq::Score(answers);
    if (kMistake == Mistake::kMetric) {
      scores.metrics.front().first = "acuracy";
    }
    return scores;
  }
};

// Expects an exception that says so of a record without an answer.
template <Mistake kMistake>
void ExpectMistake(const std::string& message) {
  const auto task = MakeBoolq<Mistaken<kMistake>>();
  EXPECT_THAT(
      [&] { static_cast<void>(task->MakeExamples(Lines()[2], "dev.jsonl")); },
      ThrowsMessage<c10::Error>(HasSubstr("dev.jsonl: boolq: " + message)));
}

TEST(BoolqMistakesTest, AreFoundInExamples) {
  ExpectMistake<Mistake::kThrows>("no such key");
  ExpectMistake<Mistake::kNull>("MakeExamples gives a null example");
  ExpectMistake<Mistake::kTwoExamples>(
      "NumExamples should be 2, as many as MakeExamples gives, but is 1");
  ExpectMistake<Mistake::kAnswer>(
      "has_answer of an example should be false, as GoldOf says of the record");
}

TEST(BoolqMistakesTest, AreFoundInScores) {
  const auto task = MakeBoolq<Mistaken<Mistake::kMetric>>();
  const auto predictions = task->MakePredictions();
  predictions->Add(BatchOf(*task, 1), {torch::tensor({{0.F, 1.F}})});
  EXPECT_THAT(
      [&] { static_cast<void>(predictions->Score()); },
      ThrowsMessage<c10::Error>(HasSubstr(
          "boolq: Score should give the main metric \"accuracy\", but does "
          "not")));
}

TEST(BoolqMistakesTest, AreFoundInTheLogitsOfAHead) {
  const auto task = MakeBoolq();
  EXPECT_THAT(
      [&] {
        task->MakePredictions()->Add(BatchOf(*task, 1),
                                     {torch::tensor({{0.F}})});
      },
      ThrowsMessage<c10::Error>(
          HasSubstr("boolq: record 0: logit 1 of a row of 1")));
}

}  // namespace
}  // namespace etc
