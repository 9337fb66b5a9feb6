// Hotpotqa::ReadRecord reads the official format (doc/hotpotqa.md 1) and names
// place and field of what is wrong. Damaged files bring down neither it nor the
// scanner before it nor what makes examples and answers of what could be read;
// and whatever a text has in it, its pieces stand for bytes of it.

#include "tasks/hotpotqa/raw.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tasks/data/record_file.h"
#include "tasks/data/record_scanner.h"
#include "tasks/hotpotqa/answer_text.h"
#include "tasks/hotpotqa/example.h"
#include "tasks/hotpotqa/prediction.h"
#include "tasks/hotpotqa/task.h"
#include "tasks/text/load_tokenizer.h"
#include "tests/support/mutation.h"
#include "tests/support/sanitizers.h"
#include "tests/support/shared_data.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/hotpotqa/spec_record.h"

namespace etc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::StatusOr<HotpotqaRecord> Parse(const std::string& json) {
  return Hotpotqa().ParseRecord(json, "dev.json: record 3");
}

// doc/hotpotqa.md 1.2
TEST(HotpotqaRecordTest, ReadsTheInstanceOfTheSpec) {
  const auto record = Parse(kHotpotqaSpecJson);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->id, "hp1");
  EXPECT_EQ(record->question, "Who founded Acme?");
  EXPECT_EQ(record->answer, "Jane Roe");
  EXPECT_EQ(record->type, "bridge");
  EXPECT_EQ(record->level, "medium");
  EXPECT_THAT(
      record->supporting_facts,
      ElementsAre(HotpotqaFact{"Acme", 0}, HotpotqaFact{"Jane Roe", 1}));
  ASSERT_EQ(record->context.size(), 3u);
  EXPECT_EQ(record->context[0].title, "Jane Roe");
  EXPECT_THAT(record->context[0].sentences,
              ElementsAre("Jane Roe is a writer.", " She founded Acme."));
}

TEST(HotpotqaRecordTest, HasNoAnswerInTestData) {
  const auto record =
      Parse(R"({"_id":"a","question":"q","context":[["t",[]]]})");
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_FALSE(record->answer.has_value());
  EXPECT_THAT(record->supporting_facts, IsEmpty());
  EXPECT_THAT(record->context[0].sentences, IsEmpty());
}

TEST(HotpotqaRecordTest, NeedsNoSupportingFactsToPredict) {
  const auto record = Hotpotqa().ParseRecordWithoutAnswers(
      R"({"_id":"a","question":"q","context":[],"answer":"b"})", "record 3");
  EXPECT_TRUE(record.ok()) << record.status();
}

struct MalformedCase {
  const char* json;
  const char* message;
};

class HotpotqaRecordMalformedTest
    : public testing::TestWithParam<MalformedCase> {};

TEST_P(HotpotqaRecordMalformedTest, NamesPlaceAndField) {
  const auto record = Parse(GetParam().json);
  EXPECT_EQ(record.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(record.status().message(), HasSubstr("dev.json: record 3"));
  EXPECT_THAT(record.status().message(), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, HotpotqaRecordMalformedTest,
    testing::ValuesIn(std::vector<MalformedCase>{
        {"", ":1:1"},
        {"[]", "should be an object"},
        {R"({"question":"q","context":[]})", "._id is missing"},
        {R"({"_id":7,"question":"q","context":[]})", "._id should be a string"},
        {R"({"_id":"a","context":[]})", ".question is missing"},
        {R"({"_id":"a","question":"q"})", ".context is missing"},
        {R"({"_id":"a","question":"q","context":{}})",
         ".context should be a list of paragraphs, but is {}"},
        {R"({"_id":"a","question":"q","context":[["t",[]],["t"]]})",
         R"(.context[1] should be ["title", ["sentence", ...]], but is ["t"])"},
        {R"({"_id":"a","question":"q","context":[[1,[]]]})",
         ".context[0] should be"},
        {R"({"_id":"a","question":"q","context":[["t",["s",null]]]})",
         ".context[0][1][1] should be a string, but is null"},
        {R"({"_id":"a","question":"q","context":[],"answer":null})",
         ".answer should be a string"},
        {R"({"_id":"a","question":"q","context":[],"answer":"b"})",
         ".supporting_facts is missing, but training and scores need it"},
        {R"({"_id":"a","question":"q","context":[],"supporting_facts":7})",
         ".supporting_facts should be a list of supporting facts, but is 7"},
        {R"({"_id":"a","question":"q","context":[],)"
         R"("supporting_facts":[["t",0],["t","1"]]})",
         R"(.supporting_facts[1] should be ["title", sentence number])"},
        {R"({"_id":"a","_id":"b","question":"q","context":[]})", "_id"},
        {"{\"_id\":\"a\xff\",\"question\":\"q\",\"context\":[]}", ":1:"},
        {R"({"_id":"\ud800","question":"q","context":[]})", ":1:"},
    }));

// Every token of the example stands for bytes of its text, in order, whole
// characters of it; every span has a text.
void CheckOffsets(const HotpotqaExample& example, const Tokenizer& tokenizer) {
  ASSERT_EQ(example.long_bytes.size(), example.long_token_ids.size());
  for (size_t i = 0; i < example.long_bytes.size(); ++i) {
    const int32_t g = example.pattern.sentence[i];
    if (g < 0 || example.global_paragraph_ids[static_cast<size_t>(g)] < 0) {
      continue;
    }
    const std::string& text = example.TextOf(g);
    const auto [begin, end] = example.long_bytes[i];
    ASSERT_TRUE(0 <= begin && begin <= end &&
                end <= static_cast<int64_t>(text.size()))
        << i << " of " << text;
    const auto at = static_cast<int64_t>(i);
    const std::string own = OriginalAnswerText(example, {at, at});
    EXPECT_NE(text.find(own), std::string::npos);
    OfficialAnswerText(example, {at, at}, TokenizerKind::kWordPiece, tokenizer);
  }
}

TEST(HotpotqaReaderTest, SurvivesDamagedFiles) {
  const std::string seed = absl::StrCat(
      "[", kHotpotqaSpecJson, R"(,{"_id":"b","question":"no\u0130?",)",
      R"("answer":"\ud83d\ude00 é","supporting_facts":[["T\u0000",0]],)",
      R"("context":[["T\u0000",["x \ud83d\ude00 é. \"q\"\\"," e\u0301\r\n"]],)",
      R"(["",[""]]]}])");
  const WordTokenizer tokenizer = HotpotqaSpecTokenizer();
  Mutator mutator(20240607);
  int parsed = 0;
  constexpr int kRounds = RoundsOfDamage(6000);
  for (int round = 0; round < kRounds; ++round) {
    const std::string text =
        mutator.Mutate(seed, {"{", "}", "[", "]", "\"", ",", ":", "\\", "\\u0",
                              "\n", "\xc3", "\x80", "\xff", "null", "1e9"});
    RecordScanner scanner("mutant");
    if (!scanner.Scan(text).ok() || !scanner.Finish().ok()) {
      continue;
    }
    for (const auto& [begin, length] : scanner.TakeExtents()) {
      auto record = Parse(text.substr(begin, length));
      if (!record.ok()) {
        continue;
      }
      ++parsed;
      const bool official = round % 2 == 0;
      const auto example =
          MakeHotpotqaExample(*std::move(record), tokenizer,
                              {.input = {.max_long_length = 20 + round % 40,
                                         .max_global_length = 5 + round % 20},
                               .official_compatibility = official});
      CheckOffsets(*example, tokenizer);
      const std::vector<float> facts(
          static_cast<size_t>(example->global_length()), 1.0F);
      const std::vector<float> begins_and_ends(
          2 * static_cast<size_t>(example->long_length()), 0.5F);
      const std::vector<float> type = {1, 0, 0};
      const Hotpotqa::Output output = {.example = example,
                                       .logits = {.supporting_facts = facts,
                                                  .answer_type = type,
                                                  .answer = begins_and_ends}};
      Hotpotqa({.official_compatibility = official}, &tokenizer)
          .Decode({&output, 1});
    }
  }
  // Many mutants hurt one text or one record only.
  EXPECT_GT(parsed, kRounds / 5);
  EXPECT_LT(parsed, kRounds * 2 * 39 / 40);
}

TEST(HotpotqaReaderTest, ReadsArraysWithByteOrderMarkAndCrlf) {
  TemporaryDirectory directory;
  const auto file = RecordFile::Open(directory.Write(
      "dev.json", absl::StrCat("\xEF\xBB\xBF[\r\n", kHotpotqaSpecJson, ",\r\n",
                               kHotpotqaSpecJson, "\r\n]\r\n")));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->size(), 2);
  EXPECT_TRUE(Parse(*file->Read(1)).ok());
}

TEST(HotpotqaReaderTest, TakesVeryLongDocuments) {
  HotpotqaRecord record{.id = "long", .question = "who", .answer = "jane"};
  record.context.push_back({"acme", {}});
  std::string sentence;
  for (int i = 0; i < 31; ++i) {
    absl::StrAppend(&sentence, "who is a ");
  }
  for (int i = 0; i < 5000; ++i) {
    record.context[0].sentences.push_back(sentence);
  }
  record.context[0].sentences.push_back("jane");
  record.supporting_facts = {{"acme", 5000}};
  const WordTokenizer tokenizer = HotpotqaSpecTokenizer();
  const auto example = MakeHotpotqaExample(record, tokenizer);
  EXPECT_LE(example->long_length(), 4096);
  EXPECT_EQ(example->dropped_texts, 5000 - 44);
  const auto whole = MakeHotpotqaExample(
      record, tokenizer,
      {.input = {.max_long_length = 1000000, .max_global_length = 10000}});
  EXPECT_EQ(whole->long_length(), 1 + 1 + 1 + 5000 * 93 + 1);
  EXPECT_EQ(OriginalAnswerText(*whole, whole->target_span()), "jane");
}

TEST(HotpotqaReaderTest, ReadsEveryRealRecord) {
  ETC_SHARED_DATA_OR_SKIP(const std::string vocabulary,
                          "data/vocab/bert-uncased/vocab.txt");
  const auto tokenizer = LoadTokenizer(vocabulary);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  for (const auto& [name, size] : {std::pair("hotpot_dev_distractor_v1", 126),
                                   std::pair("hotpot_train_v1.1", 50)}) {
    ETC_SHARED_DATA_OR_SKIP(
        const std::string path,
        absl::StrCat("data/hotpotqa/", name, ".sample.json"));
    const auto file = RecordFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->size(), size);
    for (int64_t i = 0; i < file->size(); ++i) {
      const auto text = file->Read(i);
      ASSERT_TRUE(text.ok()) << text.status();
      const auto record = Hotpotqa().ParseRecord(*text, file->Where(i));
      ASSERT_TRUE(record.ok()) << record.status();
      EXPECT_TRUE(record->answer.has_value()) << record->id;
      EXPECT_GE(record->supporting_facts.size(), 2u) << record->id;
      const auto example = MakeHotpotqaExample(*record, **tokenizer);
      CheckOffsets(*example, **tokenizer);
    }
  }
}

}  // namespace
}  // namespace etc
