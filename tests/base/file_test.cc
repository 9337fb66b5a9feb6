// Reading and replacing files: what is promised when something is in the way,
// when a writer gives up, and when it is killed in the middle.

#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <random>
#include <thread>

#include "base/file_operations.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using testing::HasSubstr;

std::vector<std::string> NamesIn(const std::string& path) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

// Codes that trainings give another meaning are none of the file system's.
TEST(ErrnoStatusTest, IsNoDivergenceAndNoStop) {
  for (const int error : {ESTALE, EDEADLK, ECANCELED}) {
    const absl::Status status = ErrnoStatus(error, "read", "f");
    EXPECT_EQ(status.code(), absl::StatusCode::kUnknown) << status;
    EXPECT_THAT(status.message(), HasSubstr("cannot read f: "));
  }
  EXPECT_TRUE(absl::IsNotFound(ErrnoStatus(ENOENT, "read", "f")));
}

TEST(RandomAccessFileTest, ReadsAnyRange) {
  TemporaryDirectory directory;
  const auto file =
      RandomAccessFile::Open(directory.Write("f", std::string("01\0"
                                                              "3456789",
                                                              10)));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->size(), 10u);
  EXPECT_EQ(*file->Read(0, 10), std::string("01\0"
                                            "3456789",
                                            10));
  EXPECT_EQ(*file->Read(4, 3), "456");
  EXPECT_EQ(*file->Read(10, 0), "");
}

TEST(RandomAccessFileTest, RefusesRangesBeyondTheEndWithoutWrapping) {
  TemporaryDirectory directory;
  const auto file = RandomAccessFile::Open(directory.Write("f", "0123"));
  ASSERT_TRUE(file.ok()) << file.status();
  const uint64_t most = ~uint64_t{0};
  const std::vector<std::pair<uint64_t, uint64_t>> ranges = {
      {0, 5}, {4, 1}, {5, 0}, {1, most}, {most, 1}, {most, most}};
  for (const auto& [offset, length] : ranges) {
    const absl::Status status = file->Read(offset, length).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange)
        << offset << " " << length;
    EXPECT_THAT(status.message(), HasSubstr(file->path()));
  }
}

TEST(RandomAccessFileTest, SaysWhatCannotBeOpened) {
  TemporaryDirectory directory;
  const absl::Status missing =
      RandomAccessFile::Open(directory.File("missing")).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(missing.message(), HasSubstr(directory.File("missing")));

  const absl::Status folder = RandomAccessFile::Open(directory.path()).status();
  EXPECT_EQ(folder.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(folder.message(), HasSubstr("is a directory"));

  ASSERT_EQ(mkfifo(directory.File("pipe").c_str(), 0600), 0);
  EXPECT_EQ(RandomAccessFile::Open(directory.File("pipe")).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(RandomAccessFileTest, NoticesThatTheFileHasShrunk) {
  TemporaryDirectory directory;
  const std::string path = directory.Write("f", "0123456789");
  const auto file = RandomAccessFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  std::filesystem::resize_file(path, 4);
  const absl::Status status = file->Read(2, 8).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("ends at byte 4"));
}

TEST(RandomAccessFileTest, MovesItsDescriptor) {
  TemporaryDirectory directory;
  auto first = RandomAccessFile::Open(directory.Write("a", "first"));
  auto second = RandomAccessFile::Open(directory.Write("b", "second"));
  ASSERT_TRUE(first.ok() && second.ok());
  *first = *std::move(second);
  EXPECT_EQ(*first->Read(0, 6), "second");
  const RandomAccessFile third = *std::move(first);
  EXPECT_EQ(*third.Read(0, 6), "second");
}

TEST(ReadFileTest, ReadsTheWholeAndRefusesMoreThanAllowed) {
  TemporaryDirectory directory;
  const std::string path = directory.Write("f", "12345");
  EXPECT_EQ(*ReadFile(path), "12345");
  EXPECT_EQ(*ReadFile(path, 5), "12345");
  const absl::Status status = ReadFile(path, 4).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("at most 4 bytes, but has 5"));
}

TEST(WriteFileAtomicallyTest, CreatesAndReplaces) {
  TemporaryDirectory directory;
  const std::string path = directory.File("f");
  ASSERT_TRUE(WriteFileAtomically(path, "old").ok());
  EXPECT_EQ(*ReadFile(path), "old");
  ASSERT_TRUE(WriteFileAtomically(path, "new").ok());
  EXPECT_EQ(*ReadFile(path), "new");
  EXPECT_THAT(NamesIn(directory.path()), testing::ElementsAre("f"));
}

TEST(WriteFileAtomicallyTest, GivesTheFileTheUsualPermissions) {
  TemporaryDirectory directory;
  const mode_t mask = umask(0027);
  const absl::Status written = WriteFileAtomically(directory.File("f"), "x");
  umask(mask);
  ASSERT_TRUE(written.ok()) << written;
  struct stat status = {};
  ASSERT_EQ(stat(directory.File("f").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST(WriteFileAtomicallyTest, WritesPiecesInOrder) {
  TemporaryDirectory directory;
  const std::string path = directory.File("f");
  const absl::Status status =
      WriteFileAtomically(path, [](const WriteFunction& write) {
        for (const char* piece : {"one ", "", "two ", "three"}) {
          const absl::Status written = write(piece);
          if (!written.ok()) {
            return written;
          }
        }
        return absl::OkStatus();
      });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(*ReadFile(path), "one two three");
}

// Each write is interrupted by a signal once, then takes three bytes.
class InterruptedWrites : public FileOperations {
 public:
  ssize_t Write(int descriptor, const char* data, size_t size) override {
    if (++calls % 2 == 1) {
      errno = EINTR;
      return -1;
    }
    return FileOperations::Write(descriptor, data, std::min<size_t>(size, 3));
  }

  int calls = 0;
};

TEST(WriteFileAtomicallyTest, GoesOnAfterASignal) {
  TemporaryDirectory directory;
  const std::string path = directory.File("f");
  InterruptedWrites operations;
  const ScopedFileOperations scope(&operations);
  const absl::Status status = WriteFileAtomically(path, "0123456789");
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(*ReadFile(path), "0123456789");
  EXPECT_EQ(operations.calls, 8);
}

TEST(WriteFileAtomicallyTest, LeavesTheOldFileWhenTheProducerFails) {
  TemporaryDirectory directory;
  const std::string path = directory.Write("f", "old");
  const absl::Status status =
      WriteFileAtomically(path, [](const WriteFunction& write) {
        EXPECT_TRUE(write("half of the ne").ok());
        return absl::AbortedError("no more");
      });
  EXPECT_EQ(status, absl::AbortedError("no more"));
  EXPECT_EQ(*ReadFile(path), "old");
  EXPECT_THAT(NamesIn(directory.path()), testing::ElementsAre("f"));
}

TEST(WriteFileAtomicallyTest, RefusesWhatIsNoRegularFile) {
  TemporaryDirectory directory;
  EXPECT_EQ(WriteFileAtomically(directory.path(), "x").code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(WriteFileAtomically("/dev/null", "x").code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  const absl::Status status =
      WriteFileAtomically(directory.File("no/such/folder"), "x");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr(directory.File("no/such/folder")));
}

// A child replaces the file over and over, each time by 1 MiB of one letter; it
// is killed at random moments. Whatever is found then must be of one piece.
TEST(WriteFileAtomicallyTest, AKilledWriterLeavesAWholeFile) {
  TemporaryDirectory directory;
  const std::string path = directory.File("f");
  constexpr size_t kSize = 1 << 20;
  ASSERT_TRUE(WriteFileAtomically(path, std::string(kSize, 'a')).ok());
  std::mt19937 random(20);
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (char letter = 'a';; letter = letter == 'z' ? 'a' : letter + 1) {
        if (!WriteFileAtomically(path, std::string(kSize, letter)).ok()) {
          _exit(1);
        }
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(
        std::uniform_int_distribution<int>(500, 40000)(random)));
    ASSERT_EQ(kill(child, SIGKILL), 0);
    int exit_status = 0;
    ASSERT_EQ(waitpid(child, &exit_status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(exit_status));
    const auto contents = ReadFile(path);
    ASSERT_TRUE(contents.ok()) << contents.status();
    ASSERT_EQ(contents->size(), kSize);
    EXPECT_EQ(contents->find_first_not_of((*contents)[0]), std::string::npos);
  }
}

TEST(CreateDirectoriesTest, CreatesParentsAndAcceptsWhatIsThere) {
  TemporaryDirectory directory;
  EXPECT_TRUE(CreateDirectories(directory.File("a/b/c")).ok());
  EXPECT_TRUE(CreateDirectories(directory.File("a/b/c")).ok());
  EXPECT_TRUE(std::filesystem::is_directory(directory.File("a/b/c")));
  const absl::Status status =
      CreateDirectories(directory.Write("file", "") + "/below");
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("file/below"));
}

// Another process makes each directory just before this one.
class FasterProcess : public FileOperations {
 public:
  int MakeDirectory(const std::string& path) override {
    EXPECT_EQ(FileOperations::MakeDirectory(path), 0);
    return FileOperations::MakeDirectory(path);
  }
};

TEST(CreateDirectoriesTest, AcceptsWhatAnotherProcessMadeMeanwhile) {
  TemporaryDirectory directory;
  FasterProcess operations;
  const ScopedFileOperations scope(&operations);
  const absl::Status status = CreateDirectories(directory.File("a/b"));
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(std::filesystem::is_directory(directory.File("a/b")));
}

}  // namespace
}  // namespace etc
