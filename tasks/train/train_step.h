#ifndef ETC_TASKS_TRAIN_TRAIN_STEP_H_
#define ETC_TASKS_TRAIN_TRAIN_STEP_H_

#include <torch/types.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attention/score_statistics.h"
#include "etc/weights/checkpoint.h"
#include "tasks/data/loader.h"
#include "tasks/distributed/process_group.h"
#include "tasks/task/task.h"
#include "tasks/train/gradient_sums.h"
#include "tasks/train/optimizer.h"
#include "tasks/train/optimizer_shards.h"
#include "tasks/train/schedule.h"
#include "tasks/train/task_model.h"

namespace etc {

// All gates, their mean, and the largest magnitude of one.
struct GateNumbers {
  std::vector<double> values;
  double mean = 0;
  double largest = 0;
};

// Numbers of one update.
struct TrainStepResult {
  double loss = 0;
  double learning_rate = 0;
  // Before clipping.
  double gradient_norm = 0;
  // 2-norms of the change of the parameters, and of the parameters after it,
  // each taken as one vector.
  double update_norm = 0;
  double weight_norm = 0;
  // Gates after the update (IsGate); absent without gates.
  std::optional<GateNumbers> gates;
  int64_t examples = 0;
  int64_t tokens = 0;  // Example::num_tokens, without padding
  // NormWarning of these numbers; empty: nothing is wrong.
  std::string warning;
  // TrainableModel::Warning after it.
  ModelWarning model_warning;
  // By layer; empty: not watched.
  std::vector<LayerStatistics> score_statistics;
};

// Beyond these bounds an update has likely ruined the model: one that is longer
// than the parameters that it changes (update_norm > kMaxRelativeUpdate times
// their norm before), and parameters whose root mean square is larger than
// kMaxRootMeanSquare, when random ones have one of about initializer_range.
inline constexpr double kMaxRelativeUpdate = 1;
inline constexpr double kMaxRootMeanSquare = 10;

// A warning about the norms of `update`, the one after `step` others, which
// changed `count` parameters of norm `norm_before`; empty if they are within
// the bounds.
std::string NormWarning(const TrainStepResult& update, int64_t step,
                        double norm_before, int64_t count);

// Beyond this magnitude of residual scores, gradients from scores that were
// brought back by subtraction (ScoreStorage::kReverse) are off by more than
// about 1e-4 of their size: by 1e-7 of the score.
inline constexpr double kMaxReversedScore = 1000;

// Beyond this magnitude float32 rounds scores to about 0.001.
inline constexpr double kMaxWatchedScore = 1e4;

// Magnitudes of residual scores in a run so far; 0: not measured.
struct SeenScores {
  double largest = 0;     // of all that were measured
  double watched = 0;     // of those in the statistics of train.watch_scores
  bool reverses = false;  // with kReverse
};

// A warning about scores beyond the bounds: of severity 2 if `watched` is
// beyond kMaxWatchedScore, else of severity 1 if they are reversed and
// `largest` is beyond kMaxReversedScore.
ModelWarning ScoreWarning(const SeenScores& scores);

// Moves the parameters of a model along the gradient of the loss of one batch
// (TrainableModel::Loss), by micro-batches whose gradients are added. All
// parameters that have a gradient are moved. Run() has two halves: the gradient
// of the batch, and the update by it, which depends on nothing else of the
// batch.
class TrainStep {
 public:
  struct Options {
    // Largest global norm of a gradient; 0: no clipping.
    double clip_norm = 1;
    LearningRateSchedule schedule;
    int64_t seed = 1;
    // Updates between those of which rank 0 measures scores and attention
    // weights, in its first micro-batch; 0: none.
    int64_t watch_scores = 0;
    // The ranks, each of which runs its own micro-batches of a batch; null:
    // there is one process.
    ProcessGroup* group = nullptr;
    // Shards of the optimizer's state; null: not sharded.
    OptimizerShards* shards = nullptr;
  };

  // `optimizer` is one of the parameters of `model`, which must outlive the
  // train step. Batches are made on the device of the parameters.
  TrainStep(TrainableModel* model, std::unique_ptr<Optimizer> optimizer,
            Options options);

  // Makes the update after `step` others. Its random numbers follow from the
  // seed, `step` and the micro-batch alone. Returns nothing, and leaves the
  // model unchanged, if `*stop` becomes true before the update is made; `stop`
  // may be null. A collective operation: each rank runs its own micro-batches,
  // and all make the same update.
  //   kAborted      the loss or the gradient is infinite or not a number, and
  //                 the model is as it was; or the parameters are after the
  //                 update
  //   kUnavailable  another process has ended
  absl::StatusOr<std::optional<TrainStepResult>> Run(
      const TrainingBatch& batch, int64_t step, const std::atomic<bool>* stop);

  // Computes the gradient of a batch, as in Run() of the first update, and
  // makes no update: only loss, gradient_norm, examples and tokens are set.
  // Returns nothing if `*stop` becomes true before. A collective operation.
  //   kAborted  the loss or the gradient is infinite or not a number
  absl::StatusOr<std::optional<TrainStepResult>> Try(
      const TrainingBatch& batch, const std::atomic<bool>* stop);

  // Checks that the parameters as they are give a finite loss on examples,
  // without dropout; `step` updates were made.
  //   kAborted  they do not
  absl::Status CheckLoss(const Examples& examples, int64_t step);

  // False while an update is being applied, and for good if that fails: the
  // parameters and the optimizer's state then belong to no number of updates.
  bool is_between_updates() const { return is_between_updates_; }

  Optimizer& optimizer() { return *optimizer_; }
  const torch::Device& device() const { return device_; }

 private:
  // Sets the gradients of the parameters to that of the batch, and in `result`
  // the loss and the counts. False if it was stopped before.
  absl::StatusOr<bool> ComputeGradient(const TrainingBatch& batch, int64_t step,
                                       TrainStepResult* result);
  // Returns the totals of a batch over all ranks, and sets its counts in
  // `result`.
  absl::StatusOr<LossTotals> TotalsOf(const TrainingBatch& batch,
                                      TrainStepResult* result) const;
  // Checks the loss, and sets the norm of the gradient in `result`.
  //   kAborted  one of them is infinite or not a number
  absl::Status CheckGradient(int64_t step, TrainStepResult* result) const;

  // Moves the parameters along their gradients, and sets the rest of `result`.
  //   kAborted  as Run
  absl::Status ApplyGradient(int64_t step, TrainStepResult* result);

  // Sets LibTorch's random numbers for a micro-batch: for its own run, or for
  // the part of it that is run in UpdateContext.
  enum class SeedUse { kForward, kShared };
  void SeedFor(SeedUse use, int64_t step, size_t micro_batch) const;

  // The micro-batches of an update that this rank computes.
  struct RankShare {
    const TrainingBatch& batch;
    int64_t step = 0;
    std::vector<bool> is_here;  // by micro-batch

    size_t last_here() const {
      return static_cast<size_t>(
          is_here.rend() - std::find(is_here.rbegin(), is_here.rend(), true) -
          1);
    }
  };
  // A run over the micro-batches of this rank.
  struct Pass {
    SeedUse use = SeedUse::kForward;
    // The pass completes the gradients: their sums begin in it.
    bool makes_gradients = false;
  };
  using MicroBatchFunction = std::function<void(size_t, const Examples&)>;
  // Calls function(micro-batch, its examples) for those of this rank.
  void ForEachOwnMicroBatch(const RankShare& share, const Pass& pass,
                            const MicroBatchFunction& function) const;
  // The same, and lets the ranks agree on its outcome. Returns false if it was
  // stopped before its end on any rank.
  //   kResourceExhausted  out of memory on any rank
  absl::StatusOr<bool> RunAndAgree(const RankShare& share, const Pass& pass,
                                   const MicroBatchFunction& function);
  // Take the micro-batches into `context` and through it, if it is not null.
  // False if it was stopped before.
  absl::StatusOr<bool> AddToContext(const RankShare& share,
                                    UpdateContext* context);
  absl::StatusOr<bool> AddGradientOfContext(const RankShare& share,
                                            UpdateContext* context);

  // Returns true if this rank measures the scores of the update after `step`
  // others.
  bool WatchesScores(int64_t step) const;

  // Adds the gradient of one micro-batch and returns its share of the loss, a
  // scalar.
  torch::Tensor AddGradient(const Examples& examples, const LossTotals& totals);

  // A micro-batch's share of the loss, and its gradient with respect to those
  // of the logits that have one.
  struct LossOfLogits {
    torch::Tensor loss;
    std::vector<torch::Tensor> logits;
    std::vector<torch::Tensor> gradients;
  };
  LossOfLogits BackwardToLogits(const std::vector<torch::Tensor>& logits,
                                const Batch& batch, const LossTotals& totals);

  TrainableModel* const model_;
  const NamedTensors parameters_;
  // Parameters that are gates.
  std::vector<torch::Tensor> gates_;
  const torch::Device device_;
  int64_t num_parameters_ = 0;  // elements
  // Norm of the parameters after the last update; nothing before the first one.
  std::optional<double> weight_norm_;
  bool is_between_updates_ = true;
  const std::unique_ptr<Optimizer> optimizer_;
  const Options options_;
  std::unique_ptr<GradientSums> sums_;  // null: there is one process
};

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_TRAIN_STEP_H_
