#ifndef ETC_TASKS_COMMANDS_PROCESS_RUN_H_
#define ETC_TASKS_COMMANDS_PROCESS_RUN_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "tasks/distributed/process_group.h"
#include "tasks/train/progress.h"

namespace etc {

// A command's work as one of the processes that a launcher has started, or as
// the only one.
class ProcessRun {
 public:
  // Joins the others, if the environment says that there are some; none is
  // waited for longer than `timeout_s`.
  absl::Status Join(double timeout_s);

  // Null: this process is alone.
  ProcessGroup* group() const { return group_.get(); }
  // Whether this process speaks and writes for all.
  bool is_first() const { return group_ == nullptr || group_->is_first(); }
  // To standard error if this process speaks; else to nowhere.
  StreamReporter Reporter() const;
  void PrintWarnings(const std::vector<std::string>& warnings) const;

  // `status` of the work; tells the others of an error that ends this process.
  absl::Status End(const absl::Status& status);

 private:
  std::unique_ptr<ProcessGroup> group_;
};

}  // namespace etc

#endif  // ETC_TASKS_COMMANDS_PROCESS_RUN_H_
