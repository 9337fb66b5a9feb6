// A signal may come at any time, and its handler writes below the stack
// pointer. oneDNN's own kernels let that point into the heap for most of a
// product (oneDNN issue 4845), so handlers must not run then. A timer sends
// some thousand signals during products as large as those of real models; each
// handler notes whether it runs on the stack of its thread.

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <torch/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/matrix_product.h"

namespace etc {
namespace {

// The stack of the thread that the test runs on.
struct Stack {
  uintptr_t begin = 0;
  uintptr_t end = 0;
};
Stack stack;
volatile sig_atomic_t handlers_on_stack = 0;
volatile sig_atomic_t handlers_elsewhere = 0;

Stack StackOfThisThread() {
  pthread_attr_t attributes;
  EXPECT_EQ(pthread_getattr_np(pthread_self(), &attributes), 0);
  void* begin = nullptr;
  size_t size = 0;
  EXPECT_EQ(pthread_attr_getstack(&attributes, &begin, &size), 0);
  pthread_attr_destroy(&attributes);
  const auto first = reinterpret_cast<uintptr_t>(begin);
  return {.begin = first, .end = first + size};
}

void NoteWhere(int /*signal*/) {
  const int local = 0;
  const auto here = reinterpret_cast<uintptr_t>(&local);
  if (stack.begin <= here && here < stack.end) {
    handlers_on_stack = handlers_on_stack + 1;
  } else {
    handlers_elsewhere = handlers_elsewhere + 1;
  }
}

// Sends SIGALRM every 100 microseconds while it lives.
class Alarms {
 public:
  Alarms() {
    struct sigaction action = {};
    action.sa_handler = NoteWhere;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, &before_);
    SetTimer(/*microseconds=*/100);
  }
  ~Alarms() {
    SetTimer(0);
    sigaction(SIGALRM, &before_, nullptr);
  }
  Alarms(const Alarms&) = delete;
  Alarms& operator=(const Alarms&) = delete;

 private:
  static void SetTimer(suseconds_t microseconds) {
    const itimerval interval = {.it_interval = {.tv_usec = microseconds},
                                .it_value = {.tv_usec = microseconds}};
    EXPECT_EQ(setitimer(ITIMER_REAL, &interval, nullptr), 0);
  }

  struct sigaction before_ = {};
};

TEST(LinearSignalsTest, HandlersRunOnTheStack) {
  using Clock = std::chrono::steady_clock;
  at::set_num_threads(1);
  stack = StackOfThisThread();
  torch::manual_seed(1);
  // With a depth above 2048 AVX2's kernels use the heap, too.
  const torch::Tensor a = torch::randn({256, 3072});
  const torch::Tensor b = torch::randn({3072, 768});
  const torch::Tensor expected = MatrixProduct(a, b);
  {
    const Alarms alarms;
    const Clock::time_point end = Clock::now() + std::chrono::milliseconds(500);
    do {
      ASSERT_TRUE(torch::equal(MatrixProduct(a, b), expected));
    } while (Clock::now() < end || handlers_on_stack + handlers_elsewhere == 0);
  }
  EXPECT_GT(handlers_on_stack, 0);
  EXPECT_EQ(handlers_elsewhere, 0);
}

}  // namespace
}  // namespace etc
