// The shipped configurations: each can be read, with the published
// hyper-parameters, and the first ten updates of the demo have the losses that
// they had when this was written.
//
// The frozen losses change with initial values, the order of the data, and any
// number in between; change them only where that is meant. Tolerance: float32
// sums in another order differ by about 1e-6 of a loss near 1.6, and ten
// updates multiply that; 5e-4 is well below what they differ by.

#include <torch/types.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "etc/formats/json_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tasks/text/wordpiece_tokenizer.h"
#include "tasks/train/config.h"
#include "tasks/train/finetune.h"
#include "tasks/train/progress.h"
#include "tasks/wikihop/task.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

std::string SourcePath(const std::string& path) {
  return absl::StrCat(ETC_SOURCE_DIR, "/", path);
}

FinetuneConfig ReadShipped(const std::string& name,
                           const std::vector<std::string>& overrides) {
  const auto config = ReadFinetuneConfig(
      SourcePath(absl::StrCat("tasks/wikihop/configs/", name)), overrides);
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *config : FinetuneConfig();
}

TEST(WikihopConfigsTest, HaveThePublishedHyperParameters) {
  for (const char* name :
       {"base.json", "large.json", "large_residual_pretrained.json"}) {
    SCOPED_TRACE(name);
    const FinetuneConfig config = ReadShipped(name, {"init="});
    EXPECT_EQ(config.task, "wikihop");
    EXPECT_EQ(config.train.batch_size, 32);
    EXPECT_EQ(config.train.learning_rate, 4e-5);
    EXPECT_EQ(config.train.epochs, 15);
    EXPECT_EQ(config.train.num_train_examples, 44000);
    EXPECT_EQ(config.optimizer.weight_decay, 0.1);
    EXPECT_EQ(config.optimizer.type, "bert_adamw");
    EXPECT_EQ(config.schedule.warmup_proportion, 0.1);
    EXPECT_EQ(config.data.max_long_length, 4096);
    EXPECT_EQ(config.data.max_global_length, 430);
  }
}

TEST(WikihopConfigsTest, AreAllReadByThisTest) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(
           SourcePath("tasks/wikihop/configs"))) {
    names.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(names, testing::UnorderedElementsAre(
                         "base.json", "large.json",
                         "large_residual_pretrained.json", "demo.json"));
}

// Losses of the demo's first ten updates.
std::vector<double> DemoLosses(const std::string& residual_attention) {
  const TemporaryDirectory directory;
  const FinetuneConfig config = ReadShipped(
      "demo.json",
      {absl::StrCat("residual_attention=", residual_attention),
       "train.steps=10", "train.evaluate_every=0", "train.threads=1",
       "train.seeds=[1]", absl::StrCat("output=", directory.path()),
       absl::StrCat("data.train=[\"",
                    SourcePath("tasks/wikihop/sample/train.json"), "\"]"),
       "data.dev=[]",
       absl::StrCat("tokenizer.vocabulary=",
                    SourcePath("tasks/wikihop/sample/vocab.txt"))});
  auto tokenizer = LoadWordPieceTokenizer(config.tokenizer.vocabulary, {});
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto task =
      MakeWikihopTask(config.task_options, "demo.json: wikihop", config.model,
                      *std::move(tokenizer), config.data.max_long_length,
                      config.data.max_global_length);
  EXPECT_TRUE(task.ok()) << task.status();
  std::ostringstream progress;
  StreamReporter reporter(&progress, StreamReporter::Style::kLines);
  const auto result = Finetune(config, **task, {.reporter = &reporter});
  EXPECT_TRUE(result.ok()) << result.status();

  std::vector<double> losses;
  std::ifstream metrics(directory.File("seed-1/metrics.jsonl"));
  for (std::string line; std::getline(metrics, line);) {
    const auto json = ParseJson(line, "metrics.jsonl");
    EXPECT_TRUE(json.ok()) << json.status();
    if (json->contains("loss")) {
      losses.push_back(json->at("loss").get<double>());
    }
  }
  return losses;
}

TEST(WikihopLossCurveTest, IsAsItWas) {
  const std::vector<double> sum = {1.60275, 1.61293, 1.61405, 1.60748, 1.61043,
                                   1.60661, 1.62136, 1.60983, 1.60962, 1.61014};
  const std::vector<double> off = {1.60547, 1.60960, 1.62066, 1.60994, 1.60873,
                                   1.60840, 1.60843, 1.60777, 1.60853, 1.60069};
  constexpr double kTolerance = 5e-4;
  EXPECT_THAT(DemoLosses("sum"),
              testing::Pointwise(testing::DoubleNear(kTolerance), sum));
  EXPECT_THAT(DemoLosses("off"),
              testing::Pointwise(testing::DoubleNear(kTolerance), off));
}

}  // namespace
}  // namespace etc
