// Sparse attention by blocks of long queries: plain tensor operations, memory
// and time linear in the long length. `b` consecutive queries together see the
// keys of a span of b + 2r, so their scores are one matrix product, from which
// the windows are cut (windows.h).

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>

#include "attention/backends/blocked/windows.h"
#include "attention/backends/joint_softmax.h"
#include "attention/sparse_attention.h"

namespace etc {
namespace {

// [L, W], true where the window reaches beyond the sequence.
torch::Tensor KeysBeyondSequence(int64_t length, int64_t radius,
                                 const torch::Device& device) {
  const torch::Tensor keys = torch::arange(length, device).unsqueeze(1) +
                             torch::arange(-radius, radius + 1, device);
  return keys.lt(0).logical_or(keys.ge(length));
}

// Adds the relative term to l2l [B, N, L, W] and l2g [B, N, L, G] products.
void AddRelativeScores(const SparseAttentionInput& input,
                       const ExplicitInputs& tensors, torch::Tensor* own,
                       torch::Tensor* other) {
  TORCH_CHECK(input.relative.embedding.defined(),
              "relative ids are given, but there is no relative table");
  const int64_t heads = input.query.size(1);
  const torch::Tensor by_id = RelativeScoresById(input.query, input.relative);
  *own =
      *own + by_id.gather(
                 -1, tensors.l2l_ids.unsqueeze(1).expand({-1, heads, -1, -1}));
  *other = *other + by_id.gather(-1, tensors.l2g_ids.unsqueeze(1).expand(
                                         {-1, heads, -1, -1}));
}

SparseAttentionOutput LongAttention(const SparseAttentionInput& input,
                                    int64_t block) {
  const int64_t radius = input.local_radius;
  const int64_t window = 2 * radius + 1;
  const int64_t length = input.query.size(2);
  const int64_t globals = input.other_key.size(2);
  const ExplicitInputs tensors = input.attention->Tensors(
      input.query.size(0), length, globals, radius, input.query.device());

  const torch::Tensor products =  // [B, N, blocks, b, b + 2r]
      torch::matmul(
          SplitIntoBlocks(input.query, block),
          BlocksWithMargin(input.own_key, block, radius).transpose(-2, -1));
  torch::Tensor own =  // [B, N, L, W]
      JoinBlocks(UnskewElementsRight(products), length);
  torch::Tensor other =  // [B, N, L, G]
      torch::matmul(input.query, input.other_key.transpose(-2, -1));
  if (tensors.l2l_ids.defined()) {
    AddRelativeScores(input, tensors, &own, &other);
  }
  torch::Tensor scores =  // [B, N, L, W + G]
      torch::cat({own, other}, -1) /
      std::sqrt(static_cast<double>(input.query.size(3)));
  if (input.own_previous.defined()) {
    scores =
        scores + torch::cat({input.own_previous, input.other_previous}, -1);
  }

  const torch::Tensor mask =  // [B, 1, L, W + G]
      torch::cat({tensors.l2l_mask, tensors.l2g_mask}, -1).unsqueeze(1);
  const double divisor = ScoreDivisor(input);
  torch::Tensor probabilities = torch::softmax(
      (divisor == 1.0 ? scores : scores / divisor)
          .masked_fill(mask.logical_not(), LowestScore(scores.scalar_type())),
      -1);
  probabilities =
      torch::dropout(probabilities, input.dropout, input.dropout > 0.0);

  const torch::Tensor own_probabilities =  // [B, N, blocks, b, b + 2r]
      SkewElementsRight(
          SplitIntoBlocks(probabilities.narrow(-1, 0, window), block));
  torch::Tensor context =  // [B, N, L, d]
      JoinBlocks(
          torch::matmul(own_probabilities,
                        BlocksWithMargin(input.own_value, block, radius)),
          length) +
      torch::matmul(probabilities.narrow(-1, window, globals),
                    input.other_value);
  // Rows without any allowed key: their probabilities are equal, not 0.
  context = context * mask.any(-1, /*keepdim=*/true).to(context.dtype());
  if (input.residual == ResidualAttention::kOff) {
    return {.context = context};
  }
  return {.context = context,
          .own_scores =
              scores.narrow(-1, 0, window)
                  .masked_fill(
                      KeysBeyondSequence(length, radius, scores.device()), 0),
          .other_scores = scores.narrow(-1, window, globals)};
}

}  // namespace

// A span of b + 2r keys for windows of 2r + 1 wastes the less the smaller b is,
// but matrix products want some rows.
int64_t DefaultBlockLength(int64_t local_radius) {
  return std::clamp<int64_t>(local_radius / 2, int64_t{16}, 64);
}

SparseAttentionOutput BlockedSparseAttention(
    const SparseAttentionInput& input,
    const BlockedSparseAttentionOptions& options) {
  CheckSparseAttentionShapes(input);
  if (input.side == QuerySide::kGlobal) {
    return GlobalAttention(input);
  }
  return LongAttention(input, options.block_length > 0
                                  ? options.block_length
                                  : DefaultBlockLength(input.local_radius));
}

}  // namespace etc
