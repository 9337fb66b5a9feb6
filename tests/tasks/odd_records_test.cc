// Whatever texts a record has, and whatever the model says of it: no exception,
// no access out of bounds (the asan preset runs this, too), and an error is one
// of the record's. Records of tests/tasks/odd_records.h go all the way of
// each task, from JSON through description, batch, head and losses to the
// prediction file and its scores, with
//
//   * WordPiece and SentencePiece, or, in the asan preset, which cannot load
//     that beside LibTorch (sentencepiece_loader.h), a stand-in for it;
//   * official_compatibility on and off, and the options that choose other
//   code;
//   * lengths from 1 on, so that nearly everything is truncated somewhere;
//   * random logits, many of them equal, up to 1e30. NaN and infinity are out
//     of scope: they are an error before anything is decoded.
//
// The seeds are fixed. 500 rounds of up to three records for each task and
// tokenizer, with WordPiece 100 if no sanitizer looks on; at least one round in
// five must come through to a prediction.

#include "tests/tasks/odd_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "attention/output_rows.h"
#include "nlohmann/json.hpp"
#include "tasks/data/batch.h"
#include "tasks/registry.h"
#include "tasks/task/benchmark_head.h"
#include "tasks/task/benchmark_task.h"
#include "tasks/text/sentencepiece_tokenizer.h"
#include "tasks/text/wordpiece_tokenizer.h"
#include "tests/support/sanitizers.h"
#include "tests/support/task_directories.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/text/tiny_sentencepiece_model.h"

namespace etc {
namespace {

using ::testing::HasSubstr;

constexpr int kRounds = 500;
constexpr int kWordPieceRounds = RoundsOfDamage(kRounds);
constexpr int64_t kHidden = 8;

std::vector<std::string> Letters() {
  std::vector<std::string> letters = {".", ",", "(", "\u6771", "\u05e9"};
  for (char c = 'a'; c <= 'n'; ++c) {
    letters.emplace_back(1, c);
  }
  for (char c = '0'; c <= '4'; ++c) {
    letters.emplace_back(1, c);
  }
  return letters;
}

// The pieces that Natural Questions needs of SentencePiece models.
const char* const kUnusedPieces[] = {"<unused_63>", "<unused_2>", "<unused_35>",
                                     "<unused_36>"};

std::unique_ptr<Tokenizer> WordPiece() {
  std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n";
  for (const char* piece : {"[unused102]", "[unused103]"}) {
    absl::StrAppend(&vocabulary, piece, "\n");
  }
  for (const char* piece : kUnusedPieces) {
    absl::StrAppend(&vocabulary, piece, "\n");
  }
  for (const std::string& word : OddRecordWords()) {
    absl::StrAppend(&vocabulary, word, "\n");
  }
  for (const std::string& letter : Letters()) {
    absl::StrAppend(&vocabulary, letter, "\n##", letter, "\n");
  }
  return *ParseWordPieceTokenizer(vocabulary, "vocabulary");
}

// WordPiece spelt like SentencePiece.
class MarkedTokenizer : public Tokenizer {
 public:
  std::vector<Token> Encode(absl::string_view text) const override {
    return pieces_->Encode(text);
  }
  int64_t vocab_size() const override { return pieces_->vocab_size(); }
  std::string Piece(int32_t id) const override {
    const std::string piece = pieces_->Piece(id);
    return piece == "[UNK]"                ? "<unk>"
           : absl::StartsWith(piece, "##") ? piece.substr(2)
                                           : "\u2581" + piece;
  }
  int32_t Id(absl::string_view piece) const override {
    return absl::StartsWith(piece, "[") ? -1 : pieces_->Id(piece);
  }
  bool lower_cases() const override { return false; }

 private:
  const std::unique_ptr<Tokenizer> pieces_ = WordPiece();
};

absl::StatusOr<std::unique_ptr<Tokenizer>> SentencePiece() {
  std::vector<std::pair<std::string, float>> pieces;
  for (const char* piece : kUnusedPieces) {
    pieces.emplace_back(piece, -20.0F);
  }
  pieces.emplace_back("\u2581", -4.0F);
  for (const std::string& word : OddRecordWords()) {
    pieces.emplace_back("\u2581" + word, -2.0F);
  }
  for (const std::string& letter : Letters()) {
    pieces.emplace_back(letter, -5.0F);
  }
  pieces.emplace_back("12,", -3.0F);
  TemporaryDirectory directory;
  return LoadSentencePieceTokenizer(
      directory.Write("tiny.model", TinySentencePieceModel(pieces).bytes()));
}

RunConfig OddConfig(const std::string& task, bool is_wordpiece,
                    int64_t vocab_size, OddRecords* odd) {
  RunConfig config;
  config.source = "odd";
  config.tokenizer.type = is_wordpiece ? "wordpiece" : "sentencepiece";
  config.model.vocab_size = 50 + vocab_size;
  config.model.hidden_size = kHidden;
  config.model.num_attention_heads = 2;
  config.model.local_radius = 1 + odd->Below(4);
  config.model.relative_pos_max_distance = odd->Below(4);
  config.model.use_hard_g2l_mask = odd->OneIn(2);
  config.task_options = OddTask::Of(task).options(odd);
  config.data.max_long_length = 1 + odd->Below(odd->OneIn(3)   ? 12
                                               : odd->OneIn(2) ? 40
                                                               : 200);
  config.data.max_global_length = 1 + odd->Below(odd->OneIn(2) ? 12 : 60);
  if (OddTask::Of(task).fit != nullptr) {
    OddTask::Of(task).fit(odd, &config);
  }
  return config;
}

// Logits of the same shapes, of any size.
std::vector<torch::Tensor> OddLogits(const std::vector<torch::Tensor>& logits,
                                     OddRecords* odd) {
  const std::vector<double> scales = {0, 1e-30, 1, 30, 1e4, 1e30};
  std::vector<torch::Tensor> others;
  for (const torch::Tensor& tensor : logits) {
    const torch::Tensor values = torch::randn(tensor.sizes(), torch::kFloat32) *
                                 scales[static_cast<size_t>(odd->Below(6))];
    others.push_back(odd->OneIn(2) ? values.round() : values);
  }
  return others;
}

class OddRecordsTest
    : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  // The examples of up to three records.
  std::vector<std::shared_ptr<const Example>> Examples(const Task& task,
                                                       OddRecords* odd) {
    std::vector<std::shared_ptr<const Example>> examples;
    for (int64_t i = 1 + odd->Below(3); i > 0; --i) {
      const std::string record =
          odd->Record(OddTask::Of(std::get<0>(GetParam())));
      const auto made =
          dynamic_cast<const RecordTask&>(task).MakeExamples(record, "here");
      if (!made.ok()) {
        EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument);
        EXPECT_THAT(std::string(made.status().message()), HasSubstr("here"))
            << record;
        continue;
      }
      examples.insert(examples.end(), made->begin(), made->end());
    }
    return examples;
  }

  // Does everything that is done with examples.
  void Use(const EncoderTask& task,
           const std::vector<std::shared_ptr<const Example>>& examples,
           OddRecords* odd) {
    const auto head = std::dynamic_pointer_cast<OutputHead>(task.MakeHead());
    ASSERT_NE(head, nullptr);
    const std::unique_ptr<TaskPredictions> predictions = task.MakePredictions();
    constexpr size_t kBatch = 2;
    for (size_t first = 0; first < examples.size(); first += kBatch) {
      const Batch batch =
          MakeBatch({examples.begin() + static_cast<int64_t>(first),
                     examples.begin() + static_cast<int64_t>(std::min(
                                            first + kBatch, examples.size()))});
      head->Adders(batch);
      const OutputRows rows = RowsFor(head->Reads(), batch);
      const auto random = [&](int64_t length, const torch::Tensor& read) {
        return RowsOf(torch::randn({batch.size(), length, kHidden}), read);
      };
      const EtcOutput encoded{
          .long_output = random(batch.input.token_ids.size(1), rows.longs),
          .global_output =
              random(batch.input.global_token_ids.size(1), rows.globals),
          .scores = {}};
      const std::vector<torch::Tensor> logits = head->forward(encoded, batch);
      if (std::all_of(batch.examples.begin(), batch.examples.end(),
                      [](const auto& example) {
                        return example->has_answer &&
                               example->left_out.empty() &&
                               example->training_error.empty();
                      })) {
        EXPECT_TRUE(head->Losses(logits, batch).isfinite().all().item<bool>());
      }
      predictions->Add(batch, OddLogits(logits, odd));
    }
    for (const auto& [name, value] : predictions->Score()) {
      EXPECT_TRUE(std::isfinite(value)) << name;
    }
    EXPECT_FALSE(predictions->FileContents().empty());
  }

  // Returns true if anything was predicted.
  bool RunRound(OddRecords* odd, bool is_wordpiece,
                const std::shared_ptr<const Tokenizer>& tokenizer) {
    const auto& task_name = std::get<0>(GetParam());
    const RunConfig config =
        OddConfig(task_name, is_wordpiece, tokenizer->vocab_size(), odd);
    SCOPED_TRACE(absl::StrCat(config.task_options.dump(), ", lengths ",
                              config.data.max_long_length, " and ",
                              config.data.max_global_length));
    const auto entry = FindTask(task_name);
    const auto task = (*entry)->make(config, tokenizer);
    if (!task.ok()) {
      ADD_FAILURE() << task.status() << "; OddTask::fit should prevent it";
      return false;
    }
    bool is_used = false;
    EXPECT_NO_THROW({
      const auto examples = Examples(**task, odd);
      for (const auto& example : examples) {
        EXPECT_FALSE((*task)->Describe(*example).empty());
        EXPECT_LE(example->long_length(), config.data.max_long_length);
        EXPECT_LE(example->global_length(), config.data.max_global_length);
      }
      if (!examples.empty()) {
        Use(dynamic_cast<const EncoderTask&>(**task), examples, odd);
        is_used = true;
      }
    });
    return is_used;
  }
};

TEST_P(OddRecordsTest, AreReadOrRefusedAndPredictedFor) {
  const std::string& kind = std::get<1>(GetParam());
  std::shared_ptr<const Tokenizer> tokenizer;
  if (kind == "sentencepiece") {
    auto loaded = SentencePiece();
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    tokenizer = *std::move(loaded);
  } else if (kind == "wordpiece") {
    tokenizer = WordPiece();
  } else {
    tokenizer = std::make_shared<MarkedTokenizer>();
  }
  const int rounds = kind == "wordpiece" ? kWordPieceRounds : kRounds;
  int used = 0;
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(round);
    torch::manual_seed(static_cast<uint64_t>(round));
    OddRecords odd(static_cast<uint64_t>(round));
    used += RunRound(&odd, kind == "wordpiece", tokenizer) ? 1 : 0;
    if (HasFailure()) {
      break;  // the first round that fails says it all
    }
  }
  EXPECT_GT(used, rounds / 5);
}

// Values that users put in place of an answer: placeholders, other types,
// answers that are none of the record's.
std::vector<nlohmann::json> OddAnswers() {
  return {nullptr,
          "",
          "-1",
          -1,
          0.5,
          1e300,
          true,
          "no such answer",
          nlohmann::json::array(),
          nlohmann::json::object(),
          {nullptr},
          {-1, ""},
          {{{"text", "x"}, {"answer_start", 1'000'000}}},
          {{{"long_answer", nullptr}}},
          {{{"long_answer", {{"start_token", 5}, {"end_token", 1'000'000}}},
            {"short_answers", nlohmann::json::array()},
            {"yes_no_answer", "MAYBE"}}},
          {"a", {"b"}},
          {{"t", "x"}}};
}

class UnreadAnswersTest : public testing::TestWithParam<std::string> {
 protected:
  using Made = absl::StatusOr<std::vector<std::shared_ptr<const Example>>>;

  static void ExpectSame(const Made& made, const Made& expected) {
    ASSERT_EQ(made.status(), expected.status());
    if (!made.ok()) {
      return;
    }
    ASSERT_EQ(made->size(), expected->size());
    for (size_t i = 0; i < made->size(); ++i) {
      EXPECT_FALSE((*made)[i]->has_answer);
      EXPECT_EQ((*made)[i]->record_id, (*expected)[i]->record_id);
      EXPECT_EQ((*made)[i]->long_token_ids, (*expected)[i]->long_token_ids);
      EXPECT_EQ((*made)[i]->global_token_ids, (*expected)[i]->global_token_ids);
    }
  }
};

// A record is predicted for as if it had no answer, whatever stands there.
TEST_P(UnreadAnswersTest, DoNotMatterToPredictions) {
  const std::string& name = GetParam();
  const std::shared_ptr<const Tokenizer> tokenizer = WordPiece();
  int refused = 0;
  int predicted = 0;
  constexpr uint64_t kRecords = 60;
  for (uint64_t round = 0; round < kRecords; ++round) {
    OddRecords odd(round);
    const auto task = (*FindTask(name))
                          ->make(OddConfig(name, /*is_wordpiece=*/true,
                                           tokenizer->vocab_size(), &odd),
                                 tokenizer);
    ASSERT_TRUE(task.ok()) << task.status();
    const auto& maker = dynamic_cast<const RecordTask&>(**task);
    nlohmann::json record =
        nlohmann::json::parse(odd.Record(OddTask::Of(name)), nullptr,
                              /*allow_exceptions=*/false);
    if (!record.is_object()) {
      continue;
    }
    for (const std::string& field : OddTask::Of(name).answers) {
      record.erase(field);
    }
    const Made expected = maker.MakeExamplesToPredict(record.dump(), "here");
    for (const nlohmann::json& answer : OddAnswers()) {
      for (const std::string& field : OddTask::Of(name).answers) {
        record[field] = answer;
      }
      SCOPED_TRACE(record.dump());
      const Made made = maker.MakeExamplesToPredict(record.dump(), "here");
      ExpectSame(made, expected);
      predicted += made.ok() ? 1 : 0;
      refused += made.ok() && !maker.MakeExamples(record.dump(), "here").ok();
    }
  }
  // Python writes missing values so.
  const std::string field = OddTask::Of(name).answers.front();
  OddRecords odd(0);
  const auto task = (*FindTask(name))
                        ->make(OddConfig(name, /*is_wordpiece=*/true,
                                         tokenizer->vocab_size(), &odd),
                               tokenizer);
  const auto& maker = dynamic_cast<const RecordTask&>(**task);
  const auto made = [&](const std::string& value) {
    return maker.MakeExamplesToPredict(
        absl::StrCat("{\"NaN\": 1, \"", field, "\": ", value, "}"), "here");
  };
  EXPECT_EQ(made("NaN").status(), made("null").status());
  EXPECT_EQ(made("[1, -Infinity]").status(), made("null").status());
  EXPECT_EQ(made("[nan, 1e999]").status(), made("null").status());
  EXPECT_THAT(std::string(made("NaNs").status().message()),
              HasSubstr("syntax error"));
  EXPECT_GT(predicted, 20);
  // Else these would be no odd answers.
  EXPECT_GT(refused, 20);
}

INSTANTIATE_TEST_SUITE_P(Tasks, UnreadAnswersTest,
                         testing::ValuesIn(TaskDirectories()),
                         [](const auto& name) { return name.param; });

// SentencePiece cannot be loaded beside LibTorch under AddressSanitizer, where
// "marked" stands in for it.
INSTANTIATE_TEST_SUITE_P(
    TasksAndTokenizers, OddRecordsTest,
    testing::Combine(testing::ValuesIn(TaskDirectories()),
                     testing::Values("wordpiece", kAddressSanitized
                                                      ? "marked"
                                                      : "sentencepiece")),
    [](const auto& names) {
      return absl::StrCat(std::get<0>(names.param), "_",
                          std::get<1>(names.param));
    });

}  // namespace
}  // namespace etc
