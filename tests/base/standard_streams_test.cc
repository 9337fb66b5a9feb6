// Tests printing to readers that stop, leave or cannot be written to, and to
// descriptors that were closed when the program began (in child processes,
// which say by their exit code what they saw).

#include "base/standard_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <ostream>
#include <string>
#include <thread>

namespace etc {
namespace {

using Buffering = DescriptorBuffer::Buffering;

constexpr size_t kMoreThanAPipe = size_t{1} << 20;

// The two ends of a pipe.
struct Pipe {
  Pipe() {
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    signal(SIGPIPE, SIG_IGN);
  }
  ~Pipe() {
    close(ends[0]);
    close(ends[1]);
  }

  std::array<int, 2> ends = {};
};

bool IsNeverStopped() { return false; }

TEST(StandardStreamsTest, WriteAllToASlowReader) {
  for (const Buffering buffering : {Buffering::kNone, Buffering::kFull}) {
    Pipe pipe;
    std::string expected;
    for (int i = 0; expected.size() < kMoreThanAPipe; ++i) {
      expected += std::to_string(i);
    }
    std::string found;
    std::thread reader([&] {
      std::array<char, 1000> bytes;
      ssize_t count = 0;
      while (found.size() < expected.size() &&
             (count = read(pipe.ends[0], bytes.data(), bytes.size())) > 0) {
        found.append(bytes.data(), static_cast<size_t>(count));
      }
    });
    DescriptorBuffer buffer(pipe.ends[1], buffering, IsNeverStopped);
    std::ostream stream(&buffer);
    constexpr size_t kPieces = 1000;
    for (size_t i = 0; i < kPieces; ++i) {
      stream << expected[i];
    }
    stream << expected.substr(kPieces) << std::flush;
    reader.join();
    EXPECT_TRUE(found == expected) << found.size() << " bytes";
    EXPECT_EQ(buffer.error(), 0);
  }
}

TEST(StandardStreamsTest, DropWhatNobodyReadsOnceTheProgramIsToStop) {
  Pipe pipe;
  int asked = 0;
  // A signal that comes while the text is being written.
  DescriptorBuffer buffer(pipe.ends[1], Buffering::kNone,
                          [&] { return ++asked > 3; });
  std::ostream stream(&buffer);
  stream << std::string(kMoreThanAPipe, 'a') << std::flush;
  EXPECT_GT(asked, 3);
  EXPECT_EQ(buffer.error(), EAGAIN);
  // Now without waiting, but not for good.
  const int before = asked;
  stream << "dropped" << std::flush;
  EXPECT_EQ(asked, before + 1);
  std::array<char, 65536> bytes;
  EXPECT_GT(read(pipe.ends[0], bytes.data(), bytes.size()), 0);
  stream << "the end" << std::flush;
  std::string left;
  fcntl(pipe.ends[0], F_SETFL, O_NONBLOCK);
  for (ssize_t count = 0;
       (count = read(pipe.ends[0], bytes.data(), bytes.size())) > 0;) {
    left.append(bytes.data(), static_cast<size_t>(count));
  }
  EXPECT_EQ(left, "the end");
}

TEST(StandardStreamsTest, SayWhatCouldNotBeWritten) {
  for (const Buffering buffering : {Buffering::kNone, Buffering::kFull}) {
    const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    DescriptorBuffer buffer(full, buffering, IsNeverStopped);
    std::ostream stream(&buffer);
    stream << "text" << std::flush;
    EXPECT_EQ(buffer.error(), ENOSPC);
    EXPECT_TRUE(stream.good()) << "later text may find room";
    close(full);
  }
  Pipe pipe;
  close(pipe.ends[0]);
  DescriptorBuffer buffer(pipe.ends[1], Buffering::kNone, IsNeverStopped);
  std::ostream(&buffer) << "text";
  EXPECT_EQ(buffer.error(), EPIPE);
}

TEST(StandardStreamsTest, RememberThatTextIsMissing) {
  const int descriptor = open("/dev/full", O_WRONLY | O_CLOEXEC);
  DescriptorBuffer buffer(descriptor, Buffering::kNone, IsNeverStopped);
  std::ostream stream(&buffer);
  stream << "lost" << std::flush;
  ASSERT_EQ(buffer.error(), ENOSPC);
  // Now there is room.
  const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  ASSERT_EQ(dup2(null, descriptor), descriptor);
  stream << "written" << std::flush;
  EXPECT_EQ(buffer.error(), ENOSPC);
  close(null);
  close(descriptor);
}

// A counter that has room for a 1, so that poll() finds it writable, but not
// for the text, which is a larger number.
TEST(StandardStreamsTest, WaitWhereAWriteWouldBlock) {
  const int counter = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  ASSERT_GE(counter, 0);
  const uint64_t almost_full = UINT64_MAX - 2;
  ASSERT_EQ(write(counter, &almost_full, sizeof(almost_full)), 8);
  uint64_t before = 0;
  std::thread reader([&] {
    // Meanwhile the text is tried.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(read(counter, &before, sizeof(before)), 8);
  });
  DescriptorBuffer buffer(counter, Buffering::kNone, IsNeverStopped);
  std::ostream(&buffer) << "the text" << std::flush;
  reader.join();
  EXPECT_EQ(buffer.error(), 0);
  EXPECT_EQ(before, almost_full);
  std::array<char, 8> text = {};
  EXPECT_EQ(read(counter, text.data(), text.size()), 8);
  EXPECT_EQ(std::memcmp(text.data(), "the text", text.size()), 0);
  close(counter);
}

// Runs `work` in a child process and returns its result.
int InChild(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(work());
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(StandardStreamsTest, OpenDescriptorsThatAreClosed) {
  for (int closed = 0; closed < 8; ++closed) {
    EXPECT_EQ(InChild([closed] {
                for (int descriptor = 0; descriptor < 3; ++descriptor) {
                  if ((closed >> descriptor & 1) != 0) {
                    close(descriptor);
                  }
                }
                OpenStandardDescriptors();
                for (int descriptor = 0; descriptor < 3; ++descriptor) {
                  if (fcntl(descriptor, F_GETFD) < 0) {
                    return 1;
                  }
                  if ((closed >> descriptor & 1) != 0 &&
                      write(descriptor, "x", 1) != 1) {
                    return 2;
                  }
                }
                return open("/dev/null", O_RDONLY) > 2 ? 0 : 3;
              }),
              0)
        << closed;
  }
}

}  // namespace
}  // namespace etc
