// The disk space of checkpoints against arithmetic, and the warning about it
// with 50 GB more than the file system has, so that other writers do not
// matter; a sparse file stands for checkpoints.
#include "tasks/train/checkpoint_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/directory.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(EstimateCheckpointsTest, AreThoseThatAreKeptAndTheOneBeingWritten) {
  RunConfig config;
  config.train.keep_last = 3;
  config.train.keep_best = 2;
  config.train.seeds = {1, 2};
  TrainedCounts parameters = 1000;
  parameters.trained = 400;
  // A process of several.
  parameters.updated = 100;
  const CheckpointSpace space =
      EstimateCheckpoints(config, parameters, /*made=*/std::nullopt);
  EXPECT_EQ(space.one, 4 * 1000 + 8 * 400);
  EXPECT_EQ(space.seed, 6 * space.one);
  EXPECT_EQ(space.all, 11 * space.one);
  EXPECT_EQ(EstimateCheckpoints(config, parameters, /*made=*/9).all, space.all);
  // Fewer than are to be kept.
  EXPECT_EQ(EstimateCheckpoints(config, parameters, /*made=*/4).all,
            9 * space.one);
}

TEST(DiskWarningTest, CountsTheCheckpointsThatAreThere) {
  TemporaryDirectory directory;
  RunConfig config;
  config.output = directory.File("runs/run");
  config.train.seeds = {1, 2};
  EXPECT_THAT(DiskWarning(config, 1), IsEmpty());
  const double bytes = static_cast<double>(*FreeBytes(directory.path())) + 50e9;
  EXPECT_THAT(DiskWarning(config, bytes),
              AllOf(HasSubstr("checkpoints of 2 seeds take up to "),
                    EndsWith(absl::StrCat(" at ", config.output))));
  const std::string checkpoint =
      directory.File("runs/run/seed-2/checkpoints/step-00000003");
  fs::create_directories(checkpoint);
  directory.Write("runs/run/seed-2/checkpoints/step-00000003/weights", "");
  fs::resize_file(checkpoint + "/weights", 100'000'000'000);
  EXPECT_THAT(DiskWarning(config, bytes), IsEmpty());
}

}  // namespace
}  // namespace etc
