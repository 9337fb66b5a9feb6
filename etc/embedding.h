#ifndef ETC_ETC_EMBEDDING_H_
#define ETC_ETC_EMBEDDING_H_

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>
#include <string>

#include "etc/config.h"

namespace etc {

// A table of vectors, looked up by id, and a projection when they are narrower
// or wider than wanted (doc/model.md 2). Parameters: `weight` [rows, width],
// truncated normal(initializer_range); `projection.weight` and `.bias`,
// truncated normal(1 / sqrt(width)) and zeros.
class EmbeddingTableImpl : public torch::nn::Module {
 public:
  // `projection_size` 0 or equal to `width`: no projection.
  EmbeddingTableImpl(int64_t rows, int64_t width, int64_t projection_size,
                     double initializer_range);

  // ids int64 of any shape, each in [0, rows) where `mask` (same shape, bool,
  // may be undefined) is true. Returns [..., width or projection_size], exactly
  // 0 where the mask is false. Throws c10::Error, with `name` for the ids, for
  // ids out of range, of other dtypes or on another device.
  torch::Tensor forward(const torch::Tensor& ids,
                        const torch::Tensor& mask = {},
                        const std::string& name = "ids");

  const torch::Tensor& weight() const { return weight_; }

 private:
  torch::Tensor weight_;
  torch::nn::Linear projection_ = nullptr;
};
TORCH_MODULE(EmbeddingTable);

struct EtcInput;

struct EmbeddedInput {
  torch::Tensor long_input;    // [B, L, H]
  torch::Tensor global_input;  // [B, G, H]
};

// The input layer of ETC (doc/model.md 2): for each stream
//
//   dropout(LayerNorm(token + segment [+ position] [+ adder]))
//
// Both streams share the token and the segment table; LayerNorms, position
// tables and dropout draws are their own (where has_long_tokens is false, the
// long stream has none). A segment id outside of its table gives a zero vector.
class EtcEmbeddingImpl : public torch::nn::Module {
 public:
  explicit EtcEmbeddingImpl(const EtcConfig& config);

  // With `recomputes`, a training pass saves 1 byte per element (the dropout
  // mask) instead of 8 and computes lookup and LayerNorm again in backward.
  // Results are the same.
  EmbeddedInput forward(const EtcInput& input, bool recomputes = false);

  const torch::Tensor& token_table() const;

 private:
  struct Stream;
  torch::Tensor EmbedStream(const Stream& stream, bool recomputes);
  // The same ahead of dropout.
  torch::Tensor NormedStream(const Stream& stream);

  int64_t hidden_size_;
  int64_t segment_vocab_size_;
  bool has_long_tokens_;
  double dropout_;
  EmbeddingTable token_ = nullptr;
  EmbeddingTable segment_ = nullptr;
  EmbeddingTable long_position_ = nullptr, global_position_ = nullptr;
  torch::nn::LayerNorm long_norm_ = nullptr, global_norm_ = nullptr;
};
TORCH_MODULE(EtcEmbedding);

}  // namespace etc

#endif  // ETC_ETC_EMBEDDING_H_
