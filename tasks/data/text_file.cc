#include "tasks/data/text_file.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "base/file_operations.h"
#include "base/gzip_file.h"
#include "base/status_macros.h"
#include "base/utf8.h"

namespace etc {
namespace {

constexpr size_t kFillBytes = size_t{1} << 20;

// Bytes that files of another kind have at an offset.
struct Mark {
  template <size_t kSize>
  constexpr Mark(size_t at, const char (&literal)[kSize],
                 absl::string_view kind_of_file)
      : offset(at), bytes(literal, kSize - 1), kind(kind_of_file) {}

  size_t offset;
  absl::string_view bytes;
  absl::string_view kind;
};

constexpr Mark kPackers[] = {
    {0, kGzipMagic, "gzip"}, {0, "\xfd\x37zXZ", "xz"},
    {4, "1AY&SY", "bzip2"},  {0, "\x28\xb5\x2f\xfd", "zstd"},
    {0, "PK\3\4", "zip"},    {257, "ustar", "tar"},
};

constexpr Mark kMarkup[] = {
    {0, "{\"", "JSON lines"},
    {0, "<doc ", "the output of WikiExtractor"},
    {0, "<mediawiki", "a dump of MediaWiki"},
};

// UTF-32 first: one of its marks begins as one of UTF-16 does.
constexpr Mark kEncodings[] = {
    {0, "\xff\xfe\0\0", "UTF-32"},
    {0, "\0\0\xfe\xff", "UTF-32"},
    {0, "\xff\xfe", "UTF-16"},
    {0, "\xfe\xff", "UTF-16"},
};

// The kind of the first of `marks` that a text which begins with `start` has,
// or "".
absl::string_view FindKind(absl::string_view start,
                           absl::Span<const Mark> marks) {
  for (const Mark& mark : marks) {
    if (start.size() > mark.offset &&
        absl::StartsWith(start.substr(mark.offset), mark.bytes)) {
      return mark.kind;
    }
  }
  return "";
}

}  // namespace

absl::Status CheckTextStart(absl::string_view start, const std::string& path) {
  if (const absl::string_view packer = FindKind(start, kPackers);
      !packer.empty()) {
    return InvalidArgument(path, " should be text, but is packed by ", packer,
                           ": unpack it first");
  }
  if (const absl::string_view encoding = FindKind(start, kEncodings);
      !encoding.empty()) {
    return InvalidArgument(path, " should be UTF-8, but begins as ", encoding,
                           " does; `iconv -f ", encoding,
                           " -t utf-8 FILE` converts it");
  }
  return absl::OkStatus();
}

void StripLineEnds(bool is_first, absl::string_view* line) {
  absl::ConsumeSuffix(line, "\r");
  if (is_first) {
    absl::ConsumePrefix(line, kByteOrderMark);
  }
}

TextFile::TextFile(std::string path, const RecordLimits& limits)
    : path_(std::move(path)), limits_(limits) {}

absl::StatusOr<std::unique_ptr<TextFile>> TextFile::Open(
    const std::string& path, const RecordLimits& limits) {
  ETC_ASSIGN_OR_RETURN(RandomAccessFile file, RandomAccessFile::Open(path));
  ETC_ASSIGN_OR_RETURN(const bool is_gzip, GzipFile::IsGzip(file));
  auto text = absl::WrapUnique(new TextFile(path, limits));
  text->file_.emplace(std::move(file));
  if (is_gzip) {
    ETC_ASSIGN_OR_RETURN(text->inflater_,
                         GzipInflater::AtBeginning(&*text->file_));
  }
  ETC_RETURN_IF_ERROR(text->CheckStart());
  return text;
}

absl::StatusOr<std::unique_ptr<TextFile>> TextFile::OpenStandardInput(
    const RecordLimits& limits, const std::atomic<bool>* stop) {
  auto text = absl::WrapUnique(new TextFile("stdin", limits));
  text->stop_ = stop;
  ETC_RETURN_IF_ERROR(text->CheckStart());
  return text;
}

absl::Status TextFile::CheckStart() {
  // A pipe may give fewer bytes at a time.
  while (buffer_.size() < kTextStartBytes && !at_end_) {
    ETC_RETURN_IF_ERROR(Fill(kTextStartBytes - buffer_.size()));
  }
  return CheckTextStart(buffer_, path_);
}

uint64_t TextFile::position() const {
  return inflater_ != nullptr ? inflater_->file_offset() : offset_;
}

absl::Status TextFile::Fill(size_t size) {
  // Text handed out before is of no use any more.
  buffer_.erase(0, std::exchange(begin_, 0));
  const size_t before = buffer_.size();
  buffer_.resize(before + size);
  ETC_ASSIGN_OR_RETURN(const size_t more, Read(size, buffer_.data() + before));
  buffer_.resize(before + more);
  at_end_ = more == 0;
  return absl::OkStatus();
}

absl::StatusOr<size_t> TextFile::Read(size_t size, char* destination) {
  if (!file_.has_value()) {
    return ReadStandardInput(size, destination);
  }
  if (inflater_ != nullptr) {
    return ReadGzip(size, destination);
  }
  size = std::min<uint64_t>(size, file_->size() - offset_);
  ETC_RETURN_IF_ERROR(file_->Read(offset_, size, destination));
  offset_ += size;
  return size;
}

absl::StatusOr<size_t> TextFile::ReadGzip(size_t size, char* destination) {
  size_t done = 0;
  while (done < size && !inflater_->at_end()) {
    ETC_ASSIGN_OR_RETURN(const size_t more,
                         inflater_->Next(destination + done, size - done));
    done += more;
  }
  return done;
}

absl::StatusOr<size_t> TextFile::ReadStandardInput(size_t size,
                                                   char* destination) {
  constexpr int kPollMilliseconds = 200;
  while (stop_ == nullptr || !stop_->load()) {
    pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (poll(&input, 1, kPollMilliseconds) <= 0) {
      continue;
    }
    const ssize_t done = read(STDIN_FILENO, destination, size);
    if (done >= 0) {
      offset_ += static_cast<uint64_t>(done);
      return static_cast<size_t>(done);
    }
    if (errno != EINTR && errno != EAGAIN) {
      return ErrnoStatus(errno, "read", path_);
    }
  }
  return absl::CancelledError("the reading of standard input was stopped");
}

absl::StatusOr<bool> TextFile::NextLine(absl::string_view* line) {
  size_t searched = begin_;
  size_t end = buffer_.find('\n', searched);
  while (end == std::string::npos && !at_end_) {
    if (buffer_.size() - begin_ > limits_.max_record_bytes) {
      break;
    }
    searched = buffer_.size() - begin_;
    ETC_RETURN_IF_ERROR(Fill(kFillBytes));
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

absl::StatusOr<std::string> FindMarkup(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    ETC_ASSIGN_OR_RETURN(const auto file, TextFile::Open(path));
    absl::string_view start = file->start();
    absl::ConsumePrefix(&start, kByteOrderMark);
    if (const absl::string_view kind = FindKind(start, kMarkup);
        !kind.empty()) {
      return absl::StrCat(path, " looks like ", kind);
    }
  }
  return std::string();
}

}  // namespace etc
