#ifndef ETC_TASKS_TRAIN_RUN_CONTEXT_H_
#define ETC_TASKS_TRAIN_RUN_CONTEXT_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tasks/distributed/process_group.h"
#include "tasks/task/notices.h"
#include "tasks/train/progress.h"

namespace etc {

// The surroundings of a training or an evaluation, the same for all its parts:
// who listens, who may stop it, and the other ranks. Everything pointed to must
// outlive the run; each pointer may be null. A copy is as good as the original.
struct RunContext {
  // Gets messages, warnings and progress. Null: nobody listens.
  RunReporter* reporter = nullptr;
  // Checked before each record, batch and micro-batch: true ends the work in
  // progress. A training saves and returns, all else ends with kCancelled.
  // Null: it runs to its end.
  const std::atomic<bool>* stop = nullptr;
  // The ranks that do the work together, each of which makes the same calls.
  // Null: this process does it alone.
  ProcessGroup* group = nullptr;

  bool is_stopped() const { return stop != nullptr && stop->load(); }
  int64_t rank() const { return group == nullptr ? 0 : group->rank(); }
  int64_t processes() const { return group == nullptr ? 1 : group->size(); }
  // True on rank 0, which reads and writes the run's directory.
  bool is_first() const { return group == nullptr || group->is_first(); }
  // Returns `status`, or the error of another rank: a collective operation.
  absl::Status Agree(const absl::Status& status) const {
    return group == nullptr ? status : group->Agree(status);
  }
  void Message(absl::string_view text) const {
    if (reporter != nullptr) {
      reporter->Message(text);
    }
  }
  // For messages that the runs of a grid would repeat.
  void MessageOnce(absl::string_view text) const {
    if (reporter != nullptr) {
      reporter->MessageOnce(text);
    }
  }
  // An empty text is no warning.
  void Warn(absl::string_view text) const {
    if (reporter != nullptr && !text.empty()) {
      reporter->Warn(text);
    }
  }
  void WarnOnce(absl::string_view text) const {
    if (reporter != nullptr && !text.empty()) {
      reporter->WarnOnce(text);
    }
  }
  void TellOnce(const Notices& notices) const {
    for (const std::string& message : notices.messages) {
      MessageOnce(message);
    }
    for (const std::string& warning : notices.warnings) {
      WarnOnce(warning);
    }
  }
};

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_RUN_CONTEXT_H_
