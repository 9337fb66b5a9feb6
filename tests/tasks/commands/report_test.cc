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
    const Result result = Run("finetune " + WriteConfig(config));
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
  EXPECT_THAT(result.err, HasSubstr("report on 4 runs in "));
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
  EXPECT_THAT(again.err, HasSubstr("report.html exists: --overwrite replaces"));
  EXPECT_EQ(Contents(directory_.File("report.html")), page);
  const Result replaced = Report(sum + " --overwrite");
  EXPECT_EQ(replaced.code, 0) << replaced.err;
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
