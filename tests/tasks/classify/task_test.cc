// The classifier from a line of JSON to its scores: the layout of examples,
// what is cut, labels and options that make no sense, gold labels fed back,
// scores computed by hand, and gradients that reach every parameter.

#include "tasks/classify/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tasks/typed_task.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/text/word_tokenizer.h"

namespace etc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

// [CLS] is 10, [SEP] 11, the words from 12 on.
std::shared_ptr<const Tokenizer> Words() {
  return std::make_shared<WordTokenizer>(
      std::vector<std::string>{"[CLS]", "[SEP]", "a", "b", "c", "d"});
}

EtcConfig SmallConfig() {
  EtcConfig config;
  config.vocab_size = 20;
  config.hidden_size = 6;
  config.num_attention_heads = 2;
  return config;
}

const nlohmann::json kLabels = {{"labels", {"no", "yes", "maybe"}}};

absl::StatusOr<std::unique_ptr<RecordTask>> MakeClassify(
    const nlohmann::json& options = kLabels, int64_t max_long_length = 4096,
    std::shared_ptr<const Tokenizer> tokenizer = Words()) {
  return MakeTask<Classify>(
      options, "f.json: classify",
      {.model = SmallConfig(), .max_long_length = max_long_length},
      std::move(tokenizer));
}

// The example of a line.
std::shared_ptr<const Example> ExampleOf(const std::string& line,
                                         int64_t max_long_length = 4096) {
  const auto task = MakeClassify(kLabels, max_long_length);
  const auto examples = (*task)->MakeExamples(line, "f: record 3");
  EXPECT_TRUE(examples.ok()) << examples.status();
  return examples->front();
}

TEST(ClassifyExampleTest, HasTextsBetweenMarksAndOneGlobalToken) {
  const auto pair =
      ExampleOf(R"({"text": "a b", "text_b": "c", "label": "yes"})");
  EXPECT_EQ(pair->record_id, "3");
  EXPECT_THAT(pair->long_token_ids, ElementsAre(10, 12, 13, 11, 14, 11));
  EXPECT_THAT(pair->long_type_ids, ElementsAre(1, 1, 1, 1, 2, 2));
  EXPECT_THAT(pair->global_token_ids, ElementsAre(1));
  EXPECT_THAT(pair->global_type_ids, ElementsAre(0));
  EXPECT_THAT(pair->pattern.sentence, ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_EQ(ExampleAs<ClassifyExample>(*pair).label, 1);

  const auto one = ExampleOf(R"({"id": "x", "text": "a"})");
  EXPECT_EQ(one->record_id, "x");
  EXPECT_THAT(one->long_token_ids, ElementsAre(10, 12, 11));
  EXPECT_FALSE(one->has_answer);
}

TEST(ClassifyExampleTest, HasOtherMarksWhereThereIsNoCls) {
  const auto task =
      MakeClassify(kLabels, 64,
                   std::make_shared<WordTokenizer>(std::vector<std::string>{
                       "<unused_2>", "<unused_63>", "a"}));
  ASSERT_TRUE(task.ok()) << task.status();
  const auto examples =
      (*task)->MakeExamples(R"({"text": "a"})", "f: record 0");
  ASSERT_TRUE(examples.ok()) << examples.status();
  EXPECT_THAT(examples->front()->long_token_ids, ElementsAre(11, 12, 10));
}

TEST(ClassifyExampleTest, CutsTheLongerText) {
  const std::string line = R"({"text": "a b c", "text_b": "d d"})";
  EXPECT_THAT(ExampleOf(line, 6)->long_token_ids,
              ElementsAre(10, 12, 13, 11, 15, 11));
  EXPECT_THAT(ExampleOf(line, 3)->long_token_ids, ElementsAre(10, 11, 11));
  EXPECT_EQ(ExampleAs<ClassifyExample>(*ExampleOf(line, 6)).dropped_pieces, 2);
}

std::string Message(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(ClassifyTaskTest, RefusesWhatMakesNoSense) {
  EXPECT_THAT(Message(MakeClassify(nlohmann::json::object()).status()),
              HasSubstr("classify.labels is missing"));
  for (const auto& labels : {nlohmann::json{"one"}, {"two", "two"}}) {
    EXPECT_THAT(Message(MakeClassify({{"labels", labels}}).status()),
                HasSubstr("classify.labels should name at least two labels"));
  }
  EXPECT_THAT(Message(MakeClassify(kLabels, 2).status()),
              HasSubstr("max_long_length should be at least 3"));
  EXPECT_THAT(
      Message(MakeClassify(kLabels, 64,
                           std::make_shared<WordTokenizer>(
                               std::vector<std::string>{"[CLS]", "a"}))
                  .status()),
      HasSubstr("f.json: classify: the vocabulary should have the pieces"));
  const auto task = MakeClassify();
  for (const auto& [line, words] :
       {std::pair(R"({"label": "yes"})", "f: record 3.text is missing"),
        std::pair(R"({"text": "a", "label": "often"})",
                  "f: record 3.label should be one of no, yes, maybe, but is "
                  "often")}) {
    EXPECT_THAT(Message((*task)->MakeExamples(line, "f: record 3").status()),
                HasSubstr(words));
  }
}

TEST(ClassifyTaskTest, DescribesAnExampleForPeople) {
  const auto task = MakeClassify();
  EXPECT_EQ((*task)->Describe(*ExampleOf(R"({"text": "a", "label": "no"})")),
            R"(record 3
label: no
3 long tokens, 1 global token; nothing truncated
local radius 84, soft g2l mask, soft l2g mask

global  owns         sees         tokens
     0  0-2          0-2          [CLS] a [SEP]
)");
}

TEST(ClassifyTaskTest, ScoresGoldFedBackWithOneInTrainingAndByFile) {
  const auto task = MakeClassify();
  TemporaryDirectory directory;
  const std::string gold = directory.Write(
      "gold.jsonl",
      "{\"text\": \"a\", \"label\": \"yes\"}\n{\"text\": \"b\", \"label\": "
      "\"no\"}\n");
  std::vector<std::shared_ptr<const Example>> examples;
  for (const char* line : {R"({"text": "a", "label": "yes"})",
                           R"({"text": "b", "label": "no"})"}) {
    const std::string where =
        "gold.jsonl: record " + std::to_string(examples.size());
    examples.push_back((*task)->MakeExamples(line, where)->front());
  }
  const auto predictions = (*task)->MakePredictions();
  predictions->Add(MakeBatch(examples),
                   {torch::tensor({{0.F, 2.F, 1.F}, {1.F, 0.F, 1.F}})});
  EXPECT_EQ(predictions->FileContents(),
            "{\"id\":\"0\",\"label\":\"yes\"}\n{\"id\":\"1\",\"label\":\"no\"}"
            "\n");
  const auto scores = ScoreFiles<Classify>(
      {.gold = gold,
       .predictions = directory.Write("p.jsonl", predictions->FileContents())});
  ASSERT_TRUE(scores.ok()) << scores.status();
  EXPECT_THAT(*scores,
              ElementsAre(Pair("accuracy", 1.0), Pair("macro_f1", 1.0)));
  EXPECT_EQ(predictions->Score(), *scores);
}

TEST(ClassifyTaskTest, HasNoScoreWithoutLabels) {
  const auto task = MakeClassify();
  const auto predictions = (*task)->MakePredictions();
  predictions->Add(MakeBatch({ExampleOf(R"({"text": "a"})")}),
                   {torch::zeros({1, 3})});
  EXPECT_THAT(predictions->Score(), IsEmpty());
}

TEST(ClassifyScoreTest, IsTheMeanOverLabels) {
  // no: P 1/2, R 1, F1 2/3; yes: P 1, R 1/2, F1 2/3; maybe: only predicted, 0.
  const Scores scores = Classify::Score({.gold = {{"1", "no"},
                                                  {"2", "yes"},
                                                  {"3", "yes"},
                                                  {"4", "yes"},
                                                  {"5", "yes"}},
                                         .predictions = {{"1", "no"},
                                                         {"2", "no"},
                                                         {"3", "yes"},
                                                         {"4", "yes"},
                                                         {"5", "maybe"}}});
  EXPECT_THAT(scores.metrics,
              ElementsAre(Pair("accuracy", 0.6),
                          Pair("macro_f1", testing::DoubleEq(4.0 / 9))));
}

TEST(ClassifyScoreTest, CountsTheLastOfSeveralPredictions) {
  const Scores scores = Classify::Score(
      {.gold = {{"1", "no"}}, .predictions = {{"1", "yes"}, {"1", "no"}}});
  EXPECT_THAT(scores.metrics,
              ElementsAre(Pair("accuracy", 1.0), Pair("macro_f1", 1.0)));
}

TEST(ClassifyScoreTest, RefusesFilesOfOtherRecords) {
  TemporaryDirectory directory;
  const std::string gold =
      directory.Write("gold.jsonl", R"({"id":"x","text":"","label":"no"})");
  const auto message = [&](const std::string& predictions) {
    return Message(ScoreFiles<Classify>(
                       {.gold = gold,
                        .predictions = directory.Write("p.jsonl", predictions)})
                       .status());
  };
  EXPECT_THAT(message(R"({"id":"y","label":"no"})"),
              HasSubstr("should have a line for each document of"));
  EXPECT_THAT(message(R"({"id":"x"})"),
              HasSubstr("p.jsonl: record 0.label is missing"));
  directory.Write("gold.jsonl", R"({"id":"x","text":""})");
  EXPECT_THAT(message(R"({"id":"x","label":"no"})"),
              HasSubstr("gold.jsonl: record 0.label is missing"));
}

TEST(ClassifyHeadTest, TrainsEveryParameterByTheGlobalToken) {
  torch::manual_seed(1);
  const auto task = MakeClassify();
  const auto head = std::dynamic_pointer_cast<OutputHead>((*task)->MakeHead());
  ASSERT_NE(head, nullptr);
  const Batch batch = MakeBatch({ExampleOf(R"({"text":"a","label":"yes"})"),
                                 ExampleOf(R"({"text":"b","label":"no"})")});
  EtcOutput encoded;
  encoded.global_output = torch::randn({2, 1, 6}).requires_grad_();
  const auto logits = head->forward(encoded, batch);
  ASSERT_EQ(logits.at(0).sizes(), torch::IntArrayRef({2, 3}));
  const torch::Tensor losses = head->Losses(logits, batch);
  const torch::Tensor log_probabilities = logits[0].log_softmax(-1);
  EXPECT_NEAR(losses[0].item<double>(), -log_probabilities[0][1].item<double>(),
              1e-6);
  EXPECT_NEAR(losses[1].item<double>(), -log_probabilities[1][0].item<double>(),
              1e-6);
  losses.sum().backward();
  for (const auto& parameter : head->named_parameters()) {
    EXPECT_GT(parameter.value().grad().abs().sum().item<double>(), 0)
        << parameter.key();
  }
  EXPECT_GT(encoded.global_output.grad().abs().sum().item<double>(), 0);
}

}  // namespace
}  // namespace etc
