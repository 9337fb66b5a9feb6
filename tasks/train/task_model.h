#ifndef ETC_TASKS_TRAIN_TASK_MODEL_H_
#define ETC_TASKS_TRAIN_TASK_MODEL_H_

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attention/score_statistics.h"
#include "etc/model.h"
#include "etc/weights/checkpoint.h"
#include "etc/weights/hugging_face_fields.h"
#include "tasks/config/config.h"
#include "tasks/data/batch.h"
#include "tasks/data/example_source.h"
#include "tasks/task/notices.h"
#include "tasks/task/task.h"

namespace etc {

class MemoryPlanner;

// A warning for the user; a run passes on the first one of each severity, from
// 1 on, unless there was one of a higher severity before.
struct ModelWarning {
  int severity = 0;  // 0: there is none
  std::string text;
};

// A model as training knows it: parameters, a forward pass on a batch, and the
// loss of an update. Only the model knows the targets of the examples of a
// batch (Batch::examples are of a struct derived from Example).
class TrainableModel {
 public:
  virtual ~TrainableModel() = default;

  // The trained parameters, by their names in a checkpoint. The tensors share
  // memory with the model.
  virtual NamedTensors NamedParameters() const = 0;

  // Returns the state shared by the micro-batches of an update; null if there
  // is none. Forward uses it for as long as it lives; the model must outlive
  // it.
  virtual std::unique_ptr<UpdateContext> BeginUpdate() { return nullptr; }

  // Makes a batch, with the input that Forward reads on `device`.
  virtual Batch Collate(Examples examples, const torch::Device& device) const {
    return MakeBatch(std::move(examples), device);
  }

  // The logits of a batch of B examples: tensors [B, ...].
  virtual std::vector<torch::Tensor> Forward(const Batch& batch) = 0;

  // Returns the contribution of some examples to the totals of an update.
  virtual LossTotals Totals(const Examples& examples) const = 0;

  // Returns the contribution of a batch to the loss of an update with these
  // totals, a scalar, from the result of Forward for it. Depends on parameters,
  // and on shared state, through `logits` alone: a train step differentiates it
  // with respect to them, then Forward with respect to the parameters.
  virtual torch::Tensor Loss(const std::vector<torch::Tensor>& logits,
                             const Batch& batch, const LossTotals& totals) = 0;

  // Lets the next Forward also measure scores and attention weights, at the
  // same bits of its result. A model without an EtcModel need not.
  virtual void WatchNextForward() {}
  // Returns what it measured, by layer, and forgets it; empty: nothing.
  virtual std::vector<LayerStatistics> TakeScoreStatistics() { return {}; }

  // Returns a warning about the passes so far.
  virtual ModelWarning Warning() const { return {}; }

  // Training mode: dropout is on.
  virtual bool is_training() const = 0;
  virtual void SetTraining(bool training) = 0;
};

// Switches a model to evaluation mode, and at the end of the scope back to the
// mode that it had.
class EvaluationMode {
 public:
  explicit EvaluationMode(TrainableModel* model)
      : model_(model), was_training_(model->is_training()) {
    model_->SetTraining(false);
  }
  ~EvaluationMode() { model_->SetTraining(was_training_); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  TrainableModel* const model_;
  const bool was_training_;
};

// A model to be trained, and its files: the weights that a new run starts from,
// and the model's part of a checkpoint directory. The functions work on
// `model`.
struct ModelWithFiles {
  std::unique_ptr<TrainableModel> model;

  // Replaces the random weights of a new model by those that the run starts
  // from, if there are any. Returns what was loaded, for people to read.
  std::function<absl::StatusOr<Notices>()> load_initial_weights;

  // Sets those of the random weights of a new model that depend on data, from a
  // batch that it will be trained on, once the generator has been seeded.
  // Returns a message, or nothing if they have been set before. Null if there
  // are none.
  std::function<std::string(const Batch& batch)> initialize_by_data;

  // Writes the parameters, and all else that is needed to use the model, into
  // the directory of a checkpoint.
  std::function<absl::Status(const std::string& directory)> save;

  // Replaces the parameters by those that `save` wrote into `directory`.
  //   kInvalidArgument  tensors are missing, too many or of another shape, or
  //                     have an element that is infinite or not a number
  std::function<absl::Status(const std::string& directory)> load;
};

// Prefixes of the names of the encoder's and the head's tensors in a
// checkpoint.
inline constexpr char kEncoderPrefix[] = "encoder.";
inline constexpr char kHeadPrefix[] = "head.";
// Key in the metadata of model.safetensors: the task that the head is for.
inline constexpr char kTaskKey[] = "task";

// Rows of each stream, at most, whose scores are measured in a pass that is
// watched (EtcModelImpl::set_statistics_rows).
inline constexpr int64_t kWatchedRows = 256;

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
  // Measures kWatchedRows; where a head runs the encoder several times, in the
  // last run.
  void WatchNextForward() override { watches_next_ = true; }
  std::vector<LayerStatistics> TakeScoreStatistics() override;
  // ScoreWarning of the residual scores: those that were watched, and with
  // kReverse those of one training pass of fifty.
  ModelWarning Warning() const override;
  bool is_training() const override { return head_->is_training(); }
  void SetTraining(bool training) override;
  // Moves parameters and buffers; tensors that shared memory with them before
  // do not any more.
  void MoveTo(const torch::Device& device);

  // Parameters and buffers, by the same names. They share memory with the
  // model.
  NamedTensors Tensors() const;

  // Makes training passes choose what they keep by `planner`; null, the
  // default: as the encoder is set.
  void set_memory_planner(std::shared_ptr<const MemoryPlanner> planner) {
    planner_ = std::move(planner);
  }

  EtcModel encoder() const { return encoder_; }
  const std::shared_ptr<TaskHead>& head() const { return head_; }
  // The HuggingFace fields that are kept of the weights from which the model
  // started.
  HuggingFaceFields& hugging_face() const { return *hugging_face_; }

 private:
  // Returns true if residual scores are brought back by subtraction.
  bool Reverses() const;

  EtcModel encoder_;
  std::shared_ptr<TaskHead> head_;
  std::shared_ptr<const MemoryPlanner> planner_;
  int64_t training_passes_ = 0;
  bool watches_next_ = false;
  double largest_watched_ = 0;
  std::shared_ptr<HuggingFaceFields> hugging_face_ =
      std::make_shared<HuggingFaceFields>();
};

// Sets the omegas of a model with sublayer "admin" by the first pass of the
// encoder in a forward pass over `batch` in training mode
// (EtcModelImpl::ProfileNextPass), unless they are set: some are not 1. Returns
// a message with their range, or nothing.
std::string InitializeOmegas(TaskModel model, const Batch& batch);

// A model with random weights from LibTorch's generator for the CPU, whatever
// the device that it is then moved to, which has the residual mode of the
// configuration. Its memory planner is that of a run of so many processes.
TaskModel MakeTaskModel(const RunConfig& config, const EncoderTask& task,
                        const torch::Device& device = torch::kCPU,
                        int64_t processes = 1);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_TASK_MODEL_H_
