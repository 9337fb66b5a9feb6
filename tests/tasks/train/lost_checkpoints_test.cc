// Runs whose directory was copied, cut or damaged: a stopped run that lost its
// links or its record goes on to the bits of one that was left alone, a start
// without `resume` is refused and changes nothing, damaged weights are named,
// and what the directory alone decides is said before data are read.

#include <cerrno>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/file_operations.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/output/find_checkpoint.h"
#include "tasks/output/run_lock.h"
#include "tasks/train/model_files.h"
#include "tasks/train/task_model.h"
#include "tests/support/recorded_operations.h"
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
using ::testing::IsEmpty;

// Copies a directory as tools do that follow links, or leave them out.
void Copy(const std::string& from, const std::string& to, bool follow) {
  fs::create_directories(to);
  for (const auto& entry : fs::directory_iterator(from)) {
    const std::string target = to + "/" + entry.path().filename().string();
    if (entry.is_symlink() && !follow) {
      continue;
    }
    if (entry.is_directory()) {
      Copy(entry.path().string(), target, follow);
    } else {
      fs::copy_file(entry.path(), target);
    }
  }
}

class LostCheckpointsTest : public ToyRunTest {
 protected:
  // A run that was never disturbed, and one that was stopped after nine of
  // twelve updates.
  void MakeRuns() {
    FakeReporter straight;
    ASSERT_TRUE(Run("straight", &straight).ok());
    FakeReporter stopped;
    stopped.stop_after = 9;
    ASSERT_TRUE(Run("stopped", &stopped).ok());
  }
};

TEST_F(LostCheckpointsTest, GoOnWhateverBecameOfLinksAndRecord) {
  MakeRuns();
  const std::vector<std::vector<std::string>> removed = {
      {},
      {"last"},
      {"best"},
      {"checkpoints.json"},
      {"checkpoints.json", "last"},
      {"checkpoints.json", "best"},
      {"checkpoints.json", "last", "best"}};
  int copies = 0;
  for (const bool follow : {false, true}) {
    for (const std::vector<std::string>& entries : removed) {
      const std::string name = absl::StrCat("copy-", copies++);
      SCOPED_TRACE(absl::StrCat(name, ", ", follow, ", ", entries.size()));
      Copy(Output("stopped"), Output(name), follow);
      for (const std::string& entry : entries) {
        fs::remove_all(Output(name + "/seed-1/checkpoints/") + entry);
      }
      const auto before = SnapshotWithoutLocks(Output(name));
      FakeReporter refused;
      const absl::Status status = Run(name, &refused).status();
      EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
      EXPECT_EQ(SnapshotWithoutLocks(Output(name)), before);
      EXPECT_TRUE(FindCheckpoint(Output(name)).ok());

      FakeReporter resumed;
      const auto result = Run(name, &resumed, /*resume=*/true);
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(resumed.updates.size(), 3u) << "nothing is trained again";
      ExpectSameRun(Output(name + "/seed-1"), Output("straight/seed-1"));
    }
  }
}

TEST_F(LostCheckpointsTest, TrainOnAFileSystemWithoutLinks) {
  FakeReporter straight;
  ASSERT_TRUE(Run("straight", &straight).ok());
  RecordedOperations operations(temporary_.path());
  operations.failing_call = "symlink";
  operations.failing_error = EPERM;
  {
    const ScopedFileOperations scope(&operations);
    FakeReporter first;
    first.stop_after = 9;
    ASSERT_TRUE(Run("run", &first).ok());
    EXPECT_THAT(first.messages, Contains(HasSubstr("checkpoints.json says")));
    FakeReporter second;
    const auto result = Run("run", &second, /*resume=*/true);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(second.updates.size(), 3u);
  }
  const std::string checkpoints = Output("run/seed-1/checkpoints");
  EXPECT_FALSE(fs::is_symlink(checkpoints + "/last"));
  const std::string expected =
      fs::read_symlink(Output("straight/seed-1/checkpoints/best"));
  for (const std::string& path :
       {Output("run"), Output("run/seed-1"), checkpoints + "/best"}) {
    const auto found = FindCheckpoint(path);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->directory, checkpoints + "/" + expected) << path;
  }
  EXPECT_EQ(MetricsLines(Output("run/seed-1")),
            MetricsLines(Output("straight/seed-1")));
  // A start from the best one, by the name that the link would have.
  json_["init"] = checkpoints + "/best";
  FakeReporter begun;
  const absl::Status status = Run("begun", &begun).status();
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(LostCheckpointsTest, NameWeightsThatAreNotAsTheyWereWritten) {
  MakeRuns();
  const std::string last = Output("stopped/seed-1/checkpoints/last");
  const std::string init = last;
  for (const std::string file :
       {"model.safetensors", "training_state.safetensors"}) {
    const std::string path = last + "/" + file;
    const std::string text = *ReadFile(path);
    std::string flipped = text;
    flipped[flipped.size() - 3] ^= 1;  // the last bits of a number
    ASSERT_TRUE(WriteFileAtomically(path, flipped).ok());
    const auto before = SnapshotWithoutLocks(Output("stopped"));
    FakeReporter reporter;
    const absl::Status status =
        Run("stopped", &reporter, /*resume=*/true).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(file + " is damaged: its CRC-32C should be 0x"));
    EXPECT_EQ(SnapshotWithoutLocks(Output("stopped")), before);

    const auto config = ReadTaskModelConfig(last);
    ASSERT_TRUE(config.ok());
    const ToyTask task(config->model);
    const absl::Status loaded = LoadTaskModel(last, *config, task).status();
    json_["init"] = init;
    const absl::Status begun = Run("begun", &reporter).status();
    json_.erase("init");
    if (file == "model.safetensors") {
      EXPECT_TRUE(absl::IsDataLoss(loaded)) << loaded;
      EXPECT_TRUE(absl::IsDataLoss(begun)) << begun;
      EXPECT_FALSE(fs::exists(Output("begun"))) << "nothing is left of it";
    } else {  // the model does without
      EXPECT_TRUE(loaded.ok()) << loaded;
      EXPECT_TRUE(begun.ok()) << begun;
    }
    ASSERT_TRUE(WriteFileAtomically(path, text).ok());
  }
  FakeReporter reporter;
  EXPECT_TRUE(Run("stopped", &reporter, /*resume=*/true).ok());
}

// The best is chosen among the others.
TEST_F(LostCheckpointsTest, LeaveTheBestOfThoseThatAreThere) {
  json_["train"]["keep_last"] = 9;
  FakeReporter first;
  first.stop_after = 9;
  ASSERT_TRUE(Run("run", &first).ok());
  const std::string best = Output("run") + "/seed-1/checkpoints/best";
  const std::string lost = fs::canonical(best);
  fs::remove_all(lost);
  FakeReporter second;
  const auto resumed = Run("run", &second, /*resume=*/true);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_THAT(second.messages,
              Contains(HasSubstr("the checkpoint of the best score, after ")));
  ASSERT_TRUE(fs::exists(best));
  EXPECT_NE(fs::canonical(best).string(), lost);
}

// The data are not even there.
TEST_F(LostCheckpointsTest, AreRefusedBeforeDataAreRead) {
  FakeReporter first;
  first.stop_after = 6;
  ASSERT_TRUE(Run("run", &first).ok());
  const nlohmann::json begun = json_;
  json_["data"]["train"] = {"/nowhere/train.jsonl"};
  FakeReporter reporter;
  EXPECT_TRUE(absl::IsAlreadyExists(Run("run", &reporter).status()));

  json_["train"]["learning_rate"] = 0.5;
  const absl::Status changed = Run("run", &reporter, /*resume=*/true).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(changed)) << changed;
  EXPECT_THAT(std::string(changed.message()),
              AllOf(HasSubstr("another train.learning_rate"),
                    testing::Not(HasSubstr("data.train"))));
  json_["train"]["learning_rate"] = begun["train"]["learning_rate"];
  EXPECT_THAT(
      std::string(Run("run", &reporter, /*resume=*/true).status().message()),
      HasSubstr("/nowhere/train.jsonl"));
  {
    const auto lock = RunLock::Take(Output("run/seed-1"));
    ASSERT_TRUE(lock.ok());
    EXPECT_TRUE(
        absl::IsUnavailable(Run("run", &reporter, /*resume=*/true).status()));
  }
  temporary_.Write("file", "");
  EXPECT_THAT(std::string(Run("file", &reporter).status().message()),
              HasSubstr(Output("file")));
  EXPECT_THAT(reporter.messages, IsEmpty());

  // A start that the data then refuse leaves nothing.
  EXPECT_FALSE(Run("a/new/one", &reporter).ok());
  EXPECT_FALSE(fs::exists(Output("a")));
}

TEST_F(LostCheckpointsTest, AreNotTakenForARunThatHasNotBegun) {
  MakeRuns();
  fs::remove_all(Output("stopped/seed-1/checkpoints"));
  const auto before = SnapshotWithoutLocks(Output("stopped"));
  for (const bool resume : {false, true}) {
    FakeReporter reporter;
    const absl::Status status = Run("stopped", &reporter, resume).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("metrics.jsonl is that of a run whose checkpoints "
                          "are gone"));
    EXPECT_EQ(SnapshotWithoutLocks(Output("stopped")), before);
  }
}

}  // namespace
}  // namespace etc
