#ifndef ETC_TASKS_DATA_LOADER_H_
#define ETC_TASKS_DATA_LOADER_H_

#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/data/example_source.h"
#include "tasks/data/example_stream.h"
#include "tasks/data/record_gate.h"

namespace etc {

// Where in the training data a batch begins; everything that the loader does
// next follows from it. The pool that the batch is cut from begins at example
// `example` of the record at place `record` in the order of `epoch`.
struct LoaderPosition {
  int64_t epoch = 0;
  int64_t record = 0;
  int64_t example = 0;
  int64_t batch = 0;  // within the pool

  bool operator==(const LoaderPosition&) const = default;
};

struct TrainingLoaderOptions {
  uint64_t seed = 1;
  int64_t batch_size = 32;
  int64_t micro_batch_size = 1;
  // Batches that are cut from one pool.
  int64_t bucket_batches = 16;
  int64_t workers = 1;
  OnBadRecord on_bad_record = OnBadRecord::kError;
  // Memory for prefetched examples, and for those of a pool.
  int64_t max_prefetch_bytes = std::numeric_limits<int64_t>::max();
  int64_t max_pool_bytes = std::numeric_limits<int64_t>::max();
  // True ends the waiting for examples. May be null.
  const std::atomic<bool>* stop = nullptr;
};

struct TrainingBatch {
  // Of `micro_batch_size` examples each, the last of what is left; shorter
  // examples come first. `batch_size` examples in all.
  std::vector<Examples> micro_batches;
  int64_t epoch = 0;
  // Where the batch after this one begins.
  LoaderPosition next;
};

// Training batches without end. Each epoch has the records in another random
// order, and requests each with the key of RequestInEpoch. Pools of
// bucket_batches * batch_size examples (the last one of what is left) are taken
// from it, sorted by length and cut into batches, which come in random order;
// so a batch holds examples of about the same length. The examples at the end
// of an epoch that fill no batch are left out. All of this follows from the
// seed, the batch size, bucket_batches and the position: not from time, the
// number of workers or the micro-batch size. So a loader that starts at
// `TrainingBatch::next` gives the very batches, with the very examples, that
// the first one would have given.
class TrainingLoader {
 public:
  // `source` must outlive the loader.
  TrainingLoader(const ExampleSource* source, TrainingLoaderOptions options,
                 LoaderPosition start = {});

  //   kInvalidArgument    a bad record, with OnBadRecord::kError
  //   kFailedPrecondition all the data do not fill one batch
  //   kResourceExhausted  a pool takes more than max_pool_bytes
  //   kCancelled          `options.stop` is true; a loader that starts at the
  //                       last batch's `next` goes on
  absl::StatusOr<TrainingBatch> Next();

  // Seconds that Next() waited for examples.
  double seconds_waited() const { return stream_.seconds_waited(); }
  const SkippedRecords& skipped() const { return gate_.skipped(); }

 private:
  RecordRequest NextRequest();
  absl::Status FillPool();
  void CutPool(Examples examples);

  const TrainingLoaderOptions options_;
  const int64_t num_records_;
  RecordGate gate_;

  // The place of the next record that the stream will request.
  LoaderPosition requested_;
  std::vector<int64_t> order_;  // of its epoch; empty: not drawn yet

  // Where the pool begins, and where the one after it does.
  LoaderPosition pool_begin_;
  LoaderPosition pool_end_;
  // The record at `pool_end_`, if it was taken from the stream.
  std::optional<Examples> record_;
  std::vector<Examples> pool_;  // batches
  int64_t next_batch_ = 0;

  ExampleStream stream_;
};

// A data set in batches of `batch_size` in the order of its files; the last
// one has what is left.
class EvaluationLoader {
 public:
  struct Options {
    int64_t batch_size = 8;
    int64_t workers = 1;
    OnBadRecord on_bad_record = OnBadRecord::kError;
    // As in TrainingLoaderOptions.
    int64_t max_prefetch_bytes = std::numeric_limits<int64_t>::max();
    const std::atomic<bool>* stop = nullptr;
  };

  // `source` must outlive the loader.
  EvaluationLoader(const ExampleSource* source, Options options);

  // The next batch; empty at the end.
  absl::StatusOr<Examples> Next();

  const SkippedRecords& skipped() const { return gate_.skipped(); }

 private:
  const Options options_;
  RecordGate gate_;
  int64_t requested_ = 0;
  ExampleStream stream_;
  Examples left_;  // made, but not yet returned
};

}  // namespace etc

#endif  // ETC_TASKS_DATA_LOADER_H_
