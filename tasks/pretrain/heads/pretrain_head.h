#ifndef ETC_TASKS_PRETRAIN_HEADS_PRETRAIN_HEAD_H_
#define ETC_TASKS_PRETRAIN_HEADS_PRETRAIN_HEAD_H_

#include <torch/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "etc/config.h"
#include "etc/model.h"
#include "tasks/pretrain/heads/cpc_loss.h"
#include "tasks/pretrain/heads/mlm_head.h"
#include "tasks/pretrain/heads/target_run.h"
#include "tasks/pretrain/pretrain_example.h"
#include "tasks/pretrain/pretrain_options.h"
#include "tasks/task/task.h"

namespace etc {

// Outputs of PretrainHead in the place of logits: sums of each example, [B]
// each, in this order. Those of other objectives are 0.
enum PretrainSum : size_t {
  kMaskedLosses,  // cross-entropies at masked positions
  kMaskedCorrect,
  kNextLosses,  // of the next sentence
  kNextCorrect,
  kHiddenLosses,  // contrastive losses of hidden sentences
  kHiddenCorrect,
  kPretrainSums
};

// Numbers of terms in the sums of an example, by objective.
struct PretrainCounts {
  double masked = 0;  // positions
  double next = 0;    // 1 if it is asked whether B follows A
  double hidden = 0;  // sentences

  static PretrainCounts Of(const PretrainExample& example);
  void Add(const PretrainCounts& other);
};

// The heads of pre-training (doc/pretraining.md 5, 9.1): masked tokens, with
// the encoder's token table as their decoder, and beside it, by the objective,
// the next sentence or hidden sentences. For the latter the encoder runs a
// second time, on the targets of the examples; the negatives of a hidden
// sentence are the other targets of its update, outside training those of its
// batch.
//
//   loss = mlm_weight * sum of cross-entropies / (masked tokens + 1e-5)
//        + nsp_weight * mean cross-entropy of the next sentence
//        + cpc_weight * mean contrastive loss of the hidden sentences
//
// over all examples of an update.
//
// Parameters: `mlm` (mlm_head.h); `pooler` and `nsp` [2, H] of mlm_nsp;
// `cpc.kernel` [H, H] of mlm_cpc with bilinear scores, truncated
// normal(initializer_range).
class PretrainHead final : public TaskHead {
 public:
  PretrainHead(const EtcConfig& model, const PretrainOptions& options);

  std::unique_ptr<UpdateContext> BeginUpdate(EtcModel encoder) override;
  // In the encoder's precision.
  std::vector<torch::Tensor> Run(EtcModel encoder, const Batch& batch) override;
  LossTotals Totals(const Examples& examples) const override;
  torch::Tensor Loss(const std::vector<torch::Tensor>& sums, const Batch& batch,
                     const LossTotals& totals) override;
  // Cost of examples that are full, and of the mean numbers of masked tokens
  // and hidden sentences by the options.
  HeadCost CostOf(const StepShape& update) const override;

 private:
  // Losses of the outputs of hidden sentences, [N, H].
  CpcLosses HiddenLosses(const UpdateTargets::Slice& targets,
                         const torch::Tensor& contexts);

  const PretrainOptions options_;
  const EtcConfig model_;
  MlmHead mlm_ = nullptr;
  NspLayers next_;
  torch::Tensor cpc_kernel_;
  UpdateTargets* update_ = nullptr;
};

// The metrics of doc/pretraining.md 5 and 9.2, over all examples:
//
//   masked_lm_accuracy, masked_lm_loss          per masked token
//   next_sentence_accuracy, next_sentence_loss  of mlm_nsp, per pair
//   cpc_accuracy, cpc_loss, cpc_chance          of mlm_cpc, per hidden sentence
//   loss                                        PretrainHead's of all of them
//
// A sentence is told from the others of its batch, so cpc_* depend on
// train.evaluation_batch_size; cpc_chance is the accuracy of guessing, the mean
// of 1 over the hidden sentences of the batch.
class PretrainMetrics final : public TaskPredictions {
 public:
  explicit PretrainMetrics(const PretrainOptions& options)
      : options_(options) {}

  void Add(const Batch& batch, const std::vector<torch::Tensor>& sums) override;
  Metrics Score() const override;
  // Empty: no prediction has a file.
  std::string FileContents() const override { return ""; }

 private:
  const PretrainOptions options_;
  std::array<double, kPretrainSums> sums_ = {};
  PretrainCounts counts_;
  double batches_with_hidden_ = 0;
};

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_HEADS_PRETRAIN_HEAD_H_
