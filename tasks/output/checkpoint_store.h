#ifndef ETC_TASKS_OUTPUT_CHECKPOINT_STORE_H_
#define ETC_TASKS_OUTPUT_CHECKPOINT_STORE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/metrics.h"
#include "tasks/output/checkpoint_record.h"
#include "tasks/output/checkpoint_survey.h"

namespace etc {

// The checkpoints that a run keeps: the last ones, and of those with scores the
// best ones by `metric`, of equal ones the latest.
struct KeptCheckpoints {
  int64_t last = 1;
  int64_t best = 1;
  MainMetric metric = {};
};

// The checkpoints of one run:
//
//   <directory>/owner.json        the run's id, drawn at random
//   <directory>/checkpoints.json  the last and the best checkpoint, with steps
//                                 and scores (CheckpointRecord)
//   <directory>/step-00000120/    one checkpoint each, with the files of the
//                                 caller and owner.json (CheckpointOwner)
//   <directory>/last, best        links to the two, for people and scripts,
//                                 where the file system has links
//
// A checkpoint gets its name only when all of it is on disk, and
// checkpoints.json is replaced atomically; so whenever the process or the
// machine stops, it names whole checkpoints. If it or the links are lost, the
// checkpoints are found by their own files (CheckpointSurvey).
//
// Deletes only checkpoints that checkpoints.json calls superseded, and only
// those that this run made, as their name or their contents prove:
//
//   <name>.unfinished-<run>  is being written or deleted, or is a new link
//   <name>/owner.json        {"name": "<name>", "run": "<run>"}: a checkpoint
//                            under the name that it was given. A copy has
//                            another name, a checkpoint of another run another
//                            id, and both stay.
//
// Kept are the last checkpoint and the best one, and as many more as
// KeptCheckpoints says. An interim one (CheckpointOwner) counts among the last
// while it is the last itself, so that those that stay do not depend on where a
// run was stopped. The caller must hold the RunLock of the run to change a
// store.
class CheckpointStore {
 public:
  // Does not access the directory, which need not exist.
  explicit CheckpointStore(std::string directory, KeptCheckpoints kept = {})
      : directory_(std::move(directory)), kept_(std::move(kept)) {}

  // Checks that a run may begin or be resumed here: returns
  // CheckpointSurvey::refusal. Changes nothing.
  absl::Status Check() const { return SurveyCheckpoints(directory_).refusal; }

  // Creates the directory if it does not exist, records its entries, and
  // deletes those that a killed run left behind. Recorded ones beyond `kept`
  // stay until the next Save, MarkAsBest or NoteEvaluation. Must be called
  // once, before these. Errors also as of Check().
  absl::Status TakeOver();

  // Checks that FinishRemoval() would leave nothing behind. Changes nothing.
  //   kFailedPrecondition  names the first entry that no run of ours has there,
  //                        or not this one
  // Errors also as of Check().
  absl::Status CheckRemovable() const;

  // Removes the run in two steps, after CheckRemovable(). The first one records
  // that the run has no checkpoint any more, and deletes none: a run that takes
  // over the directory from then on begins anew. The second one deletes the
  // checkpoints, the record and the links. To be called instead of TakeOver, by
  // an object that is not used for anything else.
  absl::Status BeginRemoval();
  absl::Status FinishRemoval();

  // Writes the checkpoint of `step` with `write`, which puts files into the
  // directory that it is given, and makes it the last. If the name is taken,
  // it is called "step-00000120-2".
  absl::Status Save(
      int64_t step,
      const std::function<absl::Status(const std::string& directory)>& write,
      bool is_interim = false);

  // Notes the scores of the last checkpoint and, if `is_best`, makes it the
  // best.
  //   kFailedPrecondition  no checkpoint was saved yet
  absl::Status NoteEvaluation(const Metrics& scores, bool is_best);
  // Makes the newest kept checkpoint of `step` the best; does nothing if none
  // is kept, or if one of that step is the best.
  absl::Status MarkAsBest(int64_t step);
  // Returns true if a checkpoint of `step` is there. Before TakeOver, as
  // checkpoints.json, `last` and `best` have them.
  bool HasCheckpoint(int64_t step) const;
  // The kept checkpoints that have scores and are there, in the order of their
  // steps. Before TakeOver, as checkpoints.json has them.
  std::vector<RecordedCheckpoint> evaluated() const;

  // The directory of the last and of the best checkpoint; nothing if there is
  // none. Before TakeOver, as SurveyCheckpoints finds them.
  std::optional<std::string> last() const;
  std::optional<std::string> best() const;

  // Returns the messages for the user since the last call, one line each: about
  // unexpected checkpoints, and a file system without links.
  std::vector<std::string> TakeMessages() {
    return std::exchange(messages_, {});
  }
  // The same of warnings: about operations that failed.
  std::vector<std::string> TakeWarnings() {
    return std::exchange(warnings_, {});
  }

  // Adds to the status of a model that has diverged (kAborted) the checkpoint
  // to go back to, the last one. Others unchanged.
  absl::Status WithLastGood(const absl::Status& status) const;

 private:
  std::string PathOf(const std::string& name) const;
  // The name while it is being written or deleted.
  std::string UnfinishedName(const std::string& name) const;
  // The entries of the directory.
  absl::StatusOr<std::vector<std::string>> Names() const;
  // Takes the run's id of the survey, or draws one.
  absl::Status FindRun(const CheckpointSurvey& found);
  // Gives `last` and `best` that are directories the names of their
  // checkpoints, or of copies of these.
  absl::Status RenameFollowedLinks();
  // The name of the checkpoint that is the entry `entry` of the directory.
  //   kFailedPrecondition  something else has that name
  absl::StatusOr<std::string> NameOf(const std::string& entry) const;
  absl::Status FillRecord(const CheckpointSurvey& found);
  absl::StatusOr<RecordedCheckpoint> Recorded(const std::string& name) const;
  // The recorded checkpoints that are there. Before TakeOver, as
  // SurveyCheckpoints finds them, with the last and the best one.
  std::map<std::string, RecordedCheckpoint> Present() const;
  // The names of the checkpoints of `record` that are kept.
  std::set<std::string> KeptNames(const CheckpointRecord& record) const;
  // Moves the other checkpoints of `record` to the superseded ones.
  void Supersede(CheckpointRecord* record) const;
  // Writes record_, points the links accordingly, and deletes superseded
  // entries; those that cannot be deleted stay superseded, with a message.
  absl::Status Commit(CheckpointRecord record);
  // Returns true if `name` is a checkpoint of `run` under the name that it was
  // given.
  bool IsCheckpointOf(const std::string& name, const std::string& run) const;
  void PointLink(const std::string& link, const std::string& name);
  // Returns true if `name` is an entry that FinishRemoval() deletes. `run` is
  // the run's id.
  bool IsRemovable(const std::string& name, const std::string& run) const;
  // Delete as much as they can; return the first error.
  absl::Status DeleteUnfinished() const;
  absl::Status DeleteSuperseded() const;
  // Adds a message about a failed deletion, unless the last one was the same:
  // what is left is tried again later, and no reason to end a run.
  void NoteDeletion(const absl::Status& status);

  std::string directory_;
  const KeptCheckpoints kept_;
  std::string run_;  // empty before TakeOver
  CheckpointRecord record_;
  std::vector<std::string> messages_;
  std::vector<std::string> warnings_;
  bool said_no_links_ = false;
  absl::Status last_deletion_;
};

}  // namespace etc

#endif  // ETC_TASKS_OUTPUT_CHECKPOINT_STORE_H_
