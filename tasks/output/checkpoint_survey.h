#ifndef ETC_TASKS_OUTPUT_CHECKPOINT_SURVEY_H_
#define ETC_TASKS_OUTPUT_CHECKPOINT_SURVEY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tasks/output/checkpoint_record.h"

namespace etc {

// The checkpoints that are in the directory of a store, by reading alone.
//
// A checkpoint is a directory whose owner.json proves that this run wrote it
// and that it is whole: it has the name of the directory, and all files have
// the sizes that it notes. Where there is no valid checkpoints.json, the links
// `last` and `best` stand for it; where they are lost too, or were followed by
// the tool that copied the directory, the newest whole checkpoint is the last
// one, and the newest whose evaluation.json says that it was the best so far is
// the best one. A whole checkpoint that is newer than the last one is taken in
// its place: its run was killed before it could be recorded. A checkpoints.json
// without a last one is that of a run whose removal was begun: what it calls
// superseded is none. An average of checkpoints (kAverageFile), from which no
// run goes on, is none either.
struct CheckpointSurvey {
  // A whole checkpoint of the run.
  struct Whole {
    std::string entry;
    int64_t step = 0;
    // As of checkpoints.json or, where that lacks it, of owner.json.
    bool is_interim = false;
  };

  // The run's id; empty if nothing says it.
  std::string run;
  // In the order of steps, of equal ones the newest last; also where `refusal`
  // says why no run should go on.
  std::vector<Whole> whole;
  // Entries of the directory: names of checkpoints, or "last" and "best" where
  // these are directories themselves, or an UnfinishedCheckpoint() of which all
  // was written, and their checkpoint is nowhere else. Empty: there is none.
  std::string last;
  std::string best;
  // checkpoints.json; its fields are empty if there is no valid one.
  CheckpointRecord record;
  // Messages for the user, one line each, about all that is not as a run leaves
  // it.
  std::vector<std::string> messages;
  // The one of them that says by which one the best is replaced; empty: it is
  // not.
  std::string message_of_best;
  // The reason why no run should begin or go on here, with the list of the
  // checkpoints found: a last checkpoint that is damaged, or only checkpoints
  // that are not whole or of other runs (kFailedPrecondition).
  absl::Status refusal;
};

// The name of a checkpoint while it is being written or deleted.
std::string UnfinishedCheckpoint(const std::string& name,
                                 const std::string& run);

// Returns true for the names that a store gives to checkpoints:
// "step-00000120", "step-00000120-2".
bool IsCheckpointName(const std::string& name);

// The step in the name of a checkpoint: 120 of "step-00000120-2".
int64_t StepOfCheckpoint(const std::string& name);

CheckpointSurvey SurveyCheckpoints(const std::string& directory);

}  // namespace etc

#endif  // ETC_TASKS_OUTPUT_CHECKPOINT_SURVEY_H_
