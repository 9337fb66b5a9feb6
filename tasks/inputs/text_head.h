#ifndef ETC_TASKS_INPUTS_TEXT_HEAD_H_
#define ETC_TASKS_INPUTS_TEXT_HEAD_H_

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <cstdint>

#include "etc/config.h"
#include "etc/model.h"

namespace etc {

// tanh(first W + b), [B, H].
torch::Tensor Pool(const torch::Tensor& first, const torch::nn::Linear& pooler);

// Parts of heads that read texts (tasks/inputs/text_input.h), of ETC or BERT.

// The encoder's outputs of the tokens of texts, [CLS] first: [B, T, H].
torch::Tensor TextStates(const EtcOutput& encoded);

// A linear layer on a representation of whole texts (Devlin et al. 2019, BERT;
// doc/glue.md 5), the output s of BERT's [CLS] or ETC's first global token:
//
//   pooled = dropout(tanh(s Wp + bp))     [B, H]
//   logits = pooled W^T + b               [B, C]
//
// Its parameters are `pooler` and `classifier` of the head; those of a pooler
// that was pre-trained are taken over.
class PooledClassifier {
 public:
  // Registers its layers in `head`.
  PooledClassifier(const EtcConfig& encoder, int64_t outputs, double dropout,
                   torch::nn::Module* head);

  // Returns the logits, of a head that reads ReadTokens::kFirstGlobal.
  torch::Tensor Logits(const EtcOutput& encoded, bool is_training);

 private:
  const double dropout_;
  torch::nn::Linear pooler_;
  torch::nn::Linear classifier_;
};

}  // namespace etc

#endif  // ETC_TASKS_INPUTS_TEXT_HEAD_H_
