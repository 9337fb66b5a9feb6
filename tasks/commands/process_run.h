#ifndef ETC_TASKS_COMMANDS_PROCESS_RUN_H_
#define ETC_TASKS_COMMANDS_PROCESS_RUN_H_

#include <memory>

#include "absl/status/status.h"
#include "tasks/distributed/process_group.h"
#include "tasks/train/progress.h"

namespace etc {

// A command's work as one rank of a launched run, or as the only process.
class ProcessRun {
 public:
  // Joins the other ranks, if the environment says that there are some; waits
  // for none longer than `timeout_s`.
  absl::Status Join(double timeout_s);

  // Null: there is one process.
  ProcessGroup* group() const { return group_.get(); }
  // Returns true for rank 0, which prints and writes for all.
  bool is_first() const { return group_ == nullptr || group_->is_first(); }
  // Reports to standard error on rank 0; else to nowhere.
  StreamReporter Reporter() const;

  // Returns `status` of the work; tells the other ranks of an error that ends
  // this one. A stop, which is that of all ranks, keeps its message on rank 0
  // alone.
  absl::Status End(const absl::Status& status);

 private:
  std::unique_ptr<ProcessGroup> group_;
};

}  // namespace etc

#endif  // ETC_TASKS_COMMANDS_PROCESS_RUN_H_
