#ifndef ETC_TASKS_RECORD_TASK_H_
#define ETC_TASKS_RECORD_TASK_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tasks/data/file_records.h"
#include "tasks/task.h"

namespace etc {

// One of the benchmarks, whose data are official files of JSON records. Written
// with types of its own: see tasks/task_definition.h.
class RecordTask : public Task {
 public:
  // The examples of one record, given its JSON text. Most records give one
  // example. `where` starts each message.
  //   kInvalidArgument  the record is not as the official format has it
  virtual absl::StatusOr<Examples> MakeExamples(
      const std::string& record, const std::string& where) const = 0;

  // The same of a record that is only predicted for: its answers are not looked
  // at, whatever they are.
  virtual absl::StatusOr<Examples> MakeExamplesToPredict(
      const std::string& record, const std::string& where) const {
    return MakeExamples(record, where);
  }

  absl::StatusOr<std::unique_ptr<ExampleSource>> Open(
      const DataRequest& request) const final;

 protected:
  // Reads a file that has no JSON records; null: this task's have.
  virtual FileReader Reader() const { return nullptr; }
};

}  // namespace etc

#endif  // ETC_TASKS_RECORD_TASK_H_
