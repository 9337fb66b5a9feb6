// OpenKP behind the Task seam, on real documents with BERT's and ALBERT's
// vocabularies where they are at hand: every record becomes an example, gold
// key phrases fed back through predictions give all recall there is, in
// training and by file alike, and a model with random weights goes the whole
// way. The official rules forbid F1@k = 1.0 unless a document has exactly k key
// phrases (doc/openkp.md 8.1: the divisor is k), and any recall of phrases of
// more than 5 words or across elements (doc/openkp.md 3.4, trap 9); the bundled
// sample has three key phrases everywhere and scores 1.0. Options are read
// strictly.

#include "tasks/openkp/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tasks/task/benchmark_task.h"
#include "tasks/task/score_files.h"
#include "tasks/text/load_tokenizer.h"
#include "tasks/train/task_model.h"
#include "tests/support/sample_examples.h"
#include "tests/support/shared_data.h"
#include "tests/support/task_config.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/openkp/spec_record.h"

namespace etc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
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

absl::StatusOr<std::unique_ptr<RecordTask>> MakeTask(
    const Json& options, EtcConfig config = SmallConfig(),
    std::shared_ptr<const Tokenizer> tokenizer = OpenkpSpecTokenizer()) {
  return etc::MakeTask<Openkp>(MakeOpenkpHead, TaskConfig(config, options),
                               std::move(tokenizer));
}

std::string Message(const absl::StatusOr<std::unique_ptr<RecordTask>>& task) {
  EXPECT_EQ(task.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(task.status().message());
}

TEST(OpenkpOptionsTest, DefaultToTheOfficialNumbers) {  // doc/openkp.md 9.2
  const auto options =
      ReadTaskOptions<Openkp>(Json::object(), "f.json: openkp");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->additive_smoothing_mass, 1e-4);
  EXPECT_TRUE(options->use_visual_features_in_long);
  EXPECT_TRUE(options->use_visual_features_in_global);
  EXPECT_EQ(options->visual.extra_dense_layers, 1);
  EXPECT_EQ(options->visual.features.x.min, -50);
  EXPECT_EQ(options->visual.features.height.max, 18000);
  EXPECT_THAT(options->visual.features.crossed_indicators,
              ElementsAre("block", "heading", "bold"));
  EXPECT_EQ(options->max_phrases, 5);
  EXPECT_EQ(options->max_positions, 100);
  EXPECT_EQ(options->fixed_block_length, 0);
  EXPECT_FALSE(options->official_compatibility);
}

TEST(OpenkpOptionsTest, ReadEveryField) {
  const auto options =
      ReadTaskOptions<Openkp>({{"additive_smoothing_mass", 0.5},
                               {"use_visual_features_in_long", false},
                               {"use_visual_features_in_global", false},
                               {"extra_dense_feature_layers", 0},
                               {"x_range", {0, 10}},
                               {"y_range", {1, 10}},
                               {"width_range", {2, 10}},
                               {"height_range", {3, 10}},
                               {"indicators_to_cross", {"leaf", "parent_bold"}},
                               {"max_kp_predictions", 3},
                               {"max_position_predictions", 50},
                               {"fixed_block_length", 7},
                               {"official_compatibility", true}},
                              "f.json: openkp");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->additive_smoothing_mass, 0.5);
  EXPECT_EQ(options->visual.extra_dense_layers, 0);
  EXPECT_EQ(options->visual.features.y.min, 1);
  EXPECT_EQ(options->visual.features.width.min, 2);
  EXPECT_EQ(options->visual.features.height.min, 3);
  EXPECT_THAT(options->visual.features.crossed_indicators,
              ElementsAre("leaf", "parent_bold"));
  EXPECT_EQ(options->max_phrases, 3);
  EXPECT_EQ(options->max_positions, 50);
  EXPECT_EQ(options->fixed_block_length, 7);
  EXPECT_TRUE(options->official_compatibility);
}

TEST(OpenkpOptionsTest, ReadNumbersAndASingleName) {
  const auto options = ReadTaskOptions<Openkp>(
      {{"x_range", {-50.5, 1500}}, {"indicators_to_cross", "leaf"}},
      "f.json: openkp");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->visual.features.x.min, -50.5);
  EXPECT_EQ(options->visual.features.x.max, 1500);
  EXPECT_THAT(options->visual.features.crossed_indicators, ElementsAre("leaf"));
}

TEST(MakeOpenkpTaskTest, RefusesWhatMakesNoSense) {
  EXPECT_THAT(Message(MakeTask({{"x_rang", {0, 1}}})),
              HasSubstr("did you mean \"x_range\"?"));
  // doc/openkp.md 10.7
  for (const Json& range : {Json{10, 5}, Json{10, 10}, Json{1}}) {
    EXPECT_THAT(Message(MakeTask({{"y_range", range}})),
                HasSubstr("openkp.y_range should be [minimum, maximum]"));
  }
  EXPECT_THAT(Message(MakeTask({{"extra_dense_feature_layers", 2}})),
              HasSubstr("should be at most 1, but is 2"));
  EXPECT_THAT(Message(MakeTask({{"indicators_to_cross", {"bold", "bold"}}})),
              HasSubstr("but has bold twice"));
  EXPECT_THAT(Message(MakeTask({{"indicators_to_cross", {"fat"}}})),
              HasSubstr("\"parent_bold\", but is \"fat\""));
  EXPECT_THAT(Message(MakeTask({{"max_kp_predictions", 0}})),
              HasSubstr("should be at least 1"));
  for (const char* count : {"max_kp_predictions", "max_position_predictions",
                            "fixed_block_length"}) {
    EXPECT_THAT(Message(MakeTask({{count, INT64_MAX}})),
                HasSubstr(absl::StrCat("openkp.", count,
                                       " should be at most 2147483647, but is "
                                       "9223372036854775807")));
  }
  EXPECT_THAT(Message(MakeTask({{"additive_smoothing_mass", -1}})),
              HasSubstr("should be at least 0, but is -1"));
  EXPECT_THAT(Message(MakeTask({{"fixed_block_length", 4}})),
              HasSubstr("use_visual_features_in_long"));
  EtcConfig config = SmallConfig();
  config.vocab_size = 22;
  EXPECT_THAT(Message(MakeTask(Json::object(), config)),
              HasSubstr("vocab_size should be at least 23"));
  config = SmallConfig();
  config.segment_vocab_size = 1;
  EXPECT_THAT(Message(MakeTask(Json::object(), config)),
              HasSubstr("segment_vocab_size should be at least 2"));
}

TEST(OpenkpTaskTest, PassesOnWhereARecordIsWrong) {
  EXPECT_THAT(std::string((*MakeTask(Json::object()))
                              ->MakeExamples("{}", "dev.jsonl: record 3")
                              .status()
                              .message()),
              HasSubstr("dev.jsonl: record 3"));
}

// Logits that say what the labels say.
std::vector<torch::Tensor> GoldLogits(const Batch& batch) {
  int64_t words = kOpenkpMaxPhraseLength;
  for (const auto& example : batch.examples) {
    words =
        std::max(words, dynamic_cast<const OpenkpExample&>(*example).num_words);
  }
  torch::Tensor logits = torch::zeros({batch.size(), 5, words});
  for (int64_t b = 0; b < batch.size(); ++b) {
    for (const PhrasePosition& label :
         dynamic_cast<const OpenkpExample&>(
             *batch.examples[static_cast<size_t>(b)])
             .labels) {
      if (label.length <= kOpenkpMaxPhraseLength) {
        logits[b][label.length - 1][label.start] = 10;
      }
    }
  }
  return {logits};
}

std::map<std::string, double> ToMap(const Metrics& metrics) {
  return {metrics.begin(), metrics.end()};
}

TEST(OpenkpPredictionsTest, HaveNoScoreWithoutKeyPhrases) {
  const auto task = MakeTask(Json::object());
  ASSERT_TRUE(task.ok()) << task.status();
  Json json = GreenTeaJson();
  json.erase("KeyPhrases");
  const Batch batch = MakeBatch(*(*task)->MakeExamples(json.dump(), "here"));
  const auto predictions = (*task)->MakePredictions();
  predictions->Add(batch, GoldLogits(batch));
  EXPECT_THAT(predictions->Score(), IsEmpty());
  EXPECT_EQ(
      predictions->FileContents(),
      "{\"url\":\"http://x.org/tea\",\"KeyPhrases\":[[\"green\"],[\"tea\"],"
      "[\"guide\"],[\"how\"],[\"to\"]]}\n");
}

TEST(OpenkpTaskTest, SplitsPredictionsForPlainDocumentsAsTheirKeyPhrases) {
  TemporaryDirectory directory;
  const auto score = [&](const Json& gold, const Json& phrases) {
    const auto scores = ScoreFiles(
        Openkp(), {.gold = directory.Write("gold.jsonl", gold.dump() + "\n"),
                   .predictions = directory.Write(
                       "p.jsonl", Json{{"url", gold.value("url", "x")},
                                       {"KeyPhrases", phrases}}
                                          .dump() +
                                      "\n")});
    EXPECT_TRUE(scores.ok()) << scores.status();
    return ToMap(*scores);
  };
  const Json lists = Json::parse(R"([["c++"]])");
  const Json plain = {
      {"id", "x"}, {"text", "learn c++ now"}, {"KeyPhrases", lists}};
  EXPECT_EQ(score(plain, lists).at("f1@1"), 1.0);
  EXPECT_EQ(score(plain, lists).at("etc_f1@1"), 1.0);
  // Two spellings of one phrase are one prediction.
  const auto both =
      score(plain, Json::parse(R"([["C++"], ["c", "+", "+"], ["now"]])"));
  EXPECT_EQ(both.at("p@3"), 1.0 / 3);
  EXPECT_EQ(both.at("r@1"), 1.0);
  // Pages are compared as they are.
  Json page = OpenkpJson({{"learn c++ now", kBoldFeature}}, {"c++"});
  EXPECT_EQ(score(page, lists).at("f1@1"), 1.0);
  EXPECT_EQ(score(page, Json::parse(R"([["c + +"]])")).at("f1@1"), 0.0);
}

// Gold phrases of plain documents depend on them.
TEST(OpenkpTaskTest, ScoresPlainDocumentsByTheSentencesOfTheConfiguration) {
  TemporaryDirectory directory;
  const ScoredFiles files = {
      .gold = directory.Write(
          "gold.jsonl",
          R"({"id": "x", "text": "green tea", "KeyPhrases": ["green tea"]})"),
      .predictions = directory.Write(
          "p.jsonl", R"({"url": "x", "KeyPhrases": [["green tea"]]})")};
  const TaskEntry entry = BenchmarkEntry<Openkp>(MakeOpenkpHead);
  const auto scores =
      entry.score(files, ScoringRules::kDefault, Json::object(), "f.json", {});
  ASSERT_TRUE(scores.ok()) << scores.status();
  EXPECT_EQ(ToMap(scores->metrics).at("etc_r@1"), 1.0);
  EXPECT_THAT(
      std::string(entry
                      .score(files, ScoringRules::kDefault, nullptr, "f.json",
                             {.sentences = directory.File("none")})
                      .status()
                      .message()),
      HasSubstr("f.json: data.sentences: "));
}

TEST(OpenkpTest, MarksExamplesThatWereCut) {
  const std::string record = GreenTeaJson().dump();
  for (const int64_t length : {4096, 4}) {
    const auto task = etc::MakeTask<Openkp>(
        MakeOpenkpHead,
        TaskConfig(SmallConfig(), Json::object(), {.max_long_length = length}),
        OpenkpSpecTokenizer());
    ASSERT_TRUE(task.ok()) << task.status();
    const auto examples = (*task)->MakeExamples(record, "here");
    ASSERT_TRUE(examples.ok()) << examples.status();
    EXPECT_EQ(examples->front()->is_truncated, length == 4);
  }
}

// doc/openkp.md 11, trap 9
TEST(OpenkpPredictionsTest, CannotSayPhrasesOfMoreThanFiveWords) {
  const auto task = MakeTask(Json::object());
  ASSERT_TRUE(task.ok()) << task.status();
  const Batch batch = MakeBatch(*(*task)->MakeExamples(
      OpenkpJson({{"a b c d e f g", kBoldFeature}}, {"a b c d e f", "g"})
          .dump(),
      "here"));
  const auto predictions = (*task)->MakePredictions();
  predictions->Add(batch, GoldLogits(batch));
  EXPECT_EQ(ToMap(predictions->Score()).at("r@5"), 0.5);
}

TEST(OpenkpTaskTest, ShowsTheModelHowThePageLooks) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(8);
  const auto task = MakeTask(Json::object());
  ASSERT_TRUE(task.ok()) << task.status();
  TaskModel model(EtcModel(SmallConfig()), (*task)->MakeHead());
  model.SetTraining(false);
  const auto logits_of = [&](const Json& feature) {
    const auto examples = (*task)->MakeExamples(
        OpenkpJson({{"star trek", feature}}, {}).dump(), "here");
    return model.Forward(MakeBatch(*examples)).front();
  };
  EXPECT_TRUE(logits_of(kBoldFeature).equal(logits_of(kBoldFeature)));
  EXPECT_FALSE(logits_of(kBoldFeature).equal(logits_of(kLeafFeature)));
}

struct Sample {
  std::string data;  // below shared/, or of this repository
  std::string vocabulary;
  bool official_compatibility = false;
};

class OpenkpSamplesTest : public testing::TestWithParam<Sample> {
 protected:
  void SetUp() override {
    std::string vocabulary;
    if (IsBundled()) {
      path_ = absl::StrCat(ETC_SOURCE_DIR, "/", GetParam().data);
      vocabulary = absl::StrCat(ETC_SOURCE_DIR, "/", GetParam().vocabulary);
    } else {
      ETC_SHARED_DATA_OR_SKIP(path_, GetParam().data);
      ETC_SHARED_DATA_OR_SKIP(vocabulary, GetParam().vocabulary);
    }
    ETC_SKIP_IF_TOKENIZER_IS_REFUSED(vocabulary);
    auto tokenizer = LoadTokenizer(vocabulary);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    auto task = MakeTask(
        {{"official_compatibility", GetParam().official_compatibility}},
        SmallConfig(), *std::move(tokenizer));
    ASSERT_TRUE(task.ok()) << task.status();
    task_ = *std::move(task);
    examples_ = ReadExamples(*task_, path_);
  }

  bool IsBundled() const { return GetParam().data.starts_with("tasks/"); }

  // The scores of the predictions' file, which those in training must equal.
  std::map<std::string, double> ScoreOf(const TaskPredictions& predictions) {
    TemporaryDirectory directory;
    const auto score =
        ScoreFiles(Openkp(), {.gold = path_,
                              .predictions = directory.Write(
                                  "p.jsonl", predictions.FileContents())});
    EXPECT_TRUE(score.ok()) << score.status();
    EXPECT_EQ(*score, predictions.Score());
    return ToMap(*score);
  }

  std::string path_;
  std::unique_ptr<RecordTask> task_;
  std::vector<std::shared_ptr<const Example>> examples_;
};

TEST_P(OpenkpSamplesTest, FindAllKeyPhrasesWithGoldFedBack) {
  const auto predictions = task_->MakePredictions();
  for (const auto& example : examples_) {
    EXPECT_EQ(example->left_out, "") << example->record_id;
    EXPECT_EQ(dynamic_cast<const OpenkpExample&>(*example).dropped_words, 0);
    const Batch batch = MakeBatch({example});
    predictions->Add(batch, GoldLogits(batch));
  }
  const auto scores = ScoreOf(*predictions);
  for (const char* name : {"r@5", "r@3", "etc_r@3"}) {
    EXPECT_EQ(scores.at(name), 1.0) << name;
  }
  if (IsBundled()) {
    EXPECT_EQ(scores.at("f1@3"), 1.0);
    EXPECT_EQ(scores.at("etc_f1@3"), 1.0);
  }
}

TEST_P(OpenkpSamplesTest, GoThroughAModelWithRandomWeights) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(5);
  TaskModel model(EtcModel(SmallConfig()), task_->MakeHead());
  const auto predictions = task_->MakePredictions();
  for (const auto& example : examples_) {
    const Batch batch = MakeBatch({example});
    const std::vector<torch::Tensor> logits = model.Forward(batch);
    EXPECT_TRUE(model.Loss(logits, batch, model.Totals(batch.examples))
                    .isfinite()
                    .item<bool>());
    predictions->Add(batch, logits);
  }
  ScoreOf(*predictions);
}

constexpr char kReal[] = "data/openkp/OpenKP.sample.jsonl";
constexpr char kBert[] = "data/vocab/bert-uncased/vocab.txt";
constexpr char kAlbert[] = "data/vocab/sentencepiece/albert_spiece.model";
INSTANTIATE_TEST_SUITE_P(
    Files, OpenkpSamplesTest,
    testing::Values(Sample{"tasks/openkp/sample/dev.jsonl",
                           "tasks/openkp/sample/vocab.txt"},
                    Sample{"tasks/openkp/sample/dev.jsonl",
                           "tasks/openkp/sample/vocab.txt", true},
                    Sample{kReal, kBert}, Sample{kReal, kAlbert},
                    Sample{kReal, kAlbert, true}));

}  // namespace
}  // namespace etc
