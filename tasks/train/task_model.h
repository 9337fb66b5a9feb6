#ifndef ETC_TASKS_TRAIN_TASK_MODEL_H_
#define ETC_TASKS_TRAIN_TASK_MODEL_H_

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "etc/model.h"
#include "etc/weights/checkpoint.h"
#include "etc/weights/hugging_face_fields.h"
#include "etc/weights/wordpiece_options.h"
#include "tasks/task.h"
#include "tasks/text/punkt_tables.h"
#include "tasks/train/config.h"
#include "tasks/train/trainable_model.h"

namespace etc {

// The encoder and the layers of a task on top of it. A copy shares both.
class TaskModel final : public TrainableModel {
 public:
  TaskModel(EtcModel encoder, std::shared_ptr<TaskHead> head)
      : encoder_(std::move(encoder)), head_(std::move(head)) {}

  // Parameters are called "encoder.*" and "head.*".
  NamedTensors NamedParameters() const override;
  std::unique_ptr<UpdateContext> BeginUpdate() override {
    return head_->BeginUpdate(encoder_);
  }
  std::vector<torch::Tensor> Forward(const Batch& batch) override;
  LossTotals Totals(const Examples& examples) const override {
    return head_->Totals(examples);
  }
  torch::Tensor Loss(const std::vector<torch::Tensor>& logits,
                     const Batch& batch, const LossTotals& totals) override {
    return head_->Loss(logits, batch, totals);
  }
  // ScoreWarning of the residual scores, measured every now and then.
  std::string Warning() const override;
  bool is_training() const override { return head_->is_training(); }
  void SetTraining(bool training) override;
  // Moves parameters and buffers; tensors that shared memory with them before
  // do not any more.
  void MoveTo(const torch::Device& device);

  // Parameters and buffers, by the same names. They share memory with the
  // model.
  NamedTensors Tensors() const;

  EtcModel encoder() const { return encoder_; }
  const std::shared_ptr<TaskHead>& head() const { return head_; }
  // The HuggingFace fields that are kept of the weights from which the model
  // started.
  HuggingFaceFields& hugging_face() const { return *hugging_face_; }

 private:
  EtcModel encoder_;
  std::shared_ptr<TaskHead> head_;
  int64_t training_passes_ = 0;
  std::shared_ptr<HuggingFaceFields> hugging_face_ =
      std::make_shared<HuggingFaceFields>();
};

// A model with random weights from LibTorch's generator for the CPU, whatever
// the device that it is then moved to, which has the residual mode of the
// configuration.
TaskModel MakeTaskModel(const FinetuneConfig& config, const Task& task,
                        const torch::Device& device = torch::kCPU);

// Fills a new model from `config.init`: the encoder as PlanWeights plans it, in
// any of its formats; BERT is lifted. The head's weights are taken if all are
// there and come from the same task; those of a classifier by the labels of its
// outputs (MatchOutputs). Returns what was loaded, a line each, for people to
// read.
//   kInvalidArgument  the errors of OpenWeights and PlanWeights; a weight that
//                     is infinite or not a number
absl::StatusOr<std::vector<std::string>> LoadInitialWeights(
    const FinetuneConfig& config, const TaskModel& model);

// A checkpoint directory of a fine-tuned model has
//
//   etc_config.json     the encoder, with the residual mode that was used
//   model.safetensors   "encoder.*" and "head.*"; in the metadata the task and
//                       what HuggingFaceFields keep, such as the labels
//   finetune.json       the configuration of the run
//   vocab.txt or tokenizer.model, tokenizer_config.json
//   punkt/              the tables of data.sentences, unless that is "icu"
//
// so that it can be used, and moved, without anything else. Tools that know no
// tasks read it as a checkpoint of the encoder.

// What WriteTaskModel writes. The vocabulary's contents are empty if the
// task needs none, `punkt` is null if data.sentences is "icu".
struct TaskModelFiles {
  const FinetuneConfig& config;
  const TaskModel& model;
  const std::string& vocabulary;
  const PunktFiles* punkt = nullptr;
  // Its lower_case is that of the configuration.
  WordPieceOptions wordpiece = {};
};
absl::Status WriteTaskModel(const TaskModelFiles& files,
                            const std::string& directory);

// The configuration of the run that wrote `directory`; its model, vocabulary
// and tables of sentences are those in the directory, and its train.device is
// "auto": that of the run may be on another machine.
//   kNotFound  there are no such tables, but data.sentences is not "icu"
absl::StatusOr<FinetuneConfig> ReadTaskModelConfig(
    const std::string& directory);

// The model in `directory`, in evaluation mode, on `device`. `config` and
// `task` are those of ReadTaskModelConfig. The files are the same for any
// device.
//   kInvalidArgument  tensors are missing, too many or of another shape, or
//                     have an element that is infinite or not a number
//   kDataLoss         CheckCheckpointFiles
absl::StatusOr<TaskModel> LoadTaskModel(
    const std::string& directory, const FinetuneConfig& config,
    const Task& task, const torch::Device& device = torch::kCPU);

// Replaces the weights of a model by those in `directory`, likewise, but
// without CheckCheckpointFiles.
absl::Status LoadTaskModelWeights(const std::string& directory,
                                  const FinetuneConfig& config,
                                  const TaskModel& model);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_TASK_MODEL_H_
