// Runs that fail: a start that is refused, a loss that is not finite, an
// evaluation that fails, files that a killed process left. The updates made,
// and files that are not the run's own, must be there afterwards.

#include <sys/wait.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/file_operations.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/data/batch.h"
#include "tasks/train/evaluate.h"
#include "tasks/train/model_files.h"
#include "tasks/train/task_model.h"
#include "tasks/train/training_state.h"
#include "tests/support/snapshot.h"
#include "tests/tasks/train/toy_run.h"
#include "tests/tasks/train/toy_run_fixture.h"
#include "tests/tasks/train/toy_task.h"

namespace etc {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using TrainerFailureTest = ToyRunTest;

TEST_F(TrainerFailureTest,
       StopsAtALossThatIsNotFiniteAndKeepsTheLastCheckpoint) {
  json_["train"]["checkpoint_every"] = 1;
  json_["train"]["evaluate_every"] = 0;
  // A record that the first update does not use, or there is no checkpoint.
  FakeReporter reporter;
  for (int record = 0; record < 37 && reporter.updates.empty(); ++record) {
    fs::remove_all(Output("run"));
    nan_record_ = absl::StrCat(record);
    const absl::Status status = Run("run", &reporter).status();
    ASSERT_TRUE(absl::IsAborted(status)) << status;
    EXPECT_THAT(
        status.message(),
        AllOf(HasSubstr(absl::StrCat("the loss of update ",
                                     reporter.updates.size() + 1, " is nan")),
              HasSubstr(reporter.updates.empty()
                            ? "there is no checkpoint yet"
                            : "the last good checkpoint is " +
                                  Output("run/seed-1/checkpoints"))));
  }
  const std::string last = Output("run/seed-1/checkpoints/last");
  EXPECT_EQ(ReadTrainingState(last + "/training_state.safetensors")->state.step,
            reporter.updates.size());
  const nlohmann::json logged = MetricsLines(Output("run/seed-1")).back();
  EXPECT_EQ(logged["step"], reporter.updates.size());
  EXPECT_THAT(logged.value("diverged", ""), HasSubstr(" is nan"));
  for (const auto& [name, tensor] : ReadAll(last + "/model.safetensors")) {
    EXPECT_TRUE(torch::isfinite(tensor).all().item<bool>()) << name;
  }
}

// A run whose data are bad at a record that is reached in mid-epoch.
TEST_F(TrainerFailureTest, SavesWhatWasTrainedBeforeABadRecord) {
  json_["train"]["evaluate_every"] = 0;
  json_["data"]["bucket_batches"] = 1;
  FakeReporter reporter;
  absl::Status status;
  for (int record = 0; record < 37 && reporter.updates.empty(); ++record) {
    SpoilRecord(record);
    status = Run("run", &reporter).status();
    ASSERT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("train.jsonl: record ", record)));
  }
  const size_t made = reporter.updates.size();
  ASSERT_GT(made, 0u);
  const std::string last =
      Output("run/seed-1/checkpoints/step-0000000") + std::to_string(made);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat(
                  "; ", Counted(static_cast<int64_t>(made), "update"),
                  made == 1 ? " is" : " are", " saved in ", last,
                  ": the same command with --resume goes on from there, after "
                  "a change of the data with --allow-changes data.train")));
  EXPECT_EQ(ReadTrainingState(last + "/training_state.safetensors")->state.step,
            static_cast<int64_t>(made));
  EXPECT_EQ(MetricsLines(Output("run/seed-1")).size(), made);
  // The same error again, and nothing is lost.
  FakeReporter again;
  EXPECT_TRUE(
      absl::IsInvalidArgument(Run("run", &again, /*resume=*/true).status()));
  EXPECT_TRUE(again.updates.empty());
  // Without it.
  temporary_.Write("train.jsonl", ToyRecords(37, 1));
  allow_changes_ = {"data.train"};
  FakeReporter mended;
  const auto resumed = Run("run", &mended, /*resume=*/true);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(mended.updates.size(), 12 - made);
}

// A line of the log of the metrics cannot be written, or only in part, as on a
// disk that is full for a while: also that of an update which is evaluated.
TEST_F(TrainerFailureTest, SavesWhatWasTrainedBeforeTheLogIsFull) {
  class FullLog : public FileOperations {
   public:
    int Open(const std::string& path, int flags, mode_t mode) override {
      const int descriptor = FileOperations::Open(path, flags, mode);
      if (path.ends_with("/metrics.jsonl")) {
        log = descriptor;
      }
      return descriptor;
    }
    ssize_t Write(int descriptor, const char* data, size_t size) override {
      if (descriptor == log && --lines_left == -2) {
        errno = ENOSPC;
        return -1;
      }
      return FileOperations::Write(
          descriptor, data,
          descriptor == log && lines_left == -1 ? size / 2 : size);
    }
    int64_t lines_left = 0;
    int log = -1;
  };
  json_["train"]["evaluate_every"] = 0;
  for (const int64_t lines : {5, 11}) {
    const std::string name = absl::StrCat("run-", lines);
    FakeReporter reporter;
    absl::Status status;
    {
      FullLog full;
      full.lines_left = lines;
      const ScopedFileOperations scope(&full);
      status = Run(name, &reporter).status();
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    const std::string last = Output(name + "/seed-1/checkpoints/") +
                             (lines == 5 ? "step-00000006" : "step-00000012");
    EXPECT_THAT(
        std::string(status.message()),
        HasSubstr("cannot write " + Output(name + "/seed-1/metrics.jsonl")));
    EXPECT_EQ(
        ReadTrainingState(last + "/training_state.safetensors")->state.step,
        lines + 1);
    FakeReporter second;
    const auto resumed = Run(name, &second, /*resume=*/true);
    ASSERT_TRUE(resumed.ok()) << resumed.status();
    EXPECT_EQ(second.updates.size(), static_cast<size_t>(11 - lines));
    // All but the line that was not written, and the evaluation.
    EXPECT_EQ(MetricsLines(Output(name + "/seed-1")).size(), 12u);
  }
}

// The same of the file for TensorBoard, of which metrics.jsonl has all: the run
// says so once and goes on.
TEST_F(TrainerFailureTest, GoesOnWithoutEventsThatCannotBeWritten) {
  class FullEvents : public FileOperations {
   public:
    int Open(const std::string& path, int flags, mode_t mode) override {
      const int descriptor = FileOperations::Open(path, flags, mode);
      if (path.find("tfevents") != std::string::npos) {
        events = descriptor;
      }
      return descriptor;
    }
    ssize_t Write(int descriptor, const char* data, size_t size) override {
      if (descriptor == events && --records_left < 0) {
        errno = ENOSPC;
        return -1;
      }
      return FileOperations::Write(descriptor, data, size);
    }
    int Close(int descriptor) override {
      // Another file may have its number then.
      events = descriptor == events ? -1 : events;
      return FileOperations::Close(descriptor);
    }
    int64_t records_left = 5;  // version, start, configuration, two updates
    int events = -1;
  };
  json_["train"]["tensorboard"] = true;
  FullEvents full;
  const ScopedFileOperations scope(&full);
  FakeReporter reporter;
  const auto result = Run("run", &reporter);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(reporter.updates.size(), 12u);
  EXPECT_EQ(full.records_left, -1);
  const auto is_warning =
      HasSubstr("from here on nothing is written for TensorBoard");
  EXPECT_THAT(reporter.warnings, testing::Contains(is_warning).Times(1));
}

// A run with more updates than before withdraws its result.
TEST_F(TrainerFailureTest, WithdrawsNoResultWhereNoEventFileCanBeMade) {
  FakeReporter first;
  ASSERT_TRUE(Run("run", &first).ok());
  const std::string events =
      temporary_.Write("run/seed-1/tensorboard", "a file");
  const auto before = SnapshotWithoutLocks(Output("run"));
  json_["train"]["tensorboard"] = true;
  json_["train"]["steps"] = 14;
  allow_changes_ = {"train.steps"};
  FakeReporter second;
  const absl::Status status = Run("run", &second, /*resume=*/true).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr(events));
  EXPECT_EQ(SnapshotWithoutLocks(Output("run")), before);
}

// A stop on a disk that is full.
TEST_F(TrainerFailureTest, NamesTheLastCheckpointWhenAStopCannotSave) {
  class FullDisk : public FileOperations {
   public:
    int MakeDirectory(const std::string& path) override {
      if (path.find("step-00000006") != std::string::npos) {
        errno = ENOSPC;
        return -1;
      }
      return FileOperations::MakeDirectory(path);
    }
  };
  FullDisk full;
  const ScopedFileOperations scope(&full);
  FakeReporter reporter;
  reporter.stop_after = 6;
  const absl::Status status = Run("run", &reporter).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("; the last checkpoint is " +
                        Output("run/seed-1/checkpoints/step-00000004") +
                        ": the same command with --resume goes on from there"));
}

// A mistake of a task, which throws.
TEST_F(TrainerFailureTest, SavesWhatWasTrainedBeforeAnInternalError) {
  class Throws : public FakeReporter {
   public:
    void Update(const Progress& progress) override {
      FakeReporter::Update(progress);
      TORCH_CHECK(progress.step != 6, "a broken promise");
    }
  };
  json_["train"]["evaluate_every"] = 0;
  Throws reporter;
  const absl::Status status = Run("run", &reporter).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(StartsWith("internal error: a broken promise; 6 updates "
                               "are saved in " +
                               Output("run/seed-1/checkpoints/step-00000006")),
                    testing::Not(HasSubstr("\n"))));
  FakeReporter second;
  ASSERT_TRUE(Run("run", &second, /*resume=*/true).ok());
  EXPECT_EQ(second.updates.size(), 6u);
}

TEST_F(TrainerFailureTest, TouchesNothingWhenItRefusesToStart) {
  FakeReporter reporter;
  reporter.stop_after = 6;
  ASSERT_TRUE(Run("run", &reporter).ok());
  reporter.stop = false;
  const std::string checkpoints = Output("run/seed-1/checkpoints");
  fs::copy(checkpoints + "/last/", checkpoints + "/keep",
           fs::copy_options::recursive);
  const std::string run =
      nlohmann::json::parse(*ReadFile(checkpoints + "/owner.json"))["run"];
  fs::create_directory(checkpoints + "/step-00000007.unfinished-" + run);
  const auto before = Snapshot(Output("run"));
  EXPECT_TRUE(absl::IsAlreadyExists(Run("run", &reporter).status()));
  EXPECT_EQ(Snapshot(Output("run")), before);
  // The file that says who has the lock is all that may change.
  const auto expected = SnapshotWithoutLocks(Output("run"));
  json_["train"]["learning_rate"] = 0.5;
  EXPECT_FALSE(Run("run", &reporter, /*resume=*/true).ok());
  EXPECT_EQ(SnapshotWithoutLocks(Output("run")), expected);
}

// The start that is refused is in this process, beside the one that runs.
TEST_F(TrainerFailureTest, LeavesARunningOneAlone) {
  class StartsAnother : public FakeReporter {
   public:
    void Update(const Progress& progress) override {
      FakeReporter::Update(progress);
      refused = start();
    }
    std::function<absl::Status()> start;
    absl::Status refused;
  };
  FakeReporter straight;
  ASSERT_TRUE(Run("straight", &straight).ok());
  StartsAnother reporter;
  for (const bool resume : {false, true}) {
    const std::string name = resume ? "resumed" : "fresh";
    reporter.start = [&] {
      FakeReporter other;
      return Run(name, &other, resume).status();
    };
    ASSERT_TRUE(Run(name, &reporter).ok());
    EXPECT_TRUE(absl::IsUnavailable(reporter.refused)) << reporter.refused;
    EXPECT_THAT(reporter.refused.message(),
                HasSubstr(absl::StrCat("in use by process ", getpid())));
    ExpectSameRun(Output(name + "/seed-1"), Output("straight/seed-1"));
  }
}

TEST_F(TrainerFailureTest, KeepsAllUpdatesWhenAnEvaluationFails) {
  temporary_.Write(
      "dev.jsonl",
      ToyRecords(11, 2) + R"({"id": "special", "tokens": [2, 7]})" + "\n");
  FakeReporter straight;
  json_["train"]["evaluate_every"] = 0;
  ASSERT_TRUE(Run("straight", &straight).ok());
  nan_logits_record_ = "special";
  FakeReporter first;
  const absl::Status status = Run("run", &first).status();
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  const std::string last = Output("run/seed-1/checkpoints/step-00000012");
  EXPECT_THAT(std::string(status.message()),
              AllOf(StartsWith("record "), HasSubstr("in the evaluation after "
                                                     "12 updates, which are "
                                                     "saved in " +
                                                     last)));
  EXPECT_TRUE(MetricsLines(Output("run/seed-1")).back().contains("diverged"));
  // Goes on, and is no diverged run any more.
  nan_logits_record_.clear();
  FakeReporter second;
  const auto resumed = Run("run", &second, /*resume=*/true);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_TRUE(second.updates.empty()) << "no update is made again";
  EXPECT_EQ(second.evaluation_batches, 2);
  ExpectSameRun(Output("run/seed-1"), Output("straight/seed-1"));
}

// A learning rate that ruins the model at once.
TEST_F(TrainerFailureTest, RecommendsACheckpointWhoseWeightsGiveAFiniteLoss) {
  json_["train"]["learning_rate"] = 1e6;
  json_["train"]["checkpoint_every"] = 1;
  json_["train"]["evaluate_every"] = 0;
  for (const std::string type : {"bert_adamw", "adamw", "lamb"}) {
    json_["optimizer"]["type"] = type;
    FakeReporter reporter;
    const absl::Status status = Run(type, &reporter).status();
    ASSERT_TRUE(absl::IsAborted(status)) << type << ": " << status;
    const std::string said = "the last good checkpoint is ";
    const std::string message(status.message());
    ASSERT_THAT(message, HasSubstr(said));
    const std::string checkpoint =
        message.substr(message.find(said) + said.size());
    EXPECT_EQ(fs::canonical(checkpoint),
              fs::canonical(Output(type + "/seed-1/checkpoints/last")));
    EXPECT_THAT(reporter.warnings, Contains(HasSubstr("likely too high")));

    const auto config = ReadTaskModelConfig(checkpoint);
    ASSERT_TRUE(config.ok()) << config.status();
    const ToyTask task(config->model);
    auto model = LoadTaskModel(checkpoint, *config, task);
    ASSERT_TRUE(model.ok()) << model.status();
    const auto records = OpenRecords(task, {.patterns = {train_}});
    ASSERT_TRUE(records.ok());
    const auto evaluation = Evaluate(&*model, task, **records, {});
    ASSERT_TRUE(evaluation.ok()) << type << ": " << evaluation.status();
    EXPECT_EQ(evaluation->num_examples, 37);
    const torch::NoGradGuard no_grad;
    for (int64_t record = 0; record < 37; ++record) {
      const Batch batch = MakeBatch(*(*records)->Make({.record = record}));
      EXPECT_TRUE(model
                      ->Loss(model->Forward(batch), batch,
                             model->Totals(batch.examples))
                      .isfinite()
                      .item<bool>())
          << type << ", record " << record;
    }
  }
}

TEST_F(TrainerFailureTest, RemovesTheTemporaryFilesOfAKilledRun) {
  FakeReporter first;
  first.stop_after = 6;
  ASSERT_TRUE(Run("run", &first).ok());
  const std::string checkpoints = Output("run/seed-1/checkpoints");
  const pid_t child = fork();
  if (child == 0) {
    for (const std::string& file :
         {Output("run/summary.json"), Output("run/seed-1/lock"),
          checkpoints + "/owner.json", checkpoints + "/last/evaluation.json"}) {
      WriteFileAtomically(TemporaryName(file, 1), "half").IgnoreError();
    }
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  const auto temporaries = [this] {
    int64_t count = 0;
    for (const auto& [path, contents] : Snapshot(Output("run"))) {
      count += path.ends_with(".tmp") ? 1 : 0;
    }
    return count;
  };
  ASSERT_EQ(temporaries(), 4);
  FakeReporter second;
  ASSERT_TRUE(Run("run", &second, /*resume=*/true).ok());
  EXPECT_EQ(temporaries(), 0);
}

}  // namespace
}  // namespace etc
