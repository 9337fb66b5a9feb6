// The shipped configurations can be read and have the published
// hyper-parameters (hotpotqa spec 9: RealFormer, Table 12).

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/train/config.h"

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
  EXPECT_THAT(names, testing::UnorderedElementsAre("base.json", "large.json",
                                                   "fit_sample.json"));
}

TEST(HotpotqaConfigsTest, FitASampleAtFullLength) {
  const FinetuneConfig config = ReadShipped("fit_sample.json", {});
  EXPECT_EQ(config.data.max_long_length, 4096);
  EXPECT_EQ(config.data.train, config.data.dev);
}

}  // namespace
}  // namespace etc
