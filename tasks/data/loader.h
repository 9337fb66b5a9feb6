#ifndef ETC_TASKS_DATA_LOADER_H_
#define ETC_TASKS_DATA_LOADER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/data/example_source.h"
#include "tasks/data/example_stream.h"

namespace etc {

// What becomes of records that are not as the official format has them.
enum class OnBadRecord { kError, kSkip };

// What was not used, each record counted once however often it is read.
struct SkippedRecords {
  // Bad records, with OnBadRecord::kSkip.
  int64_t count = 0;
  // What is wrong with the first of them.
  std::string first_message;
  // Examples that training leaves out, by the reason (Example::left_out).
  std::map<std::string, int64_t> left_out;
};

// What records are read for.
enum class RecordUse { kTraining, kEvaluation };

// Applies OnBadRecord to what a stream makes, and for training leaves out the
// examples that it cannot use.
class RecordGate {
 public:
  RecordGate(RecordUse use, OnBadRecord on_bad_record, int64_t num_records);

  // The examples of `made`, none for a bad record that is skipped.
  absl::StatusOr<Examples> Pass(ExampleStream::Made made);
  const SkippedRecords& skipped() const { return skipped_; }

 private:
  const RecordUse use_;
  const OnBadRecord on_bad_record_;
  // Whether a record of that index has been counted.
  std::vector<bool> is_counted_;
  SkippedRecords skipped_;
};

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
// order. Pools of bucket_batches * batch_size examples are taken from it,
// sorted by length and cut into batches, which come in random order; so a
// batch holds examples of about the same length. The examples at the end of an
// epoch that fill no batch are left out. All of this follows from the seed, the
// batch size, bucket_batches and the position: not from time, the number of
// workers or the micro-batch size.
class TrainingLoader {
 public:
  // `source` must outlive the loader.
  TrainingLoader(const ExampleSource* source, TrainingLoaderOptions options,
                 LoaderPosition start = {});

  //   kInvalidArgument    a bad record, with OnBadRecord::kError
  //   kFailedPrecondition all the data do not fill one batch
  absl::StatusOr<TrainingBatch> Next();

  // Seconds that Next() waited for examples.
  double seconds_waited() const { return stream_.seconds_waited(); }
  const SkippedRecords& skipped() const { return gate_.skipped(); }

 private:
  std::optional<int64_t> NextRecord();
  absl::Status FillPool();
  void CutPool(Examples examples);

  const TrainingLoaderOptions options_;
  const int64_t num_records_;
  RecordGate gate_;

  // The next record that the stream will ask for.
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
  Examples left_;  // made, but not yet handed out
};

}  // namespace etc

#endif  // ETC_TASKS_DATA_LOADER_H_
