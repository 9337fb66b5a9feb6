// Records and predictions as people see them.

#include "tasks/task/judged_records.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

TEST(FindWordsTest, FindsWholeWordsOfEitherCase) {
  EXPECT_THAT(FindWords("Rome, romans and ROME", {"rome"}),
              ElementsAre(Pair(0, 4), Pair(17, 21)));
  // The longer one of those that begin together, and none within another.
  EXPECT_THAT(FindWords("new york city", {"new york", "york", "new york city"}),
              ElementsAre(Pair(0, 13)));
  EXPECT_THAT(FindWords("a b", {"a", ""}), IsEmpty());
}

TEST(JudgeRecordTest, TakesTheAnswersOutAndFindsTheEvidence) {
  const nlohmann::json record = {
      {"id", "q1"},
      {"query", "country_of ann"},
      {"answer", "Oslo"},
      {"candidates", {"Oslo", "Rome"}},
      {"supports", {"Ann is 7 years old and lives in a town.", "It is Oslo."}}};
  const JudgedRecord judged = JudgeRecord(
      "q1", record, {.answers = {"answer"}, .answer_texts = {"answer"}},
      R"({"id":"q1","answer":"Rome"})");
  EXPECT_EQ(judged.gold, "Oslo");
  EXPECT_EQ(judged.prediction, "Rome");
  EXPECT_THAT(judged.text, Not(HasSubstr("q1")));
  EXPECT_THAT(judged.gold_texts, ElementsAre("Oslo"));
  EXPECT_THAT(judged.predicted_texts, ElementsAre("Rome"));
  EXPECT_THAT(judged.text, HasSubstr("query: country_of ann\n"));
  EXPECT_THAT(judged.text, HasSubstr("candidates: Oslo | Rome\n"));
  EXPECT_THAT(judged.text, Not(HasSubstr("answer:")));
  // "...a town.\nIt is Oslo.": 39 + 1 + 11 characters, Oslo at 46.
  EXPECT_EQ(judged.length, 51);
  EXPECT_DOUBLE_EQ(judged.evidence, 46.0 / 51);
}

TEST(JudgeRecordTest, ShowsAPredictionThatIsTooDeepAsItIs) {
  const std::string prediction =
      std::string(200000, '[') + std::string(200000, ']');
  EXPECT_EQ(JudgeRecord("d", {{"text", "a"}, {"answer", "b"}},
                        {.answers = {"answer"}}, prediction)
                .prediction,
            prediction);
}

TEST(JudgeRecordTest, JoinsTheWordsOfPhrases) {
  const nlohmann::json record = {
      {"text", "a wool pillow and a drum"},
      {"KeyPhrases", {{"wool", "pillow"}, {"drum"}}}};
  const JudgedRecord judged = JudgeRecord(
      "u", record, {.answers = {"KeyPhrases"}, .answer_texts = {"KeyPhrases"}},
      R"({"KeyPhrases":[["a","drum"]],"nbest":[{"text":"x y"}]})");
  EXPECT_THAT(judged.gold_texts, ElementsAre("drum", "wool pillow"));
  EXPECT_THAT(judged.predicted_texts, ElementsAre("a drum"));
  EXPECT_DOUBLE_EQ(judged.evidence, 20.0 / 24);
}

TEST(JudgeRecordTest, LooksForTextsWhereAnswersAreTexts) {
  const nlohmann::json record = {
      {"text", "No easy way: a bridge near Oslo."},
      {"answer", "no"},
      {"facts", nlohmann::json::parse(R"([["Oslo", 0]])")},
      {"level", "easy"},
      {"type", "bridge"}};
  const std::vector<std::string> fields = {"answer", "facts", "level", "type"};
  const std::string prediction = R"({"answer":"yes","sp":[["Oslo",0]]})";
  const JudgedRecord judged = JudgeRecord(
      "h", record, {.answers = fields, .answer_texts = {"answer", "facts"}},
      prediction);
  EXPECT_THAT(judged.gold_texts, ElementsAre("Oslo"));
  EXPECT_THAT(judged.predicted_texts, ElementsAre("Oslo"));
  EXPECT_DOUBLE_EQ(judged.evidence, 27.0 / 32);
  // Answers that are no answer_texts are shown neither as gold nor in the text.
  EXPECT_EQ(judged.gold, R"({"answer":"no","facts":[["Oslo",0]]})");
  EXPECT_THAT(judged.text, Not(HasSubstr("level:")));

  const JudgedRecord none =
      JudgeRecord("h", record, {.answers = fields}, prediction);
  EXPECT_THAT(none.gold_texts, IsEmpty());
  EXPECT_THAT(none.predicted_texts, IsEmpty());
  EXPECT_EQ(none.evidence, -1);
}

TEST(JudgeRecordTest, TakesTheNamedFieldForTheDocument) {
  const nlohmann::json words = nlohmann::json::parse(
      R"([{"token": "buy", "start": 0}, {"token": "wool", "start": 4}])");
  const nlohmann::json record = {{"url", "x.org"},
                                 {"text", ""},
                                 {"words", words},
                                 {"layout", R"([{"text": "buy wool"}])"},
                                 {"answer", "wool"}};
  JudgedFields fields = {.answers = {"answer"},
                         .answer_texts = {"answer"},
                         .documents = {"none", "text", "words"}};
  const JudgedRecord named = JudgeRecord("u", record, fields, "{}");
  EXPECT_EQ(named.text, "text: \nurl: x.org\n\nbuy wool");
  EXPECT_EQ(named.length, 8);
  EXPECT_DOUBLE_EQ(named.evidence, 0.5);
  fields.documents = {"none"};
  EXPECT_THAT(JudgeRecord("u", record, fields, "{}").text,
              testing::EndsWith(R"([{"text": "buy wool"}])"));
}

TEST(JudgeRecordTest, LeavesOutWhatAReaderAdds) {
  const nlohmann::json record = {{"\nlines", {10001, 10002}},
                                 {"\nrow", "3"},
                                 {"set", "b"},
                                 {"text", "a b"}};
  const JudgedRecord judged = JudgeRecord("r", record, {}, "{}");
  EXPECT_EQ(judged.text, "set: b\n\na b");
  EXPECT_EQ(judged.length, 3);
}

// The second Rome begins with byte 14 of 28.
TEST(JudgeRecordTest, TakesThePlaceThatAnAnswerStates) {
  const auto judge = [](int start) {
    const nlohmann::json answer = {{"text", "Rome"}, {"answer_start", start}};
    return JudgeRecord("q",
                       {{"question", "q?"},
                        {"context", "\xC3\x96 Rome, then Rome and Rome."},
                        {"answers", {answer, answer}}},
                       {.answers = {"answers"}, .answer_texts = {"answers"}},
                       "{}");
  };
  const JudgedRecord stated = judge(13);
  EXPECT_EQ(stated.gold, "Rome");
  EXPECT_DOUBLE_EQ(stated.evidence, 0.5);
  ASSERT_THAT(stated.gold_places, ElementsAre(Pair(28, 32)));
  EXPECT_EQ(stated.text.substr(23, 9), "then Rome");
  for (const int elsewhere : {12, 1000, -1}) {
    EXPECT_THAT(judge(elsewhere).gold_places,
                ElementsAre(Pair(17, 21), Pair(28, 32), Pair(37, 41)));
    EXPECT_DOUBLE_EQ(judge(elsewhere).evidence, 3.0 / 28);
  }
}

TEST(JudgeRecordTest, ShowsTheTextsOfAnswers) {
  const JudgedFields fields = {.answers = {"answers", "is_impossible"},
                               .answer_texts = {"answers"}};
  nlohmann::json record = {
      {"text", "a b c d"},
      {"boxes", nlohmann::json::parse("[[0.5, 1.5]]")},
      {"notes", nlohmann::json::array()},
      {"is_impossible", false},
      {"answers", nlohmann::json::parse(
                      R"([{"text": "c"}, {"text": "b"}, {"text": "c"}])")}};
  const JudgedRecord answered =
      JudgeRecord("q", record, fields, R"({"id":"q","answer":"b","nbest":[]})");
  EXPECT_EQ(answered.gold, "c | b");
  EXPECT_EQ(answered.prediction, "b");
  EXPECT_EQ(answered.text, "\na b c d");

  record["answers"] = nlohmann::json::array();
  record["is_impossible"] = true;
  const JudgedRecord impossible =
      JudgeRecord("q", record, fields, R"({"id":"q","answer":"","nbest":[]})");
  EXPECT_EQ(impossible.gold, "none");
  EXPECT_EQ(impossible.prediction, "none");
}

TEST(JudgeRecordTest, CutsOtherFieldsBetweenCharacters) {
  std::string text = "a";
  for (int i = 0; i < 5000; ++i) {
    text += "\xC3\xB6";
  }
  const JudgedRecord judged = JudgeRecord(
      "u", {{"note", text.substr(0, 1001)}, {"text", text}}, {}, "{}");
  EXPECT_EQ(judged.text, "note: " + text.substr(0, 599) + " ...\n\n" + text);
  EXPECT_EQ(judged.length, 5001);
  EXPECT_EQ(judged.evidence, -1);
}

}  // namespace
}  // namespace etc
