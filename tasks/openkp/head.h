#ifndef ETC_TASKS_OPENKP_HEAD_H_
#define ETC_TASKS_OPENKP_HEAD_H_

#include <torch/nn/modules/normalization.h>
#include <torch/types.h>

#include <vector>

#include "etc/config.h"
#include "tasks/openkp/task.h"
#include "tasks/openkp/visual_embedding.h"
#include "tasks/task.h"
#include "tasks/typed_head.h"

namespace etc {

// The logit of a document's places that does not exist.
inline constexpr double kOpenkpNoNgramLogit = -10000.0;

// A logit for each n-gram of a document's words, n = 1, ..., K = 5
// (doc/openkp.md 5.2). With x the long output of the encoder, W the words of
// the longest document (at least K), H hidden:
//
//   y         sums of x over the tokens of a word, LayerNorm  [B, W, H]
//   c_n[s]    LayerNorm_n(gelu(b_n + sum_k A_n[k] y[s + k]))  [B, W - n + 1, H]
//   logit_n   c_n . u_n, and -10000
//             where word s + n - 1 is none                    [B, W]
//
// A_n [n, H, H] is truncated normal(0.02 / sqrt(n)), u_n [H] truncated
// normal(0.02), LayerNorms have epsilon 1e-12.
class OpenkpHead : public TypedHead<OpenkpExample, OpenkpLogits> {
 public:
  OpenkpHead(const EtcConfig& config, const OpenkpHeadOptions& options);

  // The layout of elements, for tokens and globals (doc/openkp.md 5.1).
  EmbeddingAdders Adders(const Batch& batch) override;

  OpenkpLogits<torch::Tensor> LogitsOf(
      const EtcOutput& encoded,
      const TypedBatch<OpenkpExample>& batch) override;

  // Cross entropy with a target that the places of the key phrases share
  // equally (doc/openkp.md 6): [B]. The classes are the n-grams that exist;
  // with official_compatibility all K * max_long_length places, of which those
  // that do not exist add a constant of up to 1.
  torch::Tensor LossesOf(const OpenkpLogits<torch::Tensor>& logits,
                         const TypedBatch<OpenkpExample>& batch) override;

 private:
  struct Ngram {
    torch::Tensor weight;  // A_n as [n, H, H]: [k, output, input]
    torch::Tensor bias;    // [H]
    torch::nn::LayerNorm norm = nullptr;
    torch::Tensor score;  // u_n: [H]
  };

  // The logits of n-grams of one length: [B, W - n + 1].
  torch::Tensor NgramLogits(const Ngram& ngram, const torch::Tensor& words);

  OpenkpHeadOptions options_;
  // Null if no input uses visual features.
  OpenkpVisualEmbedding visual_ = nullptr;
  torch::nn::LayerNorm word_norm_ = nullptr;
  std::vector<Ngram> ngrams_;
};

// The sums of long vectors by word: [B, W, H]; words without tokens and what
// lies behind the last word are 0. `encoded` is [B, L, H].
torch::Tensor SumsOfWords(const torch::Tensor& encoded,
                          const TypedBatch<OpenkpExample>& batch);

// The distribution that n-grams should have (doc/openkp.md 6.1), with C
// classes:
//
//   p = counts / (sum of counts + 1e-6) + max(mass, 1e-6) / C
//   target = p / sum of p
//
//   counts:  [B, K, W], how many key phrases stand at each place
//   classes: [B, K, W] bool, the places that count; 0 elsewhere
//   mass:    of the target, spread over all classes
//   returns: [B, K, W]; uniform if there are no key phrases
torch::Tensor NgramTargets(const torch::Tensor& counts,
                           const torch::Tensor& classes, double mass);

// -sum of target log softmax(logits) over the classes (doc/openkp.md 6.2): [B].
// All arguments are [B, K, W]; every row needs a class.
torch::Tensor NgramLosses(const torch::Tensor& logits,
                          const torch::Tensor& targets,
                          const torch::Tensor& classes);

}  // namespace etc

#endif  // ETC_TASKS_OPENKP_HEAD_H_
