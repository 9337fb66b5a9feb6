#ifndef ETC_TASKS_TRAIN_CHECKPOINT_STORE_H_
#define ETC_TASKS_TRAIN_CHECKPOINT_STORE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace etc {

// The checkpoints of one run:
//
//   <directory>/owner.json        the run's id, drawn at random
//   <directory>/step-00000120/    one checkpoint each, with the files of the
//                                 caller
//   <directory>/last -> step-...  the newest
//   <directory>/best -> step-...  the best so far
//
// A checkpoint gets its name only when all of it is on disk, and a link is
// replaced atomically; so whenever the process or the machine stops, each link
// leads to a whole checkpoint. Checkpoints with no link to them are deleted.
//
// Only what this run made is deleted, which its name or its contents prove:
//
//   <name>.unfinished-<run>  is being written or deleted, or is a new link
//   <name>/owner.json        {"name": "<name>", "run": "<run>"}: a checkpoint
//                            under the name that it was given. A copy has
//                            another name, a checkpoint of another run another
//                            id, and both stay.
//
// The caller must hold the RunLock of the run to change a store.
class CheckpointStore {
 public:
  // Does not access the directory, which need not exist.
  explicit CheckpointStore(std::string directory)
      : directory_(std::move(directory)) {}

  // Creates the directory if it does not exist and deletes what a killed run
  // left behind. To be called once, before Save and MarkLastAsBest.
  absl::Status TakeOver();

  // Writes the checkpoint of `step` with `write`, which puts files into the
  // directory that it is given, and points `last` to it. If the name is taken,
  // it is called "step-00000120-2".
  absl::Status Save(
      int64_t step,
      const std::function<absl::Status(const std::string& directory)>& write);

  // Points `best` to where `last` leads.
  //   kFailedPrecondition  no checkpoint was saved yet
  absl::Status MarkLastAsBest();

  // The directory that the link leads to; nothing if there is no such link.
  std::optional<std::string> last() const { return Directory("last"); }
  std::optional<std::string> best() const { return Directory("best"); }

  // With the checkpoint to go back to, if `status` is that the model has
  // diverged (kAborted) or that the memory was too little.
  absl::Status WithLastGood(const absl::Status& status) const;

 private:
  // The name that the link holds.
  std::optional<std::string> Target(const std::string& link) const;
  std::optional<std::string> Directory(const std::string& link) const;
  std::string PathOf(const std::string& name) const;
  // The name while it is being written or deleted.
  std::string UnfinishedName(const std::string& name) const;
  // Reads the run's id, or draws one.
  absl::Status FindRun();
  bool IsOurCheckpoint(const std::string& name) const;
  absl::Status PointLink(const std::string& link, const std::string& name);
  absl::Status DeleteUnlinked() const;

  std::string directory_;
  std::string run_;  // empty before TakeOver
};

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_CHECKPOINT_STORE_H_
