#ifndef ETC_TASKS_NQ_HEAD_H_
#define ETC_TASKS_NQ_HEAD_H_

#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <vector>

#include "etc/config.h"
#include "tasks/task.h"

namespace etc {

struct NqHeadOptions {
  // Whether only [CLS] and pieces of the document take part in the softmax over
  // long tokens; else question, [SEP] and padding do, too.
  bool mask_long_output = true;
};

// Two linear layers (nq spec 4). With B examples, L long tokens, x the long
// output of the encoder:
//
//   spans        x w + b, each long token            [B, L, 4], see NqChannel
//   answer type  x[0] w + b, that of the long [CLS]   [B, 5], see NqAnswerType
//
// w are truncated normal with a standard deviation of 0.02, whatever the
// encoder's. The global output is not read.
class NqHead : public TaskHead {
 public:
  NqHead(const EtcConfig& config, const NqHeadOptions& options);

  // {spans, answer type}. With `mask_long_output` spans are -1e9 where they
  // take no part.
  std::vector<torch::Tensor> forward(const EtcOutput& encoded,
                                     const Batch& batch) override;

  // The mean of five cross entropies, those of the ends of short and long
  // answer over the long tokens and that of the type: [B] (nq spec 5). Throws
  // c10::Error if an example has no annotation.
  torch::Tensor Losses(const std::vector<torch::Tensor>& logits,
                       const Batch& batch) override;

 private:
  const NqHeadOptions options_;
  torch::nn::Linear answer_span_ = nullptr;
  torch::nn::Linear answer_type_ = nullptr;
};

}  // namespace etc

#endif  // ETC_TASKS_NQ_HEAD_H_
