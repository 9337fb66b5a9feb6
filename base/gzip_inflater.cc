#include "base/gzip_inflater.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace etc {
namespace {

constexpr uint64_t kInputBytes = 16384;
constexpr size_t kWindowBytes = 32768;  // RFC 1951
constexpr size_t kTrailerBytes = 8;     // RFC 1952: sum and length
// zlib's windowBits for the formats.
constexpr int kGzip = 15 + 16;
constexpr int kRaw = -15;
// Bits of zlib's data_type after a call with Z_BLOCK.
constexpr int kUnusedBits = 7;
constexpr int kInLastBlock = 64;
constexpr int kBetweenBlocks = 128;

// zlib reads through pointers that are not const, but changes nothing there.
Bytef* Bytes(const char* bytes) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(bytes));
}

}  // namespace

GzipInflater::~GzipInflater() {
  if (is_started_) {
    inflateEnd(&stream_);
  }
}

absl::StatusOr<std::unique_ptr<GzipInflater>> GzipInflater::AtBeginning(
    const RandomAccessFile* file) {
  std::unique_ptr<GzipInflater> inflater(new GzipInflater(file));
  ETC_RETURN_IF_ERROR(inflater->Start(kGzip));
  return inflater;
}

absl::StatusOr<std::unique_ptr<GzipInflater>> GzipInflater::AtPoint(
    const RandomAccessFile* file, const GzipPoint& point) {
  std::unique_ptr<GzipInflater> inflater(new GzipInflater(file));
  inflater->is_raw_ = true;
  inflater->offset_ = point.offset;
  inflater->next_read_ = point.file_offset;
  ETC_RETURN_IF_ERROR(inflater->Start(kRaw));
  ETC_RETURN_IF_ERROR(inflater->RestoreWindow(point));
  return inflater;
}

absl::Status GzipInflater::Start(int window_bits) {
  const int result = inflateInit2(&stream_, window_bits);
  is_started_ = result == Z_OK;
  return is_started_ ? absl::OkStatus() : Damaged(result);
}

absl::Status GzipInflater::RestoreWindow(const GzipPoint& point) {
  if (point.bits > 0) {
    ETC_ASSIGN_OR_RETURN(const std::string byte,
                         file_->Read(point.file_offset - 1, 1));
    const int bits = static_cast<uint8_t>(byte[0]) >> (8 - point.bits);
    if (const int result = inflatePrime(&stream_, point.bits, bits);
        result != Z_OK) {
      return Damaged(result);
    }
  }
  std::string window(kWindowBytes, '\0');
  uLongf length = kWindowBytes;
  int result = uncompress(Bytes(window.data()), &length,
                          Bytes(point.window.data()), point.window.size());
  if (result == Z_OK) {
    result = inflateSetDictionary(&stream_, Bytes(window.data()),
                                  static_cast<uInt>(length));
  }
  return result == Z_OK ? absl::OkStatus() : Damaged(result);
}

absl::Status GzipInflater::Damaged(int result) const {
  if (result == Z_MEM_ERROR) {
    return absl::ResourceExhaustedError(
        absl::StrCat(file_->path(), ": there is no memory to unpack it"));
  }
  return absl::DataLossError(absl::StrCat(
      file_->path(), ": byte ", file_offset(), ": the gzip data are damaged: ",
      stream_.msg != nullptr ? stream_.msg : "not as zlib expects them"));
}

absl::Status GzipInflater::Fill() {
  if (stream_.avail_in > 0 || next_read_ == file_->size()) {
    return absl::OkStatus();
  }
  input_.resize(std::min(kInputBytes, file_->size() - next_read_));
  ETC_RETURN_IF_ERROR(file_->Read(next_read_, input_.size(), input_.data()));
  next_read_ += input_.size();
  stream_.next_in = Bytes(input_.data());
  stream_.avail_in = static_cast<uInt>(input_.size());
  return absl::OkStatus();
}

absl::Status GzipInflater::Require() {
  ETC_RETURN_IF_ERROR(Fill());
  return stream_.avail_in > 0
             ? absl::OkStatus()
             : absl::DataLossError(absl::StrCat(
                   file_->path(), ": the file ends in the middle of its gzip ",
                   "data, after ", file_->size(), " bytes"));
}

// Goes on to the next member, or to the end of the file. Zeros may stand
// between them: tapes are filled up with these.
absl::Status GzipInflater::EndMember() {
  for (size_t left = is_raw_ ? kTrailerBytes : 0; left > 0;) {
    ETC_RETURN_IF_ERROR(Require());
    const uInt taken =
        static_cast<uInt>(std::min<size_t>(left, stream_.avail_in));
    stream_.next_in += taken;
    stream_.avail_in -= taken;
    left -= taken;
  }
  ETC_RETURN_IF_ERROR(Fill());
  while (stream_.avail_in > 0 && *stream_.next_in == 0) {
    ++stream_.next_in;
    --stream_.avail_in;
    ETC_RETURN_IF_ERROR(Fill());
  }
  at_end_ = stream_.avail_in == 0;
  is_raw_ = false;
  const int result = inflateReset2(&stream_, kGzip);
  return result == Z_OK ? absl::OkStatus() : Damaged(result);
}

absl::StatusOr<size_t> GzipInflater::Next(char* destination, size_t length) {
  at_point_ = false;
  size_t produced = 0;
  while (produced == 0 && !at_point_ && !at_end_) {
    ETC_RETURN_IF_ERROR(Require());
    stream_.next_out = Bytes(destination);
    stream_.avail_out = static_cast<uInt>(
        std::min<size_t>(length, std::numeric_limits<uInt>::max()));
    const uInt room = stream_.avail_out;
    const int result = inflate(&stream_, Z_BLOCK);
    produced = room - stream_.avail_out;
    offset_ += produced;
    if (result == Z_STREAM_END) {
      ETC_RETURN_IF_ERROR(EndMember());
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      return Damaged(result);
    } else {
      // Z_BUF_ERROR: neither a byte taken nor one made, which zlib calls no
      // mistake: it has stopped between blocks.
      at_point_ = (stream_.data_type & kBetweenBlocks) != 0 &&
                  (stream_.data_type & kInLastBlock) == 0;
    }
  }
  return produced;
}

absl::StatusOr<GzipPoint> GzipInflater::MakePoint() {
  GzipPoint point = {.offset = offset_,
                     .file_offset = file_offset(),
                     .bits = stream_.data_type & kUnusedBits};
  std::string window(kWindowBytes, '\0');
  uInt length = 0;
  int result = inflateGetDictionary(&stream_, Bytes(window.data()), &length);
  if (result == Z_OK) {
    uLongf deflated = compressBound(length);
    point.window.resize(deflated);
    result = compress2(Bytes(point.window.data()), &deflated,
                       Bytes(window.data()), length, Z_BEST_SPEED);
    point.window.resize(deflated);
    point.window.shrink_to_fit();
  }
  if (result != Z_OK) {
    return Damaged(result);
  }
  return point;
}

}  // namespace etc
