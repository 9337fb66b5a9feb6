#ifndef ETC_TASKS_TRAIN_TASK_RUN_MODEL_H_
#define ETC_TASKS_TRAIN_TASK_RUN_MODEL_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "etc/weights/wordpiece_options.h"
#include "tasks/task.h"
#include "tasks/text/punkt_tables.h"
#include "tasks/train/config.h"
#include "tasks/train/task_model.h"
#include "tasks/train/trainable_model.h"

namespace etc {

// The model of a run of fine-tuning. Its part of a checkpoint directory is what
// WriteTaskModel writes.
class TaskRunModel final : public RunModel {
 public:
  // Reads the vocabulary and the tables of sentences, of which each checkpoint
  // gets a copy, and makes a model as MakeTaskModel does. `config` must outlive
  // it.
  //   kNotFound  a file that `config` names is not there
  static absl::StatusOr<std::unique_ptr<RunModel>> Make(
      const FinetuneConfig& config, const Task& task,
      const torch::Device& device);

  TrainableModel* model() override { return &model_; }
  absl::StatusOr<std::vector<std::string>> LoadInitialWeights() override;
  absl::Status Save(const std::string& directory) const override;
  absl::Status Load(const std::string& directory) override;

 private:
  TaskRunModel(const FinetuneConfig& config, TaskModel model,
               std::string vocabulary, WordPieceOptions wordpiece,
               std::optional<PunktFiles> punkt)
      : config_(config),
        model_(std::move(model)),
        vocabulary_(std::move(vocabulary)),
        wordpiece_(std::move(wordpiece)),
        punkt_(std::move(punkt)) {}

  const FinetuneConfig& config_;
  TaskModel model_;
  // Contents of the file; empty if the task needs none.
  const std::string vocabulary_;
  const WordPieceOptions wordpiece_;
  // The tables of data.sentences; nothing if that is "icu".
  const std::optional<PunktFiles> punkt_;
};

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_TASK_RUN_MODEL_H_
