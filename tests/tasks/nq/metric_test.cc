// The official scores of a data set: which names they have, what one annotator
// is worth, files of several shards and of either format, files that do not
// fit, and what real annotations score when they are the predictions.

#include "tasks/nq/metric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tasks/data/record_file.h"
#include "tasks/nq/task.h"
#include "tasks/task/score_files.h"
#include "tests/support/shared_data.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/nq/spec_record.h"

namespace etc {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ScoreMap = std::map<std::string, double>;

constexpr double kTolerance = 1e-12;
constexpr ScoringRules kOfficial = ScoringRules::kOfficial;

ScoreMap ToMap(const Metrics& scores) { return {scores.begin(), scores.end()}; }

NqAnnotation Answer(int64_t start, int64_t end) {
  const NqSpan span = {.start_token = start, .end_token = end};
  return {.long_answer = span, .short_answers = {span}};
}

NqPrediction Predict(int64_t id, const NqAnnotation& answer, double score) {
  return {.example_id = id,
          .long_answer = answer.long_answer,
          .long_answer_score = score,
          .short_answers = answer.short_answers,
          .yes_no = answer.yes_no,
          .short_answers_score = score};
}

// Collects gold and predictions to score.
struct Scorer {
  void AddGold(int64_t id, const std::vector<NqAnnotation>& annotations) {
    gold.emplace_back(absl::StrCat(id), annotations);
  }
  void AddPrediction(const NqPrediction& prediction) {
    predictions.emplace_back(absl::StrCat(prediction.example_id), prediction);
  }
  Metrics Scores() const { return ScoreNq(gold, predictions, rules); }

  ScoringRules rules = ScoringRules::kDefault;
  ById<std::vector<NqAnnotation>> gold = {};
  ById<NqPrediction> predictions = {};
};

TEST(ScoreNqTest, NamesItsScoresInOrder) {
  Scorer scorer;
  EXPECT_TRUE(scorer.Scores().empty());
  scorer.AddPrediction(Predict(1, Answer(0, 3), 1));
  EXPECT_TRUE(scorer.Scores().empty());
  scorer.AddGold(1, {Answer(0, 3)});
  std::vector<std::string> names;
  for (const auto& [name, value] : scorer.Scores()) {
    names.push_back(name);
  }
  EXPECT_THAT(
      names,
      ElementsAre(
          "average_f1", "long_f1", "long_precision", "long_recall",
          "long_threshold", "long_recall_at_precision_0.5",
          "long_recall_at_precision_0.75", "long_recall_at_precision_0.9",
          "short_f1", "short_precision", "short_recall", "short_threshold",
          "short_recall_at_precision_0.5", "short_recall_at_precision_0.75",
          "short_recall_at_precision_0.9"));
}

// Two documents with an answer each; one is found, and too sure of the wrong
// one for it to be left out.
TEST(ScoreNqTest, ChoosesThresholdsOfLongAndShortApart) {  // doc/nq.md 7.3
  Scorer scorer;
  const std::vector<NqAnnotation> gold = {
      Answer(0, 3), Answer(0, 3), {}, {}, {}};
  scorer.AddGold(1, gold);
  scorer.AddGold(2, gold);
  NqPrediction right = Predict(1, Answer(0, 3), 1);
  right.short_answers_score = 3;
  scorer.AddPrediction(right);
  scorer.AddPrediction(Predict(2, Answer(0, 2), 2));
  const ScoreMap scores = ToMap(scorer.Scores());
  EXPECT_NEAR(scores.at("long_f1"), .5, kTolerance);
  EXPECT_EQ(scores.at("long_threshold"), 1);
  EXPECT_EQ(scores.at("long_precision"), .5);
  EXPECT_EQ(scores.at("long_recall"), .5);
  EXPECT_NEAR(scores.at("short_f1"), 2. / 3, kTolerance);
  EXPECT_EQ(scores.at("short_threshold"), 3);
  EXPECT_EQ(scores.at("short_precision"), 1);
  EXPECT_NEAR(scores.at("average_f1"), (.5 + 2. / 3) / 2, kTolerance);
  EXPECT_EQ(scores.at("long_recall_at_precision_0.5"), .5);
  EXPECT_EQ(scores.at("long_recall_at_precision_0.75"), 0);
  EXPECT_EQ(scores.at("short_recall_at_precision_0.9"), .5);
}

ScoreMap ScoresOf(const std::vector<NqAnnotation>& gold,
                  const NqAnnotation& predicted, ScoringRules rules) {
  Scorer scorer{.rules = rules};
  scorer.AddGold(5, gold);
  scorer.AddPrediction(Predict(5, predicted, 1));
  return ToMap(scorer.Scores());
}

TEST(ScoreNqTest, BelievesASingleAnnotatorUnlessOfficial) {
  const NqAnnotation answer = Answer(2, 4);
  EXPECT_EQ(ScoresOf({answer}, answer, {}).at("average_f1"), 1);
  EXPECT_EQ(ScoresOf({answer}, answer, kOfficial).at("average_f1"), 0);
  // Both are the same from two annotators on.
  for (const ScoringRules rules : {ScoringRules::kDefault, kOfficial}) {
    EXPECT_EQ(ScoresOf({answer, answer}, answer, rules).at("average_f1"), 1);
    EXPECT_EQ(ScoresOf({answer, {}}, answer, rules).at("average_f1"), 0);
    EXPECT_EQ(ScoresOf({{}}, answer, rules).at("average_f1"), 0);
  }
}

TEST(ScoreNqTest, CountsDocumentsWithoutPredictionAsNotFound) {
  Scorer scorer;
  scorer.AddGold(1, {Answer(0, 3)});
  scorer.AddGold(2, {Answer(0, 3)});
  scorer.AddPrediction(Predict(1, Answer(0, 3), -5));
  const ScoreMap scores = ToMap(scorer.Scores());
  EXPECT_EQ(scores.at("long_recall"), .5);
  EXPECT_EQ(scores.at("long_precision"), 1);
  scorer.AddPrediction(Predict(9, {}, 0));
  EXPECT_EQ(ToMap(scorer.Scores()), scores);
}

class ScoreNqFilesTest : public testing::Test {
 protected:
  std::string Predictions(const std::vector<NqPrediction>& predictions) {
    return directory_.Write("predictions.json",
                            NqPredictionsToJson(predictions));
  }
  static std::string Record(int64_t id) {
    nlohmann::json json = NqSpecJson();
    json["example_id"] = id;
    return json.dump() + "\n";
  }
  static std::string Message(const std::string& gold,
                             const std::string& predictions) {
    const auto scores =
        ScoreFiles(Nq(), {.gold = gold, .predictions = predictions});
    EXPECT_EQ(scores.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(scores.status().message());
  }
  // The answers of the spec's record.
  const NqAnnotation right_ =
      Nq().ParseRecord(NqSpecJson().dump(), "spec")->annotations[0];
  TemporaryDirectory directory_;
};

TEST_F(ScoreNqFilesTest, ReadsShardsOfAnyKind) {
  directory_.Write("gold-0.jsonl", Record(1) + Record(-2));
  nlohmann::json simplified = SimplifiedNqJson(NqSpecJson());
  simplified["example_id"] = "3";
  const gzFile packed =
      gzopen(directory_.File("gold-1.jsonl.gz").c_str(), "wb");
  ASSERT_GT(gzputs(packed, simplified.dump().c_str()), 0);
  ASSERT_EQ(gzclose(packed), Z_OK);
  directory_.Write("gold-2.jsonl",
                   nlohmann::json{{"example_id", 4},
                                  {"annotations", NqSpecJson()["annotations"]}}
                       .dump());
  const std::string gold = directory_.File("gold-?.jsonl*");
  const std::string predictions =
      Predictions({Predict(1, right_, 1), Predict(-2, right_, 2),
                   Predict(3, right_, 3), Predict(4, right_, 4)});
  const auto scores =
      ScoreFiles(Nq(), {.gold = gold, .predictions = predictions});
  ASSERT_TRUE(scores.ok()) << scores.status();
  EXPECT_EQ(ToMap(*scores).at("average_f1"), 1);
  EXPECT_EQ(ToMap(*scores).at("long_threshold"), 1);
  const auto official =
      ScoreFiles(Nq(), {.gold = gold, .predictions = predictions}, kOfficial);
  EXPECT_EQ(ToMap(*official).at("average_f1"), 0);
}

TEST_F(ScoreNqFilesTest, RefusesFilesOfOtherDocuments) {  // doc/nq.md 7.1
  const std::string gold =
      directory_.Write("gold.jsonl", Record(1) + Record(2));
  const std::string one = Predictions({Predict(1, right_, 1)});
  EXPECT_THAT(Message(gold, one), HasSubstr("but has none for 2"));
  const std::string three = Predictions(
      {Predict(1, right_, 1), Predict(2, right_, 1), Predict(3, right_, 1)});
  EXPECT_THAT(Message(gold, three),
              HasSubstr("has a prediction for 3, which is no document of"));
}

TEST_F(ScoreNqFilesTest, RefusesIdsThatComeAgain) {
  const std::string predictions = Predictions({Predict(1, right_, 1)});
  EXPECT_THAT(
      Message(directory_.Write("gold.jsonl", Record(1) + Record(2) + Record(1)),
              predictions),
      AllOf(HasSubstr("gold.jsonl: record 2: the id \"1\" should occur once"),
            HasSubstr("gold.jsonl: record 0 too")));
  EXPECT_THAT(
      Message(directory_.Write("gold.jsonl", Record(1)),
              Predictions({Predict(1, right_, 1), Predict(1, right_, 1)})),
      AllOf(HasSubstr("predictions[1]: the id \"1\" should occur once"),
            HasSubstr("predictions[0] too")));
}

TEST_F(ScoreNqFilesTest, LeavesOutPagesWithoutAnnotations) {
  nlohmann::json none = NqSpecJson();
  none["example_id"] = 2;
  none["annotations"] = nlohmann::json::array();
  const std::string gold =
      directory_.Write("gold.jsonl", Record(1) + none.dump() + "\n");
  UnansweredRecords unanswered;
  const auto scores = ScoreFiles(
      Nq(),
      {.gold = gold,
       .predictions =
           Predictions({Predict(1, right_, 1), Predict(2, right_, 2)})},
      ScoringRules::kDefault, {}, &unanswered);
  ASSERT_TRUE(scores.ok()) << scores.status();
  EXPECT_EQ(ToMap(*scores).at("long_precision"), 1);
  EXPECT_EQ(unanswered.count, 1);
  EXPECT_THAT(unanswered.first, HasSubstr("gold.jsonl: record 1"));
}

TEST_F(ScoreNqFilesTest, RefusesGoldThatCannotBeScored) {
  const std::string predictions = Predictions({Predict(1, right_, 1)});
  nlohmann::json json = NqSpecJson();
  json["annotations"] = nlohmann::json::array();
  EXPECT_THAT(Message(directory_.Write("b.jsonl", json.dump()), predictions),
              HasSubstr("b.jsonl: record 0 is the first"));
  json.erase("annotations");
  EXPECT_THAT(Message(directory_.Write("c.jsonl", json.dump()), predictions),
              HasSubstr("c.jsonl: record 0 is the first"));
  EXPECT_EQ(ScoreFiles(Nq(), {.gold = directory_.File("no-*.jsonl"),
                              .predictions = predictions})
                .status()
                .code(),
            absl::StatusCode::kNotFound);
}

// The only record of a file of real data.
NqRecord ReadReal(const std::string& path) {
  const auto file = RecordFile::Open(path);
  return *Nq().ParseRecord(*file->Read(0), file->Where(0));
}

TEST(NqRealScoresTest, FindsTheLongAnswerOfTwoAnnotatorsOfFive) {
  ETC_SHARED_DATA_OR_SKIP(
      const std::string path,
      "data/natural_questions/nq-dev-original.sample.jsonl");
  const NqRecord record = ReadReal(path);
  int with_long = 0;
  int with_short = 0;
  for (const NqAnnotation& annotation : record.annotations) {
    with_long += !annotation.long_answer.is_null();
    with_short += !annotation.short_answers.empty();
  }
  // Two gave the same long answer, and one of them a short one, which by the
  // rule of two annotators is none: giving it is wrong.
  ASSERT_EQ(with_long, 2);
  ASSERT_EQ(with_short, 1);
  for (const ScoringRules rules : {ScoringRules::kDefault, kOfficial}) {
    const ScoreMap scores =
        ScoresOf(record.annotations, record.annotations[3], rules);
    EXPECT_EQ(scores.at("long_f1"), 1);
    EXPECT_EQ(scores.at("short_f1"), 0);
  }
}

TEST(NqRealScoresTest, FindsTheAnswersOfTheOnlyAnnotator) {
  ETC_SHARED_DATA_OR_SKIP(
      const std::string path,
      "data/natural_questions/nq-train-simplified.sample.jsonl");
  const NqRecord record = ReadReal(path);
  ASSERT_EQ(record.annotations.size(), 1u);
  const NqAnnotation& answer = record.annotations[0];
  EXPECT_EQ(ScoresOf({answer}, answer, {}).at("average_f1"), 1);
  EXPECT_EQ(ScoresOf({answer}, answer, kOfficial).at("average_f1"), 0);
}

}  // namespace
}  // namespace etc
