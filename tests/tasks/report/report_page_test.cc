// The page of a report: its parts, and that nothing is loaded from elsewhere.

#include "tasks/report/report_page.h"

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tasks/report/written_runs.h"

namespace etc {
namespace {

using testing::HasSubstr;
using testing::Not;

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// Runs of off and sum with three seeds each.
Report TwoModes() {
  WrittenRuns runs;
  for (const int seed : {1, 2, 3}) {
    runs.WriteSeed("off", seed, {0.1 * seed, 0.2 * seed},
                   WrittenRuns::Settings("off"));
    runs.WriteSeed("sum", seed, {0.5, 0.7 + 0.1 * seed},
                   WrittenRuns::Settings("sum"));
  }
  return {.groups = *ReadRunGroups({runs.Path("off"), runs.Path("sum")}),
          .metric = {.name = "accuracy"}};
}

TEST(BandOfTest, IsTheMedianAndTheRangeOfMeansOfParts) {
  const Curve a = {{1, 1.0}, {2, 3.0}, {3, 5.0}};
  const Curve b = {{1, 2.0}, {2, 2.0}};
  const Curve c = {{1, 6.0}, {2, 8.0}, {3, 9.0}};
  const std::vector<CurveBand> band = BandOf({&a, &b, &c}, 3, 2);
  ASSERT_EQ(band.size(), 2u);
  EXPECT_EQ(band[0].step, 2);
  EXPECT_DOUBLE_EQ(band[0].low, 2);
  EXPECT_DOUBLE_EQ(band[0].median, 2);
  EXPECT_DOUBLE_EQ(band[0].high, 7);
  EXPECT_EQ(band[1].step, 3);
  EXPECT_DOUBLE_EQ(band[1].median, 7);  // of 5 and 9
  EXPECT_TRUE(BandOf({}, 0, 2).empty());
}

TEST(ReportPageTest, HasChartsTablesAndTheAnswer) {
  const std::string page = ReportPage(TwoModes());
  // accuracy, loss, gradient norm, rate, speed, waiting
  EXPECT_EQ(Count(page, "<figure class=\"chart\">"), 6u);
  EXPECT_EQ(Count(page, "<polyline"), 12u);
  EXPECT_GE(Count(page, "<polygon"), 2u);  // bands of accuracy
  for (const char* label : {"tokens/s", "seconds per update", "learning rate",
                            "training loss", ">updates</text>"}) {
    EXPECT_THAT(page, HasSubstr(label));
  }
  EXPECT_THAT(page, HasSubstr("Probably yes: sum is better than off here"));
  EXPECT_THAT(page, HasSubstr("0.9000 \xC2\xB1 0.1000"));
  EXPECT_THAT(page, HasSubstr("0.4000 \xC2\xB1 0.2000"));
  EXPECT_THAT(page, HasSubstr("<code>residual_attention</code>"));
  EXPECT_THAT(page, HasSubstr("2 settings, 6 runs, all ended"));
}

TEST(ReportPageTest, LoadsNothingFromElsewhere) {
  const std::string page = ReportPage(TwoModes());
  for (const char* forbidden : {"http", "src=", "@import", "url(", "<script"}) {
    EXPECT_THAT(page, Not(HasSubstr(forbidden)));
  }
}

// Seed 2 diverges after an update, seed 3 at its first.
TEST(ReportPageTest, SaysWhichRunsHaveDiverged) {
  WrittenRuns runs;
  runs.WriteSeed("run", 1, {0.5}, WrittenRuns::Settings("off"));
  const std::string reason = ",\"diverged\":\"the loss is nan\"}\n";
  runs.Write("run/seed-2/metrics.jsonl",
             "{\"step\":1,\"loss\":1.0}\n{\"step\":1" + reason);
  runs.Write("run/seed-3/metrics.jsonl", "{\"step\":0" + reason);
  for (const auto& [path, diverged] : std::map<std::string, size_t>{
           {"run", 2}, {"run/seed-2", 1}, {"run/seed-3", 1}}) {
    const std::string page =
        ReportPage({.groups = *ReadRunGroups({runs.Path(path)})});
    EXPECT_EQ(Count(page, "<td>diverged</td>"), diverged) << path;
    EXPECT_THAT(page, HasSubstr("all ended")) << path;
    EXPECT_THAT(page, Not(HasSubstr("not ended"))) << path;
    EXPECT_THAT(page, HasSubstr(" Diverged: ")) << path;
    EXPECT_THAT(page, Not(HasSubstr("evaluated checkpoint yet"))) << path;
  }
}

TEST(ReportPageTest, CountsTheSeedsThatHaveAScore) {
  Report report = TwoModes();
  report.groups[1].runs[0].log.evaluations.clear();
  const std::string page = ReportPage(report);
  EXPECT_THAT(page, HasSubstr("<td>off</td><td class=\"number\">3</td>"));
  EXPECT_THAT(page, HasSubstr("<td>sum</td><td class=\"number\">2 of 3</td>"));
}

TEST(ReportPageTest, SaysThatNothingWasEvaluatedYet) {
  WrittenRuns runs;
  runs.Write("new<b>/seed-1/metrics.jsonl", "{\"step\":1,\"loss\":1.0}\n{\"s");
  Report report = {.groups = *ReadRunGroups({runs.Path("new<b>")})};
  const std::string page = ReportPage(report);
  EXPECT_THAT(page, HasSubstr("Nothing was evaluated yet."));
  EXPECT_THAT(page, HasSubstr("ends within a line"));
  EXPECT_THAT(page, HasSubstr("no values yet"));
  EXPECT_THAT(page, HasSubstr("new&lt;b&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("new<b>")));
}

// TwoModes with predictions, whose scores are the shares of right answers times
// `whole` of the group.
Report WithPredictions(const std::array<double, 2>& whole) {
  Report report = TwoModes();
  for (size_t g = 0; g < 2; ++g) {
    GroupPredictions& predictions = report.predictions.emplace_back();
    predictions.group = g;
    predictions.seed = 1;
    predictions.judged.main_metric = "accuracy";
    for (size_t i = 0; i < 8; ++i) {
      // sum knows all; off the short ones.
      const std::string answer = g == 1 || i < 4 ? "rome" : "oslo";
      predictions.judged.records.push_back(JudgeRecord(
          "q" + std::to_string(i),
          {{"id", "q"},
           {"answer", "rome"},
           {"text", std::string(10 * (i + 1), 'x') + " in Rome, not Oslo"}},
          {.answers = {"answer"}, .answer_texts = {"answer"}},
          "{\"id\":\"q\",\"answer\":\"" + answer + "\"}"));
    }
    predictions.judged.score = [g, whole](const std::vector<size_t>& records) {
      double right = 0;
      for (const size_t record : records) {
        right += g == 1 || record < 4 ? 1 : 0;
      }
      return Metrics{
          {"accuracy", whole[g] * right / static_cast<double>(records.size())}};
    };
    predictions.judged.record_score = [g](size_t record) {
      return std::pair("accuracy", g == 1 || record < 4 ? 1.0 : 0.0);
    };
  }
  return report;
}

TEST(ReportPageTest, ShowsPredictionsByLengthAndPlace) {
  const std::string page = ReportPage(WithPredictions({1, 1}));
  EXPECT_THAT(page, HasSubstr("<td>28 to 38</td>"
                              "<td class=\"number\">2</td>"));
  EXPECT_THAT(page, HasSubstr("last third"));
  EXPECT_THAT(page, HasSubstr("Where the runs differ most"));
  EXPECT_THAT(page, HasSubstr("<mark class=\"both\">Rome</mark>, not "
                              "<mark class=\"predicted\">Oslo</mark>"));
  EXPECT_THAT(page, HasSubstr("1.0000<span class=\"bar\" "
                              "style=\"width:5.0rem"));
}

// The answer stands behind more marks of predictions alone than are shown.
TEST(ReportPageTest, ShowsTheAnswerAtTheEndOfALongText) {
  Report report = WithPredictions({1, 1});
  std::string text;
  for (int i = 0; i < 20; ++i) {
    text += "Oslo ";
    for (int word = 0; word < 100; ++word) {
      text += "word ";
    }
  }
  for (GroupPredictions& predictions : report.predictions) {
    JudgedRecord& last = predictions.judged.records.back();
    last = JudgeRecord(last.id,
                       {{"answer", "rome"}, {"text", text + "beyond Rome"}},
                       {.answers = {"answer"}, .answer_texts = {"answer"}},
                       "{\"answer\":\"" + last.prediction + "\"}");
  }
  EXPECT_THAT(ReportPage(report),
              HasSubstr("beyond <mark class=\"both\">Rome</mark>"));
}

TEST(ReportPageTest, TellsRecordsWithoutAnAnswerFromThoseNotFound) {
  Report report = WithPredictions({1, 1});
  JudgedRecords& judged = report.predictions.front().judged;
  for (size_t record = 0; record < 3; ++record) {
    judged.records[record].evidence = -1;
  }
  judged.records[0].gold_texts.clear();
  const std::string page = ReportPage(report);
  EXPECT_THAT(page, HasSubstr("<td>no answer</td><td class=\"number\">1</td>"));
  EXPECT_THAT(page, HasSubstr("<td>not found in the text</td>"
                              "<td class=\"number\">2</td>"));
}

TEST(ReportPageTest, OrdersRecordsByTheirErrorsWhereThatIsTheirScore) {
  Report report = WithPredictions({1, 1});
  for (GroupPredictions& predictions : report.predictions) {
    predictions.judged.record_score = [](size_t record) {
      return std::pair("absolute_error", static_cast<double>(record));
    };
  }
  const std::string page = ReportPage(report);
  EXPECT_THAT(page, HasSubstr("The score of a record is absolute_error of it "
                              "alone"));
  EXPECT_THAT(page, Not(HasSubstr("Where the runs differ most")));
  EXPECT_THAT(page, HasSubstr("<h3>Worst</h3>\n<div class=\"record\">"
                              "<strong>q7</strong>"));
  EXPECT_THAT(page, HasSubstr("<h3>Best</h3>\n<div class=\"record\">"
                              "<strong>q0</strong>"));
  EXPECT_THAT(page, HasSubstr("7.0000"));
}

// Percentages are told by the largest of a table, not by each.
TEST(ReportPageTest, DrawsTheBarsOfATableInOneUnit) {
  const std::string page = ReportPage(WithPredictions({0.9, 100}));
  EXPECT_THAT(page, HasSubstr("100.0000<span class=\"bar\" "
                              "style=\"width:5.0rem"));
  EXPECT_THAT(page, HasSubstr("0.9000<span class=\"bar\" "
                              "style=\"width:0.0rem"));
}

}  // namespace
}  // namespace etc
