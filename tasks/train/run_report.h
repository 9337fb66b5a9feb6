#ifndef ETC_TASKS_TRAIN_RUN_REPORT_H_
#define ETC_TASKS_TRAIN_RUN_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json_fwd.hpp"
#include "tasks/data/loader.h"
#include "tasks/output/event_log.h"
#include "tasks/output/metrics_log.h"
#include "tasks/train/evaluate.h"
#include "tasks/train/progress.h"
#include "tasks/train/run.h"
#include "tasks/train/train_step.h"
#include "tasks/train/training_state.h"

namespace etc {

// Reports a run: lines of metrics, and messages to its reporter.
class RunReport {
 public:
  // `events`, if there are any, get the same numbers as `log`.
  RunReport(const RunOptions& options, MetricsLog log,
            std::optional<EventLog> events);

  struct Times {
    double seconds = 0;         // of the whole update
    double seconds_waited = 0;  // of these, for examples
    // Seconds of these spent on communication, with several ranks.
    double seconds_communicating = 0;
    int64_t page_faults = 0;  // of all threads
  };
  // Reports an update; `state` is that after it, and `skipped` are all training
  // records so far that were not used.
  absl::Status ReportUpdate(const TrainingState& state,
                            const TrainStepResult& update, const Times& times,
                            const SkippedRecords& skipped);
  // `state` is that after the evaluation, `best_before` its best until then.
  absl::Status ReportEvaluation(const TrainingState& state,
                                const Evaluation& evaluation,
                                const Metrics& best_before);
  // Writes the last line of a run that `error` ends after update `step`
  // (kDivergence).
  absl::Status ReportDivergence(int64_t step, const absl::Status& error);

  // Reports the training records that were not used, at an end of the run
  // before its last update.
  void ReportUnused(const SkippedRecords& skipped) {
    ReportSkipped("training", skipped, &skipped_train_);
    ReportLeftOut(skipped);
    ReportLosses("training", skipped, &told_losses_of_train_);
  }

  // Puts the lines so far on disk.
  absl::Status Sync();
  int64_t metrics_bytes() const { return log_.size(); }

 private:
  // Writes a line of metrics, and `gates`, if there are any, as a histogram.
  absl::Status Write(const nlohmann::ordered_json& line,
                     const std::vector<double>& gates);
  // Ends events_ with a message if `status` is an error: a full disk does not
  // end the training as long as metrics.jsonl can be written.
  void NoteEvents(const absl::Status& status);
  // Messages before the last update, each once; `passes` were made over all
  // training records.
  void ReportUnusedSoFar(const SkippedRecords& skipped, int64_t passes);
  // A message, if more records were skipped than `*reported`.
  void ReportSkipped(const std::string& data, const SkippedRecords& skipped,
                     int64_t* reported);
  // Messages, if records were cut or have lost their answers and none before
  // has said so.
  void ReportLosses(const std::string& data, const SkippedRecords& skipped,
                    bool* reported);
  // A message for each reason to leave out training examples.
  void ReportLeftOut(const SkippedRecords& skipped);

  const RunOptions options_;
  MetricsLog log_;
  std::optional<EventLog> events_;
  ProgressMeter meter_;
  bool warned_ = false;
  int warned_of_model_ = 0;  // the highest severity so far
  int64_t skipped_train_ = 0;
  int64_t skipped_dev_ = 0;
  bool told_losses_of_train_ = false;
  bool told_losses_of_dev_ = false;
};

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_RUN_REPORT_H_
