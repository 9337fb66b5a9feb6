#ifndef ETC_TASKS_OUTPUT_EVENT_LOG_H_
#define ETC_TASKS_OUTPUT_EVENT_LOG_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "nlohmann/json_fwd.hpp"
#include "tasks/output/appended_file.h"

namespace etc {

// The metrics of a run for TensorBoard, in a directory of event files
// (doc/formats.md 5): scalars, the configuration as a text, histograms. Each
// process that trains the run writes a file of its own; TensorBoard reads them
// one after another, and forgets what a resumed run makes again. Names in the
// event files:
//
//   train/<field>         each number of an update's line in metrics.jsonl;
//                         train/scores/l2l/largest/0 is in objects and arrays
//   evaluation/<metric>   the scores of an evaluation
//   evaluated/<field>     the other numbers of its line
//   configuration         the text
class EventLog {
 public:
  // The place from which a run goes on.
  struct Start {
    // Updates made.
    int64_t step = 0;
    // Markdown; written where no earlier process of the run has.
    std::string configuration;
  };

  // Creates `directory` and a new event file in it, which makes TensorBoard
  // forget what the files before it have of updates after `start.step`. An
  // evaluation after that update stays: it is shown twice if its process was
  // killed before it saved the scores. Errors are those of the file system.
  static absl::StatusOr<EventLog> Open(const std::string& directory,
                                       const Start& start);

  // Removes the files in `directory` that this class wrote, by their names; it
  // may be missing.
  static absl::Status Remove(const std::string& directory);

  // Writes the numbers of a line of metrics.jsonl, which has a field "step".
  // TensorBoard has scalars in float32.
  absl::Status Write(const nlohmann::ordered_json& line);

  // Writes a histogram of finite numbers, of which there is at least one, in 30
  // buckets of the same width.
  absl::Status WriteHistogram(int64_t step, absl::string_view tag,
                              absl::Span<const double> values);

  // Puts all events on disk.
  absl::Status Sync() { return file_.Sync(); }

 private:
  explicit EventLog(AppendedFile file) : file_(std::move(file)) {}

  AppendedFile file_;
};

// `payload` as a record of a file of TensorFlow: length and payload, each with
// its masked CRC-32C.
std::string EventRecord(absl::string_view payload);

}  // namespace etc

#endif  // ETC_TASKS_OUTPUT_EVENT_LOG_H_
