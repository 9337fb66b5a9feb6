// Averages of checkpoints as CheckpointStore writes them: which are taken, the
// mean of each tensor by hand, what is copied and left out, refusals that leave
// nothing behind.

#include "tasks/runs/average_checkpoints.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/file_operations.h"
#include "etc/weights/checkpoint.h"
#include "tasks/output/checkpoint_files.h"
#include "tasks/output/checkpoint_store.h"
#include "tests/support/recorded_operations.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class AverageCheckpointsTest : public ::testing::Test {
 protected:
  // Saves a checkpoint whose tensors are multiples of `value`, as a run with
  // train.keep_last `keep_last_` does.
  void Save(int64_t step, float value, const std::string& seed = "seed-1",
            bool is_interim = false) {
    CheckpointStore store(StoreOf(seed), {.last = keep_last_});
    ASSERT_TRUE(store.TakeOver().ok());
    const absl::Status saved = store.Save(
        step,
        [&](const std::string& directory) {
          const NamedTensors model = {
              {"weight", torch::full({2, 3}, value)},
              {"half", torch::full({2}, 2 * value, torch::kBFloat16)},
              {"double", torch::full({1}, value / 3.0, torch::kDouble)},
              {"count", torch::full({1}, step, torch::kLong)}};
          absl::Status status = WriteTensors(directory + "/model.safetensors",
                                             model, {{"task", "x"}});
          status.Update(WriteTensors(directory + "/training_state.safetensors",
                                     {{"m", torch::zeros({2})}}, {}));
          status.Update(WriteFileAtomically(
              directory + "/run_config.json",
              absl::StrCat(R"({"task": "x", "train": {"keep_last": )",
                           keep_last_, R"(, "steps": )", step, "}}")));
          status.Update(CreateDirectories(directory + "/punkt"));
          status.Update(WriteFileAtomically(directory + "/punkt/table", "t"));
          return status;
        },
        is_interim);
    ASSERT_TRUE(saved.ok()) << saved;
  }

  std::string StoreOf(const std::string& seed) const {
    return directory_.File("run/" + seed + "/checkpoints");
  }

  absl::Status Average(const AverageOptions& options) {
    const auto found = FindCheckpointsToAverage(options);
    return found.ok() ? AverageCheckpoints(*found, output_) : found.status();
  }

  // Expects no file that was being written.
  void ExpectNoTemporary() const {
    for (const auto& entry : fs::directory_iterator(directory_.path())) {
      EXPECT_THAT(entry.path().filename().string(), Not(EndsWith(".tmp")));
    }
  }

  static std::string MessageOf(const absl::Status& status,
                               absl::StatusCode code) {
    EXPECT_EQ(status.code(), code) << status;
    return std::string(status.message());
  }

  TemporaryDirectory directory_;
  const std::string run_ = directory_.File("run");
  const std::string output_ = directory_.File("average");
  int64_t keep_last_ = 100;
};

TEST_F(AverageCheckpointsTest, TakesTheMeanOfTheLastOnes) {
  torch::NoGradGuard no_grad;
  Save(10, 100);
  Save(20, 1);
  Save(30, 2);
  Save(40, 6);
  ASSERT_TRUE(Average({.directory = run_, .last = 3}).ok());
  const auto reader = TensorReader::Open(output_);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_THAT(reader->Names(),
              ElementsAre("count", "double", "half", "weight"));
  EXPECT_TRUE(reader->Read("weight")->equal(torch::full({2, 3}, 3.0F)));
  EXPECT_TRUE(
      reader->Read("half")->equal(torch::full({2}, 6, torch::kBFloat16)));
  EXPECT_DOUBLE_EQ(reader->Read("double")->item<double>(), 1.0);
  EXPECT_EQ(reader->Read("count")->item<int64_t>(), 40);
  EXPECT_EQ(reader->metadata().at("task"), "x");
  EXPECT_THAT(*ReadFile(output_ + "/run_config.json"),
              HasSubstr("\"steps\": 40"));
  EXPECT_EQ(*ReadFile(output_ + "/punkt/table"), "t");
  EXPECT_FALSE(fs::exists(output_ + "/training_state.safetensors"));
  EXPECT_THAT(*ReadFile(output_ + "/average.json"), HasSubstr("step-00000020"));
  EXPECT_TRUE(CheckCheckpointFiles(output_).ok());
  EXPECT_EQ(ReadCheckpointOwner(output_)->name, "average");
  ExpectNoTemporary();
}

// 256 + 1 + 1 is 256 in bfloat16, which has no odd numbers above 256.
TEST_F(AverageCheckpointsTest, AddsUpHalvesInFloat32) {
  torch::NoGradGuard no_grad;
  Save(1, 128);
  Save(2, 0.5);
  Save(3, 0.5);
  ASSERT_TRUE(Average({.directory = run_, .last = 3}).ok());
  const auto reader = TensorReader::Open(output_);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_TRUE(
      reader->Read("half")->equal(torch::full({2}, 86, torch::kBFloat16)));
}

TEST_F(AverageCheckpointsTest, LeavesADirectoryOfASimilarName) {
  Save(1, 1);
  const std::string notes = output_ + ".unfinished/notes.txt";
  ASSERT_TRUE(CreateDirectories(output_ + ".unfinished").ok());
  ASSERT_TRUE(WriteFileAtomically(notes, "mine").ok());
  ASSERT_TRUE(Average({.directory = run_, .last = 1}).ok());
  EXPECT_EQ(*ReadFile(notes), "mine");
}

TEST_F(AverageCheckpointsTest, RemovesWhatAKilledOneLeft) {
  Save(1, 1);
  // Belongs to an output of another name, and to an earlier process with the id
  // of this one.
  const std::string left = TemporaryName(output_ + "-before", /*number=*/7);
  ASSERT_TRUE(CreateDirectories(left).ok());
  ASSERT_TRUE(WriteFileAtomically(left + "/model.safetensors", "half").ok());
  ASSERT_TRUE(Average({.directory = run_, .last = 1}).ok());
  EXPECT_FALSE(fs::exists(left));
}

TEST_F(AverageCheckpointsTest, FindsARunsCheckpointsByAnyOfItsDirectories) {
  for (int64_t step = 1; step <= 4; ++step) {
    Save(step, 1);
  }
  // One that is not whole does not count.
  fs::remove(StoreOf("seed-1") + "/step-00000003/model.safetensors");
  for (const std::string& path :
       {run_, run_ + "/seed-1", run_ + "/seed-1/", StoreOf("seed-1"),
        StoreOf("seed-1") + "/", StoreOf("seed-1") + "/."}) {
    const auto found = FindCheckpointsToAverage({.directory = path, .last = 2});
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_THAT(found->steps, ElementsAre(2, 4));
    EXPECT_EQ(found->seed_directory, run_ + "/seed-1");
    EXPECT_EQ(found->directories[1], StoreOf("seed-1") + "/step-00000004");
  }
  EXPECT_THAT(
      FindCheckpointsToAverage({.directory = run_, .last = 2, .up_to_step = 3})
          ->steps,
      ElementsAre(1, 2));
}

// As somebody may have put it beside them, of a model of the same sizes.
TEST_F(AverageCheckpointsTest, LeavesOutACheckpointOfAnotherRun) {
  Save(1, 1);
  Save(2, 1);
  const std::string other = StoreOf("seed-1") + "/step-00000003";
  fs::copy(StoreOf("seed-1") + "/step-00000002", other,
           fs::copy_options::recursive);
  ASSERT_TRUE(
      WriteCheckpointOwner({.name = "step-00000003", .run = "other"}, other)
          .ok());
  const auto found = FindCheckpointsToAverage({.directory = run_});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(found->steps, ElementsAre(1, 2));
}

TEST_F(AverageCheckpointsTest, TakesALinkThatLeadsToItselfForNoCheckpoint) {
  Save(1, 1);
  fs::create_symlink("step-loop", StoreOf("seed-1") + "/step-loop");
  const auto found = FindCheckpointsToAverage({.directory = run_, .last = 1});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(found->steps, ElementsAre(1));
}

// The run would go on from it, and an average has no state of training.
TEST_F(AverageCheckpointsTest, IsWrittenBesideTheCheckpointsOfTheRunOnly) {
  Save(1, 1);
  Save(2, 1);
  const auto found = FindCheckpointsToAverage({.directory = run_});
  ASSERT_TRUE(found.ok()) << found.status();
  const std::string store = StoreOf("seed-1");
  fs::create_directory_symlink(store, directory_.File("link"));
  for (const std::string& output :
       {store, store + "/step-00000009", store + "/step-00000002/average",
        directory_.File("link/average")}) {
    EXPECT_THAT(MessageOf(AverageCheckpoints(*found, output),
                          absl::StatusCode::kInvalidArgument),
                HasSubstr("should not be among the checkpoints of the run"));
  }
  // The message has the path as it was typed.
  const std::string relative = fs::relative(store).string() + "/average/";
  EXPECT_THAT(MessageOf(AverageCheckpoints(*found, relative),
                        absl::StatusCode::kInvalidArgument),
              StartsWith("the output " + relative + " should not be"));
  EXPECT_TRUE(AverageCheckpoints(*found, store + "-average").ok());
  // One that was put there by hand is none of the run.
  fs::rename(store + "-average", store + "/step-00000009");
  ASSERT_TRUE(WriteCheckpointOwner(
                  {.name = "step-00000009",
                   .run = ReadCheckpointOwner(store + "/step-00000002")->run},
                  store + "/step-00000009")
                  .ok());
  EXPECT_THAT(FindCheckpointsToAverage({.directory = run_})->steps,
              ElementsAre(1, 2));
  CheckpointStore resumed(store);
  ASSERT_TRUE(resumed.TakeOver().ok());
  EXPECT_EQ(*resumed.last(), store + "/step-00000002");
}

// Those of evaluations alone, wherever the run was stopped.
TEST_F(AverageCheckpointsTest, LeavesOutACheckpointOfAStop) {
  Save(1, 1);
  Save(2, 1);
  Save(3, 1, "seed-1", /*is_interim=*/true);
  const auto found = FindCheckpointsToAverage({.directory = run_, .last = 2});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(found->steps, ElementsAre(1, 2));
}

// The best one stays beside the last ones, but is none of them; a run that goes
// on with another train.keep_last does not make it one.
TEST_F(AverageCheckpointsTest, LeavesOutACheckpointKeptForItsScore) {
  keep_last_ = 2;
  Save(3, 1);
  {
    CheckpointStore store(StoreOf("seed-1"), {.last = keep_last_});
    ASSERT_TRUE(store.TakeOver().ok());
    ASSERT_TRUE(
        store.NoteEvaluation({{"accuracy", 1.0}}, /*is_best=*/true).ok());
  }
  for (const int64_t step : {6, 24, 25}) {
    Save(step, 1);
  }
  ASSERT_TRUE(fs::exists(StoreOf("seed-1") + "/step-00000003"));
  ASSERT_FALSE(fs::exists(StoreOf("seed-1") + "/step-00000006"));
  EXPECT_THAT(FindCheckpointsToAverage({.directory = run_, .last = 2})->steps,
              ElementsAre(24, 25));
  EXPECT_THAT(MessageOf(Average({.directory = run_, .last = 3}),
                        absl::StatusCode::kInvalidArgument),
              HasSubstr("should have 3 checkpoints to average, but has 2"));
  keep_last_ = 10;
  Save(27, 1);
  EXPECT_THAT(FindCheckpointsToAverage({.directory = run_, .last = 3})->steps,
              ElementsAre(24, 25, 27));
  EXPECT_FALSE(FindCheckpointsToAverage({.directory = run_, .last = 4}).ok());
}

TEST_F(AverageCheckpointsTest, TakesAllOfFewUnlessANumberIsAskedFor) {
  const auto steps = [&] {
    const auto found = FindCheckpointsToAverage({.directory = run_});
    return found.ok() ? found->steps : std::vector<int64_t>();
  };
  Save(1, 1);
  Save(2, 1);
  EXPECT_THAT(steps(), ElementsAre(1, 2));
  for (int64_t step = 3; step <= 12; ++step) {
    Save(step, 1);
  }
  EXPECT_THAT(steps(), ElementsAre(3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
}

TEST_F(AverageCheckpointsTest, ReplacesAnAverageAlone) {
  torch::NoGradGuard no_grad;
  Save(1, 1);
  ASSERT_TRUE(Average({.directory = run_, .last = 1}).ok());
  Save(2, 3);
  const auto found = FindCheckpointsToAverage({.directory = run_, .last = 2});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(MessageOf(AverageCheckpoints(*found, output_),
                        absl::StatusCode::kAlreadyExists),
              HasSubstr("--overwrite replaces it"));
  const absl::Status replaced =
      AverageCheckpoints(*found, output_, /*overwrite=*/true);
  ASSERT_TRUE(replaced.ok()) << replaced;
  const auto reader = TensorReader::Open(output_);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_TRUE(reader->Read("weight")->equal(torch::full({2, 3}, 2.0F)));
  ExpectNoTemporary();

  // One that cannot get its name leaves the earlier one.
  RecordedOperations operations(directory_.path());
  operations.failing_call = "exchange average";
  {
    const ScopedFileOperations scope(&operations);
    EXPECT_FALSE(AverageCheckpoints(*found, output_, /*overwrite=*/true).ok());
  }
  EXPECT_TRUE(IsAverage(output_));
  ExpectNoTemporary();

  // Under another name it is somebody's copy.
  const std::string copy = directory_.File("copy");
  fs::rename(output_, copy);
  EXPECT_THAT(MessageOf(AverageCheckpoints(*found, copy, /*overwrite=*/true),
                        absl::StatusCode::kAlreadyExists),
              HasSubstr("choose another directory"));
}

TEST_F(AverageCheckpointsTest, TakesADirectoryOfNoSeedForNone) {
  Save(1, 1);
  Save(1, 1, "seed-data");
  const auto found = FindCheckpointsToAverage({.directory = run_, .last = 1});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->seed_directory, run_ + "/seed-1");
}

TEST_F(AverageCheckpointsTest, SaysWhatIsMissing) {
  using enum absl::StatusCode;
  Save(1, 1);
  EXPECT_THAT(MessageOf(Average({.directory = run_}), kInvalidArgument),
              HasSubstr("should have 2 checkpoints to average, but has 1"));
  Save(2, 1);
  EXPECT_THAT(
      MessageOf(Average({.directory = run_, .last = 10}), kInvalidArgument),
      HasSubstr("should have 10 checkpoints to average, but has 2"));
  EXPECT_THAT(
      MessageOf(Average({.directory = run_, .last = 2, .up_to_step = 1}),
                kInvalidArgument),
      HasSubstr("but has 1 of up to 1 updates"));
  EXPECT_THAT(
      MessageOf(Average({.directory = StoreOf("seed-1") + "/step-00000002"}),
                kInvalidArgument),
      HasSubstr("is one checkpoint"));
  EXPECT_THAT(
      MessageOf(Average({.directory = directory_.File("absent")}), kNotFound),
      HasSubstr("there are no checkpoints in"));
  // One that is not whole is none.
  Save(1, 1, "broken");
  fs::remove(StoreOf("broken") + "/step-00000001/model.safetensors");
  EXPECT_THAT(MessageOf(Average({.directory = StoreOf("broken")}), kNotFound),
              HasSubstr("that are whole and of one run"));
  Save(1, 1, "seed-2");
  EXPECT_THAT(MessageOf(Average({.directory = run_}), kFailedPrecondition),
              HasSubstr("run/seed-1, "));
}

TEST_F(AverageCheckpointsTest, TakesOneCheckpointAtLeast) {
  Save(1, 1);
  EXPECT_THROW(static_cast<void>(
                   FindCheckpointsToAverage({.directory = run_, .last = 0})),
               c10::Error);
}

TEST_F(AverageCheckpointsTest, RefusesWhatHasNoMeanAndLeavesNothing) {
  using enum absl::StatusCode;
  Save(1, 1);
  Save(2, std::numeric_limits<float>::infinity());
  EXPECT_THAT(
      MessageOf(Average({.directory = run_, .last = 2}), kInvalidArgument),
      HasSubstr("the average of "));
  CheckpointStore store(StoreOf("seed-1"), {.last = 100});
  ASSERT_TRUE(store.TakeOver().ok());
  const auto save = [&store](int64_t step, int64_t size) {
    return store.Save(step, [size](const std::string& directory) {
      absl::Status status = WriteFileAtomically(
          directory + "/run_config.json", R"({"train": {"keep_last": 2}})");
      status.Update(WriteTensors(directory + "/model.safetensors",
                                 {{"weight", torch::zeros({size})}}, {}));
      return status;
    });
  };
  ASSERT_TRUE(save(3, 1).ok());
  EXPECT_THAT(
      MessageOf(Average({.directory = run_, .last = 2}), kInvalidArgument),
      HasSubstr("should have the tensors of"));
  ASSERT_TRUE(save(4, 2).ok());
  EXPECT_THAT(
      MessageOf(Average({.directory = run_, .last = 2}), kInvalidArgument),
      HasSubstr("has another shape or type"));
  const std::string damaged =
      StoreOf("seed-1") + "/step-00000004/model.safetensors";
  std::string contents = *ReadFile(damaged);
  contents.back() = static_cast<char>(contents.back() + 1);
  ASSERT_TRUE(WriteFileAtomically(damaged, contents).ok());
  EXPECT_THAT(MessageOf(Average({.directory = run_, .last = 1}), kDataLoss),
              HasSubstr("model.safetensors"));
  EXPECT_FALSE(fs::exists(output_));
  ExpectNoTemporary();
  ASSERT_TRUE(CreateDirectories(output_).ok());
  EXPECT_THAT(
      MessageOf(Average({.directory = run_, .last = 1}), kAlreadyExists),
      HasSubstr("is there already"));
}

}  // namespace
}  // namespace etc
