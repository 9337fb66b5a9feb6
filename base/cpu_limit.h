#ifndef ETC_BASE_CPU_LIMIT_H_
#define ETC_BASE_CPU_LIMIT_H_

#include <cstdint>
#include <string>

namespace etc {

// CPUs that the process may use, at least 1: those that it may run on
// (taskset, cpusets), or fewer where a control group's quota says so
// (base/control_group.h), of which a fraction counts as one. `root` is that of
// ReadControlGroupLimits.
int64_t CpusOfProcess(const std::string& root = "");

// The most threads that a process works with (SetThreads).
inline constexpr int64_t kMostThreads = 1024;

// Threads that a process works with unless it is told: OMP_NUM_THREADS, of a
// list for nested loops ("4,2") the first number, which may be above
// kMostThreads; or else CpusOfProcess(), at most kMostThreads.
int64_t DefaultThreads();

}  // namespace etc

#endif  // ETC_BASE_CPU_LIMIT_H_
