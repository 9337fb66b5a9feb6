#ifndef ETC_TASKS_HOTPOTQA_HEAD_H_
#define ETC_TASKS_HOTPOTQA_HEAD_H_

#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include "etc/config.h"
#include "tasks/hotpotqa/task.h"
#include "tasks/typed_head.h"

namespace etc {

// Four linear layers (doc/hotpotqa.md 4). With B examples, L long and G global
// tokens, x the long and g the global output of the encoder:
//
//   supporting facts  g w + b, each global token          [B, G]
//   answer type       g[0] w + b, that of [CLS]           [B, 3]
//   begin, end        x w + b, each long token            [B, 2, L], or
//   classes           x w + b, each long token            [B, 3, L]
//
// w are truncated normal with a standard deviation of 0.02, whatever the
// encoder's.
class HotpotqaHead : public TypedHead<HotpotqaExample, HotpotqaLogits> {
 public:
  HotpotqaHead(const EtcConfig& config, const HotpotqaHeadOptions& options);

  // Begins and ends are -10000 at tokens that are neither text nor [CLS],
  // except with official_compatibility.
  HotpotqaLogits<torch::Tensor> LogitsOf(
      const EtcOutput& encoded,
      const TypedBatch<HotpotqaExample>& batch) override;

  // The mean of the losses of each of the above: [B] (doc/hotpotqa.md 5). Sums
  // of binary cross entropy over global tokens and of cross entropy over the
  // classes of long tokens, cross entropy for the others. The sums are over
  // paragraphs, titles and sentences, and over their long tokens; with
  // official_compatibility over the whole length of the batch. A begin or end
  // beyond the batch has no loss.
  torch::Tensor LossesOf(const HotpotqaLogits<torch::Tensor>& logits,
                         const TypedBatch<HotpotqaExample>& batch) override;

 private:
  HotpotqaHeadOptions options_;
  torch::nn::Linear supporting_facts_ = nullptr;
  torch::nn::Linear answer_type_ = nullptr;
  // One of the two is null.
  torch::nn::Linear answer_span_ = nullptr;
  torch::nn::Linear answer_bio_ = nullptr;
};

}  // namespace etc

#endif  // ETC_TASKS_HOTPOTQA_HEAD_H_
