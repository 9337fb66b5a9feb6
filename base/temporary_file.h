#ifndef ETC_BASE_TEMPORARY_FILE_H_
#define ETC_BASE_TEMPORARY_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace etc {

// A new file beside `target`, which it replaces in one step once it is
// complete, or which is removed. For files written over a long time, piece by
// piece; WriteFileAtomically in base/file.h is for all others. A killed process
// leaves it behind under its TemporaryName (RemoveAbandonedTemporaries).
//
// Uses FileOperations of the calling thread. Errors are those of the system,
// with `target` in the message.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string target);
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();

  // Before all else.
  absl::Status Create();
  // The path of the file until it is moved.
  const std::string& path() const { return path_; }

  // Puts `contents` at the end.
  absl::Status Write(absl::string_view contents);
  // Puts `contents`, of at most the bytes written so far, over the first ones.
  absl::Status Overwrite(absl::string_view contents);

  // Puts the bytes on disk (fsync): for several files that belong together,
  // each before the first is moved.
  absl::Status Sync();
  // Sync, rename to the target, fsync of the directory.
  absl::Status MoveToTarget();

 private:
  const std::string target_;
  std::string path_;  // empty: there is none to remove
  int descriptor_ = -1;
};

}  // namespace etc

#endif  // ETC_BASE_TEMPORARY_FILE_H_
