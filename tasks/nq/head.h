#ifndef ETC_TASKS_NQ_HEAD_H_
#define ETC_TASKS_NQ_HEAD_H_

#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include "etc/config.h"
#include "tasks/nq/task.h"
#include "tasks/typed_head.h"

namespace etc {

// Two linear layers (doc/nq.md 4). With B examples, L long tokens, x the long
// output of the encoder:
//
//   ends         x w + b, each long token            [B, 4, L], see NqChannel
//   answer type  x[0] w + b, that of the long [CLS]   [B, 5], see NqAnswerType
//
// w are truncated normal with a standard deviation of 0.02, whatever the
// encoder's. The global output is not read.
class NqHead : public TypedHead<NqExample, NqLogits> {
 public:
  NqHead(const EtcConfig& config, const NqHeadOptions& options);

  // With `mask_long_output` the ends are -1e9 where they take no part.
  NqLogits<torch::Tensor> LogitsOf(const EtcOutput& encoded,
                                   const TypedBatch<NqExample>& batch) override;

  // The mean of five cross entropies, those of the ends of short and long
  // answer over the long tokens and that of the type: [B] (doc/nq.md 5).
  torch::Tensor LossesOf(const NqLogits<torch::Tensor>& logits,
                         const TypedBatch<NqExample>& batch) override;

 private:
  const NqHeadOptions options_;
  torch::nn::Linear answer_span_ = nullptr;
  torch::nn::Linear answer_type_ = nullptr;
};

}  // namespace etc

#endif  // ETC_TASKS_NQ_HEAD_H_
