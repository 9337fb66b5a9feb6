#ifndef ETC_TASKS_DATA_RECORD_SCANNER_H_
#define ETC_TASKS_DATA_RECORD_SCANNER_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace etc {

// The memory that the extents of records may take, shared by files that are
// opened at once. Take() comes before the allocation.
class RecordIndexBudget {
 public:
  explicit RecordIndexBudget(int64_t bytes) : bytes_(bytes), left_(bytes) {}

  // An eighth of the process's memory.
  static RecordIndexBudget ShareOfProcess();

  int64_t bytes() const { return bytes_; }
  // Takes `bytes`, unless fewer are left. Thread-safe.
  bool Take(int64_t bytes);

 private:
  const int64_t bytes_;
  std::atomic<int64_t> left_;
};

// Limits on the memory that a file may make the program take.
struct RecordLimits {
  uint64_t max_record_bytes = 64'000'000;
  // The field of a configuration that says so; empty: none does.
  std::string max_record_field = {};
  // Null: RecordIndexBudget::ShareOfProcess() for each file.
  RecordIndexBudget* index = nullptr;
};

// Finds where the records of a data file begin and end, in one pass over its
// bytes, which come in chunks of any size. Two layouts, with white space
// wherever JSON allows it, and a byte order mark at most at the front:
//
//   [ {...}, {...} ]     an array of objects
//   {...}\n{...}\n       objects, each on a line (or more) of its own
//
// Checks only strings, brackets and the text between records: the inside of a
// record is left to the JSON parser. Besides the extents that it finds, whose
// memory it takes from `limits.index`, it needs constant memory: a gzip file
// may unpack to a thousand times its length.
class RecordScanner {
 public:
  // First byte and number of bytes.
  using Extent = std::pair<uint64_t, uint64_t>;

  // Deepest nesting of brackets in a record, as in ParseJson.
  static constexpr int kMaxDepth = 64;

  // `source` starts each message. `limits.index` must outlive the scanner;
  // null: it has no bound here.
  explicit RecordScanner(std::string source, RecordLimits limits = {})
      : source_(std::move(source)), limits_(std::move(limits)) {}

  // Takes in the bytes that follow those of the calls before. To be called no
  // more after an error.
  //   kInvalidArgument    "<source>:<line>: byte <byte>: ..."; lines count
  //                       from 1, bytes from 0
  //   kResourceExhausted  the same, of a record that is too long, or the first
  //                       that is too many
  absl::Status Scan(absl::string_view chunk);

  // The end of the file. kInvalidArgument if it comes too early.
  absl::Status Finish() const;

  // The records that are complete, in order.
  std::vector<Extent> TakeExtents() { return std::move(extents_); }
  // True if record i, from 0 on, is line i + 1 of the file.
  bool has_a_record_a_line() const { return has_a_record_a_line_; }

 private:
  enum class State {
    kStart,         // before '[' or the first '{'
    kArrayStart,    // after '[': a record or ']'
    kArrayRecord,   // after ',': a record
    kArrayComma,    // after a record: ',' or ']'
    kArrayEnd,      // after ']': nothing
    kLinesRecord,   // after a line break: a record
    kLinesBreak,    // after a record: a line break
    kRecord,        // in a record, outside strings
    kString,        // in a string
    kStringEscape,  // after '\' in a string
  };

  // Each takes bytes from `*begin` on and moves it behind the last one taken.
  absl::Status ScanBetweenRecords(const char** begin, const char* end);
  absl::Status ScanRecord(const char** begin, const char* end);
  absl::Status ScanString(const char** begin, const char* end);

  absl::Status SkipByteOrderMark(absl::string_view* chunk);
  absl::Status TakeBetweenRecords(char byte, uint64_t at);
  absl::string_view ExpectedBetweenRecords() const;
  absl::Status OpenBracket(char bracket, uint64_t byte);
  absl::Status CloseBracket(char bracket, uint64_t byte);
  // Returns an error if a record that extends to `end` is too long already.
  absl::Status CheckLength(uint64_t end) const;
  absl::Status AddExtent(uint64_t end);
  // Position at which the record begins, as messages start.
  std::string AtRecord() const;
  absl::Status Error(uint64_t byte, absl::string_view message) const;
  // Offset in the file of a byte of the chunk that is being scanned.
  uint64_t ByteOf(const char* position) const {
    return chunk_offset_ + static_cast<uint64_t>(position - chunk_begin_);
  }

  std::string source_;
  RecordLimits limits_;
  std::vector<Extent> extents_;
  State state_ = State::kStart;
  bool is_array_ = false;
  bool has_a_record_a_line_ = true;
  // Bytes of a byte order mark seen so far; -1 once it can no longer come.
  int byte_order_mark_bytes_ = 0;
  // Open brackets of the current record, and one bit for each, the innermost
  // lowest: 1 for '{', 0 for '['.
  int depth_ = 0;
  uint64_t open_braces_ = 0;
  uint64_t record_begin_ = 0;
  int64_t record_line_ = 1;
  int64_t line_ = 1;
  uint64_t chunk_offset_ = 0;
  const char* chunk_begin_ = nullptr;
};

}  // namespace etc

#endif  // ETC_TASKS_DATA_RECORD_SCANNER_H_
