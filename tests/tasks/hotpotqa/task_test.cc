// HotpotQA behind the Task seam, on real questions with BERT's vocabulary where
// they are at hand: every record becomes an example; gold targets fed back
// through predictions score 1.0 in training and by file alike, by the default
// and by the official rules; a model with random weights goes the whole way.
// The official rules forbid 1.0 where an answer is part of a word ("Japan" of
// "Japanese", doc/hotpotqa.md 2.2): that is a test of its own. Options are read
// strictly.

#include "tasks/hotpotqa/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "etc/model.h"
#include "nlohmann/json.hpp"
#include "tasks/hotpotqa/task.h"
#include "tasks/task/benchmark_task.h"
#include "tasks/task/score_files.h"
#include "tasks/text/load_tokenizer.h"
#include "tests/support/sample_examples.h"
#include "tests/support/shared_data.h"
#include "tests/support/task_config.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/hotpotqa/spec_record.h"

namespace etc {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSubsetOf;

EtcConfig BertConfig() {
  EtcConfig config;
  config.vocab_size = 30522;
  config.use_hard_g2l_mask = true;
  return config;
}

RunConfig ConfigOf(const nlohmann::json& options,
                   const EtcConfig& model = BertConfig()) {
  return TaskConfig(model, options, {.max_global_length = 256});
}

absl::StatusOr<std::unique_ptr<RecordTask>> MakeSpecTask(
    const nlohmann::json& options, const EtcConfig& model = BertConfig()) {
  return MakeTask<Hotpotqa>(
      MakeHotpotqaHead, ConfigOf(options, model),
      std::make_shared<WordTokenizer>(HotpotqaSpecTokenizer()));
}

std::string Message(const absl::StatusOr<std::unique_ptr<RecordTask>>& task) {
  EXPECT_EQ(task.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(task.status().message());
}

TEST(HotpotqaTaskTest, HasNoTextsInTypeAndLevel) {
  EXPECT_THAT(Hotpotqa().AnswerTextFields(),
              testing::ElementsAre("answer", "supporting_facts"));
  // Predicting looks at neither all the same.
  EXPECT_THAT(Hotpotqa().AnswerFields(),
              testing::IsSupersetOf({"type", "level"}));
}

TEST(HotpotqaOptionsTest, ReadEveryField) {
  const auto options =
      ReadTaskOptions<Hotpotqa>({{"answer_encoding", "bio"},
                                 {"supporting_fact_threshold", 0.3},
                                 {"search_threshold", true},
                                 {"max_answer_length", 7},
                                 {"flat_sequence", true},
                                 {"official_compatibility", true}},
                                "f.json: hotpotqa");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->answer_encoding, HotpotqaAnswerEncoding::kBio);
  EXPECT_EQ(options->supporting_fact_threshold, 0.3);
  EXPECT_TRUE(options->search_threshold);
  EXPECT_EQ(options->max_answer_length, 7);
  EXPECT_TRUE(options->flat_sequence);
  EXPECT_TRUE(options->official_compatibility);
}

// doc/hotpotqa.md 9
TEST(HotpotqaOptionsTest, DefaultToSoundRulesAndOfficialNumbers) {
  const auto options =
      ReadTaskOptions<Hotpotqa>(nlohmann::json::object(), "f.json: hotpotqa");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->answer_encoding, HotpotqaAnswerEncoding::kSpan);
  EXPECT_EQ(options->supporting_fact_threshold, 0.5);
  EXPECT_EQ(options->max_answer_length, 30);
  EXPECT_FALSE(options->search_threshold);
  EXPECT_FALSE(options->official_compatibility);
}

TEST(MakeHotpotqaTaskTest, RefusesOptionsThatMakeNoSense) {
  EXPECT_THAT(Message(MakeSpecTask({{"answer_encodin", "bio"}})),
              HasSubstr("did you mean \"answer_encoding\"?"));
  EXPECT_THAT(Message(MakeSpecTask({{"answer_encoding", "words"}})),
              HasSubstr("should be \"span\" or \"bio\", but is \"words\""));
  EXPECT_THAT(
      Message(MakeSpecTask({{"supporting_fact_threshold", 1.5}})),
      HasSubstr("hotpotqa.supporting_fact_threshold should be in [0, 1]"));
  EXPECT_THAT(Message(MakeSpecTask({{"max_answer_length", 0}})),
              HasSubstr("max_answer_length should be at least 1"));
}

TEST(MakeHotpotqaTaskTest, RefusesTablesThatAreTooSmall) {
  EtcConfig config = BertConfig();
  config.vocab_size = 101;
  EXPECT_THAT(Message(MakeSpecTask(nlohmann::json::object(), config)),
              HasSubstr("vocab_size should be at least 102"));
  config = BertConfig();
  config.segment_vocab_size = 3;
  EXPECT_THAT(Message(MakeSpecTask(nlohmann::json::object(), config)),
              HasSubstr("segment_vocab_size should be at least 4"));
}

TEST(HotpotqaTaskTest, PassesOnWhereARecordIsWrong) {
  const auto task = MakeSpecTask(nlohmann::json::object());
  ASSERT_TRUE(task.ok()) << task.status();
  EXPECT_THAT(
      (*task)->MakeExamples("{}", "dev.json: record 3").status().message(),
      HasSubstr("dev.json: record 3"));
}

TEST(HotpotqaTaskTest, DescribesAnExampleForPeople) {
  EtcConfig config = BertConfig();
  config.local_radius = 3;
  const auto task = MakeSpecTask(nlohmann::json::object(), config);
  ASSERT_TRUE(task.ok()) << task.status();
  const auto examples = (*task)->MakeExamples(kHotpotqaSpecJson, "here");
  ASSERT_TRUE(examples.ok()) << examples.status();
  EXPECT_EQ((*task)->Describe(*examples->front()),
            R"(question hp1: Who founded Acme?
answer: Jane Roe (a span) at 5-6 "Jane Roe", 22-23 "Jane Roe"
29 long tokens, 15 global tokens; 3 paragraphs; nothing left out
local radius 3, hard g2l mask, soft l2g mask

global kind          owns         sees         tokens
     0 [CLS]         none         0-28

     1 question      1            1            who
     2 question      2            2            founded
     3 question      3            3            acme
     4 question      4            4            ?

     5 paragraph   * 5-16         5-16
     6 title       * 5-6          5-6          [ jane roe ]
     7 sentence 0    7-12         7-12         jane roe is a writer .
     8 sentence 1  * 13-16        13-16        she founded acme .

     9 paragraph   * 17-24        17-24
    10 title       * 17           17           acme
    11 sentence 0  * 18-24        18-24        acme was started by [ jane roe ] .

    12 paragraph     25-28        25-28
    13 title         25           25           other
    14 sentence 0    26-28        26-28        nothing here .
)");
}

TEST(HotpotqaTaskTest, DescribesTheQuestionsThatTrainingLeavesOut) {
  const nlohmann::json record = nlohmann::json::parse(kHotpotqaSpecJson);
  nlohmann::json records = {record, record, record, record, record};
  records[1]["answer"] = "jane roe";  // case counts
  records[2]["answer"] = "Yes";
  records[3]["supporting_facts"][0][0] = "elsewhere";
  records[3]["supporting_facts"][1][0] = "elsewhere";
  records[4]["answer"] = "yes";
  const auto task = MakeSpecTask(nlohmann::json::object());
  ASSERT_TRUE(task.ok()) << task.status();
  TemporaryDirectory directory;
  const auto source =
      (*task)->Open({.patterns = {directory.Write("t.json", records.dump())},
                     .use = RecordUse::kTraining});
  ASSERT_TRUE(source.ok()) << source.status();
  const auto line = [&](int64_t at, const char* reason) {
    return absl::StrCat("1 of 5 training records is left out, ",
                        (*source)->Where(at), ": ", reason);
  };
  EXPECT_THAT(
      (*task)->DescribeData(**source, **source)->warnings,
      testing::ElementsAre(
          line(3, "no supporting fact is in the input"),
          line(1, "the answer is in no supporting sentence"),
          line(2,
               "the answer is in no supporting sentence; yes and no should "
               "be lower case")));
}

// Logits that say what the targets say.
std::vector<torch::Tensor> GoldLogits(const Batch& batch) {
  torch::Tensor facts =
      torch::full(batch.input.global_token_ids.sizes(), -10.0F);
  torch::Tensor type = torch::zeros({batch.size(), 3});
  torch::Tensor begin = torch::zeros(batch.input.token_ids.sizes());
  torch::Tensor end = torch::zeros(batch.input.token_ids.sizes());
  for (int64_t b = 0; b < batch.size(); ++b) {
    const auto& example = dynamic_cast<const HotpotqaExample&>(
        *batch.examples[static_cast<size_t>(b)]);
    for (int64_t g = 0; g < example.global_length(); ++g) {
      if (example.supporting_facts[static_cast<size_t>(g)] != 0) {
        facts[b][g] = 10;
      }
    }
    type[b][static_cast<int64_t>(example.answer_type)] = 10;
    begin[b][example.target_span().first] = 10;
    end[b][example.target_span().last] = 10;
  }
  return {facts, type, torch::stack({begin, end}, 1)};
}

// doc/hotpotqa.md 7
TEST(HotpotqaPredictionsTest, SearchTheThresholdOnDemand) {
  const auto task = MakeSpecTask({{"search_threshold", true}});
  ASSERT_TRUE(task.ok()) << task.status();
  const auto examples = (*task)->MakeExamples(kHotpotqaSpecJson, "here");
  ASSERT_TRUE(examples.ok()) << examples.status();
  const Batch batch = MakeBatch(*examples);
  std::vector<torch::Tensor> logits = GoldLogits(batch);
  logits[0][0][8] = -1.1;  // the second fact at 0.25
  const auto predictions = (*task)->MakePredictions();
  predictions->Add(batch, logits);
  const Metrics metrics = predictions->Score();
  const std::map<std::string, double> scores(metrics.begin(), metrics.end());
  EXPECT_EQ(scores.at("joint_f1"), 1.0);
  EXPECT_EQ(scores.at("threshold"), 0.1);  // the first of 0.1 and 0.2
  EXPECT_THAT(predictions->FileContents(), HasSubstr("\"Jane Roe\",1"));
}

// Predictions of new questions are made at the fixed threshold.
TEST(HotpotqaPredictionsTest, SayThatTheThresholdFoundIsNotThatOfPredict) {
  const auto remark = [](const nlohmann::json& options, float logit) {
    const auto task = MakeSpecTask(options);
    const auto examples = (*task)->MakeExamples(kHotpotqaSpecJson, "here");
    const Batch batch = MakeBatch(*examples);
    std::vector<torch::Tensor> logits = GoldLogits(batch);
    logits[0][0][8] = logit;
    const auto predictions = (*task)->MakePredictions();
    predictions->Add(batch, logits);
    return predictions->Remark();
  };
  const float quarter = -1.1F;  // the second fact at 0.25
  EXPECT_EQ(remark({{"search_threshold", true}}, quarter),
            "the scores are those of threshold 0.1; predict takes 0.5, which "
            "has joint_f1 0.6667, unless --set "
            "hotpotqa.supporting_fact_threshold=0.1");
  // Another threshold with the same score.
  EXPECT_EQ(remark({{"search_threshold", true}}, 10), "");
  EXPECT_EQ(
      remark({{"search_threshold", true}, {"supporting_fact_threshold", 0.2}},
             quarter),
      "");
  EXPECT_EQ(remark(nlohmann::json::object(), quarter), "");
}

TEST(HotpotqaTaskTest, WarnsThatPredictDoesNotSearchTheThreshold) {
  const auto warnings = [](const HotpotqaOptions& options) {
    return Hotpotqa(options).Warnings();
  };
  EXPECT_THAT(warnings({}), IsEmpty());
  EXPECT_THAT(
      warnings({.search_threshold = true}),
      testing::ElementsAre(HasSubstr("takes supporting_fact_threshold, 0.5")));
  EXPECT_THAT(
      warnings({.supporting_fact_threshold = 0.3, .search_threshold = true}),
      IsEmpty());
}

TEST(HotpotqaPredictionsTest, HaveNoScoreWithoutAnswers) {
  const auto task = MakeSpecTask(nlohmann::json::object());
  ASSERT_TRUE(task.ok()) << task.status();
  nlohmann::json record = nlohmann::json::parse(kHotpotqaSpecJson);
  record.erase("answer");
  record.erase("supporting_facts");
  const auto examples = (*task)->MakeExamples(record.dump(), "here");
  ASSERT_TRUE(examples.ok()) << examples.status();
  const Batch batch = MakeBatch(*examples);
  const auto predictions = (*task)->MakePredictions();
  predictions->Add(batch, GoldLogits(batch));
  EXPECT_THAT(predictions->Score(), IsEmpty());
  EXPECT_EQ(predictions->FileContents(),
            "{\"answer\":{\"hp1\":\".\"},\"sp\":{\"hp1\":[]}}\n");
}

TEST(HotpotqaPredictionsTest, CannotScoreOneForAnAnswerWithinAWord) {
  const auto task = MakeSpecTask(nlohmann::json::object());
  ASSERT_TRUE(task.ok()) << task.status();
  nlohmann::json record = nlohmann::json::parse(kHotpotqaSpecJson);
  record["answer"] = "start";  // of "started"
  const auto examples = (*task)->MakeExamples(record.dump(), "here");
  ASSERT_TRUE(examples.ok()) << examples.status();
  const Batch batch = MakeBatch(*examples);
  const auto predictions = (*task)->MakePredictions();
  predictions->Add(batch, GoldLogits(batch));
  const Metrics metrics = predictions->Score();
  const std::map<std::string, double> scores(metrics.begin(), metrics.end());
  EXPECT_EQ(scores.at("sp_em"), 1.0);
  EXPECT_EQ(scores.at("em"), 0.0);
  EXPECT_THAT(predictions->FileContents(), HasSubstr("\"started\""));
}

struct RealData {
  std::string file;
  std::string vocabulary;
  bool official_compatibility = false;
};

class HotpotqaRealDataTest : public testing::TestWithParam<RealData> {
 protected:
  void SetUp() override {
    ETC_SHARED_DATA_OR_SKIP(
        path_, absl::StrCat("data/hotpotqa/", GetParam().file, ".sample.json"));
    ETC_SHARED_DATA_OR_SKIP(const std::string vocabulary,
                            absl::StrCat("data/vocab/", GetParam().vocabulary));
    ETC_SKIP_IF_TOKENIZER_IS_REFUSED(vocabulary);
    auto tokenizer = LoadTokenizer(vocabulary);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    RunConfig config = ConfigOf(
        {{"official_compatibility", GetParam().official_compatibility}});
    config.tokenizer.type =
        IsWordPiece(vocabulary) ? "wordpiece" : "sentencepiece";
    auto task =
        MakeTask<Hotpotqa>(MakeHotpotqaHead, config, *std::move(tokenizer));
    ASSERT_TRUE(task.ok()) << task.status();
    task_ = *std::move(task);
    examples_ = ReadExamples(*task_, path_);
  }

  std::string path_;
  std::unique_ptr<RecordTask> task_;
  std::vector<std::shared_ptr<const Example>> examples_;
};

TEST_P(HotpotqaRealDataTest, ScoresOneForGoldFedBack) {
  const auto predictions = task_->MakePredictions();
  for (const auto& example : examples_) {
    EXPECT_EQ(example->left_out, "") << example->record_id;
    const Batch batch = MakeBatch({example});
    const std::vector<torch::Tensor> logits = GoldLogits(batch);
    const auto one = task_->MakePredictions();
    one->Add(batch, logits);
    for (const auto& [name, value] : one->Score()) {
      EXPECT_DOUBLE_EQ(value, 1.0) << example->record_id << " " << name;
    }
    predictions->Add(batch, logits);
  }
  TemporaryDirectory directory;
  const auto score = ScoreFiles(
      Hotpotqa(),
      {.gold = path_,
       .predictions = directory.Write("p.json", predictions->FileContents())});
  ASSERT_TRUE(score.ok()) << score.status();
  EXPECT_THAT(predictions->Score(), IsSubsetOf(*score));
}

TEST_P(HotpotqaRealDataTest, FitsIntoTheModelAsTheSpecSays) {
  for (const auto& example : examples_) {
    const auto& hotpotqa = dynamic_cast<const HotpotqaExample&>(*example);
    EXPECT_EQ(hotpotqa.dropped_texts, 0) << example->record_id;
    EXPECT_LE(example->long_length(), 4096);
    EXPECT_LE(example->global_length(), 256);
    EXPECT_GE(hotpotqa.record->context.size(), 2u);
    // Every piece of text can be given back.
    for (int64_t i = 0; i < example->long_length(); ++i) {
      const int32_t g = example->pattern.sentence[static_cast<size_t>(i)];
      if (g < 0) {
        continue;
      }
      const ByteRange bytes = hotpotqa.long_bytes[static_cast<size_t>(i)];
      const auto size = static_cast<int64_t>(
          hotpotqa.global_paragraph_ids[static_cast<size_t>(g)] < 0
              ? hotpotqa.record->question.size()
              : hotpotqa.TextOf(g).size());
      EXPECT_TRUE(0 <= bytes.begin && bytes.begin <= bytes.end &&
                  bytes.end <= size)
          << example->record_id << " token " << i;
    }
  }
}

TEST_P(HotpotqaRealDataTest, GoesThroughAModelWithRandomWeights) {
  const torch::NoGradGuard no_grad;
  EtcConfig config = BertConfig();
  config.hidden_size = 8;
  config.num_hidden_layers = 1;
  config.num_attention_heads = 2;
  config.intermediate_size = 8;
  torch::manual_seed(5);
  EtcModel model(config);
  const auto head = MakeHotpotqaHead(
      config, {.official_compatibility = GetParam().official_compatibility});
  const auto predictions = task_->MakePredictions();
  for (const auto& example : examples_) {
    const Batch batch = MakeBatch({example});
    const std::vector<torch::Tensor> logits =
        head->forward(model(batch.input), batch);
    EXPECT_TRUE(head->Losses(logits, batch).isfinite().all().item<bool>());
    predictions->Add(batch, logits);
  }
  TemporaryDirectory directory;
  const auto score = ScoreFiles(
      Hotpotqa(),
      {.gold = path_,
       .predictions = directory.Write("p.json", predictions->FileContents())});
  ASSERT_TRUE(score.ok()) << score.status();
  EXPECT_THAT(predictions->Score(), IsSubsetOf(*score));
}

constexpr const char* kBert = "bert-uncased/vocab.txt";
constexpr const char* kAlbert = "sentencepiece/albert_spiece.model";
INSTANTIATE_TEST_SUITE_P(
    Samples, HotpotqaRealDataTest,
    testing::Values(RealData{"hotpot_dev_distractor_v1", kBert},
                    RealData{"hotpot_train_v1.1", kBert},
                    RealData{"hotpot_train_v1.1", kBert, true},
                    RealData{"hotpot_dev_distractor_v1", kBert, true},
                    RealData{"hotpot_train_v1.1", kAlbert},
                    RealData{"hotpot_train_v1.1", kAlbert, true}));

}  // namespace
}  // namespace etc
