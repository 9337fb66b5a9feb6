#ifndef ETC_TESTS_TASKS_DISTRIBUTED_FORKED_PROCESSES_H_
#define ETC_TESTS_TASKS_DISTRIBUTED_FORKED_PROCESSES_H_

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <new>
#include <vector>

#include "tasks/distributed/process_place.h"

namespace etc {

// A socket at a port of the loopback that nobody had; sets `*port`.
inline int BindToFreePort(int64_t* port) {
  const int descriptor = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  EXPECT_EQ(bind(descriptor, reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(
      getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &length),
      0);
  *port = ntohs(address.sin_port);
  return descriptor;
}

// A port of the loopback that nobody has.
inline int64_t FreePort() {
  int64_t port = 0;
  close(BindToFreePort(&port));
  return port;
}

// Seconds that a test may hang before it is ended: longer than anything takes
// on a machine that has much else to do.
inline constexpr unsigned kSecondsToHang = 900;

// A number that processes share which are forked while it lives: what they wait
// for instead of a time.
class SharedCount {
 public:
  SharedCount()
      : memory_(mmap(nullptr, sizeof(std::atomic<int64_t>),
                     PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                     0)),
        count_(new (memory_) std::atomic<int64_t>(0)) {}
  ~SharedCount() { munmap(memory_, sizeof(std::atomic<int64_t>)); }
  SharedCount(const SharedCount&) = delete;
  SharedCount& operator=(const SharedCount&) = delete;

  void Add() { ++*count_; }
  void Set(int64_t count) { *count_ = count; }
  int64_t Get() const { return *count_; }
  // The alarm of RunProcesses ends who waits in vain.
  void Await(int64_t count) const {
    while (*count_ < count) {
      usleep(1000);
    }
  }

 private:
  void* const memory_;
  std::atomic<int64_t>* const count_;
};

inline ProcessPlace PlaceOf(int64_t rank, int64_t world_size, int64_t port) {
  return {.rank = rank,
          .world_size = world_size,
          .local_rank = rank,
          .master_address = "127.0.0.1",
          .master_port = port};
}

// Runs `work` in `count` processes of this program, which have no threads yet.
// Failures of EXPECT in one of them are printed, and fail the test. Returns how
// each ended, as waitpid says it.
inline std::vector<int> RunProcesses(
    int64_t count, const std::function<void(const ProcessPlace&)>& work) {
  const int64_t port = FreePort();
  std::vector<pid_t> children;
  std::fflush(nullptr);  // or each process would write it
  for (int64_t rank = 0; rank < count; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(kSecondsToHang);
      work(PlaceOf(rank, count, port));
      std::fflush(nullptr);
      _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    EXPECT_GT(child, 0);
    children.push_back(child);
  }
  std::vector<int> ends;
  for (const pid_t child : children) {
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    ends.push_back(status);
  }
  return ends;
}

// The same where all of them are to end well.
inline void ExpectProcesses(
    int64_t count, const std::function<void(const ProcessPlace&)>& work) {
  for (const int status : RunProcesses(count, work)) {
    EXPECT_EQ(status, 0);
  }
}

}  // namespace etc

#endif  // ETC_TESTS_TASKS_DISTRIBUTED_FORKED_PROCESSES_H_
