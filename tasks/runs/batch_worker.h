#ifndef ETC_TASKS_RUNS_BATCH_WORKER_H_
#define ETC_TASKS_RUNS_BATCH_WORKER_H_

#include <torch/types.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/data/example_source.h"
#include "tasks/train/task_model.h"

namespace etc {

// Runs a model on examples that any threads submit, in one thread of its own:
// OpenMP keeps a pool of threads for each thread that begins loops, so a model
// that ran in its callers' would have as many pools as there are callers.
//
// Examples that wait together share a batch if the shortest is at least half as
// long as the longest; the one that waits longest is always in the next batch.
class BatchWorker {
 public:
  struct Options {
    // Examples.
    int64_t batch_size = 8;
    // CPU threads of the model, as of SetThreads.
    int64_t threads = 0;
    // The setting's name in messages.
    std::string threads_field = "threads";
    // The device of the model.
    torch::Device device = torch::kCPU;
  };
  // The tensors [1, ...] of one example, on the CPU.
  using Logits = std::vector<torch::Tensor>;

  // The examples of one record. Waits for their logits.
  class Request {
   public:
    // Blocks until all examples have run, and returns their logits in order.
    // Rethrows what the model threw. Called once.
    //   kAborted            a logit is infinite or not a number
    //   kResourceExhausted  out of memory
    absl::StatusOr<std::vector<Logits>> Wait();

   private:
    friend class BatchWorker;
    explicit Request(BatchWorker* worker) : worker_(worker) {}

    BatchWorker* const worker_;
    // Guarded by worker_->mutex_.
    size_t missing_ = 0;
    std::vector<Logits> logits_;
    absl::Status status_;
    std::exception_ptr thrown_;
  };

  // Starts the thread, and those of the model.
  //   kInvalidArgument    as of SetThreads
  //   kResourceExhausted  the system starts fewer
  static absl::StatusOr<std::unique_ptr<BatchWorker>> Start(TaskModel model,
                                                            Options options);
  // Waits for the batch that runs; requests must have ended, or be waited for
  // by nobody.
  ~BatchWorker();
  BatchWorker(const BatchWorker&) = delete;
  BatchWorker& operator=(const BatchWorker&) = delete;

  // Queues the examples of several records at once. The worker must outlive the
  // requests. Thread-safe.
  std::vector<std::shared_ptr<Request>> Submit(
      const std::vector<Examples>& records);

 private:
  // An example that waits.
  struct Item {
    std::shared_ptr<Request> request;
    size_t index = 0;  // in the request
    std::shared_ptr<const Example> example;
  };
  // The logits of an example, or the reason why there are none.
  struct Answered {
    Logits logits;
    absl::Status status;
  };
  BatchWorker(TaskModel model, Options options);

  // Long and global tokens.
  static int64_t LengthOf(const Example& example);

  // Notes in `started` the outcome of SetThreads, which the thread calls for
  // itself, and takes batches.
  void Run(std::promise<absl::Status> started);
  // Waits for examples; none once the worker stops.
  std::vector<Item> TakeBatch();
  // Takes the example that waits longest and those of the nearest lengths; with
  // `mutex_` held.
  std::vector<Item> TakeNearest();
  // Computes the batch, and gives each request its logits, the reason why there
  // are none, or what was thrown.
  void RunBatch(const std::vector<Item>& batch);
  std::vector<Answered> Compute(const std::vector<Item>& batch);
  // Returns the logits of each example.
  absl::StatusOr<std::vector<Logits>> Forward(const std::vector<Item>& batch);

  TaskModel model_;
  const Options options_;

  std::mutex mutex_;
  std::condition_variable is_waiting_;
  std::condition_variable is_answered_;
  // All guarded by mutex_.
  bool stopped_ = false;
  uint64_t next_ticket_ = 0;
  std::map<uint64_t, Item> waiting_;                  // by ticket
  std::set<std::pair<int64_t, uint64_t>> by_length_;  // lengths and tickets
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace etc

#endif  // ETC_TASKS_RUNS_BATCH_WORKER_H_
