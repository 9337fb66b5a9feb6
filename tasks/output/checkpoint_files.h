#ifndef ETC_TASKS_OUTPUT_CHECKPOINT_FILES_H_
#define ETC_TASKS_OUTPUT_CHECKPOINT_FILES_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace etc {

// The file of a checkpoint directory, written last, that proves it whole, and
// that of a store (CheckpointStore), which has the run alone. Both are sealed
// (sealed_json.h).
inline constexpr char kOwnerFile[] = "owner.json";

// A file of a checkpoint as it was written.
struct CheckpointFile {
  uint64_t bytes = 0;
  uint32_t crc32c = 0;

  bool operator==(const CheckpointFile&) const = default;
};

// Files by their paths in the checkpoint's directory.
using CheckpointFiles = std::map<std::string, CheckpointFile>;

// The contents of a checkpoint's owner.json:
//
//   {"name": "step-00000120", "run": "<id>",
//    "files": {...}, "crc32c": "0x..."}      (sealed_json.h)
//
// and "interim": true of an interim one.
struct CheckpointOwner {
  // The name that the directory was given; a copy has another one.
  std::string name;
  // The id of the run that wrote it.
  std::string run;
  // All files that were there.
  CheckpointFiles files;
  // Written at a stop, after an error or by the clock, where the number of
  // updates asked for none.
  bool is_interim = false;
};

// Digests all files in `directory`, sets `owner.files`, and writes owner.json.
absl::Status WriteCheckpointOwner(CheckpointOwner owner,
                                  const std::string& directory);

//   kNotFound  there is none, or it is none of a checkpoint
//   kDataLoss  it is not as it was written, or its name, its run or a file is a
//              path that leads out of the directory
absl::StatusOr<CheckpointOwner> ReadCheckpointOwner(
    const std::string& directory);

// The file in which an average of checkpoints (AverageCheckpoints) says what it
// is the mean of.
inline constexpr char kAverageFile[] = "average.json";
// Returns true if `directory` is such an average, under the name that it was
// given.
bool IsAverage(const std::string& directory);

// Checks that each file of `owner` is in `directory` and has its size; a JSON
// file may have any size.
//   kDataLoss  names the first file that is missing or has another size
absl::Status CheckCheckpointSizes(const std::string& directory,
                                  const CheckpointOwner& owner);

// The state of training in a checkpoint directory.
inline constexpr char kTrainingStateFile[] = "training_state.safetensors";

// Use of a checkpoint: as a model, or to go on with its training.
enum class CheckpointUse { kModel, kResume };

// Checks by size and CRC-32C that the files of a checkpoint are as they were
// written: its weights, vocabulary and tables of sentences and, with kResume,
// the state of training, which a model that is shipped may lack. `path` is the
// checkpoint's directory, of which JSON files are left out, because people may
// edit them; or it is one file in it, which alone is checked then. OK if no
// owner.json says what was written.
//   kDataLoss  names the file, what it should have and what it has
absl::Status CheckCheckpointFiles(const std::string& path,
                                  CheckpointUse use = CheckpointUse::kModel);

}  // namespace etc

#endif  // ETC_TASKS_OUTPUT_CHECKPOINT_FILES_H_
