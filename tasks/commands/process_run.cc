#include "tasks/commands/process_run.h"

#include <ostream>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/interrupt.h"
#include "base/status_macros.h"
#include "tasks/commands/console.h"
#include "tasks/distributed/process_place.h"

namespace etc {

absl::Status ProcessRun::Join(double timeout_s) {
  ETC_ASSIGN_OR_RETURN(const ProcessPlace place,
                       FindProcessPlace(ProcessEnvironment()));
  if (place.world_size == 1) {
    return absl::OkStatus();
  }
  ETC_ASSIGN_OR_RETURN(group_,
                       ProcessGroup::Join(place, absl::Seconds(timeout_s)));
  return absl::OkStatus();
}

StreamReporter ProcessRun::Reporter() const {
  // A stream without a buffer takes nothing in.
  static auto* const nowhere = new std::ostream(nullptr);
  return is_first() ? ConsoleReporter()
                    : StreamReporter(nowhere, StreamReporter::Style::kLines);
}

absl::Status ProcessRun::End(const absl::Status& status) {
  if (group_ != nullptr) {
    group_->Leave(status);
  }
  return IsStopped(status) && !is_first() ? StoppedError("") : status;
}

}  // namespace etc
