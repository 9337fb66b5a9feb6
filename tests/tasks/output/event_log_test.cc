// Event files for TensorBoard: each record parsed by hand (doc/formats.md 5),
// both checksums computed; the files of several processes; the worked example
// of doc/formats.md 5.4. PyPI's tensorboard reads such files in
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
              testing::AllOf(testing::StartsWith("events.out.tfevents."),
                             testing::EndsWith(".realetc")));
  const std::vector<std::string> payloads = Payloads(path);
  ASSERT_EQ(payloads.size(), 3u);
  const auto version = Fields(payloads[0]);
  EXPECT_GT(AsDouble(version.find(1)->second.value), 1.7e9);  // wall time
  EXPECT_EQ(version.find(3)->second.bytes, "brain.Event:2");

  const auto text = Fields(Fields(payloads[2]).find(5)->second.bytes);
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
  ASSERT_EQ(payloads.size(), 5u);
  const auto histogram_of = [&](size_t event) {
    const auto summary = Fields(Fields(payloads[event]).find(5)->second.bytes);
    return std::string(
        Fields(summary.find(1)->second.bytes).find(5)->second.bytes);
  };
  const std::string bytes = histogram_of(3);
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

  const std::string one = histogram_of(4);  // all numbers are the same
  const auto single = Fields(one);
  EXPECT_THAT(Doubles(single.find(6)->second.bytes), ElementsAre(0.5));
  EXPECT_THAT(Doubles(single.find(7)->second.bytes), ElementsAre(2.0));
}

// Each file says from which step on the events before it are made again: to
// TensorBoard's own server the first one that does is no resumption.
TEST(EventLogTest, GoesOnInAFileOfItsOwn) {
  TemporaryDirectory temporary;
  const std::string directory = temporary.File("tensorboard");
  for (const int64_t step : {0, 4, 4}) {
    auto log = EventLog::Open(directory, {.step = step});
    ASSERT_TRUE(log.ok()) << log.status();
    ASSERT_TRUE(log->Write({{"step", step + 1}, {"loss", 0.5}}).ok());
  }
  // The three files were made within a second, by one process.
  const std::vector<std::string> files = FilesIn(directory);
  ASSERT_EQ(files.size(), 3u);
  for (size_t i = 0; i < files.size(); ++i) {
    const uint64_t first_step = i == 0 ? 1 : 5;
    const std::vector<std::string> payloads = Payloads(files[i]);
    // Version, start, the configuration in the first file, an update.
    ASSERT_EQ(payloads.size(), i == 0 ? 4u : 3u);
    const auto session = Fields(payloads[1]);
    EXPECT_EQ(session.find(2)->second.value, first_step);
    EXPECT_EQ(session.find(7)->second.bytes, "\x08\x01");
    EXPECT_EQ(ReadScalars(files[i])[0].step, first_step);
  }
}

TEST(EventLogTest, RemovesNoFilesOfOthers) {
  TemporaryDirectory temporary;
  const std::string directory = temporary.File("tensorboard");
  EXPECT_TRUE(EventLog::Remove(directory).ok());
  ASSERT_TRUE(EventLog::Open(directory, {}).ok());
  const std::string ours = FilesIn(directory)[0];
  const std::string foreign = temporary.Write(
      "tensorboard/events.out.tfevents.4000000000.x.1.0", "another's");
  const std::string notes =
      temporary.Write("tensorboard/notes.realetc", "mine");
  ASSERT_TRUE(EventLog::Open(directory, {}).ok());
  // TensorBoard reads files in the order of their names.
  EXPECT_GT(FilesIn(directory)[2], foreign);
  ASSERT_TRUE(EventLog::Remove(directory).ok());
  EXPECT_THAT(FilesIn(directory), ElementsAre(foreign, notes));
  EXPECT_EQ(*ReadFile(foreign), "another's");
}

TEST(EventLogTest, SaysWhatItCannotMake) {
  TemporaryDirectory temporary;
  const std::string file = temporary.Write("tensorboard", "a file");
  EXPECT_THAT(std::string(EventLog::Open(file, {}).status().message()),
              HasSubstr(file));
}

}  // namespace
}  // namespace etc
