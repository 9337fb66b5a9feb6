// The official prediction file (doc/nq.md 6.5, 7.1): what is read and written,
// which mistakes are found, and that damaged files do no harm.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tasks/nq/prediction.h"
#include "tests/support/mutation.h"
#include "tests/support/sanitizers.h"

namespace etc {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The file of doc/nq.md 6.5.
constexpr char kFile[] =
    R"({"predictions":[{"example_id":-42,"yes_no_answer":"NONE","short_answers_score":4.5,
 "short_answers":[{"start_token":8,"end_token":10,"start_byte":-1,"end_byte":-1}],
 "long_answer_score":6.0,"long_answer":{"start_token":3,"end_token":18,"start_byte":-1,"end_byte":-1}}]})";

TEST(NqPredictionsFromJsonTest, ReadsTheFileOfTheSpec) {  // doc/nq.md 6.5
  const auto predictions = NqPredictionsFromJson(kFile, "p.json");
  ASSERT_TRUE(predictions.ok()) << predictions.status();
  ASSERT_EQ(predictions->size(), 1u);
  const NqPrediction& prediction = predictions->front();
  EXPECT_EQ(prediction.example_id, -42);
  EXPECT_EQ(prediction.long_answer,
            (NqSpan{.start_token = 3, .end_token = 18}));
  EXPECT_EQ(prediction.long_answer_score, 6);
  ASSERT_EQ(prediction.short_answers.size(), 1u);
  EXPECT_EQ(prediction.short_answers[0],
            (NqSpan{.start_token = 8, .end_token = 10}));
  EXPECT_EQ(prediction.short_answers_score, 4.5);
  EXPECT_EQ(prediction.yes_no, NqYesNo::kNone);
}

// doc/nq.md 7.1
TEST(NqPredictionsFromJsonTest, TakesWhatIsAbsentForNoAnswer) {
  const auto predictions = NqPredictionsFromJson(
      R"({"predictions":[{"example_id":"7","long_answer_score":1,"short_answers_score":-2}]})",
      "p.json");
  ASSERT_TRUE(predictions.ok()) << predictions.status();
  const NqPrediction& prediction = predictions->front();
  EXPECT_EQ(prediction.example_id, 7);
  EXPECT_TRUE(prediction.long_answer.is_null());
  EXPECT_THAT(prediction.short_answers, IsEmpty());
  EXPECT_EQ(prediction.yes_no, NqYesNo::kNone);
}

TEST(NqPredictionsToJsonTest, IsReadBackAsItWas) {
  const std::vector<NqPrediction> written = {
      {.example_id = std::numeric_limits<int64_t>::min(),
       .long_answer = {1, 20, 3, 18},
       .long_answer_score = 0.1,
       .short_answers = {{5, 6, 7, 8}, {.start_token = 9, .end_token = 11}},
       .short_answers_score = -1.0 / 3},
      {.example_id = std::numeric_limits<int64_t>::max(),
       .long_answer_score = 1e-300,
       .yes_no = NqYesNo::kNo,
       .short_answers_score = 12345678.901234567},
      {.yes_no = NqYesNo::kYes}};
  const auto read = NqPredictionsFromJson(NqPredictionsToJson(written), "p");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), written.size());
  for (size_t i = 0; i < written.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ((*read)[i].example_id, written[i].example_id);
    EXPECT_EQ((*read)[i].long_answer, written[i].long_answer);
    EXPECT_EQ((*read)[i].long_answer_score, written[i].long_answer_score);
    EXPECT_EQ((*read)[i].short_answers, written[i].short_answers);
    EXPECT_EQ((*read)[i].short_answers_score, written[i].short_answers_score);
    EXPECT_EQ((*read)[i].yes_no, written[i].yes_no);
  }
}

TEST(NqPredictionsToJsonTest, WritesTheFileOfTheSpec) {  // doc/nq.md 6.5
  const auto predictions = NqPredictionsFromJson(kFile, "p.json");
  EXPECT_EQ(nlohmann::json::parse(NqPredictionsToJson(*predictions)),
            nlohmann::json::parse(kFile));
  EXPECT_EQ(nlohmann::json::parse(NqPredictionsToJson({})),
            nlohmann::json::parse(R"({"predictions":[]})"));
}

// Returns the error about the spec's file after `value` was put at `pointer` of
// its prediction.
std::string Message(const std::string& pointer, const nlohmann::json& value) {
  nlohmann::json json = nlohmann::json::parse(kFile);
  json["predictions"][0][nlohmann::json::json_pointer(pointer)] = value;
  const auto predictions = NqPredictionsFromJson(json.dump(), "p.json");
  EXPECT_EQ(predictions.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(predictions.status().message());
}

TEST(NqPredictionsFromJsonTest, NamesThePlaceOfAMistake) {  // doc/nq.md 7.1
  EXPECT_EQ(Message("/yes_no_answer", "YES"),
            "p.json: predictions[0].yes_no_answer should be \"NONE\" where "
            "there are short answers");
  EXPECT_EQ(Message("/long_answer/end_token", 3),
            "p.json: predictions[0].long_answer.end_token should be more than "
            "start_token, 3, but is 3");
  EXPECT_EQ(Message("/short_answers/0/start_byte", 3),
            "p.json: predictions[0].short_answers[0].end_byte should be "
            "negative exactly if start_byte is, but they are -1 and 3");
  EXPECT_EQ(Message("/long_answer_score", "high"),
            "p.json: predictions[0].long_answer_score should be a number, but "
            "is \"high\"");
  nlohmann::json json;
  for (const char* score : {"long_answer_score", "short_answers_score"}) {
    json = nlohmann::json::parse(kFile);
    json["predictions"][0].erase(score);
    EXPECT_THAT(
        std::string(
            NqPredictionsFromJson(json.dump(), "p.json").status().message()),
        HasSubstr(score));
  }
  EXPECT_THAT(std::string(NqPredictionsFromJson(R"({"predictions":{}})", "p")
                              .status()
                              .message()),
              HasSubstr("predictions should be a list"));
  EXPECT_THAT(std::string(NqPredictionsFromJson("[]", "p").status().message()),
              HasSubstr("p should be an object"));
}

TEST(NqPredictionsFromJsonTest, RefusesTwoForADocument) {
  nlohmann::json json = nlohmann::json::parse(kFile);
  nlohmann::json prediction = json["predictions"][0];
  prediction["example_id"] = 5;
  json["predictions"].push_back(prediction);
  ASSERT_TRUE(NqPredictionsFromJson(json.dump(), "p.json").ok());
  prediction["example_id"] = -42;
  json["predictions"].push_back(prediction);
  EXPECT_EQ(NqPredictionsFromJson(json.dump(), "p.json").status().message(),
            "p.json: predictions[2]: the id \"-42\" should occur once, but is "
            "that of p.json: predictions[0] too");
}

TEST(NqPredictionsFromJsonTest, NamesTheDocumentOfAScoreThatIsNotFinite) {
  const auto message = [](const std::string& score) {
    const std::string file = absl::StrReplaceAll(
        kFile, {{"6.0", score}, {"{\"pred", "{\"a\\\"\": \"\\\\\",\"pred"}});
    return std::string(NqPredictionsFromJson(file, "p").status().message());
  };
  for (const char* score : {"NaN", "Infinity", "-Infinity", "1e999"}) {
    EXPECT_EQ(message(score),
              absl::StrCat("p: predictions[0].long_answer_score should be a "
                           "finite number, but is ",
                           score, " (document -42)"));
  }
  // Other mistakes are told by their place in the file.
  EXPECT_THAT(message("NaN,"), HasSubstr("p:3:"));
}

TEST(NqPredictionsFromJsonTest, SurvivesDamagedFiles) {
  Mutator mutator(11);
  int read = 0;
  constexpr int kRounds = RoundsOfDamage(20000);
  for (int round = 0; round < kRounds; ++round) {
    const auto predictions = NqPredictionsFromJson(
        mutator.Mutate(kFile, {"{", "}", "[", "]", ",", "-1", "null", "1e999",
                               "\"YES\"", "99999999999999999999"}),
        "mutant");
    if (!predictions.ok()) {
      EXPECT_THAT(std::string(predictions.status().message()),
                  HasSubstr("mutant"));
      continue;
    }
    ++read;
    // Predictions that were read can be written and read again.
    EXPECT_TRUE(
        NqPredictionsFromJson(NqPredictionsToJson(*predictions), "again").ok());
  }
  EXPECT_GT(read, kRounds / 50);
  EXPECT_LT(read, kRounds / 2);
}

}  // namespace
}  // namespace etc
