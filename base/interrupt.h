#ifndef ETC_BASE_INTERRUPT_H_
#define ETC_BASE_INTERRUPT_H_

#include <atomic>

namespace etc {

// Becomes true at the first SIGINT (Ctrl-C) or SIGTERM after this call. Another
// one ends the program at once if it comes a second later or more: timeout(1)
// and some schedulers send two at a time, and mean one. Lives as long as the
// program.
const std::atomic<bool>* StopAtInterrupt();

}  // namespace etc

#endif  // ETC_BASE_INTERRUPT_H_
