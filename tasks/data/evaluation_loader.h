#ifndef ETC_TASKS_DATA_EVALUATION_LOADER_H_
#define ETC_TASKS_DATA_EVALUATION_LOADER_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/data/example_outline.h"
#include "tasks/data/example_source.h"
#include "tasks/data/example_stream.h"
#include "tasks/data/record_check.h"
#include "tasks/data/record_gate.h"

namespace etc {

// Batches of an evaluation, one for each rank.
struct EvaluationRound {
  // By rank. Rank 0 has all batches, any other rank its own: the others are
  // empty there. The last round may have fewer batches than ranks; after it
  // come empty ones.
  std::vector<Examples> batches;
  int64_t num_examples = 0;  // of all
  // Records of the data set up to the last one of these.
  int64_t num_records = 0;
};

// A data set in batches of `batch_size` in the order of its files; the last one
// has the rest. Ids tell records apart (Example::IdKind): a repeated id is an
// error, whatever `on_bad_record` says, since it is unknown which of the two is
// bad. Rank 0 of a group makes all examples, from which predictions are made,
// and broadcasts the records of each rank's batch.
class EvaluationLoader {
 public:
  struct Options {
    int64_t batch_size = 8;
    int64_t workers = 1;
    OnBadRecord on_bad_record = OnBadRecord::kError;
    // True if a prediction file is to be made; as of RecordIds.
    bool predicts = false;
    // Like the fields of TrainingLoaderOptions.
    int64_t max_prefetch_bytes = std::numeric_limits<int64_t>::max();
    const std::atomic<bool>* stop = nullptr;
    DataGroup group = {};
  };

  // `source` must outlive the loader.
  EvaluationLoader(const ExampleSource* source, Options options);

  // Returns the next round. A collective operation. An error of rank 0 is
  // returned on all ranks; one in the batch of another rank, on that rank
  // alone.
  absl::StatusOr<EvaluationRound> Next();

  // Skipped records; complete on rank 0.
  const SkippedRecords& skipped() const { return gate_.skipped(); }

 private:
  // The outlines of a round, by batch.
  using BatchOutlines = std::vector<ExampleOutlines>;

  bool is_first() const { return options_.group.rank == 0; }
  // Takes batches of the examples that rank 0 makes; none at the end.
  absl::StatusOr<BatchOutlines> TakeRound();
  absl::StatusOr<ExampleOutlines> TakeBatch();
  // Broadcasts another round, and prefetches the examples of this rank's batch.
  absl::Status Announce();
  // Completes the batch of this rank.
  absl::Status CompleteOwn(ExampleOutlines* batch);

  const Options options_;
  RecordGate gate_;
  RecordIds ids_;
  int64_t requested_ = 0;
  ExampleOutlines left_;  // made, but not yet in a batch
  // Rounds that are announced: one ahead if there are several ranks, so that
  // their examples are made meanwhile.
  std::deque<BatchOutlines> rounds_;
  // Records of this rank's batches to make, if it is not rank 0.
  std::deque<RecordRequest> wanted_;
  ExampleStream stream_;
};

}  // namespace etc

#endif  // ETC_TASKS_DATA_EVALUATION_LOADER_H_
