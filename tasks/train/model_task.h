#ifndef ETC_TASKS_TRAIN_MODEL_TASK_H_
#define ETC_TASKS_TRAIN_MODEL_TASK_H_

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tasks/config/config.h"
#include "tasks/data/example_source.h"
#include "tasks/data/loader.h"
#include "tasks/task/task.h"
#include "tasks/train/task_model.h"

namespace etc {

// A task whose model is not an ETC encoder with a head: it makes its model, and
// batches of its own.
class ModelTask : public Task {
 public:
  // The model of a run with random weights, as MakeModelWithFiles of other
  // tasks; a checkpoint has run_config.json, by which it is found. `config`
  // must outlive the result.
  virtual absl::StatusOr<ModelWithFiles> MakeModel(
      const RunConfig& config, const torch::Device& device) const = 0;

  // The model in the directory of a checkpoint, in evaluation mode.
  //   kInvalidArgument  tensors are missing, too many or of another shape, or
  //                     have an element that is infinite or not a number
  //   kDataLoss         CheckCheckpointFiles
  virtual absl::StatusOr<std::unique_ptr<TrainableModel>> LoadModel(
      const std::string& directory, const RunConfig& config,
      const torch::Device& device) const = 0;

  // The batches of training, which `options.batch_size` counts in its own
  // units. `train` must outlive it.
  virtual std::unique_ptr<BatchLoader> MakeLoader(
      const ExampleSource& train, const TrainingLoaderOptions& options,
      LoaderPosition start) const = 0;

  // Such units in an epoch; a multiple of `batch_size`, since the last batch
  // of an epoch may be smaller and still makes an update.
  virtual int64_t CountUnits(const ExampleSource& train,
                             int64_t batch_size) const = 0;

  // About the memory of a micro-batch's activations, in bytes.
  virtual double ActivationBytes() const = 0;

  // A line about the runs of `config`, which may have another number of batches
  // in an update and other residual scores than the task was made with.
  virtual std::string DescribeRuns(const RunConfig& config,
                                   const ExampleSource& train,
                                   const ExampleSource& dev) const = 0;
};

// `task`, if it is one; else null.
inline const ModelTask* AsModelTask(const Task& task) {
  return dynamic_cast<const ModelTask*>(&task);
}

// Makes the loader of training batches.
using LoaderMaker = std::function<std::unique_ptr<BatchLoader>(
    const TrainingLoaderOptions& options, LoaderPosition start)>;

// The loader of a ModelTask on `train`, which must outlive it; empty for other
// tasks.
inline LoaderMaker LoaderMakerOf(const Task& task, const ExampleSource& train) {
  const ModelTask* const model_task = AsModelTask(task);
  if (model_task == nullptr) {
    return nullptr;
  }
  return [model_task, &train](const TrainingLoaderOptions& options,
                              LoaderPosition start) {
    return model_task->MakeLoader(train, options, start);
  };
}

// Examples that count as an epoch of `train`: CountUnits, or those that the
// source expects.
inline int64_t EpochExamples(const Task& task, const ExampleSource& train,
                             const RunConfig& config) {
  const ModelTask* const model_task = AsModelTask(task);
  return model_task == nullptr
             ? train.expected_examples()
             : model_task->CountUnits(train, config.train.batch_size);
}

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_MODEL_TASK_H_
