#ifndef ETC_TASKS_DATA_EXAMPLE_STREAM_H_
#define ETC_TASKS_DATA_EXAMPLE_STREAM_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/data/example_source.h"

namespace etc {

struct ExampleStreamOptions {
  // Threads that make examples; 0: the calling thread does, when asked.
  int64_t workers = 1;
  // Records that are made before they are asked for, at most as many as the
  // source has; and the memory that their examples may take, which is exceeded
  // by as many records as there are workers.
  int64_t prefetch = 64;
  int64_t max_prefetch_bytes = std::numeric_limits<int64_t>::max();
  // True ends the waiting for examples. May be null.
  const std::atomic<bool>* stop = nullptr;
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
  // Waits for the records in work; those not begun are never made. Needs no
  // memory.
  ~ExampleStream();
  ExampleStream(const ExampleStream&) = delete;
  ExampleStream& operator=(const ExampleStream&) = delete;

  struct Made {
    int64_t record;
    // What the source says, or
    //   kCancelled          `options.stop` is true
    //   kResourceExhausted  the threads could not be started
    absl::StatusOr<Examples> examples;
  };
  // The next record of the sequence; nothing at the end. What the source threw
  // in a worker is thrown here.
  std::optional<Made> Next();

  // Seconds that Next() spent waiting or making.
  double seconds_waited() const { return seconds_waited_; }

 private:
  // A record that was asked for, and what became of it.
  struct Slot {
    int64_t record = 0;
    absl::StatusOr<Examples> examples;
    std::exception_ptr thrown;
    int64_t bytes = 0;
    bool is_made = false;
  };

  void StartWorkers();
  void StopWorkers();
  void MakeExamplesUntilStopped();
  void Make(Slot* slot) const;
  // Whether a worker may begin another record; with `mutex_` held.
  bool MayBegin() const;
  bool IsStopped() const;
  // Asks the sequence for records until as many as may be are ahead.
  void Request();
  // Waits until the first slot is made; false if the stream was stopped before.
  bool WaitForFirst(std::unique_lock<std::mutex>* lock);

  const ExampleSource* const source_;
  const Sequence sequence_;
  const ExampleStreamOptions options_;
  double seconds_waited_ = 0;
  bool at_end_ = false;
  absl::Status started_;

  std::mutex mutex_;
  std::condition_variable may_begin_;
  std::condition_variable is_made_;
  // All guarded by mutex_, but for a slot that a worker has begun and not made:
  // that is the worker's.
  std::deque<Slot> slots_;        // in the order of the sequence
  size_t begun_ = 0;              // the first of slots_
  int64_t prefetched_bytes_ = 0;  // of slots that are made
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace etc

#endif  // ETC_TASKS_DATA_EXAMPLE_STREAM_H_
