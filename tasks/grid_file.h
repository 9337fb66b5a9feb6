#ifndef ETC_TASKS_GRID_FILE_H_
#define ETC_TASKS_GRID_FILE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/train/config.h"
#include "tasks/train/grid_result.h"

namespace etc {

// <config.output>/grid.json (GridToJson) describes all settings that the
// directory has, whichever start ran them: those of `config`'s grid, and those
// of earlier grids there, which stay where they are in it.

// Checks that the output directory has no grid.json, or a valid one of the same
// task and main metric.
//   kInvalidArgument  the file is damaged
//   kAlreadyExists    it is of another task or main metric
absl::Status CheckGridFile(const FinetuneConfig& config,
                           const std::string& main_metric);

// Writes the file anew from what is on disk, under the directory's lock
// (RunLock): scores are those of each setting's summary.json. `grid` has the
// settings of `config` as far as this start has come; where that has not begun
// with one, a loss that diverged earlier is kept. Returns how many other
// settings the file has. Errors as of CheckGridFile.
absl::StatusOr<int64_t> WriteGridFile(const FinetuneConfig& config,
                                      const GridResult& grid);

}  // namespace etc

#endif  // ETC_TASKS_GRID_FILE_H_
