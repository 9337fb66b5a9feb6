#ifndef ETC_TASKS_TRAIN_RUN_CLAIMS_H_
#define ETC_TASKS_TRAIN_RUN_CLAIMS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/config/config.h"
#include "tasks/output/earlier_run.h"
#include "tasks/output/results.h"
#include "tasks/output/run_lock.h"

namespace etc {

// Refuses at once, before data are read, errors that the directory of a run
// decides: that another process trains there, that it has a run already or only
// damaged checkpoints, that its run had other settings, that it cannot be
// written.

// Checks that a run may begin in the directory of one seed, or go on there.
// Changes nothing.
//   kAlreadyExists       it has a run, with kRefuse
//   kFailedPrecondition  CheckpointSurvey::refusal; or there are metrics of a
//                        run whose checkpoints are gone; with kOverwrite also
//                        CheckpointStore::CheckRemovable
// Returns, with kOverwrite, also the errors of CheckWritableDirectory for its
// event files.
absl::Status CheckRunDirectory(const std::string& directory,
                               EarlierRun earlier);

// Creates the directory if it is not there, takes its lock and checks it.
//   kUnavailable  as of RunLock::Take
// Errors also as of CheckRunDirectory, and of the file system where it cannot
// be written.
absl::StatusOr<RunLock> ClaimRunDirectory(const std::string& directory,
                                          EarlierRun earlier);

// Removes the runs of the configuration's seeds, whose directories the caller
// has claimed, and the summary beside them: checkpoints, their averages
// (IsAverage), metrics.jsonl, event files (EventLog::Remove), result.json,
// summary.json, and nothing else. Seeds that the configuration does not have
// stay. Returns the directories of runs that were there. Errors also as of
// CheckSummary.
absl::StatusOr<std::vector<std::string>> RemoveRuns(const RunConfig& config);

// Options of beginning runs.
struct ClaimOptions {
  EarlierRun earlier = EarlierRun::kRefuse;
  // Like TrainOptions::allow_changes.
  std::vector<std::string> allow_changes = {};
  // True at the end: the run was stopped, and can be resumed. May be null.
  const std::atomic<bool>* stop = nullptr;
};

// The locks of the directories of a configuration's seeds, held as long as this
// lives. At its end it removes the files that it made itself, if nothing was
// added: a start that is refused later leaves nothing behind, one that is
// stopped a run that can be resumed.
class RunClaims {
 public:
  RunClaims();
  RunClaims(RunClaims&& other) noexcept;
  RunClaims& operator=(RunClaims&& other) noexcept;
  ~RunClaims();

  // Claims all of them, and names this process in each. A run to resume should
  // have had the same settings; those of files, and those that the task
  // completes from the data, are compared later.
  //   kFailedPrecondition  it had others
  // Errors also as of ClaimRunDirectory and CheckSummary.
  static absl::StatusOr<RunClaims> Take(const RunConfig& config,
                                        const ClaimOptions& options);

  // The lock of a directory; null if it is not claimed.
  const RunLock* Find(const std::string& directory) const;

 private:
  class Claim;
  static absl::StatusOr<std::unique_ptr<Claim>> TakeOne(
      const RunConfig& config, int64_t seed, const ClaimOptions& options);
  friend absl::Status CheckLaterRuns(const RunConfig& config,
                                     const ClaimOptions& options);

  std::vector<std::unique_ptr<Claim>> claims_;
};

// The same checks for runs that begin later: creates nothing and holds no lock.
// Only directories that are there are checked.
absl::Status CheckLaterRuns(const RunConfig& config,
                            const ClaimOptions& options);

// Returns true if the directory `output` has the run of a seed, or a grid.
bool IsBegun(const std::string& output);

// Checks that one of `directories` has the run of a seed to resume: the output
// directory `output` itself or, of a grid, those of its settings in it.
//   kNotFound  none has; the message says what is at `output`
absl::Status CheckHasRun(const std::string& output,
                         const std::vector<std::string>& directories);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_RUN_CLAIMS_H_
