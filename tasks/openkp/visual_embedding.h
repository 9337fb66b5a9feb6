#ifndef ETC_TASKS_OPENKP_VISUAL_EMBEDDING_H_
#define ETC_TASKS_OPENKP_VISUAL_EMBEDDING_H_

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "etc/config.h"
#include "etc/embedding.h"
#include "tasks/data/batch.h"
#include "tasks/openkp/example.h"
#include "tasks/openkp/visual_features.h"
#include "tasks/task/benchmark_head.h"

namespace etc {

// A vector for each element of the page, from its layout (doc/openkp.md 5.1):
//
//   E = T_cross[cross id] + T_font[font id] + T_parent_font[parent's font id]
//       + F(dense)
//   F(d) = gelu(W2 gelu(W1 d + b1) + b2)
//
// Tables [8, H] and [24, H], W1 [H, D], W2 [H, H] (only with an extra layer)
// are truncated normal(0.02), biases 0.
class OpenkpVisualEmbeddingImpl : public torch::nn::Module {
 public:
  OpenkpVisualEmbeddingImpl(const EtcConfig& config,
                            const OpenkpVisualEmbeddingOptions& options);

  // [B, G, H]. Padding gets the vector of an element with all features 0.
  // Throws c10::Error if an example has no elements.
  torch::Tensor forward(const BenchmarkBatch<OpenkpExample>& batch);

 private:
  OpenkpVisualOptions features_;
  EmbeddingTable cross_ = nullptr, font_ = nullptr, parent_font_ = nullptr;
  torch::nn::Linear dense_ = nullptr;
  // Null without extra layer.
  torch::nn::Linear extra_dense_ = nullptr;
};
TORCH_MODULE(OpenkpVisualEmbedding);

// The rows of `elements` [B, G, H] that the long tokens of a batch belong to:
// [B, L, H]; those of padding are element 0's.
torch::Tensor LongFromElements(const torch::Tensor& elements,
                               const Batch& batch);

}  // namespace etc

#endif  // ETC_TASKS_OPENKP_VISUAL_EMBEDDING_H_
