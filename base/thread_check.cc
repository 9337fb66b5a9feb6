#include "base/thread_check.h"

#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/counted.h"

namespace etc {

absl::Status CheckThreadsStart(int64_t threads) {
  std::mutex until_all_run;
  std::vector<std::thread> started;
  absl::Status status;
  {
    const std::lock_guard<std::mutex> lock(until_all_run);
    try {
      while (static_cast<int64_t>(started.size()) < threads) {
        started.emplace_back([&until_all_run] {
          const std::lock_guard<std::mutex> ended(until_all_run);
        });
      }
    } catch (const std::system_error& error) {
      status = absl::ResourceExhaustedError(absl::StrCat(
          "only ", started.size(), " of ", Counted(threads, "thread"),
          " could be started: ", error.code().message(),
          " (see ulimit -u, and pids.max of the control group)"));
    }
  }
  for (std::thread& thread : started) {
    thread.join();
  }
  return status;
}

}  // namespace etc
