#include "tasks/data/record_source.h"

#include <cstddef>
#include <utility>

#include "etc/formats/status_macros.h"
#include "tasks/data/data_files.h"

namespace etc {

RecordSource::RecordSource(std::vector<RecordFile> files, ExampleMaker maker)
    : files_(std::move(files)), maker_(std::move(maker)) {
  for (const RecordFile& file : files_) {
    size_ += file.size();
  }
}

absl::StatusOr<std::unique_ptr<RecordSource>> RecordSource::Open(
    const std::vector<std::string>& patterns, ExampleMaker maker) {
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                       FindDataFiles(patterns));
  std::vector<RecordFile> files;
  for (const std::string& path : paths) {
    ETC_ASSIGN_OR_RETURN(RecordFile file, RecordFile::Open(path));
    files.push_back(std::move(file));
  }
  // The constructor is private: make_unique cannot see it.
  return std::unique_ptr<RecordSource>(
      new RecordSource(std::move(files), std::move(maker)));
}

absl::StatusOr<Examples> RecordSource::Make(int64_t record) const {
  size_t file = 0;
  while (record >= files_[file].size()) {
    record -= files_[file].size();
    ++file;
  }
  ETC_ASSIGN_OR_RETURN(const std::string text, files_[file].Read(record));
  return maker_(text, files_[file].Where(record));
}

}  // namespace etc
