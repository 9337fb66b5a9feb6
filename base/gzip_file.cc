#include "base/gzip_file.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/gzip_inflater.h"
#include "base/status_macros.h"

namespace etc {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 20;
constexpr size_t kSkippedBytes = size_t{1} << 16;
constexpr size_t kMostIdleInflaters = 4;

}  // namespace

// Behind a pointer, because inflaters refer to the file.
class GzipFile::Contents {
 public:
  explicit Contents(RandomAccessFile file, GzipIndex index = {})
      : file_(std::move(file)), index_(std::move(index)) {}

  const std::string& path() const { return file_.path(); }
  uint64_t file_size() const { return file_.size(); }
  const GzipIndex& index() const { return index_; }

  // Sets the index.
  absl::Status Scan(const Consumer& consume, uint64_t span_bytes) {
    ETC_ASSIGN_OR_RETURN(const auto inflater,
                         GzipInflater::AtBeginning(&file_));
    std::string chunk(kChunkBytes, '\0');
    size_t filled = 0;
    while (!inflater->at_end()) {
      ETC_ASSIGN_OR_RETURN(
          const size_t produced,
          inflater->Next(chunk.data() + filled, chunk.size() - filled));
      filled += produced;
      if (inflater->at_point() &&
          (index_.points.empty() ||
           inflater->offset() >= index_.points.back().offset + span_bytes)) {
        ETC_ASSIGN_OR_RETURN(index_.points.emplace_back(),
                             inflater->MakePoint());
      }
      if (filled == chunk.size() || inflater->at_end()) {
        ETC_RETURN_IF_ERROR(
            consume({chunk.data(), filled}, inflater->file_offset()));
        filled = 0;
      }
    }
    index_.size = inflater->offset();
    return absl::OkStatus();
  }

  // [offset, offset + length) must be within the contents.
  absl::Status Read(uint64_t offset, uint64_t length, char* destination) {
    if (length == 0) {
      return absl::OkStatus();
    }
    ETC_ASSIGN_OR_RETURN(auto inflater, TakeInflaterBefore(offset));
    std::string skipped;
    while (inflater->offset() < offset) {
      skipped.resize(kSkippedBytes);
      ETC_RETURN_IF_ERROR(Advance(
          std::min<uint64_t>(kSkippedBytes, offset - inflater->offset()),
          skipped.data(), inflater.get()));
    }
    while (inflater->offset() < offset + length) {
      const uint64_t done = inflater->offset() - offset;
      ETC_RETURN_IF_ERROR(
          Advance(length - done, destination + done, inflater.get()));
    }
    KeepInflater(std::move(inflater));
    return absl::OkStatus();
  }

 private:
  using Inflater = std::unique_ptr<GzipInflater>;

  absl::Status Advance(uint64_t length, char* destination,
                       GzipInflater* inflater) const {
    if (inflater->at_end()) {
      return absl::DataLossError(
          absl::StrCat(path(), ": the file has changed since it was opened"));
    }
    return inflater->Next(destination, length).status();
  }

  // One that is not far before `offset`.
  absl::StatusOr<Inflater> TakeInflaterBefore(uint64_t offset) {
    // There is a point at 0: before the first block of the first member.
    const GzipPoint& point = *std::prev(std::upper_bound(
        index_.points.begin(), index_.points.end(), offset,
        [](uint64_t at, const GzipPoint& other) { return at < other.offset; }));
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      auto best = idle_.end();
      for (auto it = idle_.begin(); it != idle_.end(); ++it) {
        const uint64_t at = (*it)->offset();
        if (at >= point.offset && at <= offset &&
            (best == idle_.end() || at > (*best)->offset())) {
          best = it;
        }
      }
      if (best != idle_.end()) {
        Inflater inflater = std::move(*best);
        idle_.erase(best);
        return inflater;
      }
    }
    return GzipInflater::AtPoint(&file_, point);
  }

  void KeepInflater(Inflater inflater) {
    Inflater oldest;  // to be destroyed outside of the lock
    const std::lock_guard<std::mutex> lock(mutex_);
    if (idle_.size() == kMostIdleInflaters) {
      oldest = std::move(idle_.front());
      idle_.erase(idle_.begin());
    }
    idle_.push_back(std::move(inflater));
  }

  const RandomAccessFile file_;
  GzipIndex index_;
  std::mutex mutex_;
  std::vector<Inflater> idle_;  // the oldest first; guarded by mutex_
};

GzipFile::GzipFile(std::unique_ptr<Contents> contents)
    : contents_(std::move(contents)) {}
GzipFile::GzipFile(RandomAccessFile file, GzipIndex index)
    : contents_(std::make_unique<Contents>(std::move(file), std::move(index))) {
}
GzipFile::GzipFile(GzipFile&& other) noexcept = default;
GzipFile& GzipFile::operator=(GzipFile&& other) noexcept = default;
GzipFile::~GzipFile() = default;

const std::string& GzipFile::path() const { return contents_->path(); }
uint64_t GzipFile::file_size() const { return contents_->file_size(); }
const GzipIndex& GzipFile::index() const { return contents_->index(); }

absl::StatusOr<bool> GzipFile::IsGzip(const RandomAccessFile& file) {
  const absl::string_view magic = kGzipMagic;
  if (file.size() < magic.size()) {
    return false;
  }
  ETC_ASSIGN_OR_RETURN(const std::string begin, file.Read(0, magic.size()));
  return begin == magic;
}

absl::StatusOr<GzipFile> GzipFile::Open(RandomAccessFile file,
                                        const Consumer& consume,
                                        const Options& options) {
  auto contents = std::make_unique<Contents>(std::move(file));
  ETC_RETURN_IF_ERROR(contents->Scan(consume, options.span_bytes));
  return GzipFile(std::move(contents));
}

absl::Status GzipFile::CheckRange(uint64_t offset, uint64_t length) const {
  if (offset > size() || length > size() - offset) {
    return absl::OutOfRangeError(
        absl::StrCat(path(), ": ", length, " bytes from byte ", offset,
                     " were asked for, but the contents have ", size()));
  }
  return absl::OkStatus();
}

absl::Status GzipFile::Read(uint64_t offset, uint64_t length,
                            char* destination) const {
  ETC_RETURN_IF_ERROR(CheckRange(offset, length));
  return contents_->Read(offset, length, destination);
}

absl::StatusOr<std::string> GzipFile::Read(uint64_t offset,
                                           uint64_t length) const {
  ETC_RETURN_IF_ERROR(CheckRange(offset, length));
  std::string bytes(length, '\0');
  ETC_RETURN_IF_ERROR(contents_->Read(offset, length, bytes.data()));
  return bytes;
}

absl::StatusOr<std::string> ReadUnpackedFile(const std::string& path,
                                             uint64_t max_bytes) {
  ETC_ASSIGN_OR_RETURN(RandomAccessFile file, RandomAccessFile::Open(path));
  ETC_ASSIGN_OR_RETURN(const bool is_gzip, GzipFile::IsGzip(file));
  if (!is_gzip) {
    return ReadFile(path, max_bytes);
  }
  std::string contents;
  const auto append = [&](absl::string_view piece, uint64_t) {
    if (piece.size() > max_bytes - contents.size()) {
      return absl::ResourceExhaustedError(
          absl::StrCat(path, " should have at most ", max_bytes,
                       " bytes when it is unpacked, but has more"));
    }
    absl::StrAppend(&contents, piece);
    return absl::OkStatus();
  };
  ETC_RETURN_IF_ERROR(
      GzipFile::Open(std::move(file), append, GzipFile::Options{}).status());
  return contents;
}

}  // namespace etc
