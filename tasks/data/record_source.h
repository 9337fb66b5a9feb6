#ifndef ETC_TASKS_DATA_RECORD_SOURCE_H_
#define ETC_TASKS_DATA_RECORD_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/data/data_files.h"
#include "tasks/data/example.h"
#include "tasks/data/example_source.h"
#include "tasks/data/record_file.h"
#include "tasks/data/record_gate.h"

namespace etc {

// Makes the examples of one record from its JSON text; `where` starts each
// message. This is Task::MakeExamples, without the rest of a task.
using ExampleMaker = std::function<absl::StatusOr<Examples>(
    const std::string& record, const std::string& where)>;

// A record as it is known before its examples are made.
struct CheckedRecord {
  std::string id;
  Example::IdKind id_kind = Example::IdKind::kUnique;
  bool has_answer = true;
};

// Checks a record: returns the mistake that ExampleMaker would find in it, as
// far as that can be told without making its examples. Arguments as there.
using RecordChecker = std::function<absl::StatusOr<CheckedRecord>(
    const std::string& record, const std::string& where)>;

// The records of official files, each a JSON text.
class OfficialRecords : public ExampleSource {
 public:
  absl::StatusOr<Examples> Make(RecordRequest request) const final;
  // Checks a record. Costs its reading and parsing.
  absl::StatusOr<CheckedRecord> Check(int64_t record) const;
  // The JSON text of a record.
  //   kInvalidArgument  KnownDefect of a broken record
  // and errors of reading.
  virtual absl::StatusOr<std::string> Text(int64_t record) const = 0;

 protected:
  OfficialRecords(ExampleMaker maker, RecordChecker checker)
      : maker_(std::move(maker)), checker_(std::move(checker)) {}

  // RecordFile::LineOf.
  virtual int64_t LineOf(int64_t record) const = 0;

 private:
  const ExampleMaker maker_;
  const RecordChecker checker_;
};

// A data set that a task is to open.
struct DataRequest {
  // Names of files, or patterns (tasks/data/data_files.h).
  std::vector<std::string> patterns;
  // Training needs answers: a record without one is a bad record there.
  RecordUse use = RecordUse::kEvaluation;
  // May be null.
  FilesListener listener = nullptr;
  // Without `index`.
  RecordLimits limits = {};
  // The processes that open it, all at the same time.
  DataGroup group = {};
};

// The records of files of JSON objects, one file after the other, which stay in
// the files.
class RecordSource final : public OfficialRecords {
 public:
  // Opens the files of `request`, several at once, on as many threads as there
  // are cores; `use` is left to `maker` and `checker`. If several have
  // mistakes, that of the first file is returned. All files share
  // RecordIndexBudget::ShareOfProcess().
  //
  // A collective operation: rank r scans files i with i % size == r; the
  // indices are all-gathered. A mistake is returned on all ranks.
  //   kFailedPrecondition  they have other files
  static absl::StatusOr<std::unique_ptr<RecordSource>> Open(
      const DataRequest& request, ExampleMaker maker, RecordChecker checker);

  int64_t size() const override { return size_; }
  std::string Where(int64_t record) const override;
  absl::StatusOr<std::string> Text(int64_t record) const override;

 protected:
  int64_t LineOf(int64_t record) const override;

 private:
  // A record of one of the files, by its number there.
  struct Place {
    const RecordFile& file;
    int64_t record;
  };
  Place PlaceOf(int64_t record) const;

  RecordSource(std::vector<RecordFile> files, ExampleMaker maker,
               RecordChecker checker);

  const std::vector<RecordFile> files_;
  int64_t size_ = 0;
};

// A record of a file whose records are not JSON objects one beside the other
// (tables, nested lists), as the JSON object that a task reads.
struct FileRecord {
  // All its fields but those of `shared`.
  std::string json;
  // Name in messages: "dev.tsv:17".
  std::string where;
  // Reason why everybody leaves this record out, since the official file itself
  // is broken there: it is skipped and counted, whatever data.on_bad_record
  // says. Empty: none.
  std::string broken = {};
  // RecordFile::LineOf.
  int64_t line = 0;
  // Further fields, `"context":"..."`, which many records have alike and hold
  // once in memory; ParseGold of the benchmark does without them. May be null.
  std::shared_ptr<const std::string> shared = nullptr;

  // The JSON text with all fields.
  std::string Text() const;
};

// Calls `read` with the JSON text of each record of the official files that
// `pattern` names, and with what messages call it. The first error ends that
// and is returned.
absl::Status ForEachRecord(
    const std::string& pattern,
    const std::function<absl::Status(const std::string& text,
                                     const std::string& where)>& read,
    const RecordLimits& limits = {});

// The records of a file of JSON objects as they are (RecordFile).
absl::StatusOr<std::vector<FileRecord>> ReadJsonRecords(
    const std::string& path, const RecordLimits& limits);

// Reads all records of a file. For files of JSON objects it enforces `limits`.
using FileReader = std::function<absl::StatusOr<std::vector<FileRecord>>(
    const std::string& path, const RecordLimits& limits)>;

// The records of the files that `patterns` name (tasks/data/data_files.h), one
// file after the other, all in memory.
//   kResourceExhausted  a record is longer than `limits` say, by its place
//   kNotFound, and what `read` says
absl::StatusOr<std::vector<FileRecord>> ReadAllFiles(
    const std::vector<std::string>& patterns, const FileReader& read,
    const FilesListener& listener = nullptr, const RecordLimits& limits = {});

// The records of other files, all in memory.
class FileRecordSource final : public OfficialRecords {
 public:
  FileRecordSource(std::vector<FileRecord> records, ExampleMaker maker,
                   RecordChecker checker)
      : OfficialRecords(std::move(maker), std::move(checker)),
        records_(std::move(records)) {}

  int64_t size() const override {
    return static_cast<int64_t>(records_.size());
  }
  std::string Where(int64_t record) const override {
    return records_[static_cast<size_t>(record)].where;
  }
  absl::StatusOr<std::string> Text(int64_t record) const override;

  const std::vector<FileRecord>& records() const { return records_; }

 protected:
  int64_t LineOf(int64_t record) const override {
    return records_[static_cast<size_t>(record)].line;
  }

 private:
  const std::vector<FileRecord> records_;
};

}  // namespace etc

#endif  // ETC_TASKS_DATA_RECORD_SOURCE_H_
