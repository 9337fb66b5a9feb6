// Lines of metrics: written at once, and cut back to a checkpoint on resuming.

#include "tasks/output/metrics_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/file.h"
#include "base/file_operations.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/recorded_operations.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using ::testing::HasSubstr;

TEST(MetricsLogTest, WritesEachLineAtOnce) {
  TemporaryDirectory temporary;
  auto log = MetricsLog::Open(temporary.File("metrics.jsonl"), 0);
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE(log->Write({{"step", 1}, {"loss", 0.5}}).ok());
  EXPECT_EQ(*ReadFile(temporary.File("metrics.jsonl")),
            "{\"step\":1,\"loss\":0.5}\n");
  ASSERT_TRUE(log->Write({{"step", 2}, {"loss", 0.25}}).ok());
  EXPECT_EQ(*ReadFile(temporary.File("metrics.jsonl")),
            "{\"step\":1,\"loss\":0.5}\n{\"step\":2,\"loss\":0.25}\n");
}

TEST(MetricsLogTest, CutsBackToItsSizeAtACheckpointAndGoesOn) {
  TemporaryDirectory temporary;
  const std::string path =
      temporary.Write("metrics.jsonl", "{\"step\":1}\n{\"step\":2}\n{\"st");
  auto log = MetricsLog::Open(path, 11);
  ASSERT_TRUE(log.ok());
  EXPECT_EQ(log->size(), 11);
  ASSERT_TRUE(log->Write({{"step", 2}, {"again", true}}).ok());
  EXPECT_EQ(*ReadFile(path), "{\"step\":1}\n{\"step\":2,\"again\":true}\n");
  EXPECT_EQ(log->size(), 11 + 24);
}

// A copy of the run may lack the end of the file, or all of it.
TEST(MetricsLogTest, GoesOnBehindTheLastWholeLineOfAShorterFile) {
  TemporaryDirectory temporary;
  const std::string whole = "{\"step\":1}\n";
  for (const std::string rest : {"", "{", "{\"step\":2}"}) {
    const std::string path = temporary.Write("metrics.jsonl", whole + rest);
    auto log = MetricsLog::Open(path, 100);
    ASSERT_TRUE(log.ok()) << log.status();
    EXPECT_EQ(log->size(), 11) << rest;
    ASSERT_TRUE(log->Write({{"step", 3}}).ok());
    EXPECT_EQ(*ReadFile(path), whole + "{\"step\":3}\n") << rest;
  }
  const std::string cut = temporary.Write("cut.jsonl", "{\"step");
  EXPECT_EQ(MetricsLog::Open(cut, 100)->size(), 0);
  EXPECT_EQ(*ReadFile(cut), "");
  EXPECT_EQ(MetricsLog::Open(temporary.File("new.jsonl"), 100)->size(), 0);
}

TEST(MetricsLogTest, BeginsAnewAtZero) {
  TemporaryDirectory temporary;
  const std::string path = temporary.Write("metrics.jsonl", "{\"step\":1}\n");
  ASSERT_TRUE(MetricsLog::Open(path, 0).ok());
  EXPECT_EQ(*ReadFile(path), "");
}

// A link in somebody else's directory may lead to any file of the user.
TEST(MetricsLogTest, OpensNoLinkAndNoPipe) {
  TemporaryDirectory temporary;
  const std::string mine = temporary.Write("mine", "mine\n");
  const std::string link = temporary.File("metrics.jsonl");
  std::filesystem::create_symlink(mine, link);
  for (const int64_t bytes : {0, 2, 100}) {
    EXPECT_THAT(std::string(MetricsLog::Open(link, bytes).status().message()),
                HasSubstr("should be a regular file, and no link"));
  }
  EXPECT_EQ(*ReadFile(mine), "mine\n");
  const std::string pipe = temporary.File("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(MetricsLog::Open(pipe, 0).ok());  // instead of waiting
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  EXPECT_THAT(std::string(MetricsLog::Open(pipe, 0).status().message()),
              HasSubstr("should be a regular file"));
  close(reader);
}

TEST(MetricsLogTest, PutsItsNameAndItsLinesOnDisk) {
  const TemporaryDirectory temporary;
  RecordedOperations operations(temporary.path());
  const ScopedFileOperations scope(&operations);
  auto log = MetricsLog::Open(temporary.File("metrics.jsonl"), 0);
  ASSERT_TRUE(log.ok());
  EXPECT_THAT(operations.calls, testing::ElementsAre("sync ."));
  ASSERT_TRUE(log->Write({{"step", 1}}).ok());
  ASSERT_TRUE(log->Sync().ok());
  EXPECT_THAT(operations.calls,
              testing::ElementsAre("sync .", "write metrics.jsonl",
                                   "sync metrics.jsonl"));
}

TEST(MetricsLogTest, SaysWhatItCannotWrite) {
  const TemporaryDirectory temporary;
  RecordedOperations operations(temporary.path());
  const ScopedFileOperations scope(&operations);
  auto log = MetricsLog::Open(temporary.File("metrics.jsonl"), 0);
  ASSERT_TRUE(log.ok());
  operations.failing_call = "write";
  operations.failing_error = EFBIG;
  const absl::Status status = log->Write({{"step", 1}});
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(HasSubstr(temporary.File("metrics.jsonl")),
                             HasSubstr("File too large")));
  EXPECT_EQ(log->size(), 0);
}

// A file system that takes a few bytes at a time, until it is full.
class NearlyFullDisk : public FileOperations {
 public:
  explicit NearlyFullDisk(size_t room) : room_(room) {}

  ssize_t Write(int descriptor, const char* data, size_t size) override {
    if (room_ == 0) {
      errno = ENOSPC;
      return -1;
    }
    const ssize_t written = FileOperations::Write(
        descriptor, data, std::min({size, size_t{3}, room_}));
    room_ -= static_cast<size_t>(std::max<ssize_t>(written, 0));
    return written;
  }

 private:
  size_t room_;
};

TEST(MetricsLogTest, WritesWhatAShortWriteLeaves) {
  const TemporaryDirectory temporary;
  NearlyFullDisk disk(/*room=*/11 + 5);
  const ScopedFileOperations scope(&disk);
  const std::string path = temporary.File("metrics.jsonl");
  auto log = MetricsLog::Open(path, 0);
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE(log->Write({{"step", 1}}).ok());
  EXPECT_EQ(*ReadFile(path), "{\"step\":1}\n");
  EXPECT_EQ(log->size(), 11);
  const absl::Status status = log->Write({{"step", 2}});
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("No space left on device"));
  EXPECT_EQ(log->size(), 11);
}

TEST(MetricsLogTest, SaysWhatItCannotOpen) {
  EXPECT_THAT(MetricsLog::Open("/nowhere/metrics.jsonl", 0).status().message(),
              HasSubstr("/nowhere/metrics.jsonl"));
}

}  // namespace
}  // namespace etc
