#include "tasks/data/text_file.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/gzip_file.h"
#include "base/status_macros.h"
#include "base/utf8.h"

namespace etc {
namespace {

constexpr size_t kFillBytes = size_t{1} << 20;

}  // namespace

void StripLineEnds(bool is_first, absl::string_view* line) {
  absl::ConsumeSuffix(line, "\r");
  if (is_first) {
    absl::ConsumePrefix(line, kByteOrderMark);
  }
}

TextFile::TextFile(RandomAccessFile file, const RecordLimits& limits)
    : file_(std::move(file)), limits_(limits) {}

absl::StatusOr<std::unique_ptr<TextFile>> TextFile::Open(
    const std::string& path, const RecordLimits& limits) {
  ETC_ASSIGN_OR_RETURN(RandomAccessFile file, RandomAccessFile::Open(path));
  ETC_ASSIGN_OR_RETURN(const bool is_gzip, GzipFile::IsGzip(file));
  auto text = absl::WrapUnique(new TextFile(std::move(file), limits));
  if (is_gzip) {
    ETC_ASSIGN_OR_RETURN(text->inflater_,
                         GzipInflater::AtBeginning(&text->file_));
  }
  return text;
}

uint64_t TextFile::position() const {
  return inflater_ != nullptr ? inflater_->file_offset() : offset_;
}

absl::Status TextFile::FillFromGzip(char* destination, size_t* size) {
  const size_t wanted = std::exchange(*size, 0);
  while (*size < wanted && !inflater_->at_end()) {
    ETC_ASSIGN_OR_RETURN(const size_t more,
                         inflater_->Next(destination + *size, wanted - *size));
    *size += more;
  }
  return absl::OkStatus();
}

absl::Status TextFile::Fill() {
  // Text handed out before is of no use any more.
  buffer_.erase(0, std::exchange(begin_, 0));
  const size_t before = buffer_.size();
  size_t size = kFillBytes;
  if (inflater_ == nullptr) {
    size = std::min<uint64_t>(size, file_.size() - offset_);
  }
  buffer_.resize(before + size);
  char* const destination = buffer_.data() + before;
  if (inflater_ == nullptr) {
    ETC_RETURN_IF_ERROR(file_.Read(offset_, size, destination));
    offset_ += size;
  } else {
    ETC_RETURN_IF_ERROR(FillFromGzip(destination, &size));
  }
  buffer_.resize(before + size);
  at_end_ = size == 0;
  return absl::OkStatus();
}

absl::StatusOr<bool> TextFile::NextLine(absl::string_view* line) {
  size_t searched = begin_;
  size_t end = buffer_.find('\n', searched);
  while (end == std::string::npos && !at_end_) {
    if (buffer_.size() - begin_ > limits_.max_record_bytes) {
      break;
    }
    searched = buffer_.size() - begin_;
    ETC_RETURN_IF_ERROR(Fill());
    end = buffer_.find('\n', searched);
  }
  const bool is_last = end == std::string::npos;
  end = is_last ? buffer_.size() : end;
  if (is_last && end == begin_) {
    return false;
  }
  ++line_number_;
  if (end - begin_ > limits_.max_record_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path(), ":", line_number_, ": a line should have at most ",
                     limits_.max_record_bytes, " bytes",
                     limits_.max_record_field.empty()
                         ? ""
                         : absl::StrCat(" (", limits_.max_record_field, ")"),
                     ", but this one has more"));
  }
  *line = absl::string_view(buffer_).substr(begin_, end - begin_);
  StripLineEnds(/*is_first=*/line_number_ == 1, line);
  begin_ = is_last ? end : end + 1;
  return true;
}

}  // namespace etc
