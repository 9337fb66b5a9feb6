#ifndef ETC_TASKS_TRAIN_RUN_LOCK_H_
#define ETC_TASKS_TRAIN_RUN_LOCK_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace etc {

// The right to change the directory of a run, which one process has at a time:
// a lock (flock) on the file "lock" in it, which the system takes back when the
// process ends, however it ends. The file says who has it:
//
//   {"pid": 4711, "host": "node7", "since": "2026-11-22T08:15:00Z"}
//
// It stays when the lock is given back: a file that is removed could be locked
// by two.
class RunLock {
 public:
  // Takes the lock of `directory`, which is there; writes nothing but an empty
  // file where there is none.
  //   kUnavailable         another process has it; the message says who
  //   kFailedPrecondition  the file system knows no such locks
  static absl::StatusOr<RunLock> Take(const std::string& directory);

  RunLock(RunLock&& other) noexcept
      : path_(std::move(other.path_)),
        descriptor_(std::exchange(other.descriptor_, -1)) {}
  RunLock& operator=(RunLock&&) = delete;
  ~RunLock();

  // Writes into the file that this process has it since now.
  absl::Status WriteHolder() const;

 private:
  RunLock(std::string path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_;
};

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_RUN_LOCK_H_
