// Checkpoints that are whole or not there: names and links, what is deleted and
// when, failures in the middle, and a writer that SIGKILL ends at 40 moments
// spread over many saves.

#include "tasks/train/checkpoint_store.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "etc/formats/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

std::set<std::string> Names(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

// A checkpoint of two files that both hold `text`.
auto Writer(const std::string& text) {
  return [text](const std::string& directory) {
    for (const char* name : {"/first", "/second"}) {
      if (absl::Status status = WriteFileAtomically(directory + name, text);
          !status.ok()) {
        return status;
      }
    }
    return absl::OkStatus();
  };
}

TEST(CheckpointStoreTest, KeepsTheLastAndTheBest) {
  const TemporaryDirectory temporary;
  const std::string directory = temporary.File("checkpoints");
  auto store = CheckpointStore::Open(directory);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_FALSE(store->last().has_value());
  EXPECT_FALSE(store->best().has_value());

  ASSERT_TRUE(store->Save(5, Writer("five")).ok());
  ASSERT_TRUE(store->MarkLastAsBest().ok());
  ASSERT_TRUE(store->Save(10, Writer("ten")).ok());
  ASSERT_TRUE(store->Save(15, Writer("fifteen")).ok());
  EXPECT_THAT(
      Names(directory),
      UnorderedElementsAre("last", "best", "step-00000005", "step-00000015"));
  EXPECT_EQ(*store->last(), directory + "/step-00000015");
  EXPECT_EQ(*store->best(), directory + "/step-00000005");
  EXPECT_EQ(*ReadFile(directory + "/last/second"), "fifteen");

  ASSERT_TRUE(store->MarkLastAsBest().ok());
  EXPECT_THAT(Names(directory),
              UnorderedElementsAre("last", "best", "step-00000015"));
}

TEST(CheckpointStoreTest, DeletesWhatAKilledRunLeft) {
  const TemporaryDirectory temporary;
  const std::string directory = temporary.path();
  {
    auto store = CheckpointStore::Open(directory);
    ASSERT_TRUE(store->Save(5, Writer("five")).ok());
  }
  fs::create_directories(directory + "/step-00000007.unfinished");
  fs::create_directories(directory + "/step-00000006");
  fs::create_directory_symlink("step-00000006", directory + "/last.unfinished");
  auto store = CheckpointStore::Open(directory);
  ASSERT_TRUE(store.ok());
  EXPECT_THAT(Names(directory), UnorderedElementsAre("last", "step-00000005"));
}

TEST(CheckpointStoreTest, LeavesNothingOfAFailedSave) {
  const TemporaryDirectory temporary;
  auto store = CheckpointStore::Open(temporary.path());
  ASSERT_TRUE(store->Save(5, Writer("five")).ok());
  const absl::Status status = store->Save(6, [](const std::string& directory) {
    std::ofstream(directory + "/first") << "half";
    return absl::ResourceExhaustedError("disk full");
  });
  EXPECT_EQ(status, absl::ResourceExhaustedError("disk full"));
  EXPECT_THAT(Names(temporary.path()),
              UnorderedElementsAre("last", "step-00000005"));
}

TEST(CheckpointStoreTest, SavesOneStepTwice) {
  const TemporaryDirectory temporary;
  auto store = CheckpointStore::Open(temporary.path());
  ASSERT_TRUE(store->Save(5, Writer("first")).ok());
  ASSERT_TRUE(store->MarkLastAsBest().ok());
  ASSERT_TRUE(store->Save(5, Writer("second")).ok());
  EXPECT_EQ(*ReadFile(temporary.File("last/first")), "second");
  EXPECT_EQ(*ReadFile(temporary.File("best/first")), "first");
  EXPECT_THAT(
      Names(temporary.path()),
      UnorderedElementsAre("last", "best", "step-00000005", "step-00000005-2"));
}

TEST(CheckpointStoreTest, MarksNothingBeforeTheFirstSave) {
  const TemporaryDirectory temporary;
  auto store = CheckpointStore::Open(temporary.path());
  EXPECT_TRUE(absl::IsFailedPrecondition(store->MarkLastAsBest()));
}

TEST(CheckpointStoreTest, SaysWhatItCannotCreate) {
  TemporaryDirectory temporary;
  temporary.Write("file", "");
  const auto store = CheckpointStore::Open(temporary.File("file"));
  EXPECT_THAT(store.status().message(), HasSubstr(temporary.File("file")));
}

// Saves checkpoints for ever, from the one after `last` on.
[[noreturn]] void SaveForEver(const std::string& directory) {
  auto store = CheckpointStore::Open(directory);
  int64_t step = 0;
  if (store->last().has_value()) {
    step = std::stoll(*ReadFile(*store->last() + "/first"));
  }
  while (true) {
    ++step;
    if (!store->Save(step, Writer(absl::StrCat(step))).ok() ||
        (step % 3 == 0 && !store->MarkLastAsBest().ok())) {
      _exit(1);
    }
  }
}

TEST(CheckpointStoreTest, KeepsAWholeCheckpointWheneverItsWriterIsKilled) {
  const TemporaryDirectory temporary;
  std::map<std::string, int64_t> steps;  // where each link led
  for (int round = 0; round < 40; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      SaveForEver(temporary.path());
    }
    std::this_thread::sleep_for(
        std::chrono::microseconds(10000 + 2711 * round));
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the writer failed";

    for (const std::string link : {"last", "best"}) {
      if (!fs::is_symlink(temporary.File(link))) {
        EXPECT_EQ(steps.count(link), 0) << link << " is gone, round " << round;
        continue;
      }
      const auto first = ReadFile(temporary.File(link + "/first"));
      const auto second = ReadFile(temporary.File(link + "/second"));
      ASSERT_TRUE(first.ok() && second.ok()) << link << ", round " << round;
      EXPECT_EQ(*first, *second) << link << ", round " << round;
      EXPECT_GE(std::stoll(*first), steps[link]) << link << ", round " << round;
      steps[link] = std::stoll(*first);
    }
  }
  EXPECT_GT(steps["last"], 3);
}

}  // namespace
}  // namespace etc
