#ifndef ETC_BASE_THREAD_CHECK_H_
#define ETC_BASE_THREAD_CHECK_H_

#include <cstdint>

#include "absl/status/status.h"

namespace etc {

// Checks that `threads` more threads can run at once: starts them all, and ends
// them. Pools of other libraries hang, or end the program, if one cannot be
// started.
//   kResourceExhausted  only some can; the message says how many, and the
//                       system's reason
absl::Status CheckThreadsStart(int64_t threads);

}  // namespace etc

#endif  // ETC_BASE_THREAD_CHECK_H_
