// CheckRecords and CheckRecordsAndIds find the first mistake of any record,
// also of files that stay on disk, without making examples; and the ids that an
// evaluation would refuse. Several processes read a share each and agree.

#include "tasks/data/record_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tests/support/gzip_member.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/data/thread_group.h"

namespace etc {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

// Reads records "id", "=id" with an id of all files, and "~id" with one that
// may come again with the same input, the last digit. "!" is a mistake in a
// record, "?" at its end says that it has no answer.
absl::StatusOr<CheckedRecord> Check(const std::string& record,
                                    const std::string& where) {
  EXPECT_NE(where, "");
  if (absl::StartsWith(record, "!")) {
    return absl::InvalidArgumentError(where);
  }
  const absl::string_view kinds = "=.~";  // as in Example::IdKind
  const size_t kind = kinds.find(record.front());
  return CheckedRecord{.id = record.substr(kind == kinds.npos ? 0 : 1, 2),
                       .id_kind = kind == kinds.npos
                                      ? Example::IdKind::kNumber
                                      : static_cast<Example::IdKind>(kind),
                       .has_answer = !absl::EndsWith(record, "?")};
}

// Makes an example whose only token is the last character; "%" there is a
// mistake that Check does not find.
absl::StatusOr<Examples> MakeExample(const std::string& record,
                                     const std::string& where) {
  if (absl::EndsWith(record, "%")) {
    return absl::InvalidArgumentError(where);
  }
  auto example = std::make_shared<Example>();
  example->long_token_ids = {record.back()};
  return Examples{example};
}

absl::StatusOr<RecordCounts> CheckAll(
    std::vector<FileRecord> records,
    OnBadRecord on_bad_record = OnBadRecord::kSkip, bool predicts = false) {
  return CheckRecordsAndIds(
      FileRecordSource(std::move(records), MakeExample, Check),
      {.on_bad_record = on_bad_record, .predicts = predicts});
}

TEST(RecordCheckTest, RefusesIdsThatComeAgain) {
  EXPECT_TRUE(CheckAll({{"=0", "a.csv:2"},
                        {"0", "a.csv:3"},
                        {"0", "b.csv:2"},
                        {"!=0", "b.csv:3"},
                        {"=0", "b.csv:4", "known to be broken"}})
                  .ok());
  const absl::Status again = absl::InvalidArgumentError(
      "b.csv:2: the id \"0\" should occur once, but is that of a.csv:2 too");
  EXPECT_EQ(CheckAll({{"=0", "a.csv:2"}, {"=0", "b.csv:2"}}).status(), again);
  EXPECT_EQ(
      CheckAll({{"0", "a.json: record 0"}, {"0", "a.json: record 1"}}).status(),
      absl::InvalidArgumentError(
          "a.json: record 1: the id \"0\" should occur once, but is that of "
          "a.json: record 0 too"));
  // A file of predictions has no files.
  EXPECT_EQ(CheckAll({{"0", "a.csv:2"}, {"0", "b.csv:2"}}, OnBadRecord::kSkip,
                     /*predicts=*/true)
                .status(),
            again);
}

TEST(RecordCheckTest, AcceptsARepeatedRecordWithTheSameInput) {
  EXPECT_TRUE(
      CheckAll({{"~ab1", "a:1"}, {"~ac1", "a:2"}, {"~ab1", "b:1"}}).ok());
  EXPECT_EQ(CheckAll({{"~ab1", "a:1"}, {"~ab2", "a:2"}}).status(),
            absl::InvalidArgumentError("a:2: the id \"ab\" should occur once, "
                                       "but is that of a:1 too"));
}

TEST(RecordCheckTest, AcceptsTheIdOfARecordThatIsSkippedLater) {
  const std::vector<FileRecord> records = {{"=00%", "a:1"}, {"=00", "a:2"}};
  EXPECT_TRUE(CheckAll(records).ok());
  EXPECT_EQ(CheckAll(records, OnBadRecord::kError).status(),
            absl::InvalidArgumentError("a:2: the id \"00\" should occur once, "
                                       "but is that of a:1 too"));
}

TEST(RecordCheckTest, RefusesBadRecordsBeforeIdsThatComeAgain) {
  EXPECT_EQ(CheckAll({{"=0", "a.csv:2"}, {"=0", "a.csv:3"}, {"!", "b.csv:2"}},
                     OnBadRecord::kError)
                .status(),
            absl::InvalidArgumentError("b.csv:2"));
}

TEST(RecordCheckTest, CountsRecordsWithoutAnAnswer) {
  const auto some = CheckAll({{"=0?", "a:1"}, {"=1", "a:2"}, {"!?", "a:3"}});
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_EQ(some->records, 2);
  EXPECT_EQ(some->unanswered, 1);
  EXPECT_FALSE(some->have_no_answers());
  EXPECT_TRUE(CheckAll({{"=0?", "a:1"}, {"!", "a:2"}})->have_no_answers());
  EXPECT_FALSE(CheckAll({})->have_no_answers());
}

// Two files, the second packed, whose records {"id": 17} stay in them. One with
// the id -1 has a mistake.
class StreamedRecordCheckTest : public testing::Test {
 protected:
  static constexpr int64_t kRecords = 3000;

  StreamedRecordCheckTest() {
    for (int64_t i = 0; i < kRecords; ++i) {
      ids_.push_back(i);
    }
  }

  std::unique_ptr<RecordSource> Open(const DataGroup& group = {}) {
    std::string text[2];
    for (size_t i = 0; i < ids_.size(); ++i) {
      absl::StrAppend(&text[i < kFirst ? 0 : 1], "{\"id\": ", ids_[i], "}\n");
    }
    if (group.rank == 0) {
      directory_.Write("a.jsonl", text[0]);
      directory_.Write("b.jsonl.gz", GzipMember(text[1]));
    }
    EXPECT_TRUE(group.Agree(absl::OkStatus()).ok());
    auto source = RecordSource::Open(
        {.patterns = {directory_.File("a.jsonl"),
                      directory_.File("b.jsonl.gz")},
         .group = group},
        [](const std::string&, const std::string&) -> absl::StatusOr<Examples> {
          ADD_FAILURE() << "makes examples";
          return Examples{};
        },
        [this](const std::string& record,
               const std::string& where) -> absl::StatusOr<CheckedRecord> {
          ++checked_;
          if (absl::StrContains(record, "-1")) {
            return absl::InvalidArgumentError(absl::StrCat(where, " is bad"));
          }
          return CheckedRecord{.id = record};
        });
    EXPECT_TRUE(source.ok()) << source.status();
    return *std::move(source);
  }

  static constexpr size_t kFirst = 1000;  // records of the first file
  std::vector<int64_t> ids_;
  std::atomic<int64_t> checked_ = 0;
  TemporaryDirectory directory_;
};

TEST_F(StreamedRecordCheckTest, FindsTheFirstMistake) {
  const auto good = CheckRecordsAndIds(*Open(), {});
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_EQ(good->records, kRecords);
  EXPECT_EQ(checked_, kRecords);
  ids_.back() = 7;
  EXPECT_TRUE(CheckRecords(*Open(), {}).ok());
  EXPECT_THAT(std::string(CheckRecordsAndIds(*Open(), {}).status().message()),
              HasSubstr("b.jsonl.gz: record 1999: the id "));
  ids_[1234] = ids_[2345] = -1;
  for (const absl::Status& status :
       {CheckRecords(*Open(), {}), CheckRecordsAndIds(*Open(), {}).status()}) {
    EXPECT_THAT(std::string(status.message()),
                EndsWith("b.jsonl.gz: record 234 is bad"));
  }
  ids_.back() = kRecords;
  const auto skips =
      CheckRecordsAndIds(*Open(), {.on_bad_record = OnBadRecord::kSkip});
  ASSERT_TRUE(skips.ok()) << skips.status();
  EXPECT_EQ(skips->records, kRecords - 2);
}

TEST_F(StreamedRecordCheckTest, TellsHowFarItIsAndCanBeStopped) {
  uint64_t last = 0;
  const FilesListener listener = [&](uint64_t done, uint64_t all) {
    EXPECT_EQ(done, ++last);
    EXPECT_EQ(all, uint64_t{kRecords});
    return absl::OkStatus();
  };
  EXPECT_TRUE(CheckRecords(*Open(), {.listener = listener}).ok());
  EXPECT_EQ(last, uint64_t{kRecords});
  const FilesListener stop = [](uint64_t, uint64_t) {
    return absl::CancelledError("enough");
  };
  checked_ = 0;
  EXPECT_EQ(CheckRecords(*Open(), {.listener = stop}),
            absl::CancelledError("enough"));
  EXPECT_LT(checked_, kRecords / 2);
}

TEST_F(StreamedRecordCheckTest, ReadsAShareInEachProcess) {
  RunAsGroup(3, [&](const DataGroup& group) {
    const auto counts = CheckRecordsAndIds(*Open(group), {.group = group});
    ASSERT_TRUE(counts.ok()) << counts.status();
    EXPECT_EQ(counts->records, kRecords);
  });
  EXPECT_EQ(checked_, kRecords);
  const auto expect_everywhere = [this](const std::string& message) {
    RunAsGroup(3, [&](const DataGroup& group) {
      EXPECT_THAT(std::string(CheckRecordsAndIds(*Open(group), {.group = group})
                                  .status()
                                  .message()),
                  HasSubstr(message));
    });
  };
  // The two are in shares of different processes.
  ids_.back() = 7;
  expect_everywhere("b.jsonl.gz: record 1999: the id ");
  ids_[1234] = ids_[2345] = -1;
  expect_everywhere("b.jsonl.gz: record 234 is bad");
}

}  // namespace
}  // namespace etc
