// What a configuration comes to in bytes, and which models a process can hold.

#include "tasks/train/run_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "etc/model_size.h"

namespace etc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(RunPlanTest, TakesMegabytesForMillionsOfBytes) {
  DataConfig config;
  config.cache_megabytes = 1'000'000'000;
  config.max_record_megabytes = 3;
  EXPECT_EQ(CacheBytesOf(config), 1'000'000'000'000'000);
  EXPECT_EQ(MaxRecordBytesOf(config), 3'000'000u);
}

// Weights, gradients and two moments of four bytes each.
TEST(RunPlanTest, RefusesAModelThatDoesNotFitTheMemory) {
  FinetuneConfig config;
  config.model.vocab_size = 1000;
  const int64_t bytes = 16 * CountParameters(config.model).total();
  EXPECT_TRUE(CheckModelFits(config, bytes).ok());
  const absl::Status status = CheckModelFits(config, bytes - 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("parameters"), HasSubstr("realetc estimate")));
}

}  // namespace
}  // namespace etc
