// Records from their text to a prediction file and its score, without a model:
// 5,000 damaged ones, by both rules and all methods, and one of the largest
// size that the data are reported to have (doc/nq.md 1.1).

#include <cstdint>
#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tasks/nq/task.h"
#include "tests/support/mutation.h"
#include "tests/support/sanitizers.h"
#include "tests/tasks/nq/page_record.h"
#include "tests/tasks/nq/spec_record.h"
#include "tests/tasks/nq/windows_of_logits.h"

namespace etc {
namespace {

using ::testing::HasSubstr;

// Logits without a pattern, for windows padded by `padding`.
std::vector<OwnedNqWindow> RandomWindows(
    const std::vector<std::shared_ptr<NqExample>>& examples, size_t padding,
    std::mt19937* random) {
  std::uniform_real_distribution<float> uniform(-3, 3);
  std::vector<OwnedNqWindow> windows;
  for (const auto& example : examples) {
    OwnedNqWindow window{.example = example};
    window.logits.ends.resize(kNqNumChannels *
                              (example->long_token_ids.size() + padding));
    window.logits.answer_type.resize(kNqNumAnswerTypes);
    ForEachMember(window.logits, [&](std::vector<float>& logits) {
      for (float& logit : logits) {
        logit = uniform(*random);
      }
    });
    windows.push_back(std::move(window));
  }
  return windows;
}

constexpr NqSpanSelection kMethods[] = {NqSpanSelection::kJoint,
                                        NqSpanSelection::kDisjoint,
                                        NqSpanSelection::kJointExhaustive};

// The damages of one round: to the text of the record, or to the strings that
// it is made of, so that it can still be read; in both formats.
std::string DamagedRecord(int round, Mutator* mutator) {
  static const auto* dictionary = new std::vector<std::string>{
      "{",       "}",    "[",    "]",    "\"",   "\\",
      ",",       ":",    "-1",   "18",   "null", "\\u0000",
      "\\ud83d", "\xC3", "\xFF", "true", "0",    "9223372036854775808",
      "\"YES\"", "1e400"};
  nlohmann::json json = NqSpecJson();
  json["annotations"].push_back(json["annotations"][0]);
  const bool is_readable = round % 3 != 1;
  if (is_readable) {
    json["question_text"] =
        mutator->Mutate(json["question_text"].get<std::string>());
    for (nlohmann::json& token : json["document_tokens"]) {
      if (mutator->Below(4) == 0) {
        token["token"] = mutator->Mutate(token["token"].get<std::string>(),
                                         {"<", "</", ">", " ", "\xCC\x81"});
      }
    }
    for (nlohmann::json& candidate : json["long_answer_candidates"]) {
      candidate["top_level"] = mutator->Below(2) == 0;
      const uint64_t start = mutator->Below(18);
      candidate["start_token"] = start;
      candidate["end_token"] = start + 1 + mutator->Below(18 - start);
      candidate.erase("start_byte");
      candidate.erase("end_byte");
    }
    json["annotations"][0]["yes_no_answer"] =
        std::vector<std::string>{"YES", "NO", "NONE"}[mutator->Below(3)];
  }
  if (round % 2 == 0) {
    json = SimplifiedNqJson(json);
  }
  const std::string text =
      json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return is_readable ? text : mutator->Mutate(text, *dictionary);
}

TEST(NqWholeWayTest, SurvivesDamagedRecords) {
  const NqSpecTokenizer tokenizer;
  Mutator mutator(20241121);
  std::mt19937 random(3);
  int parsed = 0;
  constexpr int kRounds = RoundsOfDamage(5000);
  for (int round = 0; round < kRounds; ++round) {
    const auto record =
        Nq().ParseRecord(DamagedRecord(round, &mutator), "mutant");
    if (!record.ok()) {
      EXPECT_THAT(std::string(record.status().message()), HasSubstr("mutant"));
      continue;
    }
    ++parsed;
    const bool official = round % 4 < 2;
    const int64_t stride = 1 + round % 5;
    const int64_t question = round % 7;
    const Nq nq(
        {.input = {.max_long_length = question + 3 + stride + round % 11,
                   .max_global_length = question + 2 + round % 6},
         .max_question_length = question,
         .stride = stride,
         .predict_long_as_short = round % 13 == 0,
         .fixed_blocks = round % 9 == 0,
         .fixed_block_size = 1 + round % 4,
         .include_unknown_rate = 0.5,
         .official_compatibility = official},
        &tokenizer);
    const auto examples = *nq.MakeExamples(*record, "mutant");
    ASSERT_FALSE(examples.empty());
    for (const auto& example : examples) {
      for (const NqTarget& target :
           {example->short_answer, example->long_answer}) {
        EXPECT_TRUE(target.start >= 0 && target.end >= 0 &&
                    target.start < example->long_length() &&
                    target.end < example->long_length());
        EXPECT_TRUE(official || target.start <= target.end);
      }
      nq.Describe(*example);
    }
    const NqPrediction prediction =
        DecodeNqDocument(RandomWindows(examples, round % 3, &random),
                         {.span_selection = kMethods[round % 3],
                          .official_compatibility = official});
    const auto read =
        NqPredictionsFromJson(NqPredictionsToJson({prediction}), "predictions");
    ASSERT_TRUE(read.ok()) << read.status();
    for (const auto& [name, value] :
         ScoreNq({{"id", record->annotations}}, {{"id", read->front()}}, {})) {
      EXPECT_TRUE(name.ends_with("threshold") || (value >= 0 && value <= 1))
          << name << " " << value;
    }
  }
  EXPECT_GT(parsed, kRounds / 6);
  EXPECT_LT(parsed, kRounds * 24 / 25);
}

// 300 paragraphs of nested lists, 156,551 pieces.
NqRecord LargestPage() {
  constexpr int64_t kPieces = 156551;
  std::string page;
  int64_t tokens = 0;
  while (tokens < kPieces - 600) {
    absl::StrAppend(&page, "<Ul> <Li> ");
    for (int i = 0; i < 516; ++i) {
      absl::StrAppend(&page, i % 3 == 0 ? "Ann " : "by ");
    }
    absl::StrAppend(&page, "</Li> </Ul> ");
    tokens += 520;
  }
  absl::StrAppend(&page, "<P>");
  for (tokens += 2; tokens < kPieces; ++tokens) {
    absl::StrAppend(&page, " Lee");
  }
  return NqPage(page + " </P>", "who wrote blue", {{}});
}

TEST(NqWholeWayTest, TakesTheLargestDocument) {
  const NqRecord record = LargestPage();
  const NqSpecTokenizer tokenizer;
  const auto examples = *Nq({}, &tokenizer).MakeExamples(record, "here");
  EXPECT_EQ(examples[0]->document->num_pieces, 156551);
  // ceil((156551 - (4096 - 6) + 2048) / 2048), doc/nq.md 2.3
  ASSERT_EQ(examples.size(), 76u);
  std::vector<bool> is_seen(record.tokens.size());
  int64_t bytes = 0;
  for (const auto& example : examples) {
    for (const int32_t token : example->long_tokens) {
      if (token >= 0) {
        is_seen[static_cast<size_t>(token)] = true;
      }
    }
    bytes += example->TaskBytes();
  }
  EXPECT_THAT(is_seen, testing::Each(true));
  // About 16 KB a window besides the ids that the model reads, and 73 bytes a
  // candidate, once.
  EXPECT_LT(bytes, 3 << 20);

  std::mt19937 random(5);
  const std::vector<OwnedNqWindow> windows =
      RandomWindows(examples, 0, &random);
  for (const NqSpanSelection method : kMethods) {
    for (const bool official : {false, true}) {
      const std::clock_t begin = std::clock();  // of this process alone
      const NqPrediction prediction =
          DecodeNqDocument(windows, {.span_selection = method,
                                     .consider_answer_type = false,
                                     .official_compatibility = official});
      EXPECT_LT(std::clock() - begin, 20 * CLOCKS_PER_SEC);
      EXPECT_FALSE(prediction.long_answer.is_null());
      EXPECT_EQ(prediction.short_answers.size(), 1u);
    }
  }
}

}  // namespace
}  // namespace etc
