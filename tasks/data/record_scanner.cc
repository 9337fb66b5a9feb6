#include "tasks/data/record_scanner.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/memory_limit.h"
#include "base/status_macros.h"
#include "base/utf8.h"

namespace etc {
namespace {

using ByteSet = std::array<bool, 256>;

constexpr ByteSet MakeByteSet(absl::string_view bytes) {
  ByteSet set = {};
  for (const char byte : bytes) {
    set[static_cast<unsigned char>(byte)] = true;
  }
  return set;
}

// The bytes that change the scanner's state within a record and within a
// string; runs of others are skipped.
constexpr ByteSet kRecordBytes = MakeByteSet("\"{}[]\n");
constexpr ByteSet kStringBytes = MakeByteSet("\"\\\n");

const char* FindByteOf(const ByteSet& set, const char* begin, const char* end) {
  while (begin != end && !set[static_cast<unsigned char>(*begin)]) {
    ++begin;
  }
  return begin;
}

std::string Quoted(char byte) {
  const auto code = static_cast<unsigned char>(byte);
  return std::isprint(code) ? absl::StrCat("'", std::string(1, byte), "'")
                            : absl::StrFormat("byte 0x%02x", code);
}

}  // namespace

RecordIndexBudget RecordIndexBudget::ShareOfProcess() {
  return RecordIndexBudget(MemoryOfProcess() / 8);
}

bool RecordIndexBudget::Take(int64_t bytes) {
  int64_t left = left_;
  while (bytes <= left) {
    if (left_.compare_exchange_weak(left, left - bytes)) {
      return true;
    }
  }
  return false;
}

absl::Status RecordScanner::Scan(absl::string_view chunk) {
  ETC_RETURN_IF_ERROR(SkipByteOrderMark(&chunk));
  chunk_begin_ = chunk.data();
  const char* position = chunk.data();
  const char* const end = chunk.data() + chunk.size();
  while (position != end) {
    switch (state_) {
      case State::kRecord:
        ETC_RETURN_IF_ERROR(ScanRecord(&position, end));
        break;
      case State::kString:
        ETC_RETURN_IF_ERROR(ScanString(&position, end));
        break;
      case State::kStringEscape:
        // An escaped byte, even a quote, does not end the string.
        ++position;
        state_ = State::kString;
        break;
      default:
        ETC_RETURN_IF_ERROR(ScanBetweenRecords(&position, end));
    }
  }
  chunk_offset_ += chunk.size();
  return depth_ > 0 ? CheckLength(chunk_offset_) : absl::OkStatus();
}

// The mark may be cut anywhere by the borders of chunks.
absl::Status RecordScanner::SkipByteOrderMark(absl::string_view* chunk) {
  while (byte_order_mark_bytes_ >= 0 && !chunk->empty()) {
    if (byte_order_mark_bytes_ == static_cast<int>(kByteOrderMark.size()) ||
        chunk->front() != kByteOrderMark[byte_order_mark_bytes_]) {
      if (byte_order_mark_bytes_ == 1 || byte_order_mark_bytes_ == 2) {
        return Error(0, "the byte order mark is not that of UTF-8");
      }
      byte_order_mark_bytes_ = -1;
      break;
    }
    chunk->remove_prefix(1);
    ++byte_order_mark_bytes_;
    ++chunk_offset_;
  }
  return absl::OkStatus();
}

absl::Status RecordScanner::ScanBetweenRecords(const char** begin,
                                               const char* end) {
  for (; *begin != end && state_ != State::kRecord; ++*begin) {
    const char byte = **begin;
    if (byte == '\n') {
      ++line_;
      if (state_ == State::kLinesBreak) {
        state_ = State::kLinesRecord;
      }
    } else if (byte != ' ' && byte != '\t' && byte != '\r') {
      ETC_RETURN_IF_ERROR(TakeBetweenRecords(byte, ByteOf(*begin)));
    }
  }
  return absl::OkStatus();
}

absl::Status RecordScanner::TakeBetweenRecords(char byte, uint64_t at) {
  const bool record_may_begin =
      state_ == State::kStart || state_ == State::kArrayStart ||
      state_ == State::kArrayRecord || state_ == State::kLinesRecord;
  const bool array_may_end =
      state_ == State::kArrayStart || state_ == State::kArrayComma;
  if (byte == '{' && record_may_begin) {
    record_begin_ = at;
    record_line_ = line_;
    return OpenBracket(byte, at);
  }
  if (byte == '[' && state_ == State::kStart) {
    is_array_ = true;
    state_ = State::kArrayStart;
  } else if (byte == ',' && state_ == State::kArrayComma) {
    state_ = State::kArrayRecord;
  } else if (byte == ']' && array_may_end) {
    state_ = State::kArrayEnd;
  } else {
    return Error(at, absl::StrCat("expected ", ExpectedBetweenRecords(),
                                  ", found ", Quoted(byte)));
  }
  return absl::OkStatus();
}

absl::string_view RecordScanner::ExpectedBetweenRecords() const {
  switch (state_) {
    case State::kStart:
      return "a JSON array of objects, or lines of JSON objects";
    case State::kArrayStart:
      return "'{' of a record, or ']'";
    case State::kArrayComma:
      return "',' or ']' after a record";
    case State::kArrayEnd:
      return "nothing after the array";
    case State::kLinesBreak:
      return "a line break after a record";
    default:
      return "'{' of a record";
  }
}

absl::Status RecordScanner::ScanRecord(const char** begin, const char* end) {
  while (*begin != end) {
    *begin = FindByteOf(kRecordBytes, *begin, end);
    if (*begin == end) {
      break;
    }
    const uint64_t at = ByteOf(*begin);
    const char byte = *(*begin)++;
    switch (byte) {
      case '"':
        state_ = State::kString;
        return absl::OkStatus();
      case '\n':
        ++line_;
        break;
      case '{':
      case '[':
        ETC_RETURN_IF_ERROR(OpenBracket(byte, at));
        break;
      default:
        ETC_RETURN_IF_ERROR(CloseBracket(byte, at));
        if (depth_ == 0) {
          return absl::OkStatus();
        }
    }
  }
  return absl::OkStatus();
}

absl::Status RecordScanner::ScanString(const char** begin, const char* end) {
  *begin = FindByteOf(kStringBytes, *begin, end);
  if (*begin == end) {
    return absl::OkStatus();
  }
  const uint64_t at = ByteOf(*begin);
  switch (*(*begin)++) {
    case '"':
      state_ = State::kRecord;
      break;
    case '\\':
      state_ = State::kStringEscape;
      break;
    default:
      return Error(at, "line break in a string: is its closing '\"' missing?");
  }
  return absl::OkStatus();
}

absl::Status RecordScanner::OpenBracket(char bracket, uint64_t byte) {
  if (depth_ == kMaxDepth) {
    return Error(byte, absl::StrCat("brackets are nested more than ", kMaxDepth,
                                    " deep"));
  }
  ++depth_;
  open_braces_ = open_braces_ << 1 | static_cast<uint64_t>(bracket == '{');
  state_ = State::kRecord;
  return absl::OkStatus();
}

absl::Status RecordScanner::CloseBracket(char bracket, uint64_t byte) {
  const char expected = (open_braces_ & 1) != 0 ? '}' : ']';
  if (bracket != expected) {
    return Error(byte, absl::StrCat("expected ", Quoted(expected), ", found ",
                                    Quoted(bracket), " (in the record that ",
                                    "begins on line ", record_line_, ")"));
  }
  open_braces_ >>= 1;
  if (--depth_ == 0) {
    ETC_RETURN_IF_ERROR(AddExtent(byte + 1));
    state_ = is_array_ ? State::kArrayComma : State::kLinesBreak;
  }
  return absl::OkStatus();
}

absl::Status RecordScanner::CheckLength(uint64_t end) const {
  if (end - record_begin_ <= limits_.max_record_bytes) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      AtRecord(), "the record that begins here should have at most ",
      limits_.max_record_bytes, " bytes",
      limits_.max_record_field.empty()
          ? ""
          : absl::StrCat(" (", limits_.max_record_field, ")"),
      ", but goes on"));
}

absl::Status RecordScanner::AddExtent(uint64_t end) {
  ETC_RETURN_IF_ERROR(CheckLength(end));
  if (extents_.size() == extents_.capacity()) {
    const size_t more = std::max<size_t>(64, extents_.size());
    if (limits_.index != nullptr &&
        !limits_.index->Take(static_cast<int64_t>(more * sizeof(Extent)))) {
      return absl::ResourceExhaustedError(absl::StrCat(
          AtRecord(), "after ", extents_.size(), " records of this file",
          " there is no memory left for the places of more: those of all data",
          " files (data.train, data.dev or --data) may take ",
          limits_.index->bytes(), " bytes, an eighth of this process's memory",
          "; name fewer or smaller files"));
    }
    extents_.reserve(extents_.size() + more);
  }
  has_a_record_a_line_ = has_a_record_a_line_ && !is_array_ &&
                         record_line_ == line_ &&
                         line_ == static_cast<int64_t>(extents_.size()) + 1;
  extents_.emplace_back(record_begin_, end - record_begin_);
  return absl::OkStatus();
}

absl::Status RecordScanner::Finish() const {
  switch (state_) {
    case State::kArrayEnd:
    case State::kLinesRecord:
    case State::kLinesBreak:
      return absl::OkStatus();
    case State::kStart:
      return Error(chunk_offset_,
                   absl::StrCat("expected ", ExpectedBetweenRecords(),
                                ", found the end of the file"));
    case State::kArrayStart:
    case State::kArrayRecord:
    case State::kArrayComma:
      return Error(chunk_offset_,
                   "the file ends before the ']' of its array of records");
    default:
      return Error(chunk_offset_,
                   absl::StrCat("the file ends within the record that begins "
                                "on line ",
                                record_line_, " at byte ", record_begin_));
  }
}

std::string RecordScanner::AtRecord() const {
  return absl::StrCat(source_, ":", record_line_, ": byte ", record_begin_,
                      ": ");
}

absl::Status RecordScanner::Error(uint64_t byte,
                                  absl::string_view message) const {
  return absl::InvalidArgumentError(
      absl::StrCat(source_, ":", line_, ": byte ", byte, ": ", message));
}

}  // namespace etc
