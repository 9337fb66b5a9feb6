#ifndef ETC_TASKS_TRAIN_RUN_PLAN_H_
#define ETC_TASKS_TRAIN_RUN_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "tasks/config/config.h"
#include "tasks/config/run_settings.h"
#include "tasks/data/loader.h"
#include "tasks/metrics.h"
#include "tasks/train/schedule.h"

namespace etc {

// Everything that the trainer (tasks/train/trainer.h) needs to know about a run
// besides its model and its data.
struct RunPlan {
  int64_t seed = 1;
  // Updates of the whole run; 0: the first weights are the last.
  int64_t num_steps = 1;
  // Examples that count as one epoch in the metrics.
  int64_t epoch_examples = 1;
  // Updates between evaluations; 0: only at the end.
  int64_t evaluate_every = 0;
  // True if the run's first weights are evaluated, too.
  bool evaluate_at_start = false;
  // True if evaluations are on a part of the files of data.train that no other
  // setting describes: other files have another one.
  bool evaluates_train_files = false;
  // The configuration, a JSON text, for event files.
  std::string configuration;
  // The object "train" of the configuration. Fields above and `loader` take
  // precedence over it: updates, seed, evaluations, batches.
  TrainConfig train;
  OptimizerConfig optimizer;
  LearningRateSchedule schedule;
  TrainingLoaderOptions loader;
  // RunSettings: the settings that a run that is resumed has to share.
  nlohmann::json settings = nlohmann::json::object();
};

// The run that `config` describes.
//   kInvalidArgument  it has no update, or a warm-up of more than it has
absl::StatusOr<RunPlan> PlanRun(const RunConfig& config,
                                const RunInputs& inputs);

// The metric by which the runs of a configuration are compared: `of_task` (see
// Task::main_metric), or the one that it names.
MainMetric MainMetricOf(const TrainConfig& config, const std::string& of_task);

// Returns true if a run needs its main metric for more than the best
// checkpoint, which a run without one does not have.
bool NeedsMainMetric(const TrainConfig& config);

// Checks that `scores`, of an evaluation, have the main metric `metric`.
//   kInvalidArgument  they have not, or there are none
absl::Status CheckHasMainMetric(const Metrics& scores,
                                const std::string& metric);

// Checks that the run has an update, unless train.steps is 0, and its warm-up
// not more updates than it. Errors as of PlanRun.
absl::Status CheckHasUpdate(const RunConfig& config, int64_t num_records,
                            int64_t num_examples);

// Checks that the schedule has no value beside the default that decides
// nothing: the end or the power of another `schedule.type`, or the beginning of
// a warm-up that is not there.
//   kInvalidArgument  as of RefuseFields
absl::Status CheckSchedule(const RunConfig& config);

// Updates of a run: `train.steps`, or those of `train.epochs` of
// `train.num_train_examples`, or else `num_examples`, examples; of
// `num_examples` also with `train.max_examples`.
int64_t NumStepsOf(const RunConfig& config, int64_t num_examples);

// The most evaluations of a run after update `step` (at least 1) or later.
int64_t EvaluationsFrom(const RunPlan& plan, int64_t step);

// The most checkpoints that a run makes and keeps: after its evaluations, each
// `train.checkpoint_every` updates and the last one, and before the first one.
int64_t MostCheckpoints(const RunConfig& config, int64_t num_examples);

// A warning where the examples of an epoch, by `train.num_train_examples`,
// differ by more than 5 % from `num_examples`, those that were counted; empty:
// they do not.
std::string ExamplesWarning(const RunConfig& config, int64_t num_examples);

// A pool may take half of the process's memory.
TrainingLoaderOptions LoaderOptionsOf(const RunConfig& config, int64_t seed);

// `data.cache_megabytes` in bytes.
int64_t CacheBytesOf(const DataConfig& config);

OnBadRecord OnBadRecordOf(const DataConfig& config);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_RUN_PLAN_H_
