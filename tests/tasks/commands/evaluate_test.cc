// `realetc evaluate` and `predict`: which checkpoint of a run they take, and
// what they say of a residual mode that is not that of the training. What they
// compute is tested with the libraries.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/support/realetc_program.h"

namespace etc {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class EvaluateCommandTest : public RealetcTest {
 protected:
  // Trains with seeds 1 and 2.
  void Train() {
    json config = Config();
    config["train"]["seeds"] = {1, 2};
    const Result result = Run("finetune " + WriteConfig(config));
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("median of 2 seeds\naccuracy  "));
  }

  // Makes summary.json say that the best accuracies are these.
  void WriteScores(double first, double second) {
    json summary = json::parse(Contents(run_ + "/summary.json"));
    summary["runs"][0]["best"]["accuracy"] = first;
    summary["runs"][1]["best"]["accuracy"] = second;
    directory_.Write("run/summary.json", summary.dump());
  }

  const std::string run_ = directory_.File("run");
};

TEST_F(EvaluateCommandTest, TakesTheBestCheckpointOfARun) {
  Train();
  const std::string of_first = Run("evaluate " + run_ + "/seed-1").out;
  const Result second = Run("evaluate " + run_ + "/seed-2");
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.err, HasSubstr(absl::StrCat("checkpoint: ", run_,
                                                 "/seed-2/checkpoints/best, "
                                                 "the best\n")));
  EXPECT_THAT(second.out, StartsWith("accuracy  "));

  WriteScores(0.25, 0.5);
  Result best = Run("evaluate " + run_);
  EXPECT_EQ(best.code, 0) << best.err;
  EXPECT_THAT(best.err,
              HasSubstr("/seed-2/checkpoints/best, the best of 2 seeds by "
                        "accuracy, 0.5000\n"));
  EXPECT_EQ(best.out, second.out);
  WriteScores(0.75, 0.5);
  best = Run("evaluate --json " + run_);
  EXPECT_THAT(best.err, HasSubstr("/seed-1/checkpoints/best, the best of 2"));
  EXPECT_TRUE(json::parse(best.out)["accuracy"].is_number()) << best.out;

  const std::string predictions = directory_.File("predictions.json");
  const Result predict = Run(absl::StrCat("predict ", run_, " --data ",
                                          directory_.File("data.json"),
                                          " --output ", predictions));
  EXPECT_EQ(predict.code, 0) << predict.err;
  EXPECT_EQ(json::parse(Contents(predictions)).size(), 6u);

  // A run that has not come to its end has no summary.
  std::filesystem::remove(run_ + "/summary.json");
  const Result unknown = Run("evaluate " + run_);
  EXPECT_EQ(unknown.code, 1);
  EXPECT_EQ(Lines(unknown.err), 1) << unknown.err;
  EXPECT_THAT(unknown.err,
              AllOf(HasSubstr("summary.json"),
                    HasSubstr(run_ + "/seed-1, " + run_ + "/seed-2\n")));
  std::filesystem::remove_all(run_ + "/seed-2");
  const Result only = Run("evaluate " + run_);
  EXPECT_EQ(only.code, 0) << only.err;
  EXPECT_EQ(only.out, of_first);
}

TEST_F(EvaluateCommandTest, SaysWhatADirectoryWithoutCheckpointShouldBe) {
  for (const std::string& path :
       {directory_.path(), directory_.File("nowhere")}) {
    const Result result = Run("evaluate " + path);
    EXPECT_EQ(result.code, 1);
    EXPECT_EQ(Lines(result.err), 1) << result.err;
    EXPECT_THAT(result.err, AllOf(HasSubstr(path), HasSubstr("finetune.json"),
                                  HasSubstr("seed-1")));
  }
}

TEST_F(EvaluateCommandTest, TakesADevice) {
  nlohmann::json config = Config();
  config["train"]["device"] = "cpu";
  const Result finetune = Run("finetune " + WriteConfig(config));
  ASSERT_EQ(finetune.code, 0) << finetune.err;
  EXPECT_THAT(finetune.err,
              HasSubstr("device: cpu (train.device is \"cpu\")\n"));
  const std::string predict =
      absl::StrCat("predict ", run_, " --data ", directory_.File("data.json"),
                   " --output ", directory_.File("predictions.json"));
  for (const std::string& command : {"evaluate " + run_, predict}) {
    // That of the training does not matter.
    EXPECT_THAT(Run(command).err, HasSubstr("(--device is \"auto\", and "));
    const Result cpu = Run(command + " --device cpu");
    EXPECT_EQ(cpu.code, 0) << cpu.err;
    EXPECT_THAT(cpu.err, HasSubstr("device: cpu (--device is \"cpu\")\n"));
    const Result unknown = Run(command + " --device gpu");
    EXPECT_EQ(unknown.code, 1);
    EXPECT_THAT(unknown.err,
                HasSubstr("realetc: --device should be \"auto\", \"cpu\""));
    const Result absent = Run(command + " --device cuda:120");
    EXPECT_EQ(absent.code, 1);
    EXPECT_THAT(absent.err,
                AllOf(HasSubstr("realetc: --device is \"cuda:120\", but "),
                      HasSubstr("can be used here: cpu")));
  }
}

TEST_F(EvaluateCommandTest, SaysIfTheResidualModeIsNotThatOfTheTraining) {
  ASSERT_EQ(Run("finetune " + WriteConfig(Config())).code, 0);
  const Result off = Run("evaluate " + run_ + " --residual off");
  EXPECT_EQ(off.code, 0) << off.err;
  EXPECT_THAT(off.err, HasSubstr("realetc: warning: residual attention: "
                                 "trained with sum, now off; "));
  for (const std::string same : {"", " --residual sum"}) {
    EXPECT_THAT(Run("evaluate " + run_ + same).err, Not(HasSubstr("warning")));
  }
}

}  // namespace
}  // namespace etc
