#ifndef ETC_TASKS_TRAIN_CHECKPOINT_STORE_H_
#define ETC_TASKS_TRAIN_CHECKPOINT_STORE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace etc {

// The checkpoints of one run:
//
//   <directory>/step-00000120/    one checkpoint each; files by who writes them
//   <directory>/last -> step-...  the newest
//   <directory>/best -> step-...  the best so far
//
// A checkpoint gets its name only when all of it is on disk, and a link is
// replaced in one step; so whenever the process dies, or the machine, each link
// leads to a whole checkpoint. Checkpoints with no link to them are deleted.
class CheckpointStore {
 public:
  // Creates the directory if need be and deletes what a killed run left behind:
  // everything in it but the links and where they lead.
  static absl::StatusOr<CheckpointStore> Open(const std::string& directory);

  // Writes the checkpoint of `step` with `write`, which puts files into the
  // directory that it is given, and points `last` to it. A second checkpoint of
  // one step is called "step-00000120-2".
  absl::Status Save(
      int64_t step,
      const std::function<absl::Status(const std::string& directory)>& write);

  // Points `best` to where `last` leads.
  //   kFailedPrecondition  no checkpoint was saved yet
  absl::Status MarkLastAsBest();

  // The directory that the link leads to; nothing if there is no such link.
  std::optional<std::string> last() const { return Directory("last"); }
  std::optional<std::string> best() const { return Directory("best"); }

 private:
  explicit CheckpointStore(std::string directory)
      : directory_(std::move(directory)) {}

  // The name that the link holds.
  std::optional<std::string> Target(const std::string& link) const;
  std::optional<std::string> Directory(const std::string& link) const;
  absl::Status PointLink(const std::string& link, const std::string& name);
  absl::Status DeleteUnlinked() const;

  std::string directory_;
};

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_CHECKPOINT_STORE_H_
