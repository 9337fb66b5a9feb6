#ifndef ETC_BASE_THREADS_H_
#define ETC_BASE_THREADS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/cpu_limit.h"

namespace etc {

// Checks that `threads` more threads can run at once: starts them all, and ends
// them. Pools of other libraries hang, or end the program, if one cannot be
// started.
//   kResourceExhausted  only some can; the message says how many, and the
//                       system's reason
absl::Status CheckThreadsStart(int64_t threads);

// Sets the CPU threads of LibTorch, and starts them; 0: as many as
// DefaultThreads(). Returns how many it works with. `field` is their name in
// messages: "train.threads", or "--threads" where that set them.
//   kInvalidArgument    fewer than 0, or more than kMostThreads, of the field
//                       or of OMP_NUM_THREADS
//   kResourceExhausted  the system starts fewer
absl::StatusOr<int64_t> SetThreads(int64_t threads, const std::string& field);

// The name in messages of the number of CPU threads, which the option sets or
// else the configuration of the training: "--threads" or "train.threads".
std::string ThreadsField(const std::optional<int64_t>& option);

// Warns, for people, of more threads than the `cpus` that the process may use;
// empty: they are no more. `threads` and `field` as of SetThreads; the number
// at 0 can only be that of OMP_NUM_THREADS.
std::string ThreadsWarning(int64_t threads, const std::string& field,
                           int64_t cpus = CpusOfProcess());

}  // namespace etc

#endif  // ETC_BASE_THREADS_H_
