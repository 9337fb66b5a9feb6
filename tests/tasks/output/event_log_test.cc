// Event files for TensorBoard: each record parsed by hand (doc/formats.md 5),
// both checksums computed; what is kept of the files of earlier processes; the
// worked example of doc/formats.md 5.4. PyPI's tensorboard reads such files in
// tests/tasks/commands/tensorboard_test.py.

#include "tasks/output/event_log.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "base/file.h"
#include "etc/weights/formats/tensorflow/protobuf_wire.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

template <typename T>
T NumberAt(const std::string& bytes, size_t at) {
  T value{};
  EXPECT_LE(at + sizeof(T), bytes.size());
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

// The payloads of a file whose checksums are all right.
std::vector<std::string> Payloads(const std::string& path) {
  const std::string file = *ReadFile(path);
  std::vector<std::string> payloads;
  size_t at = 0;
  while (at < file.size()) {
    const auto length = NumberAt<uint64_t>(file, at);
    EXPECT_EQ(NumberAt<uint32_t>(file, at + 8),
              MaskCrc32c(ExtendCrc32c(0, file.substr(at, 8))));
    payloads.push_back(file.substr(at + 12, length));
    EXPECT_EQ(NumberAt<uint32_t>(file, at + 12 + length),
              MaskCrc32c(ExtendCrc32c(0, payloads.back())));
    at += 16 + length;
  }
  EXPECT_EQ(at, file.size());
  return payloads;
}

// The fields of a message by their numbers.
std::multimap<uint32_t, ProtoField> Fields(absl::string_view message) {
  std::multimap<uint32_t, ProtoField> fields;
  const absl::Status status =
      VisitProtoFields(message, [&](const ProtoField& field) {
        fields.emplace(field.number, field);
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  return fields;
}

float AsFloat(uint64_t bits) {
  const auto narrow = static_cast<uint32_t>(bits);
  float value = 0;
  std::memcpy(&value, &narrow, sizeof(value));
  return value;
}
double AsDouble(uint64_t bits) {
  double value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

struct Scalars {
  uint64_t step = 0;
  std::map<std::string, float> values;
};

// The events of a file that have scalars.
std::vector<Scalars> ReadScalars(const std::string& path) {
  std::vector<Scalars> events;
  for (const std::string& payload : Payloads(path)) {
    const auto event = Fields(payload);
    Scalars scalars;
    if (event.contains(2)) {
      scalars.step = event.find(2)->second.value;
    }
    for (auto [summary, end] = event.equal_range(5); summary != end;
         ++summary) {
      for (const auto& [number, value] : Fields(summary->second.bytes)) {
        const auto parts = Fields(value.bytes);
        if (parts.contains(2)) {
          scalars.values[std::string(parts.find(1)->second.bytes)] =
              AsFloat(parts.find(2)->second.value);
        }
      }
    }
    if (!scalars.values.empty()) {
      events.push_back(scalars);
    }
  }
  return events;
}

std::vector<std::string> FilesIn(const std::string& directory) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// "1 2 e2": the steps of all files in their order, evaluations with an "e".
std::string StepsIn(const std::string& directory) {
  std::string steps;
  for (const std::string& path : FilesIn(directory)) {
    for (const Scalars& event : ReadScalars(path)) {
      const bool is_evaluation = event.values.begin()->first[0] == 'e';
      steps += (steps.empty() ? "" : " ") +
               std::string(is_evaluation ? "e" : "") +
               std::to_string(event.step);
    }
  }
  return steps;
}

nlohmann::ordered_json Update(int64_t step) {
  return {{"step", step}, {"loss", 0.5}};
}
nlohmann::ordered_json AnEvaluation(int64_t step) {
  return {{"step", step}, {"evaluation", {{"accuracy", 0.75}}}};
}

// A log of updates 1 to `steps`, with an evaluation after every second.
void WriteRun(const std::string& directory, int64_t steps) {
  auto log = EventLog::Open(directory, {.configuration = "    {}"});
  ASSERT_TRUE(log.ok()) << log.status();
  for (int64_t step = 1; step <= steps; ++step) {
    ASSERT_TRUE(log->Write(Update(step)).ok());
    if (step % 2 == 0) {
      ASSERT_TRUE(log->Write(AnEvaluation(step)).ok());
    }
  }
  ASSERT_TRUE(log->Sync().ok());
}

TEST(EventLogTest, FramesARecordAsInTheWorkedExample) {
  const std::string payload(
      "\x09\x00\x00\x60\x40\xfc\x54\xd9\x41\x10\xac\x02"
      "\x2a\x0d\x0a\x0b\x0a\x04loss\x15\x00\x00\x00\x3f",
      27);
  const std::string expected =
      std::string("\x1b\x00\x00\x00\x00\x00\x00\x00\x1a\x0d\x9e\x13", 12) +
      payload + "\x2c\x0d\x6e\x95";
  EXPECT_EQ(EventRecord(payload), expected);
}

TEST(EventLogTest, BeginsWithItsVersionAndTheConfiguration) {
  TemporaryDirectory temporary;
  const std::string directory = temporary.File("run/tensorboard");
  ASSERT_TRUE(
      EventLog::Open(directory, {.configuration = "    {\"a\": 1}"}).ok());
  ASSERT_EQ(FilesIn(directory).size(), 1u);
  const std::string path = FilesIn(directory)[0];
  EXPECT_THAT(std::filesystem::path(path).filename().string(),
              testing::StartsWith("events.out.tfevents."));
  const std::vector<std::string> payloads = Payloads(path);
  ASSERT_EQ(payloads.size(), 2u);
  const auto version = Fields(payloads[0]);
  EXPECT_GT(AsDouble(version.find(1)->second.value), 1.7e9);  // wall time
  EXPECT_EQ(version.find(3)->second.bytes, "brain.Event:2");

  const auto text = Fields(Fields(payloads[1]).find(5)->second.bytes);
  const auto value = Fields(text.find(1)->second.bytes);
  EXPECT_EQ(value.find(1)->second.bytes, "configuration");
  const auto tensor = Fields(value.find(8)->second.bytes);
  EXPECT_EQ(tensor.find(1)->second.value, 7u);  // DT_STRING
  EXPECT_EQ(tensor.find(8)->second.bytes, "    {\"a\": 1}");
  const auto plugin =
      Fields(Fields(value.find(9)->second.bytes).find(1)->second.bytes);
  EXPECT_EQ(plugin.find(1)->second.bytes, "text");
}

TEST(EventLogTest, WritesEveryNumberOfALine) {
  TemporaryDirectory temporary;
  const std::string directory = temporary.File("tensorboard");
  auto log = EventLog::Open(directory, {});
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE(
      log->Write({{"step", 300},
                  {"loss", 0.5},
                  {"skipped", 0},
                  {"diverged", std::numeric_limits<double>::infinity()},
                  {"scores", {{"largest", 9.0}, {"l2l", {nullptr, 0.25}}}}})
          .ok());
  ASSERT_TRUE(log->Write({{"step", 300},
                          {"evaluation", {{"f1@3", 0.75}}},
                          {"examples", 11}})
                  .ok());
  const std::vector<Scalars> events = ReadScalars(FilesIn(directory)[0]);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].step, 300u);
  EXPECT_THAT(
      events[0].values,
      UnorderedElementsAre(
          Pair("train/loss", 0.5F), Pair("train/skipped", 0.0F),
          Pair("train/diverged", std::numeric_limits<float>::infinity()),
          Pair("train/scores/largest", 9.0F),
          Pair("train/scores/l2l/1", 0.25F)));
  EXPECT_EQ(events[1].step, 300u);
  // "@" is no letter of a tag.
  EXPECT_THAT(events[1].values,
              UnorderedElementsAre(Pair("evaluation/f1_3", 0.75F),
                                   Pair("evaluated/examples", 11.0F)));
}

std::vector<double> Doubles(absl::string_view packed) {
  std::vector<double> values;
  for (size_t at = 0; at < packed.size(); at += sizeof(double)) {
    values.push_back(NumberAt<double>(std::string(packed), at));
  }
  return values;
}

TEST(EventLogTest, CountsEachNumberOfAHistogramOnce) {
  TemporaryDirectory temporary;
  const std::string directory = temporary.File("tensorboard");
  auto log = EventLog::Open(directory, {});
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE(
      log->WriteHistogram(7, "train/gates", {-1.0, 0.0, 0.1, 2.0}).ok());
  ASSERT_TRUE(log->WriteHistogram(8, "train/gates", {0.5, 0.5}).ok());
  const std::vector<std::string> payloads = Payloads(FilesIn(directory)[0]);
  ASSERT_EQ(payloads.size(), 4u);
  const auto histogram_of = [&](size_t event) {
    const auto summary = Fields(Fields(payloads[event]).find(5)->second.bytes);
    return std::string(
        Fields(summary.find(1)->second.bytes).find(5)->second.bytes);
  };
  const std::string bytes = histogram_of(2);
  const auto spread = Fields(bytes);
  EXPECT_EQ(AsDouble(spread.find(1)->second.value), -1.0);
  EXPECT_EQ(AsDouble(spread.find(2)->second.value), 2.0);
  EXPECT_EQ(AsDouble(spread.find(3)->second.value), 4.0);
  EXPECT_DOUBLE_EQ(AsDouble(spread.find(4)->second.value), 1.1);
  EXPECT_DOUBLE_EQ(AsDouble(spread.find(5)->second.value), 5.01);
  const std::vector<double> limits = Doubles(spread.find(6)->second.bytes);
  const std::vector<double> counts = Doubles(spread.find(7)->second.bytes);
  ASSERT_EQ(limits.size(), 30u);
  ASSERT_EQ(counts.size(), 30u);
  EXPECT_TRUE(std::is_sorted(limits.begin(), limits.end()));
  EXPECT_EQ(limits.back(), 2.0);
  EXPECT_EQ(counts[0], 1.0);
  EXPECT_EQ(counts[29], 1.0);
  double all = 0;
  for (const double count : counts) {
    all += count;
  }
  EXPECT_EQ(all, 4.0);

  const std::string one = histogram_of(3);  // all numbers are the same
  const auto single = Fields(one);
  EXPECT_THAT(Doubles(single.find(6)->second.bytes), ElementsAre(0.5));
  EXPECT_THAT(Doubles(single.find(7)->second.bytes), ElementsAre(2.0));
}

TEST(EventLogTest, GoesOnBehindACheckpointWithoutDuplicates) {
  TemporaryDirectory temporary;
  const std::string directory = temporary.File("tensorboard");
  WriteRun(directory, 5);
  EXPECT_EQ(StepsIn(directory), "1 2 e2 3 4 e4 5");
  // Saved after update 4, and killed before its evaluation was noted.
  auto log = EventLog::Open(directory, {.step = 4, .configuration = "again"});
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ(StepsIn(directory), "1 2 e2 3 4");
  ASSERT_TRUE(log->Write(AnEvaluation(4)).ok());
  ASSERT_TRUE(log->Write(Update(5)).ok());
  EXPECT_EQ(StepsIn(directory), "1 2 e2 3 4 e4 5");

  // A TensorBoard that follows the run forgets what it has of update 5 on.
  ASSERT_EQ(FilesIn(directory).size(), 2u);
  const std::vector<std::string> payloads = Payloads(FilesIn(directory)[1]);
  const auto session = Fields(payloads[1]);
  EXPECT_EQ(session.find(2)->second.value, 5u);
  EXPECT_EQ(session.find(7)->second.bytes, "\x08\x01");
}

// Also where there are no scores: of the evaluations only one that is made
// again goes.
TEST(EventLogTest, KeepsTheEvaluationsBeforeAStart) {
  for (const auto& [start, kept] : std::map<int64_t, std::string>{
           {3, "1 2 e2 3"}, {4, "1 2 e2 3 4"}, {5, "1 2 e2 3 4 e4 5"}}) {
    TemporaryDirectory temporary;
    const std::string directory = temporary.File("tensorboard");
    WriteRun(directory, 5);
    ASSERT_TRUE(EventLog::Open(directory, {.step = start}).ok());
    EXPECT_EQ(StepsIn(directory), kept);
  }
  TemporaryDirectory temporary;
  const std::string directory = temporary.File("tensorboard");
  WriteRun(directory, 5);
  ASSERT_TRUE(
      EventLog::Open(directory, {.step = 4, .is_evaluated = true}).ok());
  EXPECT_EQ(StepsIn(directory), "1 2 e2 3 4 e4");
}

TEST(EventLogTest, BeginsAnewWhereNothingIsKept) {
  TemporaryDirectory temporary;
  const std::string directory = temporary.File("tensorboard");
  WriteRun(directory, 3);
  const std::string before = FilesIn(directory)[0];
  auto log = EventLog::Open(directory, {.configuration = "again"});
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_THAT(FilesIn(directory), testing::Not(testing::Contains(before)));
  EXPECT_EQ(Payloads(FilesIn(directory)[0]).size(), 2u);  // version, text
}

// A process that was killed leaves a part of a record.
TEST(EventLogTest, CutsAnIncompleteRecordOffAtEveryByte) {
  TemporaryDirectory temporary;
  const std::string directory = temporary.File("tensorboard");
  WriteRun(directory, 1);
  const std::string path = FilesIn(directory)[0];
  const std::string whole = *ReadFile(path);
  const std::string record = EventRecord(std::string(9, 'x'));
  for (size_t bytes = 1; bytes < record.size(); ++bytes) {
    for (const std::string& other : FilesIn(directory)) {
      std::filesystem::remove(other);
    }
    ASSERT_TRUE(
        WriteFileAtomically(path, whole + record.substr(0, bytes)).ok());
    const auto log = EventLog::Open(directory, {.step = 1});
    ASSERT_TRUE(log.ok()) << bytes << ": " << log.status();
    EXPECT_EQ(*ReadFile(path), whole) << bytes;
  }
}

TEST(EventLogTest, NamesTheRecordThatIsDamaged) {
  TemporaryDirectory temporary;
  const std::string directory = temporary.File("tensorboard");
  WriteRun(directory, 2);
  const std::string path = FilesIn(directory)[0];
  std::string damaged = *ReadFile(path);
  damaged[damaged.size() - 6] ^= 1;  // in the payload of the last record
  ASSERT_TRUE(WriteFileAtomically(path, damaged).ok());
  const auto log = EventLog::Open(directory, {.step = 2, .is_evaluated = true});
  EXPECT_EQ(log.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(log.status().message()),
              testing::AllOf(HasSubstr(path), HasSubstr("the payload of the "
                                                        "record at byte")));
  EXPECT_EQ(*ReadFile(path), damaged);
}

TEST(EventLogTest, LeavesFilesOfOthersAsTheyAre) {
  TemporaryDirectory temporary;
  const std::string directory = temporary.File("tensorboard");
  ASSERT_TRUE(CreateDirectories(directory).ok());
  // A version record without our mark, and something else.
  std::string event;
  AppendBytesField(3, "brain.Event:2", &event);
  const std::string foreign = EventRecord(event) + "tail";
  const std::string path = directory + "/events.out.tfevents.0000000007.x";
  ASSERT_TRUE(WriteFileAtomically(path, foreign).ok());
  ASSERT_TRUE(WriteFileAtomically(directory + "/notes.txt", "mine").ok());
  ASSERT_TRUE(EventLog::Open(directory, {}).ok());
  EXPECT_EQ(*ReadFile(path), foreign);
  EXPECT_EQ(*ReadFile(directory + "/notes.txt"), "mine");
}

TEST(EventLogTest, SaysWhatItCannotMake) {
  TemporaryDirectory temporary;
  const std::string file = temporary.Write("tensorboard", "a file");
  EXPECT_THAT(std::string(EventLog::Open(file, {}).status().message()),
              HasSubstr(file));
}

}  // namespace
}  // namespace etc
