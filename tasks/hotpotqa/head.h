#ifndef ETC_TASKS_HOTPOTQA_HEAD_H_
#define ETC_TASKS_HOTPOTQA_HEAD_H_

#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <vector>

#include "etc/config.h"
#include "tasks/task.h"

namespace etc {

// How the head points at an answer: by the probabilities of begin and end, or
// by a class of HotpotqaBio for each token.
enum class HotpotqaAnswerEncoding { kSpan, kBio };

struct HotpotqaHeadOptions {
  HotpotqaAnswerEncoding answer_encoding = HotpotqaAnswerEncoding::kSpan;
  // Whether padding and question take part in softmax and losses.
  bool official_compatibility = false;
};

// Four linear layers (hotpotqa spec 4). With B examples, L long and G global
// tokens, x the long and g the global output of the encoder:
//
//   supporting facts  g w + b, each global token          [B, G]
//   answer type       g[0] w + b, that of [CLS]           [B, 3]
//   begin, end        x w + b, each long token            [B, L] each, or
//   classes           x w + b, each long token            [B, L, 3]
//
// w are truncated normal with a standard deviation of 0.02, whatever the
// encoder's.
class HotpotqaHead : public TaskHead {
 public:
  HotpotqaHead(const EtcConfig& config, const HotpotqaHeadOptions& options);

  // {supporting facts, answer type, begin, end} or {supporting facts, answer
  // type, classes}. Begins and ends are -10000 at tokens that are neither text
  // nor [CLS], except with official_compatibility.
  std::vector<torch::Tensor> forward(const EtcOutput& encoded,
                                     const Batch& batch) override;

  // The mean of the losses of each of the above: [B] (hotpotqa spec 5). Sums of
  // binary cross entropy over global tokens and of cross entropy over the
  // classes of long tokens, cross entropy for the others. The sums are over
  // paragraphs, titles and sentences, and over their long tokens; with
  // official_compatibility over the whole length of the batch. A begin or end
  // beyond the batch has no loss. Throws c10::Error if an example has no
  // answer.
  torch::Tensor Losses(const std::vector<torch::Tensor>& logits,
                       const Batch& batch) override;

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
