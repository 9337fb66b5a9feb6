// Predictions beside the gold of files: which prediction is a record's, by
// which rules it is scored, and which field is its document.

#include "tasks/task/judge_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tasks/glue/task.h"
#include "tasks/metrics.h"
#include "tasks/nq/task.h"
#include "tasks/openkp/task.h"
#include "tasks/task/benchmark.h"
#include "tasks/task/judged_records.h"
#include "tasks/task/score_files.h"
#include "tasks/tokens/task.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/nq/spec_record.h"
#include "tests/tasks/openkp/spec_record.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::DoubleEq;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

std::shared_ptr<const Glue> Mnli() {
  auto options = ReadTaskOptions<Glue>({{"name", "mnli"}}, "f: glue");
  EXPECT_TRUE(options.ok()) << options.status();
  return std::make_shared<const Glue>(*std::move(options));
}

// Both dev files of MNLI, whose rows have the numbers 0 and 1.
class JudgeSeveralFilesTest : public testing::Test {
 protected:
  absl::StatusOr<JudgedRecords> Judge(const std::vector<std::string>& gold,
                                      const std::string& predictions) {
    return JudgeFiles(
        Mnli(),
        {.gold = gold,
         .predictions = directory_.Write("predictions.json", predictions)},
        {});
  }

  std::string Refusal(const std::vector<std::string>& gold,
                      const std::string& predictions) {
    const auto judged = Judge(gold, predictions);
    EXPECT_EQ(judged.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(judged.status().message());
  }

  TemporaryDirectory directory_;
  const std::string header_ = "index\tsentence1\tsentence2\tgold_label\n";
  const std::string mismatched_ = directory_.Write(
      "dev_mismatched.tsv", header_ + "0\ta\tb\tneutral\n1\tc\td\tneutral\n");
  const std::string matched_ = directory_.Write(
      "dev_matched.tsv", header_ + "0\te\tf\tentailment\n1\tg\th\tneutral\n");
};

TEST_F(JudgeSeveralFilesTest, TakesPredictionsWhoseIdsComeAgainInOrder) {
  const std::string all =
      "index\tprediction\n0\tneutral\n1\tentailment\n0\tentailment\n"
      "1\tcontradiction\n";
  const auto judged = Judge({mismatched_, matched_}, all);
  ASSERT_TRUE(judged.ok()) << judged.status();
  ASSERT_EQ(judged->records.size(), 4u);
  EXPECT_EQ(judged->records[1].id, "1");
  EXPECT_EQ(judged->records[2].id, "0 (2)");
  EXPECT_EQ(judged->records[2].gold, "entailment");
  EXPECT_EQ(judged->records[2].prediction, "entailment");
  EXPECT_THAT(judged->records[2].gold_texts, IsEmpty());
  EXPECT_EQ(FindMetric(judged->score({2}), "accuracy"), 1.0);
  EXPECT_EQ(FindMetric(judged->score({3}), "accuracy"), 0.0);
  const Metrics scores = judged->score({0, 1, 2, 3});
  EXPECT_EQ(FindMetric(scores, "accuracy_mismatched"), 0.5);
  EXPECT_EQ(FindMetric(scores, "accuracy_matched"), 0.5);

  // The files that `score` compares have each id once.
  EXPECT_THAT(std::string(ScoreFiles(*Mnli(), {.gold = matched_,
                                               .predictions = directory_.File(
                                                   "predictions.json")})
                              .status()
                              .message()),
              HasSubstr("predictions.json:4: the id \"0\" should occur once"));
}

TEST_F(JudgeSeveralFilesTest, RefusesPredictionsInAnotherOrder) {
  const std::string rows = "index\tprediction\n0\tneutral\n1\tneutral\n";
  EXPECT_THAT(Refusal({matched_}, rows + "0\tneutral\n1\tneutral\n"),
              AllOf(HasSubstr("predictions.json has ids that come again"),
                    HasSubstr("a prediction for each record of " + matched_),
                    EndsWith("but has 4 for 2 records")));
  EXPECT_THAT(Refusal({mismatched_, matched_}, rows + "1\tneutral\n"),
              HasSubstr("number 3 is not that of " + matched_ + ":2"));
  EXPECT_THAT(
      Refusal({mismatched_, matched_}, rows),
      HasSubstr(matched_ + ":2: the id \"0\" should occur once, as in "));
}

// Scores of GLUE's `name` for single rows of a file and of predictions.
std::vector<std::pair<std::string, double>> RecordScores(
    const std::string& name, const std::string& rows,
    const std::string& predictions) {
  TemporaryDirectory directory;
  auto options = ReadTaskOptions<Glue>({{"name", name}}, "f: glue");
  EXPECT_TRUE(options.ok()) << options.status();
  const auto judged =
      JudgeFiles(std::make_shared<const Glue>(*std::move(options)),
                 {.gold = {directory.Write("dev.tsv", rows)},
                  .predictions = directory.Write(
                      "p.tsv", "index\tprediction\n" + predictions)},
                 {});
  EXPECT_TRUE(judged.ok()) << judged.status();
  std::vector<std::pair<std::string, double>> scores;
  for (size_t i = 0; judged.ok() && i < judged->records.size(); ++i) {
    scores.push_back(judged->record_score(i));
  }
  return scores;
}

// Correlations of one row are 0, and so is F1 of one that is rightly negative.
TEST(JudgeFilesTest, ScoresSingleRowsByWhatSaysSomethingOfThem) {
  EXPECT_THAT(RecordScores("cola", "a\t1\t\tb\na\t0\t*\tb\na\t1\t\tb\n",
                           "0\t1\n1\t0\n2\t0\n"),
              ElementsAre(Pair("accuracy", 1), Pair("accuracy", 1),
                          Pair("accuracy", 0)));
  EXPECT_THAT(RecordScores("mrpc",
                           "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
                           "0\t1\t2\ta\tb\n1\t1\t2\ta\tb\n",
                           "0\t0\n1\t1\n"),
              ElementsAre(Pair("accuracy", 1), Pair("accuracy", 1)));
  EXPECT_THAT(
      RecordScores("stsb",
                   "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\t"
                   "sentence1\tsentence2\tscore\n"
                   "0\tg\tf\ty\t1\tnone\tnone\ta\tb\t4.000\n",
                   "0\t2.500\n"),
      ElementsAre(Pair("absolute_error", DoubleEq(1.5))));
}

// A page of Natural Questions with the annotation `gold`, and its prediction.
JudgedFiles PageFiles(const nlohmann::json& gold, nlohmann::json prediction,
                      TemporaryDirectory* directory) {
  nlohmann::json record = NqSpecJson();
  record["annotations"][0] = gold;
  prediction.update({{"example_id", record["example_id"]},
                     {"long_answer_score", 1},
                     {"short_answers_score", 1}});
  return {.gold = {directory->Write("gold.jsonl", record.dump())},
          .predictions = directory->Write(
              "p.json", nlohmann::json{{"predictions",
                                        nlohmann::json::array({prediction})}}
                            .dump())};
}

// One annotator decides, but by the official rules two have to agree.
TEST(JudgeFilesTest, ScoresByTheRulesOfTheOptions) {
  TemporaryDirectory directory;
  const nlohmann::json answers = NqSpecJson()["annotations"][0];
  const JudgedFiles files = PageFiles(answers, answers, &directory);
  for (const bool official : {false, true}) {
    const auto nq = std::make_shared<const Nq>(
        NqOptions{.official_compatibility = official});
    const auto judged = JudgeFiles(nq, files, {});
    ASSERT_TRUE(judged.ok()) << judged.status();
    EXPECT_EQ(FindMetric(judged->score({0}), "average_f1"),
              official ? 0.0 : 1.0);
    const auto scores = ScoreFiles(
        *nq, {.gold = files.gold[0], .predictions = files.predictions});
    ASSERT_TRUE(scores.ok()) << scores.status();
    EXPECT_EQ(FindMetric(*scores, "average_f1"), official ? 0.0 : 1.0);
  }
}

// By the best threshold a page without an answer has the score 0, whatever is
// predicted for it.
TEST(JudgeFilesTest, ScoresSinglePagesWithoutAnswers) {
  const nlohmann::json both = NqSpecJson()["annotations"][0];
  nlohmann::json only_long = both;
  only_long["short_answers"] = nlohmann::json::array();
  nlohmann::json none = only_long;
  none["long_answer"] = {{"start_byte", -1},
                         {"end_byte", -1},
                         {"start_token", -1},
                         {"end_token", -1}};
  const auto score = [](const nlohmann::json& gold,
                        const nlohmann::json& predicted) {
    TemporaryDirectory directory;
    const auto judged = JudgeFiles(std::make_shared<const Nq>(),
                                   PageFiles(gold, predicted, &directory), {});
    EXPECT_TRUE(judged.ok()) << judged.status();
    return judged.ok() ? judged->record_score(0)
                       : std::pair<std::string, double>();
  };
  EXPECT_THAT(score(none, none), Pair("average_f1", 1));
  EXPECT_THAT(score(none, only_long), Pair("average_f1", 0.5));
  EXPECT_THAT(score(only_long, only_long), Pair("average_f1", 1));
  EXPECT_THAT(score(both, only_long), Pair("average_f1", 0.5));
  EXPECT_THAT(score(both, none), Pair("average_f1", 0));
}

// The text of a judged record of Natural Questions.
std::string JudgedPage(const nlohmann::json& record) {
  TemporaryDirectory directory;
  const auto judged = JudgeFiles(
      std::make_shared<const Nq>(),
      {.gold = {directory.Write("gold.jsonl", record.dump())},
       .predictions = directory.Write(
           "p.json",
           absl::StrCat(
               R"({"predictions":[{"example_id":-42,)",
               R"("long_answer_score":1,"short_answers_score":1}]})"))},
      {});
  EXPECT_TRUE(judged.ok()) << judged.status();
  return judged.ok() ? judged->records.at(0).text : "";
}

TEST(JudgeFilesTest, ShowsTheTextOfPagesInPlaceOfTheirLayout) {
  const std::string page = JudgedPage(NqSpecJson());
  EXPECT_THAT(page, EndsWith("\n\n<H1> Blue </H1> <P> Blue was written by Ann "
                             "Lee . </P> <Table> <Tr> Year 1999 </Tr> "
                             "</Table>"));
  EXPECT_THAT(page, AllOf(HasSubstr("question_text: who wrote blue\n"),
                          Not(HasSubstr("document_html"))));
  EXPECT_THAT(JudgedPage(SimplifiedNqJson(NqSpecJson())),
              EndsWith("\n\n<H1> Blue </H1> <P> Blue was written by Ann Lee . "
                       "</P> <Table> <Tr> Year 1999 </Tr> </Table>"));

  TemporaryDirectory directory;
  const nlohmann::json record = GreenTeaJson();
  const auto judged = JudgeFiles(
      std::make_shared<const Openkp>(),
      {.gold = {directory.Write("gold.jsonl", record.dump())},
       .predictions = directory.Write(
           "p.jsonl",
           R"({"url": "http://x.org/tea", "KeyPhrases": [["tea"]]})")},
      {});
  ASSERT_TRUE(judged.ok()) << judged.status();
  const JudgedRecord& tea = judged->records.at(0);
  EXPECT_EQ(tea.text, "\nGreen Tea Guide How to brew green tea at home");
  EXPECT_EQ(tea.length, 45);
  // "brew green tea" begins after 23 characters.
  EXPECT_DOUBLE_EQ(tea.evidence, 23.0 / 45);
}

TEST(JudgeFilesTest, ShowsTheWordsOfSpansOfPages) {
  TemporaryDirectory directory;
  const nlohmann::json answers = NqSpecJson()["annotations"][0];
  JudgedFiles files = PageFiles(answers, answers, &directory);
  nlohmann::json simplified = SimplifiedNqJson(NqSpecJson());
  nlohmann::json without_tokens = NqSpecJson();
  without_tokens.erase("document_tokens");
  const auto judge = [&] {
    const auto judged = JudgeFiles(std::make_shared<const Nq>(), files, {});
    EXPECT_TRUE(judged.ok()) << judged.status();
    return judged.ok() ? judged->records.at(0) : JudgedRecord();
  };
  const auto shows_words =
      AllOf(HasSubstr("\"long_answer\":\"Blue was written by Ann Lee .\""),
            HasSubstr("\"short_answers\":[\"Ann Lee\"]"));
  EXPECT_THAT(judge().gold, shows_words);
  EXPECT_THAT(judge().prediction, shows_words);
  files.gold = {directory.Write("gold.jsonl", simplified.dump())};
  EXPECT_THAT(judge().gold, shows_words);
  files.gold = {directory.Write("gold.jsonl", without_tokens.dump())};
  EXPECT_THAT(judge().gold, HasSubstr("\"start_token\":8"));
}

// The lines of its words are longer than this text, whose word is also the name
// of a label.
TEST(JudgeFilesTest, ShowsTheTextOfConll) {
  TemporaryDirectory directory;
  const auto judged = JudgeFiles(
      std::make_shared<const Tokens>(),
      {.gold = {directory.Write("gold.conll",
                                "-DOCSTART- O\n\nan O\nx B-an\n\ny O\nz O\n")},
       .predictions = directory.Write(
           "p.jsonl",
           R"({"id": "0", "spans": [{"start": 3, "end": 4, "label": "an"}]})")},
      {});
  ASSERT_TRUE(judged.ok()) << judged.status();
  const JudgedRecord& record = judged->records.at(0);
  EXPECT_EQ(record.text, "\nan x\ny z");
  EXPECT_EQ(record.length, 8);
  EXPECT_THAT(record.gold_texts, IsEmpty());
  EXPECT_THAT(record.predicted_texts, IsEmpty());
  EXPECT_EQ(record.evidence, -1);
}

}  // namespace
}  // namespace etc
