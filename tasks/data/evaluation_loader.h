#ifndef ETC_TASKS_DATA_EVALUATION_LOADER_H_
#define ETC_TASKS_DATA_EVALUATION_LOADER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/data/example_outline.h"
#include "tasks/data/example_source.h"
#include "tasks/data/example_stream.h"
#include "tasks/data/id_places.h"
#include "tasks/data/record_gate.h"

namespace etc {

// Batches of an evaluation, one for each process.
struct EvaluationRound {
  // By process. The first process has all of them, another one its own: the
  // others are empty there. Fewer than processes in the last round; none after
  // it.
  std::vector<Examples> batches;
  int64_t num_examples = 0;  // of all
};

// A data set in batches of `batch_size` in the order of its files; the last
// one has what is left. Ids tell records apart (Example::IdKind): one that
// comes again is an error, whatever `on_bad_record` says, since nobody knows
// which of the two is bad. The first process of a group makes all examples,
// from which predictions are made, and tells the others of which records their
// batches are.
class EvaluationLoader {
 public:
  struct Options {
    int64_t batch_size = 8;
    int64_t workers = 1;
    OnBadRecord on_bad_record = OnBadRecord::kError;
    // True if a prediction file is to be made. Ids must then be unique among
    // all data files, also ids that are record numbers.
    bool predicts = false;
    // As in TrainingLoaderOptions.
    int64_t max_prefetch_bytes = std::numeric_limits<int64_t>::max();
    const std::atomic<bool>* stop = nullptr;
    DataGroup group = {};
  };

  // `source` must outlive the loader.
  EvaluationLoader(const ExampleSource* source, Options options);

  // The next round. Called in all processes, as often. An error of the first
  // process is one of all; one in the batch of another, that process's alone.
  absl::StatusOr<EvaluationRound> Next();

  // Of the first process.
  const SkippedRecords& skipped() const { return gate_.skipped(); }

 private:
  using Round = std::vector<ExampleOutlines>;  // by batch

  bool is_first() const { return options_.group.rank == 0; }
  // Batches of what the first process makes; none at the end.
  absl::StatusOr<Round> TakeRound();
  absl::StatusOr<ExampleOutlines> TakeBatch();
  //   kInvalidArgument  the id of the record is that of an earlier one
  absl::Status CheckId(int64_t record, const ExampleOutlines& examples);
  // Learns of another round, and has the examples of its own batch prefetched.
  absl::Status Announce();
  // Completes the batch of this process.
  absl::Status CompleteOwn(ExampleOutlines* batch);

  const Options options_;
  const ExampleSource* const source_;
  RecordGate gate_;
  IdPlaces ids_;
  // By id, of records that may come again, the hash of their input.
  std::map<std::string, size_t> inputs_;
  int64_t requested_ = 0;
  ExampleOutlines left_;  // made, but not yet in a batch
  // Rounds that are announced: one ahead where there are several processes, for
  // the time in which their examples are made.
  std::deque<Round> rounds_;
  // Records of batches of this process to make, if it is not the first.
  std::deque<RecordRequest> wanted_;
  ExampleStream stream_;
};

}  // namespace etc

#endif  // ETC_TASKS_DATA_EVALUATION_LOADER_H_
