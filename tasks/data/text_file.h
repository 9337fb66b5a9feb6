#ifndef ETC_TASKS_DATA_TEXT_FILE_H_
#define ETC_TASKS_DATA_TEXT_FILE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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

// Ends the message about a line that is not UTF-8.
inline constexpr char kLineIsNotUtf8[] =
    " should be UTF-8, but is not; `iconv -f cp1252 -t utf-8 FILE` converts "
    "text of Western Europe";

// Bytes at the front of a text that CheckTextStart looks at.
inline constexpr size_t kTextStartBytes = 512;

// Checks that a text that begins with `start`, the first kTextStartBytes of it
// or all, is none that would be read as noise: packed once more than this
// program unpacks, an archive, or UTF-16 or UTF-32 with its mark.
//   kInvalidArgument  it is; the message begins with `path` and names the kind
absl::Status CheckTextStart(absl::string_view start, const std::string& path);

// Returns for people which of the files begins as no running text does:
// "a.jsonl looks like JSON lines"; empty: none is known to. Reads their first
// bytes. Errors of TextFile::Open.
absl::StatusOr<std::string> FindMarkup(const std::vector<std::string>& paths);

// The lines of a text from front to back: of a file, plain or compressed by
// gzip, which its first bytes decide, not its name; or of standard input.
// Memory: the longest line, and 1 MiB.
class TextFile {
 public:
  // Opens a file; `limits` are those of a line, unpacked, without `index`.
  // Errors of RandomAccessFile::Open and CheckTextStart; kDataLoss.
  static absl::StatusOr<std::unique_ptr<TextFile>> Open(
      const std::string& path, const RecordLimits& limits = {});
  // The same for plain text on standard input, which may be a pipe; its path is
  // "stdin". Waits for its first bytes. Once `*stop` is true the waiting ends
  // with kCancelled, here and in NextLine; null: it does not.
  static absl::StatusOr<std::unique_ptr<TextFile>> OpenStandardInput(
      const RecordLimits& limits, const std::atomic<bool>* stop);

  // The first bytes of the contents, kTextStartBytes at least or all; before
  // the first NextLine alone.
  absl::string_view start() const { return buffer_; }

  // Sets `*line` to the next line, without the line feed or carriage return and
  // line feed that end it; a byte order mark in front of the first is left out.
  // False at the end of the file. `*line` stays as it is until the next call.
  //   kDataLoss           damaged gzip data; the message has the byte
  //   kResourceExhausted  the line is too long; the message has its number
  // and the system's errors.
  absl::StatusOr<bool> NextLine(absl::string_view* line);

  const std::string& path() const { return path_; }
  // Number of the last line that was read, from 1.
  int64_t line_number() const { return line_number_; }
  // Bytes of the file read so far, and all of them; packed, if it is gzip. Of
  // standard input both are those read so far.
  uint64_t position() const;
  uint64_t size() const { return file_.has_value() ? file_->size() : offset_; }

 private:
  TextFile(std::string path, const RecordLimits& limits);

  // CheckTextStart, once the first bytes are in `buffer_`.
  absl::Status CheckStart();
  // Adds up to `size` bytes of the contents to `buffer_`; none at the end.
  absl::Status Fill(size_t size);
  // Each returns the number of bytes put at `destination`, 0 at the end.
  absl::StatusOr<size_t> Read(size_t size, char* destination);
  absl::StatusOr<size_t> ReadGzip(size_t size, char* destination);
  absl::StatusOr<size_t> ReadStandardInput(size_t size, char* destination);

  const std::string path_;
  const RecordLimits limits_;
  std::optional<RandomAccessFile> file_;  // nothing: standard input
  const std::atomic<bool>* stop_ = nullptr;
  std::unique_ptr<GzipInflater> inflater_;  // null: plain
  uint64_t offset_ = 0;                     // in plain text
  // Contents from `begin_` on have not been given yet.
  std::string buffer_;
  size_t begin_ = 0;
  bool at_end_ = false;
  int64_t line_number_ = 0;
};

}  // namespace etc

#endif  // ETC_TASKS_DATA_TEXT_FILE_H_
