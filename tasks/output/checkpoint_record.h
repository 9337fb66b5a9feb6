#ifndef ETC_TASKS_OUTPUT_CHECKPOINT_RECORD_H_
#define ETC_TASKS_OUTPUT_CHECKPOINT_RECORD_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/metrics.h"

namespace etc {

inline constexpr char kRecordFile[] = "checkpoints.json";

// A checkpoint that a run keeps.
struct RecordedCheckpoint {
  int64_t step = 0;
  // Scores of its evaluation; empty before that.
  Metrics scores;
  // As in CheckpointOwner, until it is evaluated.
  bool is_interim = false;

  bool operator==(const RecordedCheckpoint&) const = default;
};

// The contents of checkpoints.json, beside the checkpoints of a run:
//
//   {"run": "<id>", "last": "step-00000120", "best": "step-00000100",
//    "checkpoints": {
//      "step-00000100": {"step": 100, "scores": {"accuracy": 0.79}}, ...},
//    "superseded": ["step-00000080"], "crc32c": "0x..."}   (sealed_json.h)
//
// Interim checkpoints have "interim": true.
struct CheckpointRecord {
  std::string run;
  // Names of directories beside the file; empty: none.
  std::string last;
  std::string best;
  // `last` and `best`, and others that are kept.
  std::map<std::string, RecordedCheckpoint> checkpoints;
  // Former checkpoints of the record, which are to be deleted.
  std::set<std::string> superseded;

  bool operator==(const CheckpointRecord&) const = default;
};

absl::Status WriteCheckpointRecord(const CheckpointRecord& record,
                                   const std::string& directory);

//   kNotFound  there is none
//   kDataLoss  it is not as it was written, or its run or the name of a
//              checkpoint is a path
absl::StatusOr<CheckpointRecord> ReadCheckpointRecord(
    const std::string& directory);

}  // namespace etc

#endif  // ETC_TASKS_OUTPUT_CHECKPOINT_RECORD_H_
