// RecordFile gives each record of a file larger than one read, plain or packed,
// alone or from several threads at once, tells how far opening has come, and
// passes on what is wrong with a file.

#include "tasks/data/record_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tests/support/gzip_member.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Sizes differ, so that borders of reads fall everywhere in a record.
std::string Record(int index) {
  return "{\"id\": " + std::to_string(index) + ", \"text\": \"" +
         std::string(index * 7919 % 1501, 'x') + "\\\"}\"}";
}

constexpr int kRecords = 5000;  // about 3.7 MB

// Writes the records plain, or in two members of gzip.
std::string WriteRecords(bool packed, TemporaryDirectory* directory) {
  std::string text = "[";
  for (int i = 0; i < kRecords; ++i) {
    text += (i == 0 ? "\n" : ",\n") + Record(i);
  }
  text += "]";
  const std::string path = directory->File("a.json");
  if (!packed) {
    return directory->Write("a.json", text);
  }
  const size_t middle = text.size() / 3;
  for (const auto& [mode, part] :
       {std::pair<const char*, std::string>{"wb", text.substr(0, middle)},
        {"ab", text.substr(middle)}}) {
    gzFile file = gzopen(path.c_str(), mode);
    EXPECT_EQ(gzwrite(file, part.data(), static_cast<unsigned>(part.size())),
              static_cast<int>(part.size()));
    EXPECT_EQ(gzclose(file), Z_OK);
  }
  return path;
}

class RecordFileKindTest : public testing::TestWithParam<bool> {};

TEST_P(RecordFileKindTest, ReadsEachRecordFromSeveralThreads) {
  TemporaryDirectory directory;
  const auto file = RecordFile::Open(WriteRecords(GetParam(), &directory));
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

TEST_P(RecordFileKindTest, TellsHowMuchOfTheFileWasRead) {
  TemporaryDirectory directory;
  const std::string path = WriteRecords(GetParam(), &directory);
  uint64_t read = 0;
  int calls = 0;
  const auto listener = [&](uint64_t bytes) {
    read += bytes;
    ++calls;
    return absl::OkStatus();
  };
  EXPECT_TRUE(RecordFile::Open(path, listener).ok());
  EXPECT_EQ(read, std::filesystem::file_size(path));
  EXPECT_GE(calls, 3);
  EXPECT_EQ(RecordFile::Open(
                path, [](uint64_t) { return absl::CancelledError("enough"); })
                .status(),
            absl::CancelledError("enough"));
}

INSTANTIATE_TEST_SUITE_P(PlainAndPacked, RecordFileKindTest, testing::Bool(),
                         [](const auto& kind) {
                           return kind.param ? "Packed" : "Plain";
                         });

TEST(RecordFileTest, SaysWhereARecordIs) {
  TemporaryDirectory directory;
  const std::string path = directory.Write("a.json", "{}\n{}\n");
  const auto file = RecordFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->path(), path);
  EXPECT_EQ(file->Where(1), path + ": record 1");
}

TEST(RecordFileTest, KnowsTheLineOfARecordWhereEachLineIsOne) {
  TemporaryDirectory directory;
  const std::vector<std::pair<std::string, int64_t>> lines = {
      {"{}\n{}\n", 2}, {"{}\r\n{}", 2}, {"\n{}\n{}", 0}, {"{}\n\n{}", 0},
      {"{\n}\n{}", 0}, {"{}\n{\n}", 0}, {"[{},\n{}]", 0}};
  for (const auto& [contents, line] : lines) {
    const std::string path = directory.Write("a.json", contents);
    const auto file = RecordFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->LineOf(1), line) << contents;
    const auto same = RecordFile::OpenByIndex(path, file->Index(), {});
    ASSERT_TRUE(same.ok()) << same.status();
    EXPECT_EQ(same->LineOf(1), line) << contents;
  }
}

TEST(RecordFileTest, RefusesAnIndexThatIsNotThere) {
  TemporaryDirectory directory;
  const auto file = RecordFile::Open(directory.Write("a.json", "[{}]"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->Read(1).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(file->Read(-1).status().code(), absl::StatusCode::kOutOfRange);
}

TEST(RecordFileTest, NamesAPackerThatItDoesNotKnow) {
  TemporaryDirectory directory;
  const std::string path = directory.Write("a.json", "PK\x03\x04\x14");
  EXPECT_EQ(std::string(RecordFile::Open(path).status().message()),
            path + " should be text, but is packed by zip: unpack it first");
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
  const std::string packed = directory.Write("c.json", "\x1f\x8b\x08");
  const absl::Status truncated = RecordFile::Open(packed).status();
  EXPECT_EQ(truncated.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(truncated.message()), StartsWith(packed + ": "));
}

// 4 GB of contents in a file of 4 MB.
TEST(RecordFileTest, RefusesAPackedRecordWithoutEndSoonAndNamesTheFile) {
  TemporaryDirectory directory;
  const std::string member = GzipMember(std::string(40'000'000, 'x'));
  std::string packed = GzipMember("{\"a\":\"");
  for (int i = 0; i < 100; ++i) {
    packed += member;
  }
  const std::string path = directory.Write("bomb.json", packed);
  uint64_t read = 0;
  const auto listener = [&](uint64_t bytes) {
    read += bytes;
    return absl::OkStatus();
  };
  const absl::Status status =
      RecordFile::Open(path, listener,
                       {.max_record_bytes = 64'000'000,
                        .max_record_field = "data.some_field"})
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              AllOf(StartsWith(path + ":1: byte 0: "),
                    HasSubstr("64000000 bytes (data.some_field)")));
  EXPECT_LT(read, packed.size() / 20);
}

TEST(RecordFileTest, RefusesMoreRecordsThanThereIsMemoryFor) {
  TemporaryDirectory directory;
  std::string lines;
  for (int i = 0; i < 1000000; ++i) {
    lines += "{}\n";
  }
  const std::string path =
      directory.Write("bomb.json", GzipMember(lines) + GzipMember(lines));
  RecordIndexBudget enough(40'000'000);
  EXPECT_TRUE(RecordFile::Open(path, nullptr, {.index = &enough}).ok());
  RecordIndexBudget index(20'000'000);
  EXPECT_THAT(std::string(RecordFile::Open(path, nullptr, {.index = &index})
                              .status()
                              .message()),
              AllOf(StartsWith(path + ":1048577: "), HasSubstr("data.train"),
                    HasSubstr("20000000 bytes")));
}

}  // namespace
}  // namespace etc
