#ifndef ETC_TASKS_WIKIHOP_HEAD_H_
#define ETC_TASKS_WIKIHOP_HEAD_H_

#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/types.h>

#include "etc/config.h"
#include "etc/nn/activation.h"
#include "tasks/typed_head.h"
#include "tasks/wikihop/task.h"

namespace etc {

// A logit for each candidate (doc/wikihop.md 5). With x the global output of
// the encoder, B examples, G global tokens, H hidden:
//
//   y     = LayerNorm(x + dropout(W2 act(W1 x + b1) + b2))    final layer
//   logit = y w + b, and -10000 for what is no candidate      [B, G]
//
// W1, W2 are Glorot uniform (Keras' default), w truncated normal.
class WikihopHead : public TypedHead<WikihopExample, WikihopLogits> {
 public:
  // Activation, sizes and dropout are those of the encoder.
  WikihopHead(const EtcConfig& config, const WikihopHeadOptions& options);

  WikihopLogits<torch::Tensor> LogitsOf(
      const EtcOutput& encoded,
      const TypedBatch<WikihopExample>& batch) override;

  // Cross entropy (doc/wikihop.md 6): [B].
  torch::Tensor LossesOf(const WikihopLogits<torch::Tensor>& logits,
                         const TypedBatch<WikihopExample>& batch) override;

 private:
  WikihopHeadOptions options_;
  Activation activation_;
  double dropout_;
  // Without a final layer the first three are null.
  torch::nn::Linear intermediate_ = nullptr;
  torch::nn::Linear output_ = nullptr;
  torch::nn::LayerNorm layer_norm_ = nullptr;
  torch::nn::Linear logit_ = nullptr;
};

}  // namespace etc

#endif  // ETC_TASKS_WIKIHOP_HEAD_H_
