#ifndef ETC_TASKS_DATA_TEXT_FILE_H_
#define ETC_TASKS_DATA_TEXT_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "base/gzip_inflater.h"
#include "tasks/data/record_scanner.h"

namespace etc {

// Removes from a line without its line feed the carriage return at its end, and
// from the first of a text the byte order mark.
void StripLineEnds(bool is_first, absl::string_view* line);

// The lines of a text file from front to back: plain, or compressed by gzip,
// which its first bytes decide, not its name. Memory: the longest line, and
// 1 MiB.
class TextFile {
 public:
  // Opens a file; `limits` are those of a line, unpacked, without `index`.
  // Errors of RandomAccessFile::Open.
  static absl::StatusOr<std::unique_ptr<TextFile>> Open(
      const std::string& path, const RecordLimits& limits = {});

  // Sets `*line` to the next line, without the line feed or carriage return and
  // line feed that end it; a byte order mark in front of the first is left out.
  // False at the end of the file. `*line` stays as it is until the next call.
  //   kDataLoss           damaged gzip data; the message has the byte
  //   kResourceExhausted  the line is too long; the message has its number
  // and the system's errors.
  absl::StatusOr<bool> NextLine(absl::string_view* line);

  const std::string& path() const { return file_.path(); }
  // Number of the last line that was read, from 1.
  int64_t line_number() const { return line_number_; }
  // Bytes of the file read so far, and all of them; packed, if it is gzip.
  uint64_t position() const;
  uint64_t size() const { return file_.size(); }

 private:
  TextFile(RandomAccessFile file, const RecordLimits& limits);

  // Adds bytes of the contents to `buffer_`; none at the end.
  absl::Status Fill();
  absl::Status FillFromGzip(char* destination, size_t* size);

  const RandomAccessFile file_;
  const RecordLimits limits_;
  std::unique_ptr<GzipInflater> inflater_;  // null: plain
  uint64_t offset_ = 0;                     // in a plain file
  // Contents from `begin_` on have not been given yet.
  std::string buffer_;
  size_t begin_ = 0;
  bool at_end_ = false;
  int64_t line_number_ = 0;
};

}  // namespace etc

#endif  // ETC_TASKS_DATA_TEXT_FILE_H_
