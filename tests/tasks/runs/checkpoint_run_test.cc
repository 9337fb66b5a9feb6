// An evaluation by two ranks, each of which has found its checkpoint and its
// data itself: refused where these differ, before it scores neither.
#include "tasks/runs/checkpoint_run.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "tasks/config/config.h"
#include "tasks/distributed/process_group.h"
#include "tasks/runs/grid_run.h"
#include "tests/support/realetc_program.h"
#include "tests/tasks/distributed/forked_processes.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class CheckpointRunTest : public RealetcTest {
 protected:
  // A run with a checkpoint after each of two updates.
  void SetUp() override {
    at::set_num_threads(1);  // before a fork
    nlohmann::json json = Config();
    json["train"]["evaluate_every"] = 1;
    json["train"]["keep_last"] = 2;
    ExpectProcesses(1, [&](const ProcessPlace& /*place*/) {
      const auto config = RunConfigFromJson(json, "run.json");
      ASSERT_TRUE(config.ok()) << config.status();
      const auto grid = TrainGrid(*config, {});
      EXPECT_TRUE(grid.ok()) << grid.status();
    });
  }

  std::string Checkpoint(int64_t step) const {
    return directory_.File(
        absl::StrCat("run/seed-1/checkpoints/step-0000000", step));
  }

  // Runs `options` of each of two ranks, and checks its outcome.
  static void ExpectOfBoth(
      const std::function<CheckpointRunOptions(int64_t rank)>& options,
      const std::function<void(const absl::Status& status)>& check) {
    ExpectProcesses(2, [&](const ProcessPlace& place) {
      auto group = ProcessGroup::Join(place, absl::Seconds(kSecondsToHang));
      ASSERT_TRUE(group.ok()) << group.status();
      CheckpointRunOptions of_rank = options(place.rank);
      of_rank.context.group = group->get();
      const auto run = RunCheckpoint(of_rank);
      check(run.status());
      (*group)->Leave(run.status());
    });
  }

  static void ExpectDiffers(
      const std::string& field,
      const std::function<CheckpointRunOptions(int64_t rank)>& options) {
    ExpectOfBoth(options, [&field](const absl::Status& status) {
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
      EXPECT_THAT(std::string(status.message()),
                  AllOf(HasSubstr("but differ: " + field + " is "),
                        Not(HasSubstr("; "))));
    });
  }
};

TEST_F(CheckpointRunTest, RefusesRanksWithOtherWeights) {
  ExpectDiffers("weights", [this](int64_t rank) {
    return CheckpointRunOptions{.checkpoint = Checkpoint(rank + 1)};
  });
}

// The files have equal numbers of records and tokens.
TEST_F(CheckpointRunTest, RefusesRanksWithOtherData) {
  const std::string other = directory_.Write(
      "other.json",
      absl::StrReplaceAll(Contents(directory_.File("data.json")),
                          {{"mira lives in oslo", "mira lived in oslo"}}));
  ExpectDiffers("data.dev", [&](int64_t rank) {
    return CheckpointRunOptions{
        .checkpoint = Checkpoint(1),
        .data = {rank == 0 ? directory_.File("data.json") : other}};
  });
}

TEST_F(CheckpointRunTest, TakesCopiesInOtherPlaces) {
  const std::string copy = directory_.File("copy");
  std::filesystem::copy(Checkpoint(2), copy,
                        std::filesystem::copy_options::recursive);
  ExpectOfBoth(
      [&](int64_t rank) {
        return CheckpointRunOptions{.checkpoint =
                                        rank == 0 ? Checkpoint(2) : copy};
      },
      [](const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; });
}

}  // namespace
}  // namespace etc
