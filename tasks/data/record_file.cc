#include "tasks/data/record_file.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "etc/formats/status_macros.h"
#include "tasks/data/record_scanner.h"

namespace etc {
namespace {

constexpr uint64_t kChunkBytes = uint64_t{1} << 20;

}  // namespace

RecordFile::RecordFile(RandomAccessFile file, std::vector<Extent> extents)
    : file_(std::move(file)), extents_(std::move(extents)) {}

absl::StatusOr<RecordFile> RecordFile::Open(const std::string& path) {
  ETC_ASSIGN_OR_RETURN(RandomAccessFile file, RandomAccessFile::Open(path));
  RecordScanner scanner(path);
  std::string chunk;
  for (uint64_t offset = 0; offset < file.size(); offset += chunk.size()) {
    chunk.resize(std::min(kChunkBytes, file.size() - offset));
    ETC_RETURN_IF_ERROR(file.Read(offset, chunk.size(), chunk.data()));
    ETC_RETURN_IF_ERROR(scanner.Scan(chunk));
  }
  ETC_RETURN_IF_ERROR(scanner.Finish());
  return RecordFile(std::move(file), scanner.TakeExtents());
}

absl::StatusOr<std::string> RecordFile::Read(int64_t index) const {
  if (index < 0 || index >= size()) {
    return absl::OutOfRangeError(absl::StrCat(path(), ": there is no record ",
                                              index, "; it has ", size()));
  }
  const auto& [begin, length] = extents_[static_cast<size_t>(index)];
  return file_.Read(begin, length);
}

std::string RecordFile::Where(int64_t index) const {
  return absl::StrCat(path(), ": record ", index);
}

}  // namespace etc
