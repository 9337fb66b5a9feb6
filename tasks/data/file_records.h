#ifndef ETC_TASKS_DATA_FILE_RECORDS_H_
#define ETC_TASKS_DATA_FILE_RECORDS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tasks/data/record_source.h"

namespace etc {

// A record of a file whose records are not JSON objects one beside the other
// (tables, nested lists), as the JSON object that a task reads.
struct FileRecord {
  std::string json;
  // How messages call it: "dev.tsv:17".
  std::string where;
  // What is wrong with a record that everyone leaves out, since the official
  // file itself is broken there: it is skipped and counted, whatever
  // data.on_bad_record says. Empty: nothing.
  std::string broken = {};
};

// All records of a file; of one with records as JSON objects, none is longer
// than `limits` say.
using FileReader = std::function<absl::StatusOr<std::vector<FileRecord>>(
    const std::string& path, const RecordLimits& limits)>;

// The records of the files that `patterns` name (tasks/data/data_files.h), one
// file after the other, all in memory.
//   kResourceExhausted  a record is longer than `limits` say, by its place
//   kNotFound, and what `read` says
absl::StatusOr<std::vector<FileRecord>> ReadAllFiles(
    const std::vector<std::string>& patterns, const FileReader& read,
    const RecordSource::Listener& listener = nullptr,
    const RecordLimits& limits = {});

// A mistake in a record that can be told without making its examples.
using RecordChecker = std::function<absl::Status(const std::string& record,
                                                 const std::string& where)>;

// A data set of such records.
class FileRecordSource final : public ExampleSource {
 public:
  FileRecordSource(std::vector<FileRecord> records, ExampleMaker maker,
                   RecordChecker checker = nullptr);

  int64_t size() const override;
  absl::StatusOr<Examples> Make(RecordRequest request) const override;
  std::string Where(int64_t record) const override {
    return records_[static_cast<size_t>(record)].where;
  }

  const std::vector<FileRecord>& records() const { return records_; }
  // The first mistake that the checker finds in any record.
  absl::Status CheckRecords() const;

 private:
  const std::vector<FileRecord> records_;
  const ExampleMaker maker_;
  const RecordChecker checker_;
};

}  // namespace etc

#endif  // ETC_TASKS_DATA_FILE_RECORDS_H_
