#include "tasks/data/file_records.h"

#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "tasks/data/data_files.h"
#include "tasks/data/record_gate.h"

namespace etc {

namespace {

absl::Status CheckLengths(const std::vector<FileRecord>& records,
                          const RecordLimits& limits) {
  for (const FileRecord& record : records) {
    if (record.json.size() > limits.max_record_bytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat(record.where, ": a record should have at most ",
                       limits.max_record_bytes, " bytes",
                       limits.max_record_field.empty()
                           ? ""
                           : absl::StrCat(" (", limits.max_record_field, ")"),
                       ", but this one has ", record.json.size()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<FileRecord>> ReadAllFiles(
    const std::vector<std::string>& patterns, const FileReader& read,
    const RecordSource::Listener& listener, const RecordLimits& limits) {
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                       FindDataFiles(patterns));
  std::vector<uint64_t> sizes;
  uint64_t num_bytes = 0;
  for (const std::string& path : paths) {
    // Whoever reads the file says what is wrong with it.
    std::error_code error;
    const uint64_t size = std::filesystem::file_size(path, error);
    sizes.push_back(error ? 0 : size);
    num_bytes += sizes.back();
  }
  std::vector<FileRecord> records;
  uint64_t bytes = 0;
  for (size_t i = 0; i < paths.size(); ++i) {
    ETC_ASSIGN_OR_RETURN(
        std::vector<FileRecord> of_file,
        NamingOutOfMemory(
            [&] { return absl::StrCat("reading the records of ", paths[i]); },
            [&] { return read(paths[i], limits); }));
    ETC_RETURN_IF_ERROR(CheckLengths(of_file, limits));
    records.insert(records.end(), std::make_move_iterator(of_file.begin()),
                   std::make_move_iterator(of_file.end()));
    bytes += sizes[i];
    if (listener) {
      ETC_RETURN_IF_ERROR(listener(bytes, num_bytes));
    }
  }
  return records;
}

FileRecordSource::FileRecordSource(std::vector<FileRecord> records,
                                   ExampleMaker maker, RecordChecker checker)
    : records_(std::move(records)),
      maker_(std::move(maker)),
      checker_(std::move(checker)) {}

int64_t FileRecordSource::size() const {
  return static_cast<int64_t>(records_.size());
}

absl::StatusOr<Examples> FileRecordSource::Make(RecordRequest request) const {
  const FileRecord& record = records_[static_cast<size_t>(request.record)];
  if (!record.broken.empty()) {
    return KnownDefect(record.broken);
  }
  return NamingOutOfMemory(
      [&] { return absl::StrCat("making examples of ", record.where); },
      [&] { return maker_(record.json, record.where); });
}

absl::Status FileRecordSource::CheckRecords() const {
  if (checker_ == nullptr) {
    return absl::OkStatus();
  }
  for (const FileRecord& record : records_) {
    if (record.broken.empty()) {
      ETC_RETURN_IF_ERROR(checker_(record.json, record.where));
    }
  }
  return absl::OkStatus();
}

}  // namespace etc
