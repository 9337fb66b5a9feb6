#ifndef ETC_TASKS_DATA_EXAMPLE_STREAM_H_
#define ETC_TASKS_DATA_EXAMPLE_STREAM_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "tasks/data/example_source.h"

namespace etc {

struct ExampleStreamOptions {
  // Threads that make examples; 0: the calling thread does, when asked.
  int64_t workers = 1;
  // Records that are made before they are asked for.
  int64_t ahead = 64;
};

// Makes the examples of a sequence of records in worker threads, ahead of need,
// and hands them out in the order of the sequence, whichever thread is done
// first.
class ExampleStream {
 public:
  // The record after the last one, or nothing at the end. Called by the thread
  // that calls Next().
  using Sequence = std::function<std::optional<int64_t>()>;

  // `source` must outlive the stream.
  ExampleStream(const ExampleSource* source, Sequence sequence,
                ExampleStreamOptions options);
  // Waits for the records in work; those not begun are never made.
  ~ExampleStream();
  ExampleStream(const ExampleStream&) = delete;
  ExampleStream& operator=(const ExampleStream&) = delete;

  struct Made {
    int64_t record;
    absl::StatusOr<Examples> examples;
  };
  // The next record of the sequence; nothing at the end. What the source threw
  // in a worker is thrown here.
  std::optional<Made> Next();

  // Seconds that Next() spent waiting or making.
  double seconds_waited() const { return seconds_waited_; }

 private:
  using Work = std::packaged_task<absl::StatusOr<Examples>()>;
  struct Pending {
    int64_t record;
    std::future<absl::StatusOr<Examples>> examples;
  };

  void Request();
  void MakeExamplesUntilStopped();

  const ExampleSource* const source_;
  const Sequence sequence_;
  const ExampleStreamOptions options_;
  double seconds_waited_ = 0;
  bool at_end_ = false;
  std::deque<Pending> pending_;  // in the order of the sequence

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> work_;  // not begun yet; guarded by mutex_
  bool stopped_ = false;   // guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace etc

#endif  // ETC_TASKS_DATA_EXAMPLE_STREAM_H_
