#include "tasks/inputs/text_head.h"

#include <c10/util/Exception.h>

#include "base/apply_linear.h"
#include "etc/nn/activation.h"
#include "tasks/task/benchmark_head.h"

namespace etc {

torch::Tensor TextStates(const EtcOutput& encoded) {
  // BERT has no long tokens.
  return encoded.long_output.defined() && encoded.long_output.size(1) > 0
             ? encoded.long_output
             : encoded.global_output;
}

torch::Tensor Pool(const torch::Tensor& first,
                   const torch::nn::Linear& pooler) {
  return Activate(Activation::kTanh, ApplyLinear(first, pooler));
}

PooledClassifier::PooledClassifier(const EtcConfig& encoder, int64_t outputs,
                                   double dropout, torch::nn::Module* head)
    : dropout_(dropout),
      pooler_(RegisterHeadLinear("pooler", encoder, encoder.hidden_size, head)),
      classifier_(RegisterHeadLinear("classifier", encoder, outputs, head)) {}

torch::Tensor PooledClassifier::Logits(const EtcOutput& encoded,
                                       bool is_training) {
  TORCH_CHECK(encoded.global_output.dim() == 2,
              "outputs should be [examples, hidden], as of "
              "ReadTokens::kFirstGlobal, but are ",
              encoded.global_output.sizes());
  const torch::Tensor pooled = Pool(encoded.global_output, pooler_);
  return ApplyLinear(torch::dropout(pooled, dropout_, is_training),
                     classifier_);
}

}  // namespace etc
