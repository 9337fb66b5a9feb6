// Checkpoints that are whole or not there: names, record and links, what is
// deleted and when, what is never deleted because it may be somebody else's,
// the order of file operations, failures in the middle, and a writer that
// SIGKILL ends at 40 moments spread over many saves.

#include "tasks/output/checkpoint_store.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tasks/output/checkpoint_files.h"
#include "tasks/output/sealed_json.h"
#include "tests/support/recorded_operations.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::set<std::string> Names(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

// Names of checkpoints.
std::set<std::string> StepNames(const std::string& directory) {
  std::set<std::string> names = Names(directory);
  std::erase_if(names, [](const std::string& name) {
    return !name.starts_with("step-");
  });
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

// The two best by a loss, of equal ones the latest, and the last three.
TEST(CheckpointStoreTest, KeepsAsManyAsItIsAskedTo) {
  TemporaryDirectory temporary;
  const std::string directory = temporary.File("checkpoints");
  const KeptCheckpoints kept = {
      .last = 3,
      .best = 2,
      .metric = {.name = "loss", .lower_is_better = true}};
  const auto steps = [&] { return StepNames(directory); };
  {
    CheckpointStore store(directory, kept);
    ASSERT_TRUE(store.TakeOver().ok());
    const double losses[] = {3, 1, 2, 2, 4, 5};
    for (int64_t i = 0; i < 6; ++i) {
      ASSERT_TRUE(store.Save(i + 1, Writer("x")).ok());
      ASSERT_TRUE(
          store.NoteEvaluation({{"loss", losses[i]}}, /*is_best=*/i < 2).ok());
    }
    EXPECT_THAT(steps(), ElementsAre("step-00000002", "step-00000004",
                                     "step-00000005", "step-00000006"));
    EXPECT_EQ(store.best(), directory + "/step-00000002");
  }
  // A start that goes on keeps them, too.
  CheckpointStore store(directory, kept);
  ASSERT_TRUE(store.TakeOver().ok());
  EXPECT_EQ(steps().size(), 4u);
  ASSERT_TRUE(store.Save(7, Writer("x")).ok());
  EXPECT_THAT(steps(),
              ElementsAre("step-00000002", "step-00000004", "step-00000005",
                          "step-00000006", "step-00000007"));
  EXPECT_THAT(store.TakeMessages(), IsEmpty());
  // With fewer to keep the others go, but not before the caller can choose the
  // best of them.
  CheckpointStore fewer(directory);
  ASSERT_TRUE(fewer.TakeOver().ok());
  EXPECT_EQ(steps().size(), 5u);
  ASSERT_TRUE(fewer.MarkAsBest(5).ok());
  EXPECT_THAT(steps(), ElementsAre("step-00000005", "step-00000007"));
  ASSERT_TRUE(fewer.Save(8, Writer("x")).ok());
  EXPECT_THAT(steps(), ElementsAre("step-00000005", "step-00000008"));
}

TEST(CheckpointStoreTest, DeletesTheOnesThatALowerLimitKeepsNoLonger) {
  const TemporaryDirectory temporary;
  {
    CheckpointStore store(temporary.path(), {.last = 4});
    ASSERT_TRUE(store.TakeOver().ok());
    for (int64_t step = 1; step <= 4; ++step) {
      ASSERT_TRUE(store.Save(step, Writer("x")).ok());
    }
  }
  CheckpointStore fewer(temporary.path());
  ASSERT_TRUE(fewer.TakeOver().ok());
  ASSERT_TRUE(fewer.Save(5, Writer("x")).ok());
  EXPECT_THAT(StepNames(temporary.path()), ElementsAre("step-00000005"));
}

// By a stop or the clock, also where the record is lost.
TEST(CheckpointStoreTest, KeepsAnInterimOneUntilTheNext) {
  const TemporaryDirectory temporary;
  const std::string directory = temporary.path();
  {
    CheckpointStore store(directory, {.last = 2});
    ASSERT_TRUE(store.TakeOver().ok());
    for (const int64_t step : {10, 20}) {
      ASSERT_TRUE(store.Save(step, Writer("x")).ok());
    }
    for (const int64_t step : {22, 25}) {
      ASSERT_TRUE(store.Save(step, Writer("x"), /*is_interim=*/true).ok());
    }
  }
  EXPECT_THAT(StepNames(directory),
              ElementsAre("step-00000020", "step-00000025"));
  const auto written = ReadCheckpointRecord(directory);
  ASSERT_TRUE(written.ok()) << written.status();
  fs::remove(directory + "/checkpoints.json");
  CheckpointStore store(directory, {.last = 2});
  ASSERT_TRUE(store.TakeOver().ok());
  EXPECT_EQ(ReadCheckpointRecord(directory)->checkpoints.at("step-00000025"),
            written->checkpoints.at("step-00000025"));
  ASSERT_TRUE(WriteCheckpointRecord(*written, directory).ok());
  CheckpointStore recorded(directory, {.last = 2});
  ASSERT_TRUE(recorded.TakeOver().ok());
  ASSERT_TRUE(recorded.Save(30, Writer("x")).ok());
  EXPECT_THAT(StepNames(directory),
              ElementsAre("step-00000020", "step-00000030"));
}

TEST(CheckpointStoreTest, KeepsAnInterimOneThatWasEvaluated) {
  const TemporaryDirectory temporary;
  CheckpointStore store(temporary.path(), {.last = 2});
  ASSERT_TRUE(store.TakeOver().ok());
  ASSERT_TRUE(store.Save(15, Writer("x"), /*is_interim=*/true).ok());
  ASSERT_TRUE(store.NoteEvaluation({{"f1", 0.5}}, /*is_best=*/false).ok());
  ASSERT_TRUE(store.Save(20, Writer("x")).ok());
  EXPECT_THAT(StepNames(temporary.path()),
              ElementsAre("step-00000015", "step-00000020"));
}

// The checkpoint has its name, but is not in the record.
TEST(CheckpointStoreTest, KeepsNoMoreAfterASaveThatWasNotRecorded) {
  const TemporaryDirectory temporary;
  const KeptCheckpoints kept = {.last = 3};
  {
    CheckpointStore store(temporary.path(), kept);
    ASSERT_TRUE(store.TakeOver().ok());
    for (int64_t step = 1; step <= 4; ++step) {
      ASSERT_TRUE(store.Save(step, Writer("x")).ok());
    }
    RecordedOperations operations(temporary.path());
    operations.failing_call = "write checkpoints.json";
    operations.failing_error = ENOSPC;
    const ScopedFileOperations scope(&operations);
    EXPECT_FALSE(store.Save(5, Writer("x")).ok());
  }
  CheckpointStore store(temporary.path(), kept);
  ASSERT_TRUE(store.TakeOver().ok());
  EXPECT_THAT(StepNames(temporary.path()),
              ElementsAre("step-00000003", "step-00000004", "step-00000005"));
  ASSERT_TRUE(store.Save(6, Writer("x")).ok());
  EXPECT_THAT(StepNames(temporary.path()),
              ElementsAre("step-00000004", "step-00000005", "step-00000006"));
}

TEST(CheckpointStoreTest, KeepsTheLastAndTheBest) {
  const TemporaryDirectory temporary;
  const std::string directory = temporary.File("checkpoints");
  CheckpointStore store(directory);
  EXPECT_FALSE(store.last().has_value());
  EXPECT_FALSE(store.best().has_value());
  EXPECT_FALSE(fs::exists(directory));
  ASSERT_TRUE(store.TakeOver().ok());

  ASSERT_TRUE(store.Save(5, Writer("five")).ok());
  ASSERT_TRUE(store.NoteEvaluation({}, /*is_best=*/true).ok());
  ASSERT_TRUE(store.Save(10, Writer("ten")).ok());
  ASSERT_TRUE(store.Save(15, Writer("fifteen")).ok());
  EXPECT_THAT(
      Names(directory),
      UnorderedElementsAre("last", "best", "owner.json", "checkpoints.json",
                           "step-00000005", "step-00000015"));
  EXPECT_EQ(*store.last(), directory + "/step-00000015");
  EXPECT_EQ(*store.best(), directory + "/step-00000005");
  EXPECT_EQ(*ReadFile(directory + "/last/second"), "fifteen");

  ASSERT_TRUE(store.NoteEvaluation({}, /*is_best=*/true).ok());
  EXPECT_THAT(Names(directory),
              UnorderedElementsAre("last", "best", "owner.json",
                                   "checkpoints.json", "step-00000015"));
  EXPECT_THAT(store.TakeMessages(), IsEmpty());
}

TEST(CheckpointStoreTest, NamesTheLastOneAfterADivergence) {
  const TemporaryDirectory temporary;
  CheckpointStore store(temporary.File("checkpoints"));
  ASSERT_TRUE(store.TakeOver().ok());
  const absl::Status diverged = absl::AbortedError("the loss is nan");
  EXPECT_EQ(store.WithLastGood(diverged),
            absl::AbortedError(temporary.path() +
                               ": the loss is nan; there is no checkpoint "
                               "yet"));
  ASSERT_TRUE(store.Save(1, Writer("x")).ok());
  EXPECT_THAT(std::string(store.WithLastGood(diverged).message()),
              EndsWith("; the last good checkpoint is " +
                       temporary.File("checkpoints/step-00000001")));
  EXPECT_TRUE(store.WithLastGood(absl::OkStatus()).ok());
}

// A store that was taken over; `directory` is there or can be created.
CheckpointStore MustTakeOver(const std::string& directory) {
  CheckpointStore store(directory);
  const absl::Status status = store.TakeOver();
  EXPECT_TRUE(status.ok()) << status;
  return store;
}

// Returns the id of the run that owns a store.
std::string RunOf(const std::string& directory) {
  return nlohmann::json::parse(*ReadFile(directory + "/owner.json"))["run"];
}

TEST(CheckpointStoreTest, DeletesWhatAKilledRunLeft) {
  const TemporaryDirectory temporary;
  const std::string directory = temporary.path();
  {
    CheckpointStore store = MustTakeOver(directory);
    ASSERT_TRUE(store.Save(5, Writer("five")).ok());
  }
  // Killed before the next checkpoint was recorded, ...
  const auto all =
      fs::copy_options::recursive | fs::copy_options::copy_symlinks;
  const TemporaryDirectory before;
  fs::copy(directory, before.File("copy"), all);
  ASSERT_TRUE(MustTakeOver(directory).Save(6, Writer("six")).ok());
  for (const char* entry : {"step-00000005", "checkpoints.json", "last"}) {
    fs::remove_all(directory + "/" + entry);
    fs::copy(before.File("copy/") + entry, directory + "/" + entry, all);
  }
  // ... in the middle of a save, of a deletion, and of a link.
  const std::string unfinished = ".unfinished-" + RunOf(directory);
  fs::create_directories(directory + "/step-00000007" + unfinished);
  fs::create_directories(directory + "/step-00000003" + unfinished + "/part");
  fs::create_directory_symlink("step-00000007",
                               directory + "/last" + unfinished);
  CheckpointStore store = MustTakeOver(directory);
  EXPECT_THAT(Names(directory),
              UnorderedElementsAre("last", "owner.json", "checkpoints.json",
                                   "step-00000006"));
  EXPECT_THAT(store.TakeMessages(),
              ElementsAre(HasSubstr("step-00000006 is newer than "
                                    "step-00000005, which checkpoints.json "
                                    "names: going on from step-00000006")));
}

// Entries that a user may have put there, beside those that a run made.
TEST(CheckpointStoreTest, LeavesEverythingThatItDidNotMake) {
  TemporaryDirectory temporary;
  const std::string directory = temporary.File("checkpoints");
  const std::string elsewhere = temporary.File("elsewhere");
  ASSERT_TRUE(MustTakeOver(elsewhere).Save(2, Writer("other run")).ok());
  CheckpointStore store = MustTakeOver(directory);
  ASSERT_TRUE(store.Save(1, Writer("one")).ok());
  const auto copy = [&](const std::string& from, const std::string& name) {
    fs::copy(from, directory + "/" + name, fs::copy_options::recursive);
  };
  const std::set<std::string> copies = {"keep",
                                        "step-00000099",
                                        "step-1-copy",
                                        "step-00000001.unfinished",
                                        "last.unfinished",
                                        "step-00000001-2"};
  for (const std::string& name : copies) {
    copy(directory + "/step-00000001", name);
  }
  copy(elsewhere + "/step-00000002", "step-00000002");
  fs::create_directory(directory + "/step-00000003");
  temporary.Write("checkpoints/notes.txt", "mine");
  temporary.Write("checkpoints/step-00000004", "a file");
  fs::create_directory_symlink("step-00000001", directory + "/mine");

  for (int64_t step = 1; step <= 5; ++step) {
    ASSERT_TRUE(store.Save(step, Writer("new")).ok());
  }
  ASSERT_TRUE(store.NoteEvaluation({}, /*is_best=*/true).ok());
  MustTakeOver(directory);
  std::set<std::string> expected = copies;
  expected.insert({"step-00000002", "step-00000003", "notes.txt",
                   "step-00000004", "mine", "step-00000001", "last", "best",
                   "owner.json", "checkpoints.json", "step-00000005"});
  EXPECT_EQ(Names(directory), expected);
  for (const std::string& name : copies) {
    EXPECT_EQ(*ReadFile(directory + "/" + name + "/second"), "one") << name;
  }
  EXPECT_EQ(*ReadFile(directory + "/step-00000002/second"), "other run");
  EXPECT_EQ(*ReadFile(directory + "/mine/second"), "one")
      << "a user's link keeps where it leads";
}

// A directory of somebody else, who can seal files as well: the id of its run
// leads to the directory "mine", through one that is there.
TEST(CheckpointStoreTest, DeletesNothingThatTheIdOfARunLeadsTo) {
  const std::string run = "x/../../../mine";
  const nlohmann::json none = nlohmann::json::object();
  const std::pair<std::string, nlohmann::json> files[] = {
      {"owner.json", {{"run", run}}},
      {"step-00000001/owner.json",
       {{"run", run}, {"name", "step-00000001"}, {"files", none}}},
      {"checkpoints.json",
       {{"run", run},
        {"last", ""},
        {"checkpoints", none},
        {"superseded", nlohmann::json::array()}}}};
  for (const auto& [file, contents] : files) {
    TemporaryDirectory temporary;
    fs::create_directory(temporary.File("mine"));
    temporary.Write("mine/notes.txt", "mine");
    const std::string directory = temporary.File("run/checkpoints");
    const fs::path path = fs::path(directory) / file;
    fs::create_directories(directory + "/step-00000002.unfinished-x");
    fs::create_directories(path.parent_path());
    ASSERT_TRUE(WriteSealedJson(path.string(), contents).ok());
    CheckpointStore store(directory);
    if (store.TakeOver().ok()) {
      EXPECT_TRUE(store.Save(2, Writer("two")).ok()) << file;
    }
    EXPECT_TRUE(fs::exists(temporary.File("mine/notes.txt"))) << file;
  }
}

// `best` as a directory, with another name than a run gives.
TEST(CheckpointStoreTest, GivesAFollowedLinkNoNameButThatOfACheckpoint) {
  for (const std::string name : {"../../planted", "planted"}) {
    const TemporaryDirectory temporary;
    const std::string directory = temporary.File("run/checkpoints");
    ASSERT_TRUE(MustTakeOver(directory).Save(1, Writer("one")).ok());
    fs::create_directory(directory + "/best");
    ASSERT_TRUE(WriteCheckpointOwner({.name = name, .run = RunOf(directory)},
                                     directory + "/best")
                    .ok());
    MustTakeOver(directory);
    EXPECT_TRUE(fs::is_directory(directory + "/best")) << name;
    EXPECT_FALSE(fs::exists(directory + "/" + name)) << name;
  }
}

// The files of an evaluation would be written through the link.
TEST(CheckpointStoreTest, TakesNoLinkForACheckpointThatIsThere) {
  const TemporaryDirectory temporary;
  fs::create_directory(temporary.File("mine"));
  const std::string directory = temporary.File("checkpoints");
  ASSERT_TRUE(MustTakeOver(directory).Save(1, Writer("one")).ok());
  for (const char* entry : {"/last", "/checkpoints.json"}) {
    fs::remove(directory + entry);
  }
  fs::rename(directory + "/step-00000001", directory + "/last");
  fs::create_directory_symlink("../mine", directory + "/step-00000001");
  const absl::Status status = CheckpointStore(directory).TakeOver();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("step-00000001 is in the way"));
}

TEST(CheckpointStoreTest, TouchesNothingBeforeItIsTakenOver) {
  const TemporaryDirectory temporary;
  ASSERT_TRUE(MustTakeOver(temporary.path()).Save(5, Writer("five")).ok());
  const std::string unfinished =
      temporary.File("step-00000007.unfinished-" + RunOf(temporary.path()));
  fs::create_directory(unfinished);
  const CheckpointStore store(temporary.path());
  EXPECT_EQ(*store.last(), temporary.File("step-00000005"));
  EXPECT_TRUE(fs::exists(unfinished));
}

// Each name leads to what is on disk already.
TEST(CheckpointStoreTest, PutsACheckpointOnDiskBeforeItsNameAndItsRecord) {
  const TemporaryDirectory temporary;
  CheckpointStore store = MustTakeOver(temporary.path());
  ASSERT_TRUE(store.Save(4, Writer("four")).ok());
  const std::string mark = ".unfinished-" + RunOf(temporary.path());
  RecordedOperations operations(temporary.path());
  {
    const ScopedFileOperations scope(&operations);
    ASSERT_TRUE(store.Save(5, Writer("five")).ok());
  }
  const std::string made = "step-00000005" + mark;
  const std::string gone = "step-00000004" + mark;
  std::vector<std::string> expected = {"mkdir " + made, "sync ."};
  for (const char* file : {"/first", "/second", "/owner.json"}) {
    expected.insert(
        expected.end(),
        {"write " + made + file + ".tmp", "sync " + made + file + ".tmp",
         "rename to " + made + file, "sync " + made});
  }
  expected.insert(expected.end(),
                  {"sync " + made, "rename to step-00000005", "sync .",
                   "write checkpoints.json.tmp", "sync checkpoints.json.tmp",
                   "rename to checkpoints.json", "sync .", "unlink last" + mark,
                   "symlink last" + mark, "rename to last", "sync .",
                   "rename to " + gone, "sync ."});
  ASSERT_GT(operations.calls.size(), expected.size());
  operations.calls.resize(expected.size());
  EXPECT_EQ(operations.calls, expected);
}

TEST(CheckpointStoreTest, LeavesNothingOfAFailedSave) {
  const TemporaryDirectory temporary;
  CheckpointStore store = MustTakeOver(temporary.path());
  ASSERT_TRUE(store.Save(5, Writer("five")).ok());
  const absl::Status status = store.Save(6, [](const std::string& directory) {
    std::ofstream(directory + "/first") << "half";
    return absl::ResourceExhaustedError("disk full");
  });
  EXPECT_EQ(status, absl::ResourceExhaustedError("disk full"));
  EXPECT_THAT(Names(temporary.path()),
              UnorderedElementsAre("last", "owner.json", "checkpoints.json",
                                   "step-00000005"));
}

TEST(CheckpointStoreTest, SavesOneStepTwice) {
  const TemporaryDirectory temporary;
  CheckpointStore store = MustTakeOver(temporary.path());
  ASSERT_TRUE(store.Save(5, Writer("first")).ok());
  ASSERT_TRUE(store.NoteEvaluation({}, /*is_best=*/true).ok());
  ASSERT_TRUE(store.Save(5, Writer("second")).ok());
  EXPECT_EQ(*ReadFile(temporary.File("last/first")), "second");
  EXPECT_EQ(*ReadFile(temporary.File("best/first")), "first");
  EXPECT_THAT(
      Names(temporary.path()),
      UnorderedElementsAre("last", "best", "owner.json", "checkpoints.json",
                           "step-00000005", "step-00000005-2"));
}

TEST(CheckpointStoreTest, MarksAKeptOneAsTheBest) {
  const TemporaryDirectory temporary;
  CheckpointStore store(temporary.File("checkpoints"), {.last = 3});
  ASSERT_TRUE(store.TakeOver().ok());
  for (const int64_t step : {5, 10, 15}) {
    ASSERT_TRUE(store.Save(step, Writer("x")).ok());
    ASSERT_TRUE(store
                    .NoteEvaluation({{"f1", 1.0 / static_cast<double>(step)}},
                                    /*is_best=*/step == 5)
                    .ok());
  }
  std::vector<int64_t> steps;
  for (const RecordedCheckpoint& checkpoint : store.evaluated()) {
    steps.push_back(checkpoint.step);
  }
  EXPECT_THAT(steps, testing::ElementsAre(5, 10, 15));
  ASSERT_TRUE(store.MarkAsBest(10).ok());
  EXPECT_EQ(*store.best(), temporary.File("checkpoints/step-00000010"));
  EXPECT_EQ(CheckpointStore(temporary.File("checkpoints")).evaluated().size(),
            3u);
  ASSERT_TRUE(store.MarkAsBest(12).ok());
  EXPECT_EQ(*store.best(), temporary.File("checkpoints/step-00000010"));
}

TEST(CheckpointStoreTest, MarksNothingBeforeTheFirstSave) {
  const TemporaryDirectory temporary;
  CheckpointStore store = MustTakeOver(temporary.path());
  EXPECT_TRUE(
      absl::IsFailedPrecondition(store.NoteEvaluation({}, /*is_best=*/true)));
}

// A file system without symbolic links.
TEST(CheckpointStoreTest, DoesWithoutLinks) {
  const TemporaryDirectory temporary;
  RecordedOperations operations(temporary.path());
  operations.failing_call = "symlink";
  operations.failing_error = EPERM;
  const ScopedFileOperations scope(&operations);
  CheckpointStore store = MustTakeOver(temporary.path());
  for (int64_t step = 1; step <= 4; ++step) {
    ASSERT_TRUE(store.Save(step, Writer(absl::StrCat(step))).ok());
    ASSERT_TRUE(store.NoteEvaluation({{"f1", 0.5}}, step == 2).ok());
  }
  EXPECT_THAT(store.TakeMessages(),
              ElementsAre(HasSubstr("checkpoints.json says which")));
  EXPECT_THAT(Names(temporary.path()),
              UnorderedElementsAre("owner.json", "checkpoints.json",
                                   "step-00000002", "step-00000004"));
  const CheckpointStore again(temporary.path());
  EXPECT_EQ(*again.last(), temporary.File("step-00000004"));
  EXPECT_EQ(*again.best(), temporary.File("step-00000002"));
}

// A link that cannot be replaced must not lead to what is no more.
TEST(CheckpointStoreTest, LeavesNoLinkToAnOlderCheckpoint) {
  const TemporaryDirectory temporary;
  CheckpointStore store = MustTakeOver(temporary.path());
  ASSERT_TRUE(store.Save(1, Writer("one")).ok());
  RecordedOperations operations(temporary.path());
  operations.failing_call = "symlink";
  {
    const ScopedFileOperations scope(&operations);
    ASSERT_TRUE(store.Save(2, Writer("two")).ok());
  }
  EXPECT_THAT(
      Names(temporary.path()),
      UnorderedElementsAre("owner.json", "checkpoints.json", "step-00000002"));
  // Once there are links again, there is this one.
  MustTakeOver(temporary.path());
  EXPECT_EQ(*ReadFile(temporary.File("last/first")), "two");
}

// Whatever fails in a save, what was saved before is found again.
TEST(CheckpointStoreTest, KeepsTheLastCheckpointWhateverFailsInASave) {
  for (const std::string call :
       {"mkdir", "write", "sync", "rename", "unlink", "symlink", "rmdir"}) {
    const TemporaryDirectory temporary;
    CheckpointStore store = MustTakeOver(temporary.path());
    ASSERT_TRUE(store.Save(1, Writer("one")).ok());
    RecordedOperations operations(temporary.path());
    operations.failing_call = call;
    {
      const ScopedFileOperations scope(&operations);
      store.Save(2, Writer("two")).IgnoreError();
    }
    CheckpointStore again = MustTakeOver(temporary.path());
    ASSERT_TRUE(again.last().has_value()) << call;
    const std::string text = *ReadFile(*again.last() + "/second");
    EXPECT_TRUE(text == "one" || text == "two") << call;
    EXPECT_TRUE(CheckCheckpointFiles(*again.last()).ok()) << call;
  }
}

// As files that another process of a network file system has open.
TEST(CheckpointStoreTest, GoesOnWhereAFormerOneCannotBeDeleted) {
  const TemporaryDirectory temporary;
  const std::string directory = temporary.path();
  RecordedOperations operations(directory);
  {
    CheckpointStore store = MustTakeOver(directory);
    ASSERT_TRUE(store.Save(1, Writer("one")).ok());
    const ScopedFileOperations scope(&operations);
    operations.failing_call = "rename to step-00000001.unfinished";
    for (const int64_t step : {2, 3}) {
      ASSERT_TRUE(store.Save(step, Writer("x")).ok());
    }
    EXPECT_THAT(store.TakeWarnings(), ElementsAre(HasSubstr(directory)));
    EXPECT_THAT(StepNames(directory),
                ElementsAre("step-00000001", "step-00000003"));
    // The next one deletes both.
    operations.failing_call = "";
    ASSERT_TRUE(store.Save(4, Writer("x")).ok());
    EXPECT_THAT(StepNames(directory), ElementsAre("step-00000004"));
    operations.failing_call = "rmdir step-00000004";
    ASSERT_TRUE(store.Save(5, Writer("x")).ok());
    EXPECT_EQ(store.TakeWarnings().size(), 1u);
  }
  operations.failing_error = ENOTEMPTY;
  {
    const ScopedFileOperations scope(&operations);
    CheckpointStore store = MustTakeOver(directory);
    EXPECT_EQ(*store.last(), directory + "/step-00000005");
    EXPECT_THAT(store.TakeWarnings(),
                ElementsAre(HasSubstr("could not be deleted")));
  }
  MustTakeOver(directory);
  EXPECT_THAT(StepNames(directory), ElementsAre("step-00000005"));
}

TEST(CheckpointStoreTest, SaysWhatItCannotCreate) {
  TemporaryDirectory temporary;
  temporary.Write("file", "");
  CheckpointStore store(temporary.File("file"));
  EXPECT_THAT(store.TakeOver().message(), HasSubstr(temporary.File("file")));
}

// Saves checkpoints for ever, from the one after `last` on.
[[noreturn]] void SaveForEver(const std::string& directory) {
  CheckpointStore store(directory);
  if (!store.TakeOver().ok()) {
    _exit(1);
  }
  int64_t step = 0;
  if (store.last().has_value()) {
    step = std::stoll(*ReadFile(*store.last() + "/first"));
  }
  while (true) {
    ++step;
    if (!store.Save(step, Writer(absl::StrCat(step))).ok() ||
        (step % 3 == 0 && !store.NoteEvaluation({}, /*is_best=*/true).ok())) {
      _exit(1);
    }
  }
}

TEST(CheckpointStoreTest, KeepsAWholeCheckpointWheneverItsWriterIsKilled) {
  const TemporaryDirectory temporary;
  std::map<std::string, int64_t> steps;  // where each link led
  // On a busy machine it may be killed each time before it has saved anything.
  for (int round = 0; round < 40 || (round < 400 && steps["last"] <= 3);
       ++round) {
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
  // A start deletes all that the killed ones left.
  MustTakeOver(temporary.path());
  EXPECT_LE(StepNames(temporary.path()).size(), 2u);
}

}  // namespace
}  // namespace etc
