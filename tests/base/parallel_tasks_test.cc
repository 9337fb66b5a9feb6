// ForEachTask runs every task once, on as many threads as were asked for: the
// tasks of one test meet at a barrier, which they can only if each has a thread
// (they give up after 300 s, so that a failure does not hang).

#include "base/parallel_tasks.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace etc {
namespace {

TEST(ParallelTasksTest, RunsEveryTaskOnce) {
  at::set_num_threads(3);
  for (const int64_t tasks : {0, 1, 2, 3, 100}) {
    std::vector<std::atomic<int>> runs(static_cast<size_t>(tasks));
    ForEachTask(tasks, 5, [&](int64_t task, float* workspace) {
      workspace[4] = 1.0f;
      ++runs[static_cast<size_t>(task)];
    });
    for (const std::atomic<int>& count : runs) {
      EXPECT_EQ(count, 1);
    }
  }
}

TEST(ParallelTasksTest, UsesAsManyThreadsAsThereAre) {
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    std::atomic<int> arrived = 0;
    std::atomic<bool> all_came = true;
    ForEachTask(threads, 1, [&](int64_t, float*) {
      ++arrived;
      const auto deadline =
          std::chrono::steady_clock::now() + std::chrono::seconds(300);
      while (arrived < threads) {
        if (std::chrono::steady_clock::now() > deadline) {
          all_came = false;
          return;
        }
        std::this_thread::yield();
      }
    });
    EXPECT_TRUE(all_came) << threads;
  }
}

// One thread for each task is no setting for what comes behind.
TEST(ParallelTasksTest, LeaveTheNumberOfThreadsAsItWas) {
  for (const int threads : {1, 3}) {
    at::set_num_threads(threads);
    for (const int64_t tasks : {0, 1, 2, 100}) {
      ForEachTask(tasks, 1, [](int64_t, float*) {});
      EXPECT_EQ(at::get_num_threads(), threads) << tasks;
    }
    OnOneThread([] { EXPECT_EQ(at::get_num_threads(), 1); });
    EXPECT_EQ(at::get_num_threads(), threads);
  }
}

}  // namespace
}  // namespace etc
