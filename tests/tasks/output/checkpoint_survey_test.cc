// A store whose record or links were lost, cut or followed by what copied it:
// what is whole is found and kept, said, and gone on from; what is not whole,
// or of another run, is refused with a list, and nothing is changed.

#include "tasks/output/checkpoint_survey.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tasks/output/checkpoint_files.h"
#include "tasks/output/checkpoint_store.h"
#include "tasks/output/sealed_json.h"
#include "tests/support/snapshot.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A store with the checkpoints 4, the best, and 8, the last, as a run leaves
// it; `directory` must not exist.
void MakeStore(const std::string& directory) {
  CheckpointStore store(directory);
  ASSERT_TRUE(store.TakeOver().ok());
  for (const int64_t step : {2, 4, 8}) {
    ASSERT_TRUE(store
                    .Save(step,
                          [step](const std::string& folder) {
                            return WriteFileAtomically(
                                folder + "/model.safetensors",
                                absl::StrCat("weights of step ", step));
                          })
                    .ok());
    const int64_t best = step < 4 ? 2 : 4;
    ASSERT_TRUE(WriteSealedJson(*store.last() + "/evaluation.json",
                                {{"step", step}, {"best_step", best}})
                    .ok());
    ASSERT_TRUE(
        store.NoteEvaluation({{"f1", 0.25}}, /*is_best=*/step == best).ok());
  }
  ASSERT_TRUE(fs::exists(directory + "/step-00000004"));
  ASSERT_TRUE(fs::exists(directory + "/step-00000008"));
}

// Copies a directory with the directories that links lead to, as `cp -rL`.
void CopyFollowingLinks(const std::string& from, const std::string& to) {
  fs::create_directories(to);
  for (const auto& entry : fs::directory_iterator(from)) {
    const std::string target = to + "/" + entry.path().filename().string();
    if (entry.is_directory()) {
      CopyFollowingLinks(entry.path().string(), target);
    } else {
      fs::copy_file(entry.path(), target);
    }
  }
}

struct Loss {
  std::string name;
  std::function<void(const std::string& directory)> make;
  // Part of the expected message; empty: no message is expected.
  std::string message;
};

void FollowLinks(const std::string& directory) {
  fs::rename(directory, directory + "-before");
  CopyFollowingLinks(directory + "-before", directory);
}

// Writes the first half of the file again.
void CutInHalf(const std::string& path) {
  fs::resize_file(path, fs::file_size(path) / 2);
}

class LossTest : public testing::TestWithParam<Loss> {};

const auto kRemove = [](std::vector<std::string> entries) {
  return [entries = std::move(entries)](const std::string& directory) {
    for (const std::string& entry : entries) {
      fs::remove_all(directory + "/" + entry);
    }
  };
};

const std::vector<Loss> kLosses = {
    {"Links", kRemove({"last", "best"}), ""},
    {"LastLink", kRemove({"last"}), ""},
    {"BestLink", kRemove({"best"}), ""},
    {"Record", kRemove({"checkpoints.json"}), ""},
    {"RecordAndLinks", kRemove({"checkpoints.json", "last", "best"}),
     "neither checkpoints.json nor a link says"},
    {"RecordAndLast", kRemove({"checkpoints.json", "last"}),
     "going on from step-00000008, the newest that is whole"},
    {"RecordAndBest", kRemove({"checkpoints.json", "best"}),
     "taking step-00000004, the newest that was the best"},
    {"HalfOfTheRecord",
     [](const std::string& directory) {
       CutInHalf(directory + "/checkpoints.json");
     },
     "checkpoints.json"},
    {"HalfOfTheRecordAndLinks",
     [](const std::string& directory) {
       CutInHalf(directory + "/checkpoints.json");
       kRemove({"last", "best"})(directory);
     },
     "damaged"},
    {"OwnerOfTheStore", kRemove({"owner.json"}), ""},
    {"OwnerRecordAndLinks",
     kRemove({"owner.json", "checkpoints.json", "last", "best"}),
     "owner.json is missing"},
    {"FollowedLinks", FollowLinks, "last was a directory"},
    {"FollowedLinksAndRecord",
     [](const std::string& directory) {
       FollowLinks(directory);
       kRemove({"checkpoints.json"})(directory);
     },
     "going on from step-00000008"},
    {"AllButFollowedLinks",
     [](const std::string& directory) {
       FollowLinks(directory);
       kRemove({"step-00000004", "step-00000008"})(directory);
     },
     "last was a directory"},
    {"AllButFollowedLinksWithoutRecord",
     [](const std::string& directory) {
       FollowLinks(directory);
       kRemove({"step-00000004", "step-00000008", "checkpoints.json"})(
           directory);
     },
     "last was a directory"}};

INSTANTIATE_TEST_SUITE_P(Ways, LossTest, testing::ValuesIn(kLosses),
                         [](const auto& way) { return way.param.name; });

TEST_P(LossTest, IsFoundOutAndNothingIsDeleted) {
  const TemporaryDirectory temporary;
  const std::string directory = temporary.File("checkpoints");
  MakeStore(directory);
  GetParam().make(directory);
  std::map<std::string, std::string> before = Snapshot(directory);
  {
    const CheckpointSurvey survey = SurveyCheckpoints(directory);
    EXPECT_TRUE(survey.refusal.ok()) << survey.refusal;
    EXPECT_THAT(*ReadFile(directory + "/" + survey.last + "/model.safetensors"),
                "weights of step 8");
    EXPECT_THAT(*ReadFile(directory + "/" + survey.best + "/model.safetensors"),
                "weights of step 4");
    EXPECT_EQ(Snapshot(directory), before) << "a survey changes nothing";
  }
  CheckpointStore store(directory);
  ASSERT_TRUE(store.TakeOver().ok());
  EXPECT_EQ(*store.last(), directory + "/step-00000008");
  EXPECT_EQ(*store.best(), directory + "/step-00000004");
  const std::vector<std::string> messages = store.TakeMessages();
  if (GetParam().message.empty()) {
    EXPECT_TRUE(messages.empty() || GetParam().name == "OwnerOfTheStore");
  } else {
    EXPECT_THAT(messages, Contains(HasSubstr(GetParam().message)));
  }
  // Links and record are there again, and all weights are.
  EXPECT_EQ(*ReadFile(directory + "/last/model.safetensors"),
            "weights of step 8");
  EXPECT_EQ(*ReadFile(directory + "/best/model.safetensors"),
            "weights of step 4");
  const auto record = ReadCheckpointRecord(directory);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->last, "step-00000008");
  EXPECT_EQ(record->best, "step-00000004");
  EXPECT_EQ(record->checkpoints.at("step-00000008").step, 8);
  size_t weights_before = 0;
  size_t weights_after = 0;
  for (const auto& [path, text] : before) {
    weights_before += absl::EndsWith(path, ".safetensors") ? 1 : 0;
  }
  for (const auto& [path, text] : Snapshot(directory)) {
    weights_after += absl::EndsWith(path, ".safetensors") ? 1 : 0;
  }
  EXPECT_EQ(weights_after, weights_before);
  // A second start finds nothing unusual.
  CheckpointStore again(directory);
  ASSERT_TRUE(again.TakeOver().ok());
  EXPECT_THAT(again.TakeMessages(), IsEmpty());
}

TEST(CheckpointSurveyTest, ListsTheWholeCheckpointsOfTheRun) {
  TemporaryDirectory temporary;
  const std::string directory = temporary.File("checkpoints");
  MakeStore(directory);
  const auto entries = [&directory] {
    std::vector<std::pair<std::string, int64_t>> found;
    for (const auto& whole : SurveyCheckpoints(directory).whole) {
      EXPECT_FALSE(whole.is_interim) << whole.entry;
      found.emplace_back(whole.entry, whole.step);
    }
    return found;
  };
  EXPECT_THAT(entries(), ElementsAre(std::pair("step-00000004", 4),
                                     std::pair("step-00000008", 8)));
  // Checkpoints of another run, and averages, are left out.
  const auto owner = ReadCheckpointOwner(directory + "/step-00000004");
  ASSERT_TRUE(owner.ok()) << owner.status();
  const auto add = [&](const std::string& name, const std::string& run,
                       const std::string& file) {
    temporary.Write("checkpoints/" + name + "/" + file, "text");
    EXPECT_TRUE(
        WriteCheckpointOwner({.name = name, .run = run}, directory + "/" + name)
            .ok());
  };
  fs::create_directory(directory + "/step-00000009");
  fs::create_directory(directory + "/step-00000010");
  fs::create_directory(directory + "/step-00000011");
  add("step-00000009", "other", "model.safetensors");
  add("step-00000010", owner->run, kAverageFile);
  add("step-00000011", owner->run, "model.safetensors");
  CutInHalf(directory + "/step-00000004/model.safetensors");
  EXPECT_THAT(entries(), ElementsAre(std::pair("step-00000008", 8),
                                     std::pair("step-00000011", 11)));
}

// Killed between the last file of a checkpoint and its name.
TEST(CheckpointSurveyTest, TakesACheckpointThatLacksOnlyItsName) {
  const TemporaryDirectory temporary;
  const std::string directory = temporary.File("checkpoints");
  MakeStore(directory);
  const std::string run =
      nlohmann::json::parse(*ReadFile(directory + "/owner.json"))["run"];
  const std::string unfinished = UnfinishedCheckpoint("step-00000008", run);
  fs::rename(directory + "/step-00000008", directory + "/" + unfinished);
  EXPECT_EQ(SurveyCheckpoints(directory).last, unfinished);
  CheckpointStore store(directory);
  ASSERT_TRUE(store.TakeOver().ok());
  EXPECT_EQ(*store.last(), directory + "/step-00000008");
  EXPECT_EQ(*ReadFile(*store.last() + "/model.safetensors"),
            "weights of step 8");
  // One that is not whole is deleted.
  fs::rename(directory + "/step-00000008", directory + "/" + unfinished);
  CutInHalf(directory + "/" + unfinished + "/model.safetensors");
  CheckpointStore again(directory);
  ASSERT_TRUE(again.TakeOver().ok());
  EXPECT_EQ(*again.last(), directory + "/step-00000004");
  EXPECT_FALSE(fs::exists(directory + "/" + unfinished));
}

// Killed when it had given a superseded one another name, to delete it.
TEST(CheckpointSurveyTest, TakesNoCheckpointThatWasBeingDeleted) {
  const TemporaryDirectory temporary;
  const std::string directory = temporary.File("checkpoints");
  MakeStore(directory);
  auto record = ReadCheckpointRecord(directory);
  ASSERT_TRUE(record.ok()) << record.status();
  record->last = "step-00000004";
  record->checkpoints.erase("step-00000008");
  record->superseded.insert("step-00000008");
  ASSERT_TRUE(WriteCheckpointRecord(*record, directory).ok());
  fs::rename(
      directory + "/step-00000008",
      directory + "/" + UnfinishedCheckpoint("step-00000008", record->run));
  EXPECT_EQ(SurveyCheckpoints(directory).last, "step-00000004");
  CheckpointStore store(directory);
  ASSERT_TRUE(store.TakeOver().ok());
  EXPECT_EQ(*store.last(), directory + "/step-00000004");
  for (const auto& entry : fs::directory_iterator(directory)) {
    EXPECT_THAT(entry.path().filename().string(),
                Not(HasSubstr("step-00000008")));
  }
}

// Killed when it had recorded that the run is removed.
TEST(CheckpointSurveyTest, TakesNoCheckpointOfARunThatWasBeingRemoved) {
  const TemporaryDirectory temporary;
  const std::string directory = temporary.File("checkpoints");
  MakeStore(directory);
  ASSERT_TRUE(CheckpointStore(directory).BeginRemoval().ok());
  ASSERT_TRUE(fs::exists(directory + "/step-00000008"));
  const CheckpointSurvey survey = SurveyCheckpoints(directory);
  EXPECT_TRUE(survey.refusal.ok()) << survey.refusal;
  EXPECT_EQ(survey.last, "");
  EXPECT_EQ(survey.best, "");
  CheckpointStore store(directory);
  ASSERT_TRUE(store.TakeOver().ok());
  EXPECT_FALSE(store.last().has_value());
  EXPECT_THAT(store.TakeMessages(), IsEmpty());
  for (const char* gone : {"/step-00000004", "/step-00000008", "/last"}) {
    EXPECT_FALSE(fs::exists(directory + gone)) << gone;
  }
  ASSERT_TRUE(
      store.Save(2, [](const std::string&) { return absl::OkStatus(); }).ok());
  EXPECT_EQ(*store.last(), directory + "/step-00000002");
}

// Makes `change` in a store and expects a refusal that changes nothing.
absl::Status Refusal(const std::function<void(const std::string&)>& change) {
  const TemporaryDirectory temporary;
  const std::string directory = temporary.File("checkpoints");
  MakeStore(directory);
  change(directory);
  const auto before = Snapshot(directory);
  CheckpointStore store(directory);
  const absl::Status status = store.TakeOver();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(Snapshot(directory), before);
  EXPECT_FALSE(store.last().has_value());
  return status;
}

TEST(CheckpointSurveyTest, RefusesADamagedLastOneWithAList) {
  const absl::Status status = Refusal([](const std::string& directory) {
    CutInHalf(directory + "/step-00000008/model.safetensors");
  });
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("names step-00000008, which is not whole"),
            HasSubstr("step-00000004 (whole)"),
            HasSubstr("model.safetensors is damaged: it should have 17 bytes"),
            HasSubstr("nothing was changed")));
  // A last checkpoint that is gone altogether gives way to the one before it.
  const TemporaryDirectory temporary;
  const std::string directory = temporary.File("checkpoints");
  MakeStore(directory);
  fs::remove_all(directory + "/step-00000008");
  CheckpointStore store(directory);
  ASSERT_TRUE(store.TakeOver().ok());
  EXPECT_EQ(*store.last(), directory + "/step-00000004");
  EXPECT_THAT(store.TakeMessages(),
              Contains(HasSubstr("names step-00000008, which is not there")));
}

TEST(CheckpointSurveyTest, RefusesWhatIsAllOfAnotherRunOrNotWhole) {
  EXPECT_THAT(
      std::string(Refusal([](const std::string& directory) {
                    kRemove({"checkpoints.json", "last", "best"})(directory);
                    EXPECT_TRUE(
                        WriteSealedJson(directory + "/owner.json",
                                        nlohmann::json{{"run", "another"}})
                            .ok());
                  }).message()),
      HasSubstr("step-00000008 (of another run)"));
  EXPECT_THAT(std::string(Refusal([](const std::string& directory) {
                            kRemove({"checkpoints.json", "last", "best",
                                     "step-00000004/owner.json",
                                     "step-00000008/owner.json"})(directory);
                          }).message()),
              HasSubstr("it has no owner.json to prove it whole"));
  EXPECT_THAT(
      std::string(Refusal([](const std::string& directory) {
                    kRemove({"checkpoints.json", "step-00000008/owner.json"})(
                        directory);
                    EXPECT_TRUE(
                        WriteFileAtomically(
                            directory + "/step-00000008/run_config.json", "{}")
                            .ok());
                  }).message()),
      HasSubstr("the link last names step-00000008, which is not "
                "whole"));
  EXPECT_THAT(
      std::string(Refusal([](const std::string& directory) {
                    kRemove({"step-00000004", "step-00000008"})(directory);
                  }).message()),
      HasSubstr("step-00000008, which is not there"));
}

// Half of a copy beside what is whole.
TEST(CheckpointSurveyTest, LeavesANewerOneThatIsNotWholeAlone) {
  const TemporaryDirectory temporary;
  const std::string directory = temporary.File("checkpoints");
  MakeStore(directory);
  fs::create_directories(directory + "/step-00000012");
  ASSERT_TRUE(
      WriteFileAtomically(directory + "/step-00000012/model.safetensors", "w")
          .ok());
  CheckpointStore store(directory);
  ASSERT_TRUE(store.TakeOver().ok());
  EXPECT_EQ(*store.last(), directory + "/step-00000008");
  ASSERT_TRUE(
      store.Save(12, [](const std::string&) { return absl::OkStatus(); }).ok());
  EXPECT_EQ(*store.last(), directory + "/step-00000012-2");
  EXPECT_EQ(*ReadFile(directory + "/step-00000012/model.safetensors"), "w");
}

TEST(CheckpointSurveyTest, FindsNothingWhereThereIsNothing) {
  const TemporaryDirectory temporary;
  for (const std::string& directory :
       {temporary.path(), temporary.File("no")}) {
    const CheckpointSurvey survey = SurveyCheckpoints(directory);
    EXPECT_TRUE(survey.refusal.ok()) << survey.refusal;
    EXPECT_EQ(survey.last, "");
    EXPECT_THAT(survey.messages, IsEmpty());
  }
}

}  // namespace
}  // namespace etc
