#ifndef ETC_TASKS_WIKIHOP_HEAD_H_
#define ETC_TASKS_WIKIHOP_HEAD_H_

#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/types.h>

#include <vector>

#include "etc/config.h"
#include "etc/nn/activation.h"
#include "tasks/task.h"

namespace etc {

struct WikihopHeadOptions {
  // Whether a feed-forward block stands between encoder and logits.
  bool add_final_layer = true;
  // Share of the target that is spread over all candidates, in [0, 1).
  double label_smoothing = 0.0;
};

// A logit for each candidate (wikihop spec 5). With x the global output of the
// encoder, B examples, G global tokens, H hidden:
//
//   y     = LayerNorm(x + dropout(W2 act(W1 x + b1) + b2))    final layer
//   logit = y w + b, and -10000 for what is no candidate      [B, G]
//
// W1, W2 are Glorot uniform (Keras' default), w truncated normal.
class WikihopHead : public TaskHead {
 public:
  // Activation, sizes and dropout are those of the encoder.
  WikihopHead(const EtcConfig& config, const WikihopHeadOptions& options);

  // {logits}: [B, G].
  std::vector<torch::Tensor> forward(const EtcOutput& encoded,
                                     const Batch& batch) override;

  // Cross entropy of each example (wikihop spec 6): [B]. Throws c10::Error if
  // an example has no answer.
  torch::Tensor Losses(const std::vector<torch::Tensor>& logits,
                       const Batch& batch) override;

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
