#ifndef ETC_TASKS_OUTPUT_RUN_LOCK_H_
#define ETC_TASKS_OUTPUT_RUN_LOCK_H_

#include <chrono>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace etc {

// Patience with another holder that writes a file, which takes a moment; but a
// machine may have much else to do.
inline constexpr std::chrono::minutes kLongestWrite(5);

// The exclusive right to change the directory of a run: a lock (flock) on the
// file "lock" in it, which the system releases when the process ends, however
// it ends. The file names its holder:
//
//   {"pid": 4711, "host": "node7", "since": "2026-11-22T08:15:00Z"}
//
// The file stays when the lock is released, unless nothing else was made in the
// directory (RunClaims). A lock on a file that was removed meanwhile is none.
class RunLock {
 public:
  // Takes the lock of `directory`, which must exist; writes nothing but an
  // empty file if there is none. Waits for another holder no longer than
  // `patience`: a run that is refused later in its start holds the lock for a
  // moment, and a valid one that starts in that moment must not fail.
  //   kUnavailable         another process holds it; the message names it
  //   kFailedPrecondition  the file system has no such locks
  static absl::StatusOr<RunLock> Take(
      const std::string& directory,
      std::chrono::milliseconds patience = std::chrono::milliseconds(200));

  RunLock(RunLock&& other) noexcept
      : path_(std::move(other.path_)),
        descriptor_(std::exchange(other.descriptor_, -1)) {}
  RunLock& operator=(RunLock&&) = delete;
  ~RunLock();

  // Writes this process into the file, as the holder since now.
  absl::Status WriteHolder() const;

 private:
  RunLock(std::string path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_;
};

}  // namespace etc

#endif  // ETC_TASKS_OUTPUT_RUN_LOCK_H_
