#ifndef ETC_BENCH_TRAINING_H_
#define ETC_BENCH_TRAINING_H_

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "tasks/config/config.h"
#include "tasks/data/loader.h"
#include "tasks/task/benchmark_head.h"
#include "tasks/task/task.h"
#include "tasks/train/task_model.h"
#include "tasks/train/train_step.h"

namespace etc {

// The head of a task that has no layers.
class MeanHead : public OutputHead {
 public:
  std::vector<torch::Tensor> forward(const EtcOutput& encoded,
                                     const Batch& batch) override;
  torch::Tensor Losses(const std::vector<torch::Tensor>& logits,
                       const Batch& batch) override;
};

// Updates of a model with random weights, as a run with `config` makes them, at
// a learning rate that leaves the weights about as they are.
class Training {
 public:
  // All updates are of `batch`. On another device than the CPU the head has no
  // parameters.
  Training(const RunConfig& config, std::shared_ptr<TaskHead> head,
           TrainingBatch batch, const torch::Device& device = torch::kCPU);

  void Update();
  // Elements of all parameters.
  int64_t parameters() const { return parameters_; }

 private:
  TaskModel model_;
  std::unique_ptr<TrainStep> train_step_;
  TrainingBatch batch_;
  int64_t parameters_ = 0;
  int64_t step_ = 0;
};

}  // namespace etc

#endif  // ETC_BENCH_TRAINING_H_
