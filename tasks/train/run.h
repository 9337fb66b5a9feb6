#ifndef ETC_TASKS_TRAIN_RUN_H_
#define ETC_TASKS_TRAIN_RUN_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/data/example_source.h"
#include "tasks/metrics.h"
#include "tasks/output/earlier_run.h"
#include "tasks/output/program_version.h"
#include "tasks/output/run_lock.h"
#include "tasks/train/evaluate.h"
#include "tasks/train/model_task.h"
#include "tasks/train/run_context.h"
#include "tasks/train/run_plan.h"
#include "tasks/train/task_model.h"

namespace etc {

// The runs of a configuration (TrainChecked).
struct TrainOptions {
  // Fate of a run that is in the output directory already.
  EarlierRun earlier = EarlierRun::kRefuse;
  // Fields of the configuration ("train.learning_rate"), or objects in it, that
  // may differ from those that the runs to resume began with.
  std::vector<std::string> allow_changes = {};
  RunContext context = {};
  // Updates of the runs after these, for the time left.
  int64_t later_steps = 0;
  // The program that trains, for the runs' files; without a version: not noted.
  ProgramVersion program = {};
};

// The run of one seed (TrainOneSeed). Everything that is referred to must
// outlive it.
struct RunOptions {
  const RunPlan& plan;
  const ExampleSource& train;
  // Empty: a TrainingLoader.
  LoaderMaker make_loader = nullptr;
  // Makes the model, with random weights from LibTorch's generator. Called
  // once, when the generator has been seeded for the run.
  std::function<absl::StatusOr<ModelWithFiles>()> make_model;
  // Evaluates the model as it is between two updates, without dropout and
  // gradients; its mode is afterwards what it was. A checkpoint gets
  // predictions.json if there are predictions that have a file. Empty: the run
  // is never evaluated.
  //   kCancelled  the run is being stopped
  //   kAborted    the model's output is infinite or not a number
  std::function<absl::StatusOr<Evaluation>(TrainableModel* model)> evaluate =
      nullptr;
  // Checks before the first update that evaluations have the score
  // `main_metric` (ProbeMetric). Empty: a run whose evaluations lack it has no
  // best checkpoint.
  //   kCancelled  the run is being stopped
  std::function<absl::Status(TrainableModel* model)> probe = nullptr;
  // The metric by which checkpoints are compared.
  MainMetric main_metric = {};
  // Gets checkpoints/, metrics.jsonl and lock.
  std::string directory;
  // Removes an earlier run from the directory, which is taken for empty: called
  // on rank 0 when all checks of this start have passed, before anything is
  // written. Empty: there is no earlier run, or it is resumed.
  std::function<absl::Status()> remove_earlier = nullptr;
  // Called on rank 0 when all checks of this start have passed, its logs are
  // open and updates or an evaluation follow: results of an earlier end of the
  // run are no longer its own.
  std::function<absl::Status()> go_on = nullptr;
  // The lock of the directory, of ClaimRunDirectory, which has checked it; null
  // on all ranks but the first.
  const RunLock* lock = nullptr;
  // Options of all runs of the configuration; later_steps counts the updates
  // after this one. A run that is resumed goes on from the last checkpoint in
  // the directory, if there is one.
  TrainOptions runs = {};
};

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_RUN_H_
