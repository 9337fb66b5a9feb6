#include "etc/encoder_decoder/token_embedding.h"

#include <c10/util/Exception.h>

#include <cmath>

#include "base/check_tensor.h"
#include "base/initializers.h"
#include "etc/encoder_decoder/config.h"
#include "etc/nn/residual_norm.h"

namespace etc {

torch::Tensor PositionIds(const torch::Tensor& ids) {
  const torch::Tensor is_token = ids.ne(kPaddingId).to(torch::kInt64);
  return is_token.cumsum(1).mul_(is_token).add_(kPaddingId);
}

torch::Tensor SinusoidalPositions(int64_t positions, int64_t size) {
  TORCH_CHECK(positions >= 0 && size >= 4,
              "a table of positions should be at least [0, 4], but is [",
              positions, ", ", size, "]");
  const int64_t half = size / 2;
  const torch::Tensor frequencies =
      torch::arange(half, torch::kFloat64)
          .mul_(-std::log(10000.0) / static_cast<double>(half - 1))
          .exp_();
  const torch::Tensor angles =
      torch::outer(torch::arange(positions, torch::kFloat64), frequencies);
  torch::Tensor table = torch::zeros({positions, size}, torch::kFloat64);
  table.narrow(1, 0, half).copy_(angles.sin());
  table.narrow(1, half, half).copy_(angles.cos());
  if (positions > kPaddingId) {
    table[kPaddingId].zero_();
  }
  return table;
}

TokenEmbeddingImpl::TokenEmbeddingImpl(int64_t vocab_size, int64_t hidden_size,
                                       int64_t max_positions)
    : max_positions_(max_positions),
      // Positions begin behind that of padding.
      positions_(
          SinusoidalPositions(max_positions + kPaddingId + 1, hidden_size)) {
  torch::Tensor weight = torch::empty({vocab_size, hidden_size});
  Normal_(weight, 1.0 / std::sqrt(static_cast<double>(hidden_size)));
  weight[kPaddingId].zero_();
  weight_ = register_parameter("weight", weight);
}

torch::Tensor TokenEmbeddingImpl::Scaled(const torch::Tensor& ids) {
  CheckIntegers(ids, "ids");
  CheckSameDevice(ids, "ids", weight_, "the table of tokens");
  // Elsewhere the check would stop the stream; the device has its own.
  if (ids.numel() > 0 && ids.is_cpu()) {
    const int64_t lowest = ids.min().item<int64_t>();
    const int64_t highest = ids.max().item<int64_t>();
    TORCH_CHECK(lowest >= 0 && highest < weight_.size(0),
                "ids should be in [0, ", weight_.size(0), "), but range from ",
                lowest, " to ", highest);
  }
  return torch::embedding(weight_, ids, kPaddingId)
      .mul(std::sqrt(static_cast<double>(weight_.size(1))));
}

torch::Tensor TokenEmbeddingImpl::Positions(int64_t begin, int64_t end) const {
  return positions_.narrow(0, begin, end - begin).to(weight_.options());
}

torch::Tensor TokenEmbeddingImpl::forward(const torch::Tensor& ids,
                                          double dropout) {
  TORCH_CHECK(ids.defined() && ids.dim() == 2,
              "ids should be [batch, length], but are ",
              ids.defined() ? ids.sizes() : at::IntArrayRef());
  const int64_t length = ids.size(1);
  TORCH_CHECK(length <= max_positions_, "sequences should have at most ",
              max_positions_, " tokens, but one has ", length);
  const torch::Tensor tokens = Scaled(ids);  // [B, length, d]
  const torch::Tensor sum =                  // [B, length, d]
      Positions(0, length + kPaddingId + 1)
          .index_select(0, PositionIds(ids).flatten())
          .view(tokens.sizes())
          .add_(tokens);
  return dropout == 0.0 ? sum
                        : ResidualSum({.change = sum, .dropout = dropout});
}

torch::Tensor TokenEmbeddingImpl::At(const torch::Tensor& ids, int64_t before) {
  TORCH_CHECK(ids.defined() && ids.dim() == 1, "ids should be [rows], but are ",
              ids.defined() ? ids.sizes() : at::IntArrayRef());
  TORCH_CHECK(before >= 0 && before < max_positions_,
              "sequences should have at most ", max_positions_,
              " tokens, but one has ", before + 1);
  const int64_t position = before + kPaddingId + 1;
  return Scaled(ids).add(Positions(position, position + 1)).unsqueeze(1);
}

}  // namespace etc
