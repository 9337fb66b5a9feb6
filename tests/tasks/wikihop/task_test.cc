// WikiHop behind the Task seam, on real questions with BERT's vocabulary where
// they are at hand: every record becomes an example, gold answers fed back
// through predictions score 1.0 in training and by file alike, and options are
// read strictly.

#include "tasks/wikihop/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "tasks/task/benchmark_task.h"
#include "tasks/task/score_files.h"
#include "tasks/text/load_tokenizer.h"
#include "tests/support/sample_examples.h"
#include "tests/support/shared_data.h"
#include "tests/support/task_config.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/inputs/byte_level_tokenizer.h"
#include "tests/tasks/text/word_tokenizer.h"

namespace etc {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Pair;

EtcConfig BertConfig() {
  EtcConfig config;
  config.vocab_size = 30522;
  config.use_hard_g2l_mask = true;
  return config;
}

std::shared_ptr<const Tokenizer> SmallTokenizer(bool lower_cases = true) {
  return std::make_shared<WordTokenizer>(
      std::vector<std::string>{"oslo", "is", "in", "norway", "."}, lower_cases);
}

absl::StatusOr<std::unique_ptr<RecordTask>> MakeTask(
    const nlohmann::json& options, EtcConfig config = BertConfig(),
    std::shared_ptr<const Tokenizer> tokenizer = SmallTokenizer()) {
  return etc::MakeTask<Wikihop>(
      MakeWikihopHead, TaskConfig(config, options, {.max_global_length = 430}),
      std::move(tokenizer));
}

std::string Message(const absl::StatusOr<std::unique_ptr<RecordTask>>& task) {
  EXPECT_EQ(task.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(task.status().message());
}

// doc/wikihop.md 10, trap 10
TEST(WikihopOptionsTest, DefaultToThePublishedRecipe) {
  const auto options =
      ReadTaskOptions<Wikihop>(nlohmann::json::object(), "f.json: wikihop");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(options->add_final_layer);
  EXPECT_EQ(options->label_smoothing, 0.0);
  EXPECT_EQ(options->max_num_sentences, 200);
  EXPECT_TRUE(options->candidate_ignore_hard_g2l);
  EXPECT_TRUE(options->query_ignore_hard_g2l);
  EXPECT_TRUE(options->enable_l2g_linking);
  EXPECT_EQ(options->mention_alignment, MentionAlignment::kPieces);
}

TEST(WikihopOptionsTest, ReadEveryField) {
  const auto options =
      ReadTaskOptions<Wikihop>({{"add_final_layer", false},
                                {"label_smoothing", 0.1},
                                {"max_num_sentences", 7},
                                {"candidate_ignore_hard_g2l", false},
                                {"query_ignore_hard_g2l", false},
                                {"enable_l2g_linking", false},
                                {"mention_alignment", "characters"}},
                               "f.json: wikihop");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_FALSE(options->add_final_layer);
  EXPECT_EQ(options->label_smoothing, 0.1);
  EXPECT_EQ(options->max_num_sentences, 7);
  EXPECT_FALSE(options->candidate_ignore_hard_g2l);
  EXPECT_FALSE(options->query_ignore_hard_g2l);
  EXPECT_FALSE(options->enable_l2g_linking);
  EXPECT_EQ(options->mention_alignment, MentionAlignment::kCharacters);
}

TEST(MakeWikihopTaskTest, RefusesOptionsThatMakeNoSense) {
  EXPECT_THAT(Message(MakeTask({{"label_smothing", 0.1}})),
              HasSubstr("did you mean \"label_smoothing\"?"));
  EXPECT_THAT(Message(MakeTask({{"label_smoothing", 1.0}})),
              HasSubstr("f.json: wikihop.label_smoothing should be in [0, 1)"));
  EXPECT_THAT(
      Message(MakeTask({{"max_num_sentences", -1}})),
      HasSubstr("wikihop.max_num_sentences should be at least 0, but is -1"));
  EXPECT_THAT(Message(MakeTask({{"mention_alignment", "words"}})),
              HasSubstr("should be \"pieces\" or \"characters\""));
  EXPECT_THAT(Message(MakeTask(nlohmann::json::array())),
              HasSubstr("should be an object"));
}

TEST(WikihopTaskTest, HasATextInItsAnswer) {
  EXPECT_THAT(Wikihop().AnswerTextFields(), testing::ElementsAre("answer"));
}

TEST(MakeWikihopTaskTest, RefusesTablesThatAreTooSmall) {
  EtcConfig config = BertConfig();
  config.vocab_size = 14;
  EXPECT_THAT(Message(MakeTask(nlohmann::json::object(), config)),
              HasSubstr("vocab_size should be at least 15, for the "
                        "vocabulary, but is 14"));
  config = BertConfig();
  config.segment_vocab_size = 7;
  EXPECT_THAT(Message(MakeTask(nlohmann::json::object(), config)),
              HasSubstr("segment_vocab_size should be at least 8"));
}

TEST(MakeWikihopTaskTest, RefusesCasedWordPieceUnlessAlignedByCharacters) {
  EXPECT_THAT(
      Message(MakeTask(nlohmann::json::object(), BertConfig(),
                       SmallTokenizer(/*lower_cases=*/false))),
      HasSubstr("tokenizer.lower_case should be true with WordPiece, or "
                "wikihop.mention_alignment \"characters\": candidates "
                "are in lower case"));
  EXPECT_TRUE(MakeTask({{"mention_alignment", "characters"}}, BertConfig(),
                       SmallTokenizer(/*lower_cases=*/false))
                  .ok());
}

TEST(MakeWikihopTaskTest, RefusesCasedTokenizerJsonUnlessAlignedByCharacters) {
  const auto make = [](const nlohmann::json& options) {
    RunConfig config =
        TaskConfig(BertConfig(), options, {.max_global_length = 430});
    config.tokenizer.type = "huggingface";
    return etc::MakeTask<Wikihop>(MakeWikihopHead, config,
                                  ByteLevelTokenizer({"oslo", "Oslo"}));
  };
  EXPECT_THAT(Message(make(nlohmann::json::object())),
              HasSubstr("wikihop.mention_alignment should be \"characters\" "
                        "with a tokenizer.json that does not lower-case"));
  const auto task = make({{"mention_alignment", "characters"}});
  EXPECT_TRUE(task.ok()) << task.status();
}

constexpr const char* kRecord =
    R"({"id":"q0","query":"in oslo","answer":"norway","candidates":)"
    R"(["is","norway"],"supports":["Oslo is in Norway. Norway is."]})";

TEST(WikihopTaskTest, PassesOnWhereARecordIsWrong) {
  const auto task = MakeTask(nlohmann::json::object());
  ASSERT_TRUE(task.ok()) << task.status();
  EXPECT_THAT(
      (*task)->MakeExamples("{}", "dev.json: record 3").status().message(),
      HasSubstr("dev.json: record 3"));
}

TEST(WikihopTaskTest, PredictsTheCandidateWithTheLargestLogit) {
  const auto task = MakeTask(nlohmann::json::object());
  ASSERT_TRUE(task.ok()) << task.status();
  const auto labelled = (*task)->MakeExamples(kRecord, "here");
  ASSERT_TRUE(labelled.ok()) << labelled.status();
  const Batch batch = MakeBatch(*labelled);
  torch::Tensor logits =
      torch::full({1, batch.input.global_token_ids.size(1)}, -10000.0);
  logits[0][0] = 0.5;
  logits[0][1] = 0.7;
  const auto predictions = (*task)->MakePredictions();
  predictions->Add(batch, {logits});
  EXPECT_EQ((*task)->main_metric(), "accuracy");
  EXPECT_THAT(predictions->Score(), ElementsAre(Pair("accuracy", 1.0)));
  logits[0][0] = 0.7;  // the first of equals
  predictions->Add(batch, {logits});
  EXPECT_THAT(predictions->Score(), ElementsAre(Pair("accuracy", 0.5)));
  EXPECT_EQ(predictions->FileContents(), "{\"q0\":\"is\"}\n");
}

TEST(WikihopTaskTest, HasNoScoreWithoutAnswers) {
  const auto task = MakeTask(nlohmann::json::object());
  ASSERT_TRUE(task.ok()) << task.status();
  nlohmann::json record = nlohmann::json::parse(kRecord);
  record.erase("answer");
  const auto examples = (*task)->MakeExamples(record.dump(), "here");
  ASSERT_TRUE(examples.ok()) << examples.status();
  const Batch batch = MakeBatch(*examples);
  const auto predictions = (*task)->MakePredictions();
  predictions->Add(batch, {torch::zeros(batch.input.global_token_ids.sizes())});
  EXPECT_THAT(predictions->Score(), IsEmpty());
  EXPECT_EQ(predictions->FileContents(), "{\"q0\":\"is\"}\n");
}

TEST(WikihopTaskTest, DescribesAnExampleForPeople) {
  EtcConfig config = BertConfig();
  config.local_radius = 3;
  const auto task = MakeTask(nlohmann::json::object(), config);
  ASSERT_TRUE(task.ok()) << task.status();
  const auto examples = (*task)->MakeExamples(kRecord, "here");
  ASSERT_TRUE(examples.ok()) << examples.status();
  EXPECT_EQ((*task)->Describe(*examples->front()),
            R"(question q0: in oslo
answer: candidate 1, norway
12 long tokens, 7 global tokens; 2 candidates, 1 document, 2 sentences; nothing truncated
6 mentions of candidates; local radius 3, hard g2l mask, soft l2g mask

global kind       owns           sees           tokens (>link)
     0 candidate  0              0-11           is>0

     1 candidate  1              0-11           norway>1

     2 query      2              0-11           in
     3 query      3              0-11           oslo

     4 document   4-11           4-11
     5 sentence   4-8            4-8            oslo  is>0  in  norway>1  .
     6 sentence   9-11           9-11           norway>1  is>0  .
)");
}

class WikihopRealDataTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    ETC_SHARED_DATA_OR_SKIP(const std::string vocabulary,
                            "data/vocab/bert-uncased/vocab.txt");
    ETC_SHARED_DATA_OR_SKIP(path_,
                            "data/wikihop/" + GetParam() + ".sample.json");
    auto tokenizer = LoadTokenizer(vocabulary);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    tokenizer_ = *std::move(tokenizer);
    auto task = MakeTask(nlohmann::json::object(), BertConfig(), tokenizer_);
    ASSERT_TRUE(task.ok()) << task.status();
    task_ = *std::move(task);
    examples_ = ReadExamples(*task_, path_);
  }

  // The examples of a task that splits documents so.
  Examples ExamplesWith(SentenceSplitter split) {
    WikihopOptions options;
    options.input = InputOptionsOf(BertConfig());
    options.input.max_global_length = 430;
    options.input.split_sentences = std::move(split);
    return ReadExamples(BenchmarkTask<Wikihop>(options, BertConfig(),
                                               tokenizer_, MakeWikihopHead),
                        path_);
  }

  std::string path_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::unique_ptr<RecordTask> task_;
  Examples examples_;
};

// Returns true if the model reads the same.
bool HaveSameFeatures(const Example& a, const Example& b) {
  return a.long_token_ids == b.long_token_ids &&
         a.long_type_ids == b.long_type_ids &&
         a.global_token_ids == b.global_token_ids &&
         a.global_type_ids == b.global_type_ids &&
         a.pattern.long_segment == b.pattern.long_segment &&
         a.pattern.sentence == b.pattern.sentence &&
         a.pattern.paragraph == b.pattern.paragraph &&
         a.pattern.linked == b.pattern.linked &&
         a.pattern.global_segment == b.pattern.global_segment &&
         a.pattern.ignore_hard_g2l == b.pattern.ignore_hard_g2l;
}

TEST_P(WikihopRealDataTest, HasTheFeaturesOfOfficialSentences) {
  ETC_SHARED_DATA_OR_SKIP(const std::string tables, "data/punkt");
  ETC_SHARED_DATA_OR_SKIP(const std::string golden,
                          "golden/punkt/wikihop.json");
  // NLTK's sentences of each document of the sample.
  std::map<std::string, std::vector<ByteRange>> borders;
  std::ifstream stream(golden);
  for (const nlohmann::json& text : nlohmann::json::parse(stream)) {
    for (const nlohmann::json& range : text["sentences"]) {
      borders[text["text"]].push_back({range[0], range[1]});
    }
  }
  const Examples official = ExamplesWith([&borders](absl::string_view text) {
    EXPECT_EQ(borders.count(std::string(text)), 1) << text;
    return borders[std::string(text)];
  });
  auto punkt = LoadSentenceSplitter(tables);
  ASSERT_TRUE(punkt.ok()) << punkt.status();
  const Examples with_tables = ExamplesWith(*std::move(punkt));
  ASSERT_EQ(with_tables.size(), official.size());
  int64_t differ_with_icu = 0;
  for (size_t i = 0; i < official.size(); ++i) {
    EXPECT_TRUE(HaveSameFeatures(*with_tables[i], *official[i]))
        << official[i]->record_id;
    differ_with_icu += HaveSameFeatures(*examples_[i], *official[i]) ? 0 : 1;
  }
  EXPECT_GT(differ_with_icu, 0);  // else this compares nothing
}

TEST_P(WikihopRealDataTest, BecomesExamplesWithinTheLimits) {
  for (const std::shared_ptr<const Example>& example : examples_) {
    SCOPED_TRACE(example->record_id);
    const auto& wikihop = dynamic_cast<const WikihopExample&>(*example);
    EXPECT_LE(example->long_length(), 4096);
    EXPECT_LE(example->global_length(), 430);
    EXPECT_THAT(*wikihop.label, AllOf(Ge(0), Le(wikihop.num_candidates() - 1)));
    // Every candidate of WikiHop occurs in the documents.
    EXPECT_GE(wikihop.mentions.size(), 2 * wikihop.candidates.size());
    // Each sentence's tokens lie within its document's.
    for (size_t i = 0; i < example->long_token_ids.size(); ++i) {
      const int32_t paragraph = example->pattern.paragraph[i];
      if (paragraph >= 0) {
        EXPECT_GT(example->pattern.sentence[i], paragraph);
        EXPECT_EQ(example->global_token_ids[static_cast<size_t>(paragraph)],
                  kWikihopDocumentToken);
      }
    }
    EXPECT_FALSE(task_->Describe(*example).empty());
  }
}

TEST_P(WikihopRealDataTest, ScoresGoldAnswersFedBackWithOne) {
  const auto predictions = task_->MakePredictions();
  const Batch batch = MakeBatch(examples_);
  torch::Tensor logits =
      torch::full(batch.input.global_token_ids.sizes(), -10000.0);
  for (int64_t b = 0; b < batch.size(); ++b) {
    const auto& example = dynamic_cast<const WikihopExample&>(
        *batch.examples[static_cast<size_t>(b)]);
    logits[b][*example.label] = 1.0;
  }
  predictions->Add(batch, {logits});
  EXPECT_THAT(predictions->Score(), ElementsAre(Pair("accuracy", 1.0)));
  TemporaryDirectory directory;
  const auto score = ScoreFiles(
      Wikihop(),
      {.gold = path_,
       .predictions = directory.Write("p.json", predictions->FileContents())});
  ASSERT_TRUE(score.ok()) << score.status();
  EXPECT_THAT(*score,
              ElementsAre(Pair("accuracy", 1.0), Pair("answered", 1.0)));
}

INSTANTIATE_TEST_SUITE_P(Samples, WikihopRealDataTest,
                         testing::Values("dev", "train"));

}  // namespace
}  // namespace etc
