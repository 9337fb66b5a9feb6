#include "tasks/data/record_file.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"

namespace etc {
namespace {

constexpr uint64_t kChunkBytes = uint64_t{1} << 20;

// Takes the contents and how much of the file has been read.
using Consumer = GzipFile::Consumer;

absl::Status ReadPlain(const RandomAccessFile& file, const Consumer& consume) {
  std::string chunk;
  for (uint64_t offset = 0; offset < file.size(); offset += chunk.size()) {
    chunk.resize(std::min(kChunkBytes, file.size() - offset));
    ETC_RETURN_IF_ERROR(file.Read(offset, chunk.size(), chunk.data()));
    ETC_RETURN_IF_ERROR(consume(chunk, offset + chunk.size()));
  }
  return absl::OkStatus();
}

}  // namespace

RecordFile::RecordFile(File file, std::vector<Extent> extents)
    : file_(std::move(file)), extents_(std::move(extents)) {}

absl::StatusOr<RecordFile> RecordFile::Open(const std::string& path,
                                            const Listener& listener,
                                            const RecordLimits& limits) {
  return NamingOutOfMemory(
      [&] { return absl::StrCat("looking for the records of ", path); },
      [&] { return OpenWithin(path, listener, limits); });
}

absl::StatusOr<RecordFile> RecordFile::OpenWithin(const std::string& path,
                                                  const Listener& listener,
                                                  RecordLimits limits) {
  RecordIndexBudget own = RecordIndexBudget::ShareOfProcess();
  limits.index = limits.index != nullptr ? limits.index : &own;
  ETC_ASSIGN_OR_RETURN(RandomAccessFile plain, RandomAccessFile::Open(path));
  ETC_ASSIGN_OR_RETURN(const bool is_gzip, GzipFile::IsGzip(plain));
  RecordScanner scanner(path, std::move(limits));
  uint64_t reported = 0;
  const auto consume = [&](absl::string_view contents, uint64_t file_bytes) {
    ETC_RETURN_IF_ERROR(scanner.Scan(contents));
    const uint64_t more = file_bytes - std::exchange(reported, file_bytes);
    return listener ? listener(more) : absl::OkStatus();
  };
  if (is_gzip) {
    ETC_ASSIGN_OR_RETURN(GzipFile file,
                         GzipFile::Open(std::move(plain), consume, {}));
    ETC_RETURN_IF_ERROR(scanner.Finish());
    return RecordFile(std::move(file), scanner.TakeExtents());
  }
  ETC_RETURN_IF_ERROR(ReadPlain(plain, consume));
  ETC_RETURN_IF_ERROR(scanner.Finish());
  return RecordFile(std::move(plain), scanner.TakeExtents());
}

const std::string& RecordFile::path() const {
  return std::visit(
      [](const auto& file) -> const std::string& { return file.path(); },
      file_);
}

absl::StatusOr<std::string> RecordFile::Read(int64_t index) const {
  if (index < 0 || index >= size()) {
    return absl::OutOfRangeError(absl::StrCat(path(), ": there is no record ",
                                              index, "; it has ", size()));
  }
  const auto& [begin, length] = extents_[static_cast<size_t>(index)];
  // By name: clang 14 captures no structured binding otherwise.
  return std::visit([begin = begin, length = length](
                        const auto& file) { return file.Read(begin, length); },
                    file_);
}

std::string RecordFile::Where(int64_t index) const {
  return absl::StrCat(path(), ": record ", index);
}

}  // namespace etc
