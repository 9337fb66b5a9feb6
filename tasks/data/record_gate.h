#ifndef ETC_TASKS_DATA_RECORD_GATE_H_
#define ETC_TASKS_DATA_RECORD_GATE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/data/example_outline.h"

namespace etc {

// Treatment of a record that is not as the official format has it: end the run,
// or skip the record.
enum class OnBadRecord { kError, kSkip };

// The status of a record that is skipped and counted in any case
// (FileRecord::broken): kInvalidArgument.
absl::Status KnownDefect(const std::string& message);
bool IsKnownDefect(const absl::Status& status);

// True if a record whose status is that error is skipped, not the run ended.
bool IsSkipped(const absl::Status& status, OnBadRecord on_bad_record);

// Counts of records and examples that are not used, or not whole, each record
// counted once however often it is read.
struct SkippedRecords {
  // All records that were read.
  int64_t records = 0;
  // Bad records, with OnBadRecord::kSkip or KnownDefect.
  int64_t count = 0;
  // The error in the first of them.
  std::string first_message;
  // Examples that training leaves out, by the reason (Example::left_out).
  std::map<std::string, int64_t> left_out;
  // Records of which an example that is used is_truncated.
  int64_t truncated = 0;
  // The most text that one of them lost, and its id; 0 where the task does not
  // count that.
  LostText most_lost;
  std::string most_lost_id;
  // Records whose answer no example holds, by the reason
  // (Example::lost_answer).
  std::map<std::string, int64_t> lost_answers;
};

// "skipped 2 bad records, the first: ...", of those that are counted, one at
// least.
std::string SkippedText(const SkippedRecords& skipped);

// "2 records were cut ...", with the settings to look at and, where it is
// known, the record that lost the most; empty if none were.
std::string TruncatedText(const SkippedRecords& skipped);

// "left out 2 examples: ..." for each reason.
std::vector<std::string> LeftOutTexts(const SkippedRecords& skipped);

// TruncatedText, if records were cut, and for each reason "2 records have an
// answer that no example holds: ...".
std::vector<std::string> LossTexts(const SkippedRecords& skipped);

// SkippedText, if records were skipped, LeftOutTexts and LossTexts.
std::vector<std::string> UnusedTexts(const SkippedRecords& skipped);

// The purpose for which records are read. For a prediction, answers are not
// read: any value may stand in their place.
enum class RecordUse { kTraining, kEvaluation, kPrediction };

// Filters the examples of records: applies OnBadRecord, and for training leaves
// out the examples that it cannot use.
class RecordGate {
 public:
  RecordGate(RecordUse use, OnBadRecord on_bad_record, int64_t num_records);

  // Returns the examples of `record` that are used; none of a bad record that
  // is skipped.
  absl::StatusOr<ExampleOutlines> Pass(
      int64_t record, absl::StatusOr<ExampleOutlines> examples);
  const SkippedRecords& skipped() const { return skipped_; }

 private:
  // Counts a record if one of its examples, all of which are used, was cut.
  void CountTruncated(const ExampleOutlines& examples);

  const RecordUse use_;
  const OnBadRecord on_bad_record_;
  // True for the records that have been counted, by index.
  std::vector<bool> is_counted_;
  SkippedRecords skipped_;
};

}  // namespace etc

#endif  // ETC_TASKS_DATA_RECORD_GATE_H_
