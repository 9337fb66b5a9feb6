// Runs that SIGKILL ends in the middle of a file operation: a hundred times, at
// operations drawn at random, by the shim that this program is linked behind.
// After each kill every checkpoint that has a name is whole; when the run was
// resumed to its end it has the bits of one that was never disturbed, nothing
// of its own is left lying about, and what a user put into the directory is as
// it was. Each run is a forked child, because a process that links LibTorch
// takes half a second to start; this process therefore runs no model.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/train/model_files.h"
#include "tasks/train/task_model.h"
#include "tests/support/file_operation_shim.h"
#include "tests/support/snapshot.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/train/toy_run.h"
#include "tests/tasks/train/toy_task.h"

namespace etc {
namespace {

namespace fs = std::filesystem;

// Copies that a user puts beside the checkpoints, under names of all kinds.
class UsersCopies {
 public:
  // Once there is a checkpoint to copy.
  void Make(const std::string& checkpoints) {
    if (!copies_.empty() ||
        !fs::exists(checkpoints + "/last/model.safetensors")) {
      return;
    }
    for (const std::string name :
         {"keep", "step-7-copy", "step-00000099", "step-00000003.unfinished",
          "last.unfinished"}) {
      const std::string path = absl::StrCat(checkpoints, "/", name);
      fs::copy(checkpoints + "/last/", path, fs::copy_options::recursive);
      copies_[path] = Snapshot(path);
    }
    fs::create_directory(checkpoints + "/step-00000098");
    copies_[checkpoints + "/step-00000098"] = {};
  }

  void ExpectUntouched() const {
    for (const auto& [path, contents] : copies_) {
      ASSERT_TRUE(fs::is_directory(path)) << path;
      EXPECT_EQ(Snapshot(path), contents) << path;
    }
  }

  bool Has(const std::string& path) const { return copies_.contains(path); }

 private:
  std::map<std::string, std::map<std::string, std::string>> copies_;
};

class KilledRunTest : public testing::Test {
 protected:
  KilledRunTest() {
    json_ = ToyConfigJson(temporary_.Write("train.jsonl", ToyRecords(37, 1)),
                          temporary_.Write("dev.jsonl", ToyRecords(11, 2)), "");
    json_["train"]["steps"] = 6;
    json_["train"]["evaluate_every"] = 2;
    json_["train"]["checkpoint_every"] = 1;
  }

  std::string RunDirectory(const std::string& name) const {
    return temporary_.File(name + "/seed-1");
  }

  // Runs in a child, which is killed at the file operation of that number (0:
  // never) in the output directory. Returns whether it came to the end, and
  // the operations counted by then.
  bool Run(const std::string& name, int64_t kill_at, int64_t* count = nullptr) {
    json_["output"] = temporary_.File(name);
    const std::string outcome = temporary_.File("outcome");
    fs::remove(outcome);
    const pid_t child = fork();
    if (child == 0) {
      FakeReporter reporter;
      EtcShimStart(temporary_.File(name).c_str(), kill_at);
      const auto result = RunToy(json_, &reporter, /*resume=*/true);
      const std::string text = result.ok() ? absl::StrCat(EtcShimCount())
                                           : result.status().ToString();
      WriteFileAtomically(outcome, text).IgnoreError();
      _exit(result.ok() && result->finished ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) {
      EXPECT_EQ(WTERMSIG(status), SIGKILL);
      EXPECT_NE(kill_at, 0);
      return false;
    }
    const auto text = ReadFile(outcome);
    EXPECT_EQ(WEXITSTATUS(status), 0) << (text.ok() ? *text : "no outcome");
    if (count != nullptr && text.ok()) {
      *count = std::stoll(*text);
    }
    return true;
  }

  // Every checkpoint of the run that has a name is whole.
  void ExpectWholeCheckpoints(const std::string& name) const {
    const std::string checkpoints = RunDirectory(name) + "/checkpoints";
    if (!fs::exists(checkpoints)) {
      return;
    }
    for (const auto& entry : fs::directory_iterator(checkpoints)) {
      const std::string path = entry.path().string();
      if (!fs::is_directory(path) || absl::StrContains(path, ".unfinished") ||
          absl::EndsWith(path, "step-00000098")) {
        continue;
      }
      const auto config = ReadTaskModelConfig(path);
      ASSERT_TRUE(config.ok()) << path << ": " << config.status();
      const auto state =
          ReadTrainingState(path + "/training_state.safetensors");
      EXPECT_TRUE(state.ok()) << state.status();
      const auto reader = TensorReader::Open(path);
      ASSERT_TRUE(reader.ok()) << reader.status();
      for (const std::string& tensor : reader->Names()) {
        EXPECT_TRUE(reader->Read(tensor).ok()) << path << ", " << tensor;
      }
    }
  }

  // Expects the files of a finished run, and nothing else of its own.
  void ExpectTidy(const std::string& name, const UsersCopies& copies) const {
    const std::string directory = RunDirectory(name);
    std::set<std::string> linked;
    for (const char* link : {"/checkpoints/last", "/checkpoints/best"}) {
      linked.insert(fs::canonical(directory + link).string());
    }
    for (const auto& entry :
         fs::directory_iterator(directory + "/checkpoints")) {
      const std::string path = entry.path().string();
      EXPECT_TRUE(entry.is_symlink() || linked.contains(path) ||
                  copies.Has(path) || absl::EndsWith(path, "/owner.json") ||
                  absl::EndsWith(path, "/checkpoints.json"))
          << path;
    }
    for (const auto& [path, text] : Snapshot(temporary_.File(name))) {
      // A user may have copied a checkpoint with one in it.
      const fs::path whole = fs::path(temporary_.File(name)) / path;
      EXPECT_FALSE(absl::EndsWith(path, ".tmp") &&
                   !copies.Has(whole.parent_path().string()))
          << path;
    }
  }

  TemporaryDirectory temporary_;
  nlohmann::json json_;
};

TEST_F(KilledRunTest, GoesOnBitForBitAfterAHundredKills) {
  int64_t operations = 0;
  ASSERT_TRUE(Run("straight", /*kill_at=*/0, &operations));
  ASSERT_GT(operations, 100) << "the shim should see what a run does";
  std::mt19937 random(13);
  int kills = 0;
  for (int run = 0; kills < 100; ++run) {
    const std::string name = absl::StrCat("run-", run);
    const std::string checkpoints = RunDirectory(name) + "/checkpoints";
    UsersCopies copies;
    // Four times: also a run that goes on can be killed.
    for (int attempt = 0; attempt < 4; ++attempt) {
      const int64_t kill_at =
          std::uniform_int_distribution<int64_t>(1, operations)(random);
      SCOPED_TRACE(absl::StrCat(name, ", killed at operation ", kill_at));
      if (Run(name, kill_at)) {
        break;
      }
      ++kills;
      ExpectWholeCheckpoints(name);
      copies.Make(checkpoints);
      copies.ExpectUntouched();
    }
    SCOPED_TRACE(name);
    ASSERT_TRUE(Run(name, /*kill_at=*/0));
    copies.ExpectUntouched();
    ExpectTidy(name, copies);
    ExpectSameRun(RunDirectory(name), RunDirectory("straight"));
    ASSERT_FALSE(HasFailure());
    fs::remove_all(temporary_.File(name));
  }
}

}  // namespace
}  // namespace etc
