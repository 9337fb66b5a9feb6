#include "tasks/data/read_text.h"

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "base/gzip_file.h"
#include "base/status_macros.h"

namespace etc {

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  ETC_ASSIGN_OR_RETURN(RandomAccessFile file, RandomAccessFile::Open(path));
  ETC_ASSIGN_OR_RETURN(const bool is_packed, GzipFile::IsGzip(file));
  if (!is_packed) {
    return file.Read(0, file.size());
  }
  std::string text;
  const auto append = [&text](absl::string_view part, uint64_t) {
    text.append(part.data(), part.size());
    return absl::OkStatus();
  };
  ETC_RETURN_IF_ERROR(
      GzipFile::Open(std::move(file), append, GzipFile::Options{}).status());
  return text;
}

}  // namespace etc
