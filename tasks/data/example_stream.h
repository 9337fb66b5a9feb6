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
  // Records that are prefetched: made before Next() asks for them. At most as
  // many as the source has. `max_prefetch_bytes` bounds the memory of their
  // examples; it is exceeded by at most one record for each worker.
  int64_t prefetch = 64;
  int64_t max_prefetch_bytes = std::numeric_limits<int64_t>::max();
  // True ends the waiting for examples. May be null.
  const std::atomic<bool>* stop = nullptr;
};

// Makes the examples of a sequence of records in worker threads, which
// prefetch, and returns them in the order of the sequence, whichever thread
// finishes first.
class ExampleStream {
 public:
  // The next record to make, or nothing: there is none, or none yet. Called by
  // the thread that calls Next() or Prefetch().
  using Sequence = std::function<std::optional<RecordRequest>()>;

  // `source` must outlive the stream.
  ExampleStream(const ExampleSource* source, Sequence sequence,
                ExampleStreamOptions options);
  // Waits for the records that workers have begun; no others are made.
  // Allocates no memory.
  ~ExampleStream();
  ExampleStream(const ExampleStream&) = delete;
  ExampleStream& operator=(const ExampleStream&) = delete;

  struct Made {
    int64_t record;
    // The result of ExampleSource::Make, or
    //   kCancelled          `options.stop` is true
    //   kResourceExhausted  the threads could not be started
    absl::StatusOr<Examples> examples;
  };
  // The next record of the sequence, if it has one. Rethrows what the source
  // threw in a worker.
  std::optional<Made> Next();

  // Has the workers begin what the sequence has by now, as Next() does.
  void Prefetch() { FillSlots(); }

  // Seconds that Next() spent waiting or making.
  double seconds_waited() const { return seconds_waited_; }

 private:
  // A request, and its examples once they are made.
  struct Slot {
    RecordRequest request;
    absl::StatusOr<Examples> examples;
    std::exception_ptr thrown;
    int64_t bytes = 0;
    bool is_made = false;
  };

  void StartWorkers();
  void StopWorkers();
  void MakeExamplesUntilStopped();
  void Make(Slot* slot) const;
  // Returns true if a worker may begin another record; with `mutex_` held.
  bool MayBegin() const;
  bool IsStopped() const;
  // Adds slots for records of the sequence until as many as allowed wait.
  void FillSlots();
  // Waits until the first slot is made; false if the stream was stopped before.
  bool WaitForFirst(std::unique_lock<std::mutex>* lock);

  const ExampleSource* const source_;
  const Sequence sequence_;
  const ExampleStreamOptions options_;
  double seconds_waited_ = 0;
  absl::Status started_;

  std::mutex mutex_;
  std::condition_variable may_begin_;
  std::condition_variable is_made_;
  // All guarded by mutex_, except that a slot which a worker has begun and not
  // finished is accessed by that worker alone.
  std::deque<Slot> slots_;        // in the order of the sequence
  size_t begun_ = 0;              // the first of slots_
  int64_t prefetched_bytes_ = 0;  // of slots that are made
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace etc

#endif  // ETC_TASKS_DATA_EXAMPLE_STREAM_H_
