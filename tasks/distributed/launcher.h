#ifndef ETC_TASKS_DISTRIBUTED_LAUNCHER_H_
#define ETC_TASKS_DISTRIBUTED_LAUNCHER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tasks/distributed/process_watch.h"

namespace etc {

inline constexpr int64_t kMostLaunchedProcesses = 1024;

struct LaunchOptions {
  // Number of processes, in [1, kMostLaunchedProcesses].
  int64_t processes = 1;
  // The arguments of each; the first is a command other than "launch".
  std::vector<std::string> command;
  // The program to start, by default this very one, and its argv[0].
  std::string program = "/proc/self/exe";
  std::string name = "realetc";
  // Its `grace_seconds`, in [0, 1e6], are time for rank 0 to save a checkpoint.
  WatchOptions watch = {};
};

// Runs `processes` copies of a program on this machine as the processes of one
// run, with RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and
// MASTER_PORT set (tasks/distributed/process_place.h): a port of 127.0.0.1 that
// was free just before. OMP_NUM_THREADS, unless it is set, divides the cores
// between them, up to kMostThreads each (base/cpu_limit.h).
//
// Writes their output line by line with "[rank] " before each, passes
// kStopSignals (base/interrupt.h) on, but not those that are ignored, and
// returns when all have ended. When one fails, the others are ended after the
// grace time; but once a signal was passed on, exits are expected, and the
// others have all their time to save. If this process is killed, they get
// SIGTERM. Must be called by one thread of a process at a time; the processes
// end if that thread does.
//
//   kInvalidArgument     the options are wrong
//   kFailedPrecondition  this process was itself started as one of a run
//   StoppedError         they were stopped and have saved, or ended by the
//                        signal that was passed on, before they could take it
//                        (base/interrupt.h)
//   kAborted             a process failed: "process 2 of 4 ended with exit code
//                        1", or "... was killed by signal 9 (SIGKILL)", of the
//                        first that did
//   kCancelled           the same after a signal was passed on
//   others               a process cannot be started or its output not written
absl::Status Launch(const LaunchOptions& options);

}  // namespace etc

#endif  // ETC_TASKS_DISTRIBUTED_LAUNCHER_H_
