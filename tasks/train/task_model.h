#ifndef ETC_TASKS_TRAIN_TASK_MODEL_H_
#define ETC_TASKS_TRAIN_TASK_MODEL_H_

#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "etc/model.h"
#include "etc/weights/checkpoint.h"
#include "tasks/task.h"
#include "tasks/text/punkt_tables.h"
#include "tasks/train/config.h"

namespace etc {

// The encoder and the layers of a task on top of it. A copy shares both.
struct TaskModel {
  EtcModel encoder = nullptr;
  std::shared_ptr<TaskHead> head;

  // The logits of a batch.
  std::vector<torch::Tensor> Logits(const Batch& batch) const;

  // Parameters and buffers, called "encoder.*" and "head.*". They share memory
  // with the model.
  NamedTensors Tensors() const;
  // What training changes, by the same names.
  NamedTensors Parameters() const;

  // Whether dropout is on.
  void SetTraining(bool training) const;
};

// Switches a model to evaluation mode, and at the end of the scope back.
class EvaluationMode {
 public:
  explicit EvaluationMode(const TaskModel& model)
      : model_(model), was_training_(model.head->is_training()) {
    model_.SetTraining(false);
  }
  ~EvaluationMode() { model_.SetTraining(was_training_); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  const TaskModel& model_;
  const bool was_training_;
};

// A model with random weights from LibTorch's generator, which has the residual
// mode of the configuration.
TaskModel MakeTaskModel(const FinetuneConfig& config, const Task& task);

// Fills a new model from `config.init`: the encoder as PlanWeights says,
// whoever wrote it; BERT is lifted. The head's weights are taken if all are
// there and come from the same task. Returns what happened, a line each, for
// people to read.
//   kInvalidArgument  what OpenWeights and PlanWeights say; a weight that is
//                     infinite or not a number
absl::StatusOr<std::vector<std::string>> LoadInitialWeights(
    const FinetuneConfig& config, const TaskModel& model);

// A checkpoint directory of a fine-tuned model has
//
//   etc_config.json     the encoder, with the residual mode that was used
//   model.safetensors   "encoder.*" and "head.*"
//   finetune.json       the configuration of the run
//   vocab.txt or tokenizer.model, tokenizer_config.json
//   punkt/              the tables of data.sentences, unless that is "icu"
//
// so that it can be used, and moved, without anything else. Task-less tools
// read it as a checkpoint of the encoder.

// What WriteTaskModel writes. The vocabulary's contents are empty if the
// task needs none, `punkt` is null if data.sentences is "icu".
struct TaskModelFiles {
  const FinetuneConfig& config;
  const TaskModel& model;
  const std::string& vocabulary;
  const PunktFiles* punkt = nullptr;
};
absl::Status WriteTaskModel(const TaskModelFiles& files,
                            const std::string& directory);

// The configuration of the run that wrote `directory`; its model, vocabulary
// and tables of sentences are those in the directory.
//   kNotFound  there are no such tables, but data.sentences is not "icu"
absl::StatusOr<FinetuneConfig> ReadTaskModelConfig(
    const std::string& directory);

// The model in `directory`, in evaluation mode. `config` and `task` are those
// of ReadTaskModelConfig.
//   kInvalidArgument  tensors are missing, too many or of another shape, or
//                     have an element that is infinite or not a number
absl::StatusOr<TaskModel> LoadTaskModel(const std::string& directory,
                                        const FinetuneConfig& config,
                                        const Task& task);

// Replaces the weights of a model by those in `directory`, likewise.
absl::Status LoadTaskModelWeights(const std::string& directory,
                                  const FinetuneConfig& config,
                                  const TaskModel& model);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_TASK_MODEL_H_
