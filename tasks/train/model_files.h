#ifndef ETC_TASKS_TRAIN_MODEL_FILES_H_
#define ETC_TASKS_TRAIN_MODEL_FILES_H_

#include <torch/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "etc/model.h"
#include "etc/weights/checkpoint.h"
#include "etc/weights/hugging_face_fields.h"
#include "etc/weights/wordpiece_options.h"
#include "tasks/config/config.h"
#include "tasks/data/batch.h"
#include "tasks/task/task.h"
#include "tasks/text/punkt_tables.h"
#include "tasks/train/run_context.h"
#include "tasks/train/task_model.h"

namespace etc {

// A checkpoint directory of a trained model has
//
//   etc_config.json     the encoder, with the residual mode that was used
//   model.safetensors   "encoder.*" and "head.*"; in the metadata the task and
//                       what HuggingFaceFields keep, such as the labels
//   run_config.json     the configuration of the run
//   vocab.txt or tokenizer.model, tokenizer_config.json
//   punkt/              the tables of data.sentences, unless that is "icu"
//
// so that it can be used, and moved, without anything else. Tools that know no
// tasks read it as a checkpoint of the encoder.

// Contents for WriteTaskModel. The vocabulary's contents are empty if the task
// needs none, `punkt` is null if data.sentences is "icu".
struct TaskModelFiles {
  const RunConfig& config;
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
absl::StatusOr<RunConfig> ReadTaskModelConfig(const std::string& directory);

// Sets the mode of residual attention that `choice` names
// (ApplyResidualChoice), of a translation model on all three paths, for the
// model in `directory`, of which `config` is; an empty choice is the mode of
// the training. Warns of another one than the model was trained with, unless it
// computes the same, and of gates that it does not set.
//   kInvalidArgument  errors of ApplyResidualChoice
absl::Status ApplyResidual(const std::string& directory,
                           const std::string& choice, const RunContext& context,
                           RunConfig* config);

// How texts become inputs of the encoder at `weights`, a directory or a file:
// max_long_length, max_global_length and sentences. As was trained where
// run_config.json stands beside it; as config.json of an export for
// transformers says, or text_options.json, which the Python package saves; else
// as many tokens as `model` has positions. `sentences` may name tables that are
// not there.
//   kInvalidArgument  a mistake in such a file
// and errors of ReadTaskModelConfig.
absl::StatusOr<DataConfig> ReadTextData(const std::string& weights,
                                        const EtcConfig& model);

// The model in `directory`, in evaluation mode, on `device`. `config` and
// `task` are those of ReadTaskModelConfig; another residual attention may have
// been set since: gates of the file that it has no use for are left out, and
// gates that the file lacks begin with residual_gate_init. The files are the
// same for any device.
//   kInvalidArgument  tensors are missing, too many or of another shape, or
//                     have an element that is infinite or not a number
//   kDataLoss         CheckCheckpointFiles
absl::StatusOr<TaskModel> LoadTaskModel(
    const std::string& directory, const RunConfig& config,
    const EncoderTask& task, const torch::Device& device = torch::kCPU);

// Replaces the weights of a model by those in `directory`, likewise, but
// without CheckCheckpointFiles.
absl::Status LoadTaskModelWeights(const std::string& directory,
                                  const RunConfig& config,
                                  const TaskModel& model);

// Makes the model of a run of so many processes: by MakeModelWithFiles, or that
// of a ModelTask.
absl::StatusOr<ModelWithFiles> MakeModel(const RunConfig& config,
                                         const Task& task,
                                         const torch::Device& device,
                                         int64_t processes);

// Makes the model of a run as MakeTaskModel does. Reads the vocabulary and the
// tables of sentences, of which each checkpoint gets a copy: WriteTaskModel
// writes its part of the directory, LoadInitialWeights takes the weights of
// `config.init`. `config` must outlive the result.
//   kNotFound  a file that `config` names is not there
absl::StatusOr<ModelWithFiles> MakeModelWithFiles(const RunConfig& config,
                                                  const EncoderTask& task,
                                                  const torch::Device& device,
                                                  int64_t processes);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_MODEL_FILES_H_
