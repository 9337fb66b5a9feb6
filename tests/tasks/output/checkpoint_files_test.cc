// Checksums of checkpoints: a flip of any byte of a sealed file is seen or
// changes nothing, and a file that is not as it was written is named, with what
// it should have and what it has.

#include "tasks/output/checkpoint_files.h"

#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tasks/output/checkpoint_record.h"
#include "tasks/output/sealed_json.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(SealedJsonTest, SeesAFlipOfAnyByte) {
  const nlohmann::json object = {
      {"step", 120}, {"name", "a"}, {"score", 0.125}, {"list", {1, 2}}};
  const std::string text = SealJson(object);
  ASSERT_EQ(*OpenSealedJson(text, "x"), object);
  int seen = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = text;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      const auto read = OpenSealedJson(flipped, "x");
      if (read.ok()) {
        EXPECT_EQ(*read, object) << i;  // white space may differ
      } else {
        ++seen;
      }
    }
  }
  EXPECT_GT(seen, 500);
  for (size_t size = 0; size + 2 < text.size(); ++size) {
    EXPECT_EQ(OpenSealedJson(text.substr(0, size), "x").status().code(),
              absl::StatusCode::kDataLoss)
        << size;
  }
}

TEST(SealedJsonTest, RefusesAnObjectWithoutAChecksum) {
  for (const char* text : {R"({"run": "a"})", "{}", "[1]"}) {
    EXPECT_TRUE(absl::IsDataLoss(OpenSealedJson(text, "x").status())) << text;
  }
}

class CheckpointFilesTest : public testing::Test {
 protected:
  CheckpointFilesTest() {
    std::filesystem::create_directories(temporary_.File("punkt"));
    temporary_.Write("model.safetensors", "some weights");
    temporary_.Write("punkt/collocations.tab", "a\tb\n");
    temporary_.Write("run_config.json", "{}");
    EXPECT_TRUE(WriteCheckpointOwner({.name = "step-1", .run = "run-1"},
                                     temporary_.path())
                    .ok());
  }

  TemporaryDirectory temporary_;
};

TEST_F(CheckpointFilesTest, NamesTheFileThatIsNotAsItWasWritten) {
  const auto owner = ReadCheckpointOwner(temporary_.path());
  ASSERT_TRUE(owner.ok()) << owner.status();
  EXPECT_EQ(owner->name, "step-1");
  EXPECT_EQ(owner->run, "run-1");
  EXPECT_EQ(owner->files.size(), 3u);
  EXPECT_TRUE(CheckCheckpointFiles(temporary_.path()).ok());

  temporary_.Write("model.safetensors", "some Weights");
  for (const std::string& path :
       {temporary_.path(), temporary_.File("model.safetensors")}) {
    const absl::Status status = CheckCheckpointFiles(path);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(temporary_.File("model.safetensors") +
                                " is damaged: its CRC-32C should be 0x"),
                      HasSubstr(", but is 0x")));
  }
  EXPECT_TRUE(CheckCheckpointSizes(temporary_.path(), *owner).ok());
  temporary_.Write("model.safetensors", "some");
  EXPECT_THAT(CheckCheckpointSizes(temporary_.path(), *owner).ToString(),
              HasSubstr("should have 12 bytes, as it was written, but has 4"));
  temporary_.Write("model.safetensors", "some weights");

  temporary_.Write("punkt/collocations.tab", "a\tc\n");
  EXPECT_THAT(CheckCheckpointFiles(temporary_.path()).ToString(),
              HasSubstr("punkt/collocations.tab is damaged"));
  temporary_.Write("punkt/collocations.tab", "a\tb\n");

  // People may edit JSON files, and add others.
  temporary_.Write("run_config.json", "{ }");
  temporary_.Write("notes.txt", "mine");
  EXPECT_TRUE(CheckCheckpointFiles(temporary_.path()).ok());
  std::filesystem::remove(temporary_.File("run_config.json"));
  EXPECT_THAT(CheckCheckpointSizes(temporary_.path(), *owner).ToString(),
              HasSubstr("run_config.json is not there"));
}

// A model that is shipped is smaller without the optimizer's state.
TEST_F(CheckpointFilesTest, NeedsTheStateOfTrainingOnlyToResume) {
  temporary_.Write(kTrainingStateFile, "moments");
  ASSERT_TRUE(WriteCheckpointOwner({.name = "step-1", .run = "run-1"},
                                   temporary_.path())
                  .ok());
  EXPECT_TRUE(
      CheckCheckpointFiles(temporary_.path(), CheckpointUse::kResume).ok());
  std::filesystem::remove(temporary_.File(kTrainingStateFile));
  EXPECT_TRUE(CheckCheckpointFiles(temporary_.path()).ok());
  EXPECT_THAT(CheckCheckpointFiles(temporary_.path(), CheckpointUse::kResume)
                  .ToString(),
              HasSubstr("training_state.safetensors is not there"));
}

TEST_F(CheckpointFilesTest, SeesAFlipInTheLastByteOfALongFile) {
  std::string weights((size_t{3} << 20) + 5, 'w');
  temporary_.Write("model.safetensors", weights);
  ASSERT_TRUE(WriteCheckpointOwner({.name = "step-1", .run = "run-1"},
                                   temporary_.path())
                  .ok());
  EXPECT_TRUE(CheckCheckpointFiles(temporary_.path()).ok());
  weights.back() = 'x';
  temporary_.Write("model.safetensors", weights);
  const absl::Status status = CheckCheckpointFiles(temporary_.path());
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("model.safetensors is damaged"));
}

TEST_F(CheckpointFilesTest, ChecksNothingWhereNothingIsNoted) {
  const std::string owner = *ReadFile(temporary_.File("owner.json"));
  temporary_.Write("model.safetensors", "other weights");
  std::filesystem::remove(temporary_.File("owner.json"));
  EXPECT_TRUE(CheckCheckpointFiles(temporary_.path()).ok());
  EXPECT_TRUE(CheckCheckpointFiles(temporary_.File("nothing")).ok());
  temporary_.Write("owner.json", owner.substr(0, owner.size() / 2));
  EXPECT_THAT(CheckCheckpointFiles(temporary_.path()).ToString(),
              HasSubstr("owner.json"));
}

TEST_F(CheckpointFilesTest, NeedsAListOfFiles) {
  ASSERT_TRUE(WriteSealedJson(temporary_.File("owner.json"),
                              {{"name", "step-1"}, {"run", "run-1"}})
                  .ok());
  const absl::Status status = ReadCheckpointOwner(temporary_.path()).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(CheckCheckpointFiles(temporary_.path()), status);
}

// The checksum proves only that nothing was changed by accident.
TEST_F(CheckpointFilesTest, RefusesPathsThatLeadOutOfTheDirectory) {
  const auto read = [&](const std::string& name, const std::string& run,
                        const std::string& file) {
    nlohmann::json files;
    files[file] = {{"bytes", 1}, {"crc32c", "0x00000000"}};
    EXPECT_TRUE(
        WriteSealedJson(temporary_.File("owner.json"),
                        {{"name", name}, {"run", run}, {"files", files}})
            .ok());
    return ReadCheckpointOwner(temporary_.path()).status();
  };
  EXPECT_TRUE(read("step-1", "run-1", "punkt/collocations.tab").ok());
  for (const std::string path :
       {"../other", "..", "/etc/passwd", "punkt/../../other", "a//b"}) {
    EXPECT_TRUE(absl::IsDataLoss(read(path, "run-1", "a"))) << path;
    EXPECT_TRUE(absl::IsDataLoss(read("step-1", path, "a"))) << path;
    EXPECT_TRUE(absl::IsDataLoss(read("step-1", "run-1", path))) << path;
  }
}

TEST(CheckpointRecordTest, ComesBackAsItWas) {
  const TemporaryDirectory temporary;
  EXPECT_TRUE(
      absl::IsNotFound(ReadCheckpointRecord(temporary.path()).status()));
  const CheckpointRecord record = {
      .run = "a",
      .last = "step-2",
      .best = "step-1",
      .checkpoints = {{"step-1",
                       {.step = 1,
                        .scores = {{"accuracy", 0.1}, {"f1", 1.0 / 3}}}},
                      {"step-2", {.step = 2, .is_interim = true}}},
      .superseded = {"step-0"}};
  ASSERT_TRUE(WriteCheckpointRecord(record, temporary.path()).ok());
  const auto read = ReadCheckpointRecord(temporary.path());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(*read == record);
  // No path leads out of the directory.
  const nlohmann::json plain = {{"run", "a"},
                                {"last", "step-2"},
                                {"superseded", nlohmann::json::array()},
                                {"checkpoints", nlohmann::json::object()}};
  const auto with = [&](const char* field, const nlohmann::json& value) {
    nlohmann::json changed = plain;
    changed[field] = value;
    EXPECT_TRUE(
        WriteSealedJson(temporary.File("checkpoints.json"), changed).ok());
    return ReadCheckpointRecord(temporary.path()).status();
  };
  EXPECT_TRUE(with("best", "step-1").ok());
  for (const char* field : {"run", "last", "best"}) {
    EXPECT_TRUE(absl::IsDataLoss(with(field, "../other"))) << field;
  }
  EXPECT_TRUE(absl::IsDataLoss(
      with("superseded", nlohmann::json::array({"../other"}))));
  for (const auto& [name, step] :
       {std::pair("../other", 1), std::pair("step-1", -1)}) {
    const nlohmann::json checkpoint = {{"step", step},
                                       {"scores", nlohmann::json::object()}};
    EXPECT_TRUE(absl::IsDataLoss(with("checkpoints", {{name, checkpoint}})))
        << name;
  }
  // Earlier builds wrote "weights" as well.
  const nlohmann::json earlier = {{"step", 1},
                                  {"scores", nlohmann::json::object()},
                                  {"weights", nlohmann::json::object()}};
  EXPECT_EQ(with("checkpoints", {{"step-1", earlier}}), absl::OkStatus());
}

}  // namespace
}  // namespace etc
