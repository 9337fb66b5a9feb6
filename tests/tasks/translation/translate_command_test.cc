// `realetc train` and `realetc translate` on a tiny language: lines in and out,
// and one clear message for each mistake.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/support/realetc_program.h"
#include "tests/tasks/translation/toy_language.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class TranslateCommandTest : public RealetcTest {
 protected:
  std::string Train() {
    const std::string config = WriteConfig(language_.Config());
    const Result trained = Run("train " + config);
    EXPECT_EQ(trained.code, 0) << trained.err;
    EXPECT_THAT(trained.out, StartsWith("seed 1: loss "));
    return directory_.File("run");
  }
  // A failure with one line.
  void ExpectMistake(const std::string& arguments, const std::string& part) {
    const Result result = Run(arguments);
    EXPECT_EQ(result.code, 1) << arguments << result.out;
    EXPECT_EQ(Lines(result.err), 1) << result.err;
    EXPECT_THAT(result.err, AllOf(StartsWith("realetc: "), HasSubstr(part)));
  }

  ToyLanguage language_{&directory_};
};

TEST_F(TranslateCommandTest, TranslatesFilesAndStandardInput) {
  const std::string run = Train();
  const std::string input = directory_.Write("lines", "a b c\n\nd\nh g f e");
  const std::string translate = "translate " + run + "/seed-1/checkpoints/last";
  const Result of_file = Run(absl::StrCat(translate, " --input ", input));
  EXPECT_EQ(of_file.code, 0) << of_file.err;
  const std::vector<std::string> lines = absl::StrSplit(of_file.out, '\n');
  ASSERT_EQ(lines.size(), 5u) << of_file.out;
  EXPECT_NE(lines[0], "");
  EXPECT_EQ(lines[1], "");
  EXPECT_THAT(of_file.err, HasSubstr("4 lines translated"));
  EXPECT_EQ(Run(absl::StrCat(translate, " < ", input)).out, of_file.out);

  const std::string output = directory_.File("translations");
  const Result written =
      Run(absl::StrCat(translate, " --input ", input, " --output ", output));
  EXPECT_EQ(written.out, "");
  EXPECT_EQ(Contents(output), of_file.out);

  const Result best = Run(absl::StrCat(translate, " --input ", input,
                                       " --beam 3 --n-best 2 --max-length 4"));
  EXPECT_EQ(Lines(best.out), 7) << best.out;
  EXPECT_THAT(best.out, StartsWith("1\t-"));

  ExpectMistake(absl::StrCat(translate, " --input ", input, " --beam 20"),
                "beam_size");
  ExpectMistake(
      absl::StrCat(translate, " --input ", input, " --output ", input),
      "--output");
  ExpectMistake(
      absl::StrCat(translate, " --input ", directory_.Write("bad", "a\n\xff\n"),
                   " --output ", output),
      "bad:2: a line should be UTF-8");
  ExpectMistake(
      absl::StrCat(translate, " --input ", directory_.Write("unknown", "y z\n"),
                   " --output ", output),
      "unknown:1: a line should have a token that the vocabulary");
  ExpectMistake(absl::StrCat("predict ", run,
                             "/seed-1/checkpoints/last --data x --output y"),
                "realetc translate");
}

TEST_F(TranslateCommandTest, EvaluatesAndTriesRuns) {
  const std::string run = Train();
  const Result scores = Run("evaluate --bleu " + run);
  EXPECT_EQ(scores.code, 0) << scores.err;
  EXPECT_THAT(scores.out, AllOf(HasSubstr("loss"), HasSubstr("perplexity"),
                                HasSubstr("bleu")));
  EXPECT_THAT(scores.err, HasSubstr("residual attention mean, mean, mean"));
  ExpectMistake(
      absl::StrCat("evaluate --residual off ", run, "/seed-1/checkpoints/last"),
      "--residual is for encoders");

  const std::string config = WriteConfig(language_.Config());
  const Result tried = Run("train --dry-run --overwrite " + config);
  EXPECT_EQ(tried.code, 0) << tried.err;
  EXPECT_THAT(tried.out, HasSubstr("nothing was written"));
  const Result estimated = Run("estimate " + config);
  EXPECT_EQ(estimated.code, 0) << estimated.err;
  EXPECT_THAT(estimated.out, HasSubstr("peak, about"));
  ExpectMistake("finetune " + config, "which `realetc train` trains");
}

TEST_F(TranslateCommandTest, RefusesAModelWithoutADecoder) {
  const std::string config = WriteConfig(Config());
  ASSERT_EQ(Run("train " + config).code, 0);
  ExpectMistake(absl::StrCat("translate ", directory_.File("run"),
                             "/seed-1/checkpoints/last --input ",
                             directory_.Write("lines", "mira lives\n")),
                "is of wikihop, whose model has no decoder");
}

// Those that the repository ships, whose data are elsewhere.
TEST_F(TranslateCommandTest, EstimatesShippedConfigurations) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(
           ETC_SOURCE_DIR "/tasks/translation/configs")) {
    const Result estimated = Run("estimate " + entry.path().string());
    EXPECT_EQ(estimated.code, 0) << entry.path() << estimated.err;
    EXPECT_THAT(estimated.out, HasSubstr("peak, about"));
    ++count;
  }
  EXPECT_GE(count, 5);
}

TEST_F(TranslateCommandTest, RefusesMistakesInConfigurations) {
  nlohmann::json config = language_.Config();
  const auto expect = [&](const std::string& part) {
    ExpectMistake("train " + WriteConfig(config), part);
    config = language_.Config();
  };
  config["model"]["hidden"] = 3;
  expect("model");
  config["translation"]["beam"] = 3;
  expect("beam_size");
  config["train"]["micro_batch_size"] = 2;
  expect("train.micro_batch_size should be 1 for translation");
  config["data"]["train"] = {language_.Files("train")[0]};
  expect("in turns, but there are 1 names");
  config["data"]["train"] = {language_.Files("train")[0],
                             language_.Files("dev")[1]};
  expect("should have the same number of lines, but have 60 and 7");
  config["tokenizer"]["type"] = "wordpiece";
  expect("tokenizer.type should be \"sentencepiece\" or \"dictionary\"");
  config["translation"]["max_tokens"] = 3;
  expect("at most 3 tokens (translation.max_tokens)");
}

}  // namespace
}  // namespace etc
