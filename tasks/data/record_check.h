#ifndef ETC_TASKS_DATA_RECORD_CHECK_H_
#define ETC_TASKS_DATA_RECORD_CHECK_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/data/data_files.h"
#include "tasks/data/example.h"
#include "tasks/data/example_source.h"
#include "tasks/data/id_places.h"
#include "tasks/data/record_gate.h"
#include "tasks/data/record_source.h"

namespace etc {

// The ids of records that are evaluated or predicted for, which tell them
// apart.
class RecordIds {
 public:
  // `source` must outlive it. With `predicts`, a prediction file is to be made:
  // ids must then be unique among all data files, also ids that are record
  // numbers.
  RecordIds(const ExampleSource* source, bool predicts)
      : source_(source), predicts_(predicts) {}

  // Takes the id of a record.
  //   kInvalidArgument  it is that of an earlier one, by both places
  absl::Status Add(int64_t record, const std::string& id, Example::IdKind kind);

 private:
  // True if two records have the same tokens, or if that cannot be told:
  // evaluations report the errors of making examples.
  bool HaveSameInput(int64_t first, int64_t second) const;

  const ExampleSource* const source_;
  const bool predicts_;
  IdPlaces places_;
  // By id the first of the records that may be repeated.
  std::map<std::string, int64_t> repeatable_;
};

struct RecordCheckOptions {
  OnBadRecord on_bad_record = OnBadRecord::kError;
  // The same as in RecordIds.
  bool predicts = false;
  // Called with numbers of records of this rank in the place of bytes. May be
  // null.
  FilesListener listener = nullptr;
  // The processes that have opened the same records.
  DataGroup group = {};
};

// Finds the first mistake in any of the records, without making their examples
// (OfficialRecords::Check), on as many threads as there are cores. A collective
// operation: each rank reads a share of the records, and all have the same
// result.
//   kInvalidArgument  a mistake in a record; with kSkip there is none
// and the errors of reading and of the listener.
absl::Status CheckRecords(const OfficialRecords& records,
                          const RecordCheckOptions& options);

// Numbers of the records that are not skipped.
struct RecordCounts {
  int64_t records = 0;
  int64_t unanswered = 0;

  bool have_no_answers() const { return records > 0 && unanswered == records; }
};

// "2 records without an answer are left out of the scores".
std::string UnansweredText(int64_t unanswered);

// Checks records to evaluate or predict for, as CheckRecords does, and counts
// them. Keeps their ids, and so finds the mistake that an EvaluationLoader
// would find in them (RecordIds), which comes behind those of single records.
// Makes the examples of records with one id: those that may have the same input
// (IdKind::kOfText), and with kSkip those of which one may be skipped.
//   kFailedPrecondition  the processes have other data
absl::StatusOr<RecordCounts> CheckRecordsAndIds(
    const OfficialRecords& records, const RecordCheckOptions& options);

}  // namespace etc

#endif  // ETC_TASKS_DATA_RECORD_CHECK_H_
