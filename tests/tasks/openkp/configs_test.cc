// The shipped configurations can be read and have the published
// hyper-parameters (openkp spec 9.3), and the demo's training goes as it did:
// the losses of its first ten updates, to 5e-4, which other CPUs and thread
// counts stay within.

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
#include "tasks/openkp/task.h"
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
      SourcePath(absl::StrCat("tasks/openkp/configs/", name)), overrides);
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *config : FinetuneConfig();
}

TEST(OpenkpConfigsTest, HaveThePublishedHyperParameters) {
  for (const char* name : {"base.json", "large.json"}) {
    SCOPED_TRACE(name);
    const FinetuneConfig config = ReadShipped(name, {"init="});
    EXPECT_EQ(config.task, "openkp");
    EXPECT_EQ(config.train.batch_size, 64);
    EXPECT_EQ(config.train.learning_rate, 3e-5);
    EXPECT_EQ(config.train.epochs, 2);
    EXPECT_EQ(config.train.num_train_examples, 133374);
    EXPECT_EQ(config.optimizer.weight_decay, 0.01);
    EXPECT_EQ(config.optimizer.type, "bert_adamw");
    EXPECT_EQ(config.optimizer.clip_norm, 1.0);
    EXPECT_EQ(config.schedule.warmup_proportion, 0.1);
    EXPECT_EQ(config.data.max_long_length, 4096);
    EXPECT_EQ(config.data.max_global_length, 512);
    EXPECT_TRUE(config.json.contains("residual_attention"));
    EXPECT_TRUE(config.model.use_hard_g2l_mask);
    EXPECT_TRUE(
        OpenkpOptionsFromJson(config.task_options, "openkp").status().ok());
  }
}

TEST(OpenkpConfigsTest, AreAllReadByThisTest) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(
           SourcePath("tasks/openkp/configs"))) {
    names.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(names, testing::UnorderedElementsAre("base.json", "large.json",
                                                   "demo.json"));
}

// Losses of the demo's first ten updates.
std::vector<double> DemoLosses(const std::string& residual_attention) {
  const TemporaryDirectory directory;
  const FinetuneConfig config = ReadShipped(
      "demo.json",
      {absl::StrCat("residual_attention=", residual_attention),
       "train.steps=10", "train.evaluate_every=0", "train.threads=1",
       "train.learning_rate=1e-4", "train.seeds=[1]",
       absl::StrCat("output=", directory.path()),
       absl::StrCat("data.train=[\"",
                    SourcePath("tasks/openkp/sample/train.jsonl"), "\"]"),
       "data.dev=[]",
       absl::StrCat("tokenizer.vocabulary=",
                    SourcePath("tasks/openkp/sample/vocab.txt"))});
  auto tokenizer = LoadWordPieceTokenizer(config.tokenizer.vocabulary, {});
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto task =
      MakeOpenkpTask(config.task_options, "demo.json: openkp",
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

TEST(OpenkpLossCurveTest, IsAsItWas) {
  const std::vector<double> sum = {6.44677, 6.5042,  6.26837, 6.16202, 6.11658,
                                   6.14651, 6.12913, 6.04038, 5.98196, 6.01567};
  const std::vector<double> off = {6.44374, 6.49624, 6.26358, 6.16149, 6.11543,
                                   6.13516, 6.12687, 6.04276, 5.98276, 6.01586};
  constexpr double kTolerance = 5e-4;
  EXPECT_THAT(DemoLosses("sum"),
              testing::Pointwise(testing::DoubleNear(kTolerance), sum));
  EXPECT_THAT(DemoLosses("off"),
              testing::Pointwise(testing::DoubleNear(kTolerance), off));
}

}  // namespace
}  // namespace etc
