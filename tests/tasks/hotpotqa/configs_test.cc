// The shipped configurations: each can be read, with the published
// hyper-parameters (hotpotqa spec 9: RealFormer, Table 12), and the first ten
// updates of the demo have the losses that they had when this was written.
//
// The frozen losses change with initial values, the order of the data, and any
// number in between; change them only where that is meant. Tolerance: float32
// sums in another order differ by about 1e-6 of a loss near 7, and ten updates
// multiply that; 2e-3 is well below what they differ by.

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "etc/formats/json_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tasks/hotpotqa/task.h"
#include "tasks/text/wordpiece_tokenizer.h"
#include "tasks/train/config.h"
#include "tasks/train/finetune.h"
#include "tasks/train/progress.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

std::string SourcePath(const std::string& path) {
  return absl::StrCat(ETC_SOURCE_DIR, "/", path);
}

FinetuneConfig ReadShipped(const std::string& name,
                           const std::vector<std::string>& overrides) {
  const auto config = ReadFinetuneConfig(
      SourcePath(absl::StrCat("tasks/hotpotqa/configs/", name)), overrides);
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *config : FinetuneConfig();
}

TEST(HotpotqaConfigsTest, HaveThePublishedHyperParameters) {
  for (const char* name : {"base.json", "large.json"}) {
    SCOPED_TRACE(name);
    const FinetuneConfig config = ReadShipped(name, {"init="});
    EXPECT_EQ(config.task, "hotpotqa");
    EXPECT_EQ(config.train.batch_size, 32);
    EXPECT_EQ(config.train.learning_rate, 4e-5);
    EXPECT_EQ(config.train.epochs, 5);
    EXPECT_EQ(config.train.num_train_examples, 90431);
    EXPECT_EQ(config.optimizer.weight_decay, 0.01);
    EXPECT_EQ(config.optimizer.type, "bert_adamw");
    EXPECT_EQ(config.schedule.warmup_proportion, 0.1);
    EXPECT_EQ(config.data.max_long_length, 4096);
    EXPECT_EQ(config.data.max_global_length, 256);
    EXPECT_TRUE(config.json.contains("residual_attention"));
    EXPECT_TRUE(config.model.use_hard_g2l_mask);
  }
}

TEST(HotpotqaConfigsTest, AreAllReadByThisTest) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(
           SourcePath("tasks/hotpotqa/configs"))) {
    names.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(names,
              testing::UnorderedElementsAre("base.json", "large.json",
                                            "fit_sample.json", "demo.json"));
}

TEST(HotpotqaConfigsTest, FitASampleAtFullLength) {
  const FinetuneConfig config = ReadShipped("fit_sample.json", {});
  EXPECT_EQ(config.data.max_long_length, 4096);
  EXPECT_EQ(config.data.train, config.data.dev);
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
                    SourcePath("tasks/hotpotqa/sample/train.json"), "\"]"),
       "data.dev=[]",
       absl::StrCat("tokenizer.vocabulary=",
                    SourcePath("tasks/hotpotqa/sample/vocab.txt"))});
  auto tokenizer = LoadWordPieceTokenizer(config.tokenizer.vocabulary, {});
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto task =
      MakeHotpotqaTask(config.task_options, "demo.json: hotpotqa",
                       {.model = config.model,
                        .max_long_length = config.data.max_long_length,
                        .max_global_length = config.data.max_global_length},
                       *std::move(tokenizer));
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

TEST(HotpotqaLossCurveTest, IsAsItWas) {
  const std::vector<double> sum = {7.27385, 7.28597, 6.34465, 6.09817, 6.00986,
                                   5.93442, 5.67301, 5.47331, 5.20689, 5.11286};
  const std::vector<double> off = {7.26189, 7.27537, 6.33646, 6.10147, 6.01380,
                                   5.95698, 5.70879, 5.53446, 5.34266, 5.32175};
  constexpr double kTolerance = 2e-3;
  EXPECT_THAT(DemoLosses("sum"),
              testing::Pointwise(testing::DoubleNear(kTolerance), sum));
  EXPECT_THAT(DemoLosses("off"),
              testing::Pointwise(testing::DoubleNear(kTolerance), off));
}

}  // namespace
}  // namespace etc
