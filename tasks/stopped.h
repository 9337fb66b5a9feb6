#ifndef ETC_TASKS_STOPPED_H_
#define ETC_TASKS_STOPPED_H_

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"

namespace etc {

// Exit code of a run that a signal has stopped and that has saved what it
// trained (EX_TEMPFAIL of sysexits.h): to be started again with --resume.
inline constexpr int kStoppedExitCode = 75;

inline constexpr char kStoppedPayload[] = "realetc/stopped-and-saved";

// kCancelled, marked as the end of such a run.
inline absl::Status StoppedError(absl::string_view message) {
  absl::Status status = absl::CancelledError(message);
  status.SetPayload(kStoppedPayload, absl::Cord());
  return status;
}

inline bool IsStopped(const absl::Status& status) {
  return status.GetPayload(kStoppedPayload).has_value();
}

}  // namespace etc

#endif  // ETC_TASKS_STOPPED_H_
