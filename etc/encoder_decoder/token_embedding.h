#ifndef ETC_ETC_ENCODER_DECODER_TOKEN_EMBEDDING_H_
#define ETC_ETC_ENCODER_DECODER_TOKEN_EMBEDDING_H_

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>

namespace etc {

// Positions of tokens, [B, length] int64, of ids [B, length]: the j-th token of
// a row that is not padding, j = 1, 2, ..., has position 1 + j, wherever
// padding stands; padding has position 1 (doc/translation.md 1.3).
torch::Tensor PositionIds(const torch::Tensor& ids);

// Sinusoidal positions in halves, [positions, size] float64, `size` at least 4
// (doc/translation.md 1.3):
//
//   P[p, c] = sin(p f_c)    P[p, size / 2 + c] = cos(p f_c)
//   f_c = exp(-c ln(10000) / (size / 2 - 1)),   c = 0 .. size / 2 - 1
//
// Row 1, that of padding, is 0, as is the last column of an odd size.
torch::Tensor SinusoidalPositions(int64_t positions, int64_t size);

// A table of tokens with sinusoidal positions (doc/translation.md 1.3):
//
//   dropout(sqrt(d) weight[id] + P[position])
//
// Parameter `weight` [vocab_size, d], normal(1 / sqrt(d)) with 0 in the row of
// padding. Looking padding up gives its row no gradient.
class TokenEmbeddingImpl : public torch::nn::Module {
 public:
  // For sequences of at most `max_positions` tokens.
  TokenEmbeddingImpl(int64_t vocab_size, int64_t hidden_size,
                     int64_t max_positions);

  // ids [B, length], int64 or int32; `dropout` is a probability. Returns [B,
  // length, d]. Throws c10::Error for other shapes and dtypes, sequences that
  // are too long, and ids outside of the table (on the CPU).
  torch::Tensor forward(const torch::Tensor& ids, double dropout = 0.0);

  // The token that stands behind `before` others in its row, for each of ids
  // [rows]: [rows, 1, d]. Without padding and dropout. Throws as forward does.
  torch::Tensor At(const torch::Tensor& ids, int64_t before);

  const torch::Tensor& weight() const { return weight_; }

 private:
  // sqrt(d) weight[id], [..., d].
  torch::Tensor Scaled(const torch::Tensor& ids);
  // Rows of the table of positions, in the dtype and on the device of the
  // weight: [rows, d].
  torch::Tensor Positions(int64_t begin, int64_t end) const;

  int64_t max_positions_;
  torch::Tensor weight_;
  torch::Tensor positions_;  // no buffer: not part of checkpoints
};
TORCH_MODULE(TokenEmbedding);

}  // namespace etc

#endif  // ETC_ETC_ENCODER_DECODER_TOKEN_EMBEDDING_H_
