// RecordSource finds the records of several files, named by patterns and opened
// at once, in their order; tells how far opening has come; and names the first
// file that cannot be opened.

#include "tasks/data/record_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tests/support/gzip_member.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/data/thread_group.h"

namespace etc {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Opens a source that keeps the text of each record in `seen`, and makes
// nothing of it.
absl::StatusOr<std::unique_ptr<RecordSource>> Open(
    const DataRequest& request, std::vector<std::string>* seen) {
  return RecordSource::Open(
      request,
      [seen](const std::string& record, const std::string& where) {
        seen->push_back(absl::StrCat(where, " ", record));
        return Examples{};
      },
      [](const std::string& /*record*/, const std::string& /*where*/) {
        return CheckedRecord();
      });
}

class RecordSourceTest : public testing::Test {
 protected:
  // Shards with 0, 1, 2, 3, 4, 0, 1, ... records.
  void WriteShards(int shards) {
    for (int shard = 0; shard < shards; ++shard) {
      const std::string name = absl::StrCat("shard-", 100 + shard);
      std::string text = shard % 5 == 0 ? "[]" : "";
      for (int i = 0; i < shard % 5; ++i) {
        const std::string record = absl::StrCat("{\"", shard, "\":", i, "}");
        absl::StrAppend(&text, record, "\n");
        expected_.push_back(
            absl::StrCat(directory_.File(name), ": record ", i, " ", record));
      }
      num_bytes_ += text.size();
      directory_.Write(name, text);
    }
  }
  std::string Shards() const { return directory_.File("shard-*"); }

  TemporaryDirectory directory_;
  std::vector<std::string> expected_;
  uint64_t num_bytes_ = 0;
};

TEST_F(RecordSourceTest, ReadsTheFilesOfPatternsInOrder) {
  WriteShards(99);
  std::vector<std::string> seen;
  const auto source = Open({.patterns = {Shards()}}, &seen);
  ASSERT_TRUE(source.ok()) << source.status();
  ASSERT_EQ((*source)->size(), static_cast<int64_t>(expected_.size()));
  for (int64_t i = 0; i < (*source)->size(); ++i) {
    EXPECT_TRUE((*source)->Make({.record = i}).ok());
  }
  EXPECT_THAT(seen, ElementsAreArray(expected_));
}

TEST_F(RecordSourceTest, IsEmptyWithoutFiles) {
  std::vector<std::string> seen;
  const auto source = Open({}, &seen);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ((*source)->size(), 0);
}

TEST_F(RecordSourceTest, TellsHowFarItHasCome) {
  WriteShards(30);
  std::vector<std::string> seen;
  std::vector<std::pair<uint64_t, uint64_t>> heard;
  ASSERT_TRUE(Open({.patterns = {Shards()},
                    .listener =
                        [&](uint64_t bytes, uint64_t num_bytes) {
                          heard.emplace_back(bytes, num_bytes);
                          return absl::OkStatus();
                        }},
                   &seen)
                  .ok());
  ASSERT_FALSE(heard.empty());
  uint64_t last = 0;
  for (const auto& [bytes, num_bytes] : heard) {
    EXPECT_GT(bytes, last);
    EXPECT_EQ(num_bytes, num_bytes_);
    last = bytes;
  }
  EXPECT_EQ(last, num_bytes_);
}

TEST_F(RecordSourceTest, EndsWhenTheListenerSaysSo) {
  WriteShards(30);
  std::vector<std::string> seen;
  int calls = 0;
  const auto source = Open({.patterns = {Shards()},
                            .listener =
                                [&calls](uint64_t, uint64_t) {
                                  ++calls;
                                  return absl::CancelledError("enough");
                                }},
                           &seen);
  EXPECT_EQ(source.status(), absl::CancelledError("enough"));
  EXPECT_LT(calls, 30);
}

TEST_F(RecordSourceTest, NamesTheFirstFileThatIsMalformed) {
  WriteShards(30);
  const std::string first = directory_.Write("shard-105", "[");
  directory_.Write("shard-106", "{");
  directory_.Write("shard-129", "}");
  for (int round = 0; round < 50; ++round) {
    std::vector<std::string> seen;
    const auto source = Open({.patterns = {Shards()}}, &seen);
    ASSERT_EQ(source.status().code(), absl::StatusCode::kInvalidArgument);
    ASSERT_THAT(std::string(source.status().message()),
                StartsWith(first + ":"));
  }
}

TEST_F(RecordSourceTest, NamesTheLineOfASyntaxError) {
  const std::string path =
      directory_.Write("a.jsonl", "{\"b\": 1}\n{\"b\": 01}\n");
  const auto parse = [](const std::string& record, const std::string& where) {
    return ParseJson(record, where).status();
  };
  const ExampleMaker make =
      [&](const std::string& record,
          const std::string& where) -> absl::StatusOr<Examples> {
    ETC_RETURN_IF_ERROR(parse(record, where));
    return Examples();
  };
  const RecordChecker check =
      [&](const std::string& record,
          const std::string& where) -> absl::StatusOr<CheckedRecord> {
    ETC_RETURN_IF_ERROR(parse(record, where));
    return absl::InvalidArgumentError(where + ".c is missing");
  };
  const auto streamed = RecordSource::Open({.patterns = {path}}, make, check);
  ASSERT_TRUE(streamed.ok()) << streamed.status();
  auto records = ReadJsonRecords(path, {});
  ASSERT_TRUE(records.ok()) << records.status();
  const FileRecordSource in_memory(*std::move(records), make, check);
  const std::string place = path + ":2:8: syntax error";
  for (const OfficialRecords* const source :
       {static_cast<const OfficialRecords*>(streamed->get()),
        static_cast<const OfficialRecords*>(&in_memory)}) {
    EXPECT_THAT(
        std::string(source->Make(RequestForEvaluation(1)).status().message()),
        StartsWith(place));
    EXPECT_THAT(std::string(source->Check(1).status().message()),
                StartsWith(place));
    EXPECT_EQ(source->Check(0).status().message(),
              path + ": record 0.c is missing");
  }
  EXPECT_THAT(std::string(ForEachRecord(path, parse).message()),
              StartsWith(place));
}

TEST_F(RecordSourceTest, NamesAPatternWithoutFiles) {
  std::vector<std::string> seen;
  EXPECT_EQ(Open({.patterns = {Shards()}}, &seen).status().message(),
            "there is no file that matches " + Shards());
}

TEST_F(RecordSourceTest, IsScannedOnceByAllProcesses) {
  WriteShards(40);
  // Large enough for some places to begin at.
  std::string text;
  for (uint64_t i = 0; i < 300'000; ++i) {
    const std::string record = absl::StrCat("{\"", CombineSeeds({i}), "\":1}");
    absl::StrAppend(&text, record, "\n");
    expected_.push_back(absl::StrCat(directory_.File("shard-900"), ": record ",
                                     i, " ", record));
  }
  const std::string packed = GzipMember(text, {.level = 1});
  num_bytes_ += packed.size();
  directory_.Write("shard-900", packed);
  std::atomic<uint64_t> scanned = 0;
  RunAsGroup(3, [&](const DataGroup& group) {
    std::vector<std::string> seen;
    uint64_t scanned_here = 0;
    const auto source = Open({.patterns = {Shards()},
                              .listener =
                                  [&](uint64_t bytes, uint64_t num_bytes) {
                                    EXPECT_LE(bytes, num_bytes);
                                    scanned_here = bytes;
                                    return absl::OkStatus();
                                  },
                              .group = group},
                             &seen);
    ASSERT_TRUE(source.ok()) << source.status();
    scanned += scanned_here;
    ASSERT_EQ((*source)->size(), static_cast<int64_t>(expected_.size()));
    // Backwards, so that each read begins at a place of the index.
    for (int64_t i = (*source)->size() - 1; i >= 0; i -= 1 + i / 50) {
      EXPECT_TRUE((*source)->Make({.record = i}).ok());
      EXPECT_EQ(seen.back(), expected_[static_cast<size_t>(i)]);
    }
  });
  EXPECT_EQ(scanned, num_bytes_);
}

TEST_F(RecordSourceTest, NamesTheFirstMistakeInAllProcesses) {
  WriteShards(30);
  const std::string first = directory_.Write("shard-105", "[");
  directory_.Write("shard-106", "{");
  directory_.Write("shard-127", "}");
  RunAsGroup(3, [&](const DataGroup& group) {
    std::vector<std::string> seen;
    const auto source = Open({.patterns = {Shards()}, .group = group}, &seen);
    EXPECT_EQ(source.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(source.status().message()),
                StartsWith(first + ":"));
  });
}

TEST_F(RecordSourceTest, RefusesOtherFilesInOtherProcesses) {
  WriteShards(9);
  directory_.Write("other-100", "{}");
  directory_.Write("longer", "[  ]");
  RunAsGroup(2, [&](const DataGroup& group) {
    const bool is_first = group.rank == 0;
    std::vector<std::string> seen;
    const auto fewer =
        Open({.patterns = {is_first ? Shards() : directory_.File("other-*")},
              .group = group},
             &seen);
    EXPECT_EQ(fewer.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(fewer.status().message()),
                HasSubstr("should have the same data"));
    const auto longer =
        Open({.patterns = {directory_.File(is_first ? "longer" : "shard-100")},
              .group = group},
             &seen);
    EXPECT_EQ(longer.ok(), is_first);  // who has scanned it
    EXPECT_EQ(longer.status().message(),
              is_first ? ""
                       : directory_.File("shard-100") +
                             ": the file should be the same in all processes, "
                             "but has 2 bytes here and 4 where its records "
                             "were looked for");
  });
}

}  // namespace
}  // namespace etc
