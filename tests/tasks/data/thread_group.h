#ifndef ETC_TESTS_TASKS_DATA_THREAD_GROUP_H_
#define ETC_TESTS_TASKS_DATA_THREAD_GROUP_H_

#include <barrier>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tasks/data/example_source.h"

namespace etc {

// Runs `work` in `size` threads, which stand for the ranks that share a data
// set.
inline void RunAsGroup(int64_t size,
                       const std::function<void(const DataGroup&)>& work) {
  std::barrier barrier(size);
  std::vector<std::string> bytes(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      work({.rank = rank, .size = size, .gather = [&, rank](const auto& mine) {
              bytes[static_cast<size_t>(rank)] = mine;
              barrier.arrive_and_wait();
              const std::vector<std::string> all = bytes;
              barrier.arrive_and_wait();
              return all;
            }});
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace etc

#endif  // ETC_TESTS_TASKS_DATA_THREAD_GROUP_H_
