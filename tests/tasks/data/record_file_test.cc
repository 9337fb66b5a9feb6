// RecordFile gives each record of a file larger than one read, alone or from
// several threads at once, and passes on what is wrong with a file.

#include "tasks/data/record_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Sizes differ, so that borders of reads fall everywhere in a record.
std::string Record(int index) {
  return "{\"id\": " + std::to_string(index) + ", \"text\": \"" +
         std::string(index * 7919 % 1501, 'x') + "\\\"}\"}";
}

TEST(RecordFileTest, ReadsEachRecordFromSeveralThreads) {
  constexpr int kRecords = 5000;  // about 3.7 MB
  std::string text = "[";
  for (int i = 0; i < kRecords; ++i) {
    text += (i == 0 ? "\n" : ",\n") + Record(i);
  }
  TemporaryDirectory directory;
  const auto file = RecordFile::Open(directory.Write("a.json", text + "]"));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->size(), kRecords);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int first = 0; first < 4; ++first) {
    threads.emplace_back([&file, &wrong, first] {
      for (int i = first; i < kRecords; i += 3) {
        const absl::StatusOr<std::string> record = file->Read(i);
        wrong += record.ok() && *record == Record(i) ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0);
}

TEST(RecordFileTest, SaysWhereARecordIs) {
  TemporaryDirectory directory;
  const std::string path = directory.Write("a.json", "{}\n{}\n");
  const auto file = RecordFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->path(), path);
  EXPECT_EQ(file->Where(1), path + ": record 1");
}

TEST(RecordFileTest, RefusesAnIndexThatIsNotThere) {
  TemporaryDirectory directory;
  const auto file = RecordFile::Open(directory.Write("a.json", "[{}]"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->Read(1).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(file->Read(-1).status().code(), absl::StatusCode::kOutOfRange);
}

TEST(RecordFileTest, NamesTheFileThatIsMalformedOrAbsent) {
  TemporaryDirectory directory;
  const std::string path = directory.Write("a.json", "[{}\n");
  const absl::Status malformed = RecordFile::Open(path).status();
  EXPECT_EQ(malformed.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(malformed.message()),
              StartsWith(path + ":2: byte 4: "));
  const absl::Status absent =
      RecordFile::Open(directory.File("b.json")).status();
  EXPECT_EQ(absent.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(absent.message(), HasSubstr("b.json"));
}

}  // namespace
}  // namespace etc
