#ifndef ETC_TASKS_PRETRAIN_PRETRAIN_METRICS_H_
#define ETC_TASKS_PRETRAIN_PRETRAIN_METRICS_H_

#include <torch/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tasks/pretrain/pretrain_head.h"
#include "tasks/pretrain/pretrain_options.h"
#include "tasks/task.h"

namespace etc {

// The metrics of doc/pretraining.md 5 and 9.2, over all examples:
//
//   masked_lm_accuracy, masked_lm_loss          per masked token
//   next_sentence_accuracy, next_sentence_loss  of mlm_nsp, per pair
//   cpc_accuracy, cpc_loss, cpc_chance          of mlm_cpc, per hidden sentence
//   loss                                        PretrainHead's of all of them
//
// A sentence is told from the others of its batch, so cpc_* depend on
// train.evaluation_batch_size; cpc_chance is what guessing would reach, the
// mean of 1 over the hidden sentences of the batch.
class PretrainMetrics final : public TaskPredictions {
 public:
  explicit PretrainMetrics(const PretrainOptions& options)
      : options_(options) {}

  void Add(const Batch& batch, const std::vector<torch::Tensor>& sums) override;
  Metrics Score() const override;
  // None: nothing is predicted that has a file.
  std::string FileContents() const override { return ""; }

 private:
  const PretrainOptions options_;
  std::array<double, kPretrainSums> sums_ = {};
  PretrainCounts counts_;
  double batches_with_hidden_ = 0;
};

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_PRETRAIN_METRICS_H_
