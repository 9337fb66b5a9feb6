#ifndef ETC_TASKS_DATA_RECORD_FILE_H_
#define ETC_TASKS_DATA_RECORD_FILE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"
#include "base/gzip_file.h"
#include "tasks/data/data_files.h"
#include "tasks/data/record_scanner.h"

namespace etc {

// The records of a data file, read one at a time: a JSON array of objects on
// one or many lines (WikiHop, HotpotQA), or one object a line (NQ, OpenKP);
// plain or compressed by gzip, which its first bytes decide, not its name.
// Opening scans the file once and keeps 16 bytes a record, and for gzip what
// base/gzip_file.h says; the records themselves are parsed by the
// caller.
class RecordFile {
 public:
  // `listener` is called after every MiB or so of the file (compressed bytes,
  // if it is gzip); its error ends the opening and is returned.
  //   kInvalidArgument    neither an array of objects nor lines of objects; the
  //                       message names file, line and byte (of what is
  //                       unpacked), or says what CheckTextStart does
  //   kDataLoss           damaged gzip data
  //   kResourceExhausted  more than `limits` allow, or than there is memory for
  static absl::StatusOr<RecordFile> Open(
      const std::string& path, const BytesListener& listener = nullptr,
      const RecordLimits& limits = {});

  // Opens a file by the Index() that another process has of it, without
  // scanning it.
  //   kFailedPrecondition  the file is another one here
  static absl::StatusOr<RecordFile> OpenByIndex(const std::string& path,
                                                const std::string& index,
                                                const RecordLimits& limits);
  std::string Index() const;

  const std::string& path() const;
  int64_t size() const { return static_cast<int64_t>(extents_.size()); }

  // The JSON text of record `index`, 0 <= index < size(). Thread-safe.
  absl::StatusOr<std::string> Read(int64_t index) const;
  // Name of a record in messages: "<path>: record 17".
  std::string Where(int64_t index) const;
  // Line of a record, from 1 on; 0 if not each line is a record.
  int64_t LineOf(int64_t index) const {
    return has_a_record_a_line_ ? index + 1 : 0;
  }

 private:
  // First byte and number of bytes.
  using Extent = std::pair<uint64_t, uint64_t>;

  using File = std::variant<RandomAccessFile, GzipFile>;

  RecordFile(File file, std::vector<Extent> extents, bool has_a_record_a_line);

  static absl::StatusOr<RecordFile> OpenWithin(const std::string& path,
                                               const BytesListener& listener,
                                               RecordLimits limits);

  File file_;
  std::vector<Extent> extents_;
  bool has_a_record_a_line_;
};

// The error of the record `where` (RecordFile::Where) on `line` of its file
// (LineOf), with the place of a syntax error in the file, "a.jsonl:18:32",
// instead of that in the record, "a.jsonl: record 17:1:32".
absl::Status WithPlaceInFile(const absl::Status& status,
                             const std::string& where, int64_t line);

}  // namespace etc

#endif  // ETC_TASKS_DATA_RECORD_FILE_H_
