#ifndef ETC_TASKS_RECORD_TASK_H_
#define ETC_TASKS_RECORD_TASK_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tasks/data/file_records.h"
#include "tasks/data/hold_out.h"
#include "tasks/task.h"

namespace etc {

// That a record lacks the answer that training needs; `where` is its place.
absl::Status NoAnswer(absl::string_view where, absl::string_view id);

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

  // Returns the error that MakeExamples, or a training on the examples, would
  // find in a record, as far as it can be told without a tokenizer.
  virtual absl::Status CheckRecord(const std::string& /*record*/,
                                   const std::string& /*where*/,
                                   RecordUse /*use*/) const {
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<ExampleSource>> Open(
      const DataRequest& request) const final;

  // From now on, Open gives for training on `options.patterns` the records that
  // are not held out, and for evaluations without patterns those that are. Only
  // for tasks with a Reader.
  void HoldOut(HoldOutOptions options) { held_out_ = std::move(options); }
  bool holds_out() const final { return held_out_.fraction > 0; }

  // A line about the held out records, and DescribeRecords, of data that are in
  // memory.
  absl::StatusOr<std::vector<std::string>> DescribeData(
      const ExampleSource& train, const ExampleSource& dev) const final;

 protected:
  // Lines about the data before a run.
  virtual std::vector<std::string> DescribeRecords(
      const std::vector<FileRecord>& /*train*/,
      const std::vector<FileRecord>& /*dev*/) const {
    return {};
  }
  // Reads a file that has no JSON records; null: this task's have.
  virtual FileReader Reader() const { return nullptr; }

  // The stratum of a record, by which records are held out (ChooseHeldOut).
  virtual std::string StratumOf(const std::string& /*record*/,
                                const std::string& /*where*/) const {
    return "";
  }

 private:
  // Returns the held out records of the training data, or the others if
  // `held_out` is false.
  absl::StatusOr<std::vector<FileRecord>> Divide(
      std::vector<FileRecord> records, bool held_out) const;

  HoldOutOptions held_out_;
};

}  // namespace etc

#endif  // ETC_TASKS_RECORD_TASK_H_
