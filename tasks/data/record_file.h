#ifndef ETC_TASKS_DATA_RECORD_FILE_H_
#define ETC_TASKS_DATA_RECORD_FILE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "etc/formats/file.h"

namespace etc {

// The records of a data file, read one at a time: a JSON array of objects on
// one or many lines (WikiHop, HotpotQA), or one object a line (NQ, OpenKP).
// Opening scans the file once and keeps 16 bytes a record, whatever its size;
// the records themselves are parsed by who asks for them.
class RecordFile {
 public:
  //   kInvalidArgument  neither an array of objects nor lines of objects; the
  //                     message names file, line and byte
  static absl::StatusOr<RecordFile> Open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  int64_t size() const { return static_cast<int64_t>(extents_.size()); }

  // The JSON text of record `index`, 0 <= index < size(). Thread-safe.
  absl::StatusOr<std::string> Read(int64_t index) const;
  // How messages call it: "<path>: record 17".
  std::string Where(int64_t index) const;

 private:
  // First byte and number of bytes.
  using Extent = std::pair<uint64_t, uint64_t>;

  RecordFile(RandomAccessFile file, std::vector<Extent> extents);

  RandomAccessFile file_;
  std::vector<Extent> extents_;
};

}  // namespace etc

#endif  // ETC_TASKS_DATA_RECORD_FILE_H_
