// `realetc report` over real runs, and each of its errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/support/realetc_program.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ReportCommandTest : public RealetcTest {
 protected:
  // The directory of a run in `mode` with seeds 1 and 2.
  std::string Train(const std::string& mode) {
    nlohmann::json config = Config();
    config["residual_attention"] = mode;
    config["train"]["seeds"] = {1, 2};
    config["output"] = directory_.File(mode);
    const Result result = Run("train " + WriteConfig(config));
    EXPECT_EQ(result.code, 0) << result.err;
    return directory_.File(mode);
  }

  Result Report(const std::string& arguments) {
    return Run(absl::StrCat("report ", arguments, " --output ",
                            directory_.File("report.html")));
  }
};

TEST_F(ReportCommandTest, WritesAPageAboutRunsWithTheirPredictions) {
  const std::string off = Train("off");
  const std::string sum = Train("sum");
  const Result result = Report(absl::StrCat(off, " ", sum));
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("sum is better in "),
                                HasSubstr(" of the 4 pairs of seeds"),
                                HasSubstr("report on 4 runs in ")));
  const std::string page = Contents(directory_.File("report.html"));
  EXPECT_THAT(page,
              AllOf(HasSubstr("Report: wikihop"), HasSubstr("<svg"),
                    HasSubstr("all ended"), HasSubstr("2 seeds"),
                    HasSubstr("Scores by length"), HasSubstr("<mark class=\""),
                    HasSubstr("query: town_of mira")));
  EXPECT_THAT(page, AllOf(Not(HasSubstr("http")), Not(HasSubstr("src="))));

  // An output that exists, and is then replaced.
  const Result again = Report(sum);
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.err,
              HasSubstr("report.html is there already; --overwrite"));
  EXPECT_EQ(Contents(directory_.File("report.html")), page);
  const Result replaced = Report(sum + " --overwrite");
  EXPECT_EQ(replaced.code, 0) << replaced.err;
  EXPECT_THAT(replaced.err,
              HasSubstr("These runs do not compare residual scores."));
  EXPECT_THAT(Contents(directory_.File("report.html")),
              HasSubstr("These runs do not compare residual scores."));

  // A metric that the task has not, and data without records.
  const Result metric = Report(sum + " --overwrite --metric acuracy");
  EXPECT_EQ(metric.code, 1);
  EXPECT_THAT(metric.err, HasSubstr("did you mean \"accuracy\"?"));
  const std::string empty = directory_.Write("empty.json", "[]");
  const Result data = Report(sum + " --overwrite --data " + empty);
  EXPECT_EQ(data.code, 1);
  EXPECT_THAT(data.err, HasSubstr("empty.json"));
}

// Both dev files of MNLI number their rows from 0.
TEST_F(ReportCommandTest, ShowsPredictionsForSeveralFiles) {
  const std::string header = "index\tsentence1\tsentence2\tgold_label\n";
  const std::string matched =
      directory_.Write("dev_matched.tsv", header + "0\trome\tlima\tneutral\n");
  const std::string mismatched = directory_.Write(
      "dev_mismatched.tsv",
      header + "0\toslo\tmira\tentailment\n1\tlima\trome\tneutral\n");
  nlohmann::json config = Config();
  config["task"] = "glue";
  config["glue"] = {{"name", "mnli"}};
  const nlohmann::json files = {mismatched, matched};
  config["data"] = {{"train", files}, {"dev", files}};
  ASSERT_EQ(Run("train " + WriteConfig(config)).code, 0);
  const std::string run = directory_.File("run");
  const Result both = Report(run);
  ASSERT_EQ(both.code, 0) << both.err;
  EXPECT_THAT(Contents(directory_.File("report.html")),
              AllOf(HasSubstr(" for 3 records with an answer"),
                    HasSubstr("<strong>0 (2)</strong>"),
                    Not(HasSubstr("No predictions"))));

  // Predictions for one file alone cannot be told from the others.
  const Result one = Report(absl::StrCat(run, " --overwrite --data ", matched));
  EXPECT_EQ(one.code, 1);
  EXPECT_THAT(one.err, HasSubstr("predictions.json has ids that come again"));

  // A file that is another one than then, which --data may name.
  directory_.Write("dev_matched.tsv", header);
  const Result changed = Report(run + " --overwrite");
  EXPECT_EQ(changed.code, 0) << changed.err;
  EXPECT_THAT(Contents(directory_.File("report.html")),
              HasSubstr("are not in files that are still as they were"));
}

// Data that serve one of two groups of runs.
TEST_F(ReportCommandTest, NotesWhyAGroupHasNoPredictions) {
  const std::string off = Train("off");
  const std::string sum = Train("sum");
  for (const int seed : {1, 2}) {
    directory_.Write(
        absl::StrCat("off/seed-", seed, "/checkpoints/best/predictions.json"),
        "[]");
  }
  const Result result = Report(
      absl::StrCat(off, " ", sum, " --data ", directory_.File("data.json")));
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(Contents(directory_.File("report.html")),
              AllOf(HasSubstr("No predictions of off: "),
                    HasSubstr("<h2>Predictions</h2>")));
}

TEST_F(ReportCommandTest, ReadsRecordsAsLongAsTheRunDoes) {
  nlohmann::json config = Config();
  config["data"]["max_record_megabytes"] = 1;
  ASSERT_EQ(Run("train " + WriteConfig(config)).code, 0);
  nlohmann::json records =
      nlohmann::json::parse(Contents(directory_.File("data.json")));
  records[0]["supports"] = {std::string(1'100'000, 'a')};
  const Result result =
      Report(absl::StrCat(directory_.File("run"), " --data ",
                          directory_.Write("long.json", records.dump())));
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("long.json"),
                                HasSubstr("data.max_record_megabytes")));
}

TEST_F(ReportCommandTest, ReplacesNothingThatItReads) {
  const std::string run = Train("off");
  const std::string data = directory_.File("data.json");
  const std::string seed = run + "/seed-1";
  for (const std::string& file :
       {data, seed + "/metrics.jsonl", seed + "/result.json",
        run + "/summary.json", seed + "/checkpoints/best/predictions.json"}) {
    const std::string before = Contents(file);
    ASSERT_NE(before, "") << file;
    ExpectMistake(absl::StrCat("report ", run, " --overwrite --output ", file),
                  "--output should not replace what is read");
    EXPECT_EQ(Contents(file), before) << file;
  }
  const std::string gold = directory_.Write("gold.json", Contents(data));
  ExpectMistake(absl::StrCat("report ", run, " --data ", gold,
                             " --overwrite --output ", gold),
                "--output should not replace what is read");
  EXPECT_EQ(Contents(gold), Contents(data));
}

TEST_F(ReportCommandTest, RefusesRunsOfSeveralTasks) {
  for (const std::string task : {"wikihop", "squad"}) {
    const std::string folder = task + "/seed-1";
    std::filesystem::create_directories(directory_.File(folder));
    directory_.Write(folder + "/metrics.jsonl", "{\"step\":1,\"loss\":1.0}\n");
    directory_.Write(
        folder + "/result.json",
        absl::StrCat("{\"settings\": {\"task\": \"", task, "\"}}"));
  }
  const std::string runs =
      absl::StrCat(directory_.File("wikihop"), " ", directory_.File("squad"));
  const Result result = Report(runs);
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr(absl::StrCat(
                              "a report should have runs of one task, but ",
                              directory_.File("wikihop"), " is of wikihop and ",
                              directory_.File("squad"), " of squad")));
  const Result metrics = Run("metrics " + runs);
  EXPECT_EQ(metrics.code, 0) << metrics.err;
  EXPECT_EQ(Lines(metrics.out), 3) << metrics.out;
}

TEST_F(ReportCommandTest, RefusesWhatIsNoRun) {
  const std::string folder = directory_.File("folder");
  std::filesystem::create_directories(folder + "/seed-1");
  const Result early = Report(folder);
  EXPECT_EQ(early.code, 1);
  EXPECT_THAT(early.err, HasSubstr("has no metrics yet"));
  const Result missing = Report(directory_.File("missing"));
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err, HasSubstr("there is no such run"));
  const Result file = Report(WriteData());
  EXPECT_EQ(file.code, 1);
  EXPECT_THAT(file.err, HasSubstr("is the directory of no run"));
  EXPECT_EQ(Run("report " + folder).code, 2);  // without --output
  EXPECT_FALSE(std::filesystem::exists(directory_.File("report.html")));
}

}  // namespace
}  // namespace etc
