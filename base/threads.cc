#include "base/threads.h"

#include <ATen/Parallel.h>

#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/parallel_tasks.h"

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

absl::StatusOr<int64_t> SetThreads(int64_t threads, const std::string& field) {
  if (threads < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " should be at least 0, but is ", threads));
  }
  const int64_t wanted = threads > 0 ? threads : DefaultThreads();
  if (wanted > kMostThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat(threads > 0 ? field : "OMP_NUM_THREADS",
                     " should be at most ", kMostThreads, ", but is ", wanted));
  }
  // OpenMP starts wanted - 1 threads, and so does a pool of LibTorch's own,
  // which at::set_num_threads fills.
  if (const absl::Status start = CheckThreadsStart(2 * (wanted - 1));
      !start.ok()) {
    return absl::Status(
        start.code(),
        absl::StrCat(field, " is ", wanted,
                     threads > 0
                         ? ""
                         : ", by OMP_NUM_THREADS or the cores of this process",
                     ", for which ", start.message()));
  }
  at::set_num_threads(static_cast<int>(wanted));
  const int64_t count = at::get_num_threads();
  // OpenMP's start with the first loop: now, while they can.
  ForEachTask(count, /*floats=*/1, [](int64_t, float*) {});
  return count;
}

std::string ThreadsField(const std::optional<int64_t>& option) {
  return option.has_value() ? "--threads" : "train.threads";
}

std::string ThreadsWarning(int64_t threads, const std::string& field,
                           int64_t cpus) {
  const int64_t wanted = threads > 0 ? threads : DefaultThreads();
  return wanted <= cpus
             ? ""
             : absl::StrCat(threads > 0 ? field : "OMP_NUM_THREADS", " is ",
                            wanted, ", but this process may use ",
                            Counted(cpus, "core"),
                            ": more threads than cores are slower");
}

}  // namespace etc
