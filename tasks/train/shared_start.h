#ifndef ETC_TASKS_TRAIN_SHARED_START_H_
#define ETC_TASKS_TRAIN_SHARED_START_H_

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "etc/weights/checkpoint.h"
#include "nlohmann/json_fwd.hpp"
#include "tasks/config/config.h"
#include "tasks/data/example_source.h"
#include "tasks/data/loader.h"
#include "tasks/distributed/process_group.h"
#include "tasks/train/device.h"
#include "tasks/train/optimizer_shards.h"
#include "tasks/train/run.h"
#include "tasks/train/task_model.h"
#include "tasks/train/train_step.h"
#include "tasks/train/training_state.h"

namespace etc {

// The parts of a run's start that the trainer shares with a dry run, and those
// that the ranks make together.

// A model that is to be trained.
struct ModelToTrain {
  ModelWithFiles files;
  // The shards of the optimizer's state; null: it is not sharded.
  std::unique_ptr<OptimizerShards> shards;
  std::unique_ptr<TrainStep> train_step;
};

// Makes the model of a run, with the random weights of its seed, and its
// optimizer. No collective operation.
//   kInvalidArgument  as of FreezeParameters and ParameterFactors
// Errors also as of RunOptions::make_model.
absl::StatusOr<ModelToTrain> MakeModelToTrain(const RunOptions& run);

// Checks that all ranks of `group` have the same values of `fields`, an object.
// Must be called before any other collective operation. `group` may be null.
//   kFailedPrecondition  names the process and the fields that differ
absl::Status CheckSameFields(const nlohmann::json& fields, ProcessGroup* group);

// Checks that all ranks have the same command line and configuration, except
// for settings of each rank (FieldRule::is_local) and for the paths of files,
// whose contents CheckSharedSettings compares. `config` may have a grid. Errors
// as of CheckSameFields.
absl::Status CheckSameStart(const RunConfig& config,
                            const TrainOptions& options);

// Checks that all ranks of `group` have the same `settings` (RunSettings): of
// files the same contents, in any place. `group` may be null.
//   kFailedPrecondition  names the process and the fields that differ
absl::Status CheckSharedSettings(const nlohmann::json& settings,
                                 ProcessGroup* group);

// Checks that all ranks have the same settings, and that the micro-batches of
// an update suffice for all.
//   kFailedPrecondition  names the process and the fields that differ
//   kInvalidArgument     an update has fewer micro-batches than processes
absl::Status CheckSameRun(const RunOptions& options);

// Returns the options of this rank's loader in the run's group: a pool may take
// the least memory that any rank has for it.
absl::StatusOr<TrainingLoaderOptions> RankLoaderOptions(
    const RunOptions& options);

// The loader of a run, from `start` on.
std::unique_ptr<BatchLoader> MakeLoader(const RunOptions& run,
                                        const TrainingLoaderOptions& options,
                                        LoaderPosition start = {});

// Broadcasts the weights, the state of the optimizer and that of the run from
// rank 0. Weights have the same names and shapes on all ranks. `group` may be
// null.
struct RunStart {
  NamedTensors parameters;
  NamedTensors* optimizer_state;
  // Null: each rank has all of the optimizer's state; else its own shard.
  const OptimizerShards* shards;
  TrainingState* state;
  std::optional<int64_t>* saved_step;  // Trainer's
};
absl::Status BroadcastStart(ProcessGroup* group, const RunStart& start);

// Makes ModelWithFiles::initialize_by_data, which is not null, from the first
// micro-batch of the first update, on the rank that has it, and broadcasts the
// weights. The random numbers follow from `seed` alone. Returns the message.
// `group` may be null.
struct DataStart {
  const ModelWithFiles& model;
  const TrainingBatch& batch;
  torch::Device device;
  int64_t seed = 1;
};
absl::StatusOr<std::string> InitializeByData(ProcessGroup* group,
                                             const DataStart& start);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_SHARED_START_H_
