#ifndef ETC_TASKS_RUNS_GRID_RUN_H_
#define ETC_TASKS_RUNS_GRID_RUN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tasks/config/config.h"
#include "tasks/output/grid_results.h"
#include "tasks/train/dry_run.h"
#include "tasks/train/train_runs.h"

namespace etc {

// Trains as `config` describes, for a task of the registry: all settings of
// its grid, one after the other, each as TrainChecked does into
// <output>/<its name>; without a grid into <output>. Warns of each of
// TaskSetup::warnings once.
//
// All settings are checked before the first run begins. Settings with the same
// examples share the opened data. <output>/grid.json (WriteGridFile) is written
// after each setting, also after one that was stopped. A setting that diverges
// is left (SettingResult::diverged), and the grid goes on with the others.
//
// A grid that is resumed runs settings that are not finished, and those added
// to it since; a setting that has diverged is tried again from its last
// checkpoint. Settings begun before come first, so that one whose fields have
// changed is refused before anything new is run. Errors also as of ExpandGrid.
//   kNotFound         none of these runs was begun, with EarlierRun::kResume
//   kInvalidArgument  a grid with EarlierRun::kOverwrite
//   kAlreadyExists    the directory has one of these runs, and it is to be
//                     refused; or it has a run with a grid, and this has none,
//                     or the other way round
//   kAborted          all settings have diverged
absl::StatusOr<GridResult> TrainGrid(const RunConfig& config,
                                     const TrainOptions& options);

// A setting of a grid that was tried; without a grid its name is empty.
struct TriedSetting {
  std::string name;
  DryRun run;
};

// Does what TrainGrid() does but for the updates (TryTrain), for all
// settings of the grid. Errors also as of ExpandGrid.
absl::StatusOr<std::vector<TriedSetting>> TryGrid(const RunConfig& config,
                                                  const TrainOptions& options);

}  // namespace etc

#endif  // ETC_TASKS_RUNS_GRID_RUN_H_
