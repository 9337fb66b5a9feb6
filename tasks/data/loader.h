#ifndef ETC_TASKS_DATA_LOADER_H_
#define ETC_TASKS_DATA_LOADER_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/data/example_outline.h"
#include "tasks/data/example_source.h"
#include "tasks/data/example_stream.h"
#include "tasks/data/outline_stream.h"
#include "tasks/data/record_gate.h"

namespace etc {

// Position in the training data at which a batch begins; the loader's further
// output follows from it. The pool that the batch is cut from begins at example
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
  // Bytes for prefetched examples, and for those of a pool, on each rank. The
  // limit of pools must be the same on all ranks.
  int64_t max_prefetch_bytes = std::numeric_limits<int64_t>::max();
  int64_t max_pool_bytes = std::numeric_limits<int64_t>::max();
  // True ends the waiting for examples. May be null.
  const std::atomic<bool>* stop = nullptr;
  // The ranks to which the micro-batches of a batch are dealt.
  DataGroup group = {};

  // Micro-batches of a batch, on all ranks together.
  int64_t micro_batches() const {
    return (batch_size + micro_batch_size - 1) / micro_batch_size;
  }
};

struct TrainingBatch {
  // The first micro-batch of this rank; null: it has none.
  const Examples* first_here() const {
    const auto found =
        std::find_if(micro_batches.begin(), micro_batches.end(),
                     [](const auto& examples) { return !examples.empty(); });
    return found == micro_batches.end() ? nullptr : &*found;
  }

  // Micro-batches of `micro_batch_size` examples, the last one of the rest;
  // shorter examples come first. `batch_size` examples in all. Micro-batches
  // that another rank computes are empty.
  std::vector<Examples> micro_batches;
  int64_t epoch = 0;
  // Position of the batch after this one.
  LoaderPosition next;
};

// Training batches without end.
class BatchLoader {
 public:
  virtual ~BatchLoader() = default;

  // Returns the next batch. A collective operation: on all ranks the same
  // batch, of which each rank has its own micro-batches.
  virtual absl::StatusOr<TrainingBatch> Next() = 0;
  // Seconds that Next() waited for examples.
  virtual double seconds_waited() const = 0;
  virtual const SkippedRecords& skipped() const = 0;
};

// Batches of a number of examples, without end. Each epoch has the records in
// another random order, and requests each with the key of RequestInEpoch. Pools
// of bucket_batches * batch_size examples (the last one of the rest) are taken
// from it, sorted by length and cut into batches, which come in random order;
// so a batch holds examples of about the same length. The examples at the end
// of an epoch that fill no batch are left out. All of this follows from the
// seed, the batch size, bucket_batches and the position: not from time, the
// number of workers or of ranks or the micro-batch size. So a loader that
// starts at `TrainingBatch::next` gives the very batches, with the very
// examples, that the first one would have given.
//
// With several ranks each makes its own records (MakerOf) and all-gathers their
// outlines, by which all of them cut the same pools and deal the same
// micro-batches. A rank makes again those records of others that its
// micro-batches need, prefetched like the rest.
class TrainingLoader final : public BatchLoader {
 public:
  // `source` must outlive the loader.
  TrainingLoader(const ExampleSource* source,
                 const TrainingLoaderOptions& options,
                 LoaderPosition start = {});

  // Returns the next batch. A collective operation. Errors in making outlines
  // are returned on all ranks; an error in making this rank's examples, on this
  // rank alone.
  //   kInvalidArgument    a bad record, with OnBadRecord::kError
  //   kFailedPrecondition all the data do not fill one batch, or have no such
  //                       position; or a process has other data
  //   kResourceExhausted  a pool takes more than max_pool_bytes
  //   kCancelled          `options.stop` is true; a loader that starts at the
  //                       last batch's `next` goes on
  absl::StatusOr<TrainingBatch> Next() override;

  double seconds_waited() const override;
  const SkippedRecords& skipped() const override { return gate_.skipped(); }

 private:
  using MicroBatches = std::vector<ExampleOutlines>;

  RecordRequest NextRequest();
  absl::Status FillPool();
  void CutPool(ExampleOutlines examples);
  // Keeps the micro-batches of a batch that this rank computes, and requests
  // those of their records that it has not made.
  void TakeShare(MicroBatches* batch);
  // Makes the next record that is wanted.
  absl::Status MakeWanted();

  const TrainingLoaderOptions options_;
  const int64_t num_records_;
  RecordGate gate_;

  // The place of the next record that the stream will request.
  LoaderPosition requested_;
  std::vector<int64_t> order_;  // of its epoch; empty: not drawn yet

  // Positions of the pool and of the one after it.
  LoaderPosition pool_begin_;
  LoaderPosition pool_end_;
  // The record at `pool_end_`, if it was taken from the stream.
  std::optional<ExampleOutlines> record_;
  std::vector<MicroBatches> pool_;  // batches
  int64_t next_batch_ = 0;

  OutlineStream outlines_;
  // Records of other ranks to make, in the order of the batches, and the
  // outlines in the pool that they complete.
  std::deque<RecordRequest> wanted_;
  std::unordered_map<int64_t, std::vector<ExampleOutline*>> incomplete_;
  std::unique_ptr<ExampleStream> stream_;  // null: there is one process
};

}  // namespace etc

#endif  // ETC_TASKS_DATA_LOADER_H_
