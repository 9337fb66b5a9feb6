#ifndef ETC_ATTENTION_MULTI_HEAD_ATTENTION_H_
#define ETC_ATTENTION_MULTI_HEAD_ATTENTION_H_

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>

#include "attention/dot_product_attention.h"
#include "attention/global_local_attention.h"
#include "attention/residual_scores.h"
#include "attention/softmax_pattern.h"
#include "attention/sparse_attention.h"
#include "base/linear.h"

namespace etc {

// Sizes of a module, and its relative positions and dropout.
struct MultiHeadAttentionOptions {
  // Features of a query token, and of an output.
  int64_t hidden_size = 768;
  // Features of a key and of a value token; 0: hidden_size.
  int64_t key_size = 0;
  int64_t value_size = 0;
  int64_t num_heads = 12;
  // Features per head; queries, keys and values have num_heads * head_size.
  int64_t head_size = 64;
  // m, the largest distance that relative positions tell apart, at most
  // kMostRelativeDistance; 0: none. The table has RelativeVocabSize(m) rows
  // (attention/pattern.h).
  int64_t relative_pos_max_distance = 0;
  // Probability of dropping an attention weight, in [0, 1). Training only.
  double dropout = 0.1;
  // Standard deviation of the truncated normal for kernels.
  double initializer_range = 0.02;
  // As in GlobalLocalAttentionOptions.
  std::optional<double> residual_gate_init = std::nullopt;
  AttentionImplementation implementation = AttentionImplementation::kAuto;
};

// Scores carried from the layers below, over one block of keys.
struct CarriedKeyScores {
  ResidualOptions residual = {};
  // Come from a layer in which each query saw at least the keys that it sees in
  // this one (ResidualScores).
  ResidualKeyScores previous = {};
};

// The queries behind the output projection, and the scores.
struct MultiHeadAttentionOutput {
  torch::Tensor output = {};      // [B, T, hidden_size]
  ResidualKeyScores scores = {};  // for the layer above; undefined with kOff
};

// Keys and values behind their projections, for several calls with the same
// ones: those of cross attention, caches of incremental decoding.
struct KeyValueHeads {
  torch::Tensor key = {};    // [B, N, S, head_size]
  torch::Tensor value = {};  // [B, N, S, head_size]
};

// Multi-head attention (Vaswani et al. 2017) of T query tokens to S key tokens,
// the same ones (self attention) or others (cross attention), with residual
// scores (He et al. 2021) and the relative positions of Shaw et al. (2018) as
// ETC has them, both optional:
//
//   scores = (q . k + q . E[id] + bias[id]) / sqrt(head_size) + previous
//   output = output projection of softmax over visible keys of scores . v
//
// with q, k and v the projections of the three sources. With the same weights
// and head_size = hidden_size / num_heads it computes what
// torch::nn::MultiheadAttention does, batch first. A query that sees no key has
// a context of 0 (torch: NaN), and its output is the bias.
//
// Modules `query`, `key`, `value`, `output` (linear layers) and `relative`;
// parameter `gate` [num_heads] if that is asked for.
// Throws c10::Error on options that contradict each other.
class MultiHeadAttentionImpl : public torch::nn::Module {
 public:
  explicit MultiHeadAttentionImpl(const MultiHeadAttentionOptions& options);

  // Sources [B, T, hidden_size], [B, S, key_size] and [B, S, value_size].
  // `pattern` is over T queries and S keys, with the relative distance of the
  // layer (AllKeysPattern, CausalPattern, ...; attention/softmax_pattern.h); by
  // default every query sees every key. True in its masks means allowed, unlike
  // in torch's key_padding_mask. Throws c10::Error if shapes, dtypes, devices
  // or distances disagree, for carried scores of a layer in which a query did
  // not see all keys that it sees in this one, and with kGate for carried
  // scores that meet a layer without a gate.
  MultiHeadAttentionOutput forward(const torch::Tensor& query,
                                   const torch::Tensor& key,
                                   const torch::Tensor& value,
                                   const SoftmaxPattern& pattern = {},
                                   const CarriedKeyScores& carried = {});

  // The two halves of `forward`, with the same errors: the projections of S
  // keys and values, and the attention of T queries to those.
  KeyValueHeads Project(const torch::Tensor& key, const torch::Tensor& value);
  MultiHeadAttentionOutput Attend(const torch::Tensor& query,
                                  const KeyValueHeads& heads,
                                  const SoftmaxPattern& pattern = {},
                                  const CarriedKeyScores& carried = {});

  const MultiHeadAttentionOptions& options() const { return options_; }
  void set_implementation(AttentionImplementation implementation) {
    options_.implementation = implementation;
  }
  // As in GlobalLocalAttention.
  void set_linear_precision(LinearPrecision precision) {
    products_.set_precision(precision);
  }

  // The same module, in the same mode, with parameters of its own, on `device`
  // if that is given. Draws no random numbers; gradients are not copied.
  std::shared_ptr<torch::nn::Module> clone(
      const c10::optional<torch::Device>& device = c10::nullopt) const override;

  // Prints the name with the options.
  void pretty_print(std::ostream& stream) const override;

 private:
  void clone_(torch::nn::Module& other,
              const c10::optional<torch::Device>& device) override;

  void CheckQuery(const torch::Tensor& query) const;
  // `batch`: that of the queries; absent: the keys'.
  void CheckKeys(const torch::Tensor& key, const torch::Tensor& value,
                 std::optional<int64_t> batch = std::nullopt) const;
  // `query`: [B, N, T, head_size].
  MultiHeadAttentionOutput AttendTo(const torch::Tensor& query,
                                    const KeyValueHeads& heads,
                                    const SoftmaxPattern& pattern,
                                    const CarriedKeyScores& carried);
  KeyValueHeads HeadsOf(const torch::Tensor& key,
                        const torch::Tensor& value) const;
  // [B, length, size] -> [B, N, length, head_size] of each projection.
  std::vector<torch::Tensor> Heads(
      const LinearInput& input,
      const std::vector<torch::nn::Linear>& projections) const;

  MultiHeadAttentionOptions options_;
  LinearProducts products_;
  torch::nn::Linear query_ = nullptr, key_ = nullptr, value_ = nullptr;
  torch::nn::Linear output_ = nullptr;
  RelativePositions relative_ = nullptr;
  torch::Tensor gate_;
};
TORCH_MODULE(MultiHeadAttention);

}  // namespace etc

#endif  // ETC_ATTENTION_MULTI_HEAD_ATTENTION_H_
