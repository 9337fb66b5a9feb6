#ifndef ETC_TASKS_OUTPUT_APPENDED_FILE_H_
#define ETC_TASKS_OUTPUT_APPENDED_FILE_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace etc {

// A file that a run appends to. Nothing is buffered in the process, so that the
// file can be followed.
class AppendedFile {
 public:
  // Opens `path` to append after its first `bytes` bytes; the rest is removed.
  // A shorter file is left as it is. A new file's name is on disk when this
  // returns. Refuses a symbolic link, and all else that is no regular file.
  // Errors name the path.
  static absl::StatusOr<AppendedFile> Open(const std::string& path,
                                           int64_t bytes);

  AppendedFile(AppendedFile&& other) noexcept
      : path_(std::move(other.path_)),
        descriptor_(std::exchange(other.descriptor_, -1)),
        size_(other.size_) {}
  AppendedFile& operator=(AppendedFile&&) = delete;
  ~AppendedFile();

  // Appends `bytes` by one call of the system, unless it takes only a part. On
  // an error the file is as before, if it can still be shortened.
  absl::Status Append(absl::string_view bytes);

  // Puts the contents on disk.
  absl::Status Sync();

  // Bytes in the file.
  int64_t size() const { return size_; }

 private:
  AppendedFile(std::string path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_;
  int64_t size_ = 0;
};

}  // namespace etc

#endif  // ETC_TASKS_OUTPUT_APPENDED_FILE_H_
